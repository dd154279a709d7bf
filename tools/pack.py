"""Pack what was measured into the data files of `pallas_lint/compat/data`."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import mosaic_gpu
import packed_outcomes
import subcores
import unpack
from outcome_table import DEVICES, OutcomeTable, dtype_of, rows_of
from packed_outcomes import write_json

from pallas_lint.compat import histories


def version_key(version: str) -> tuple[int, ...]:
    """Sort key of a version."""
    return tuple(int(part) for part in version.split("."))


def grouped(masks: dict[str, int]) -> list[tuple[str, str]]:
    """Names by mask: most names share one of a few histories."""
    groups: dict[int, list[str]] = {}
    for name, mask in sorted(masks.items()):
        groups.setdefault(mask, []).append(name)
    return [(f"{mask:x}", " ".join(names)) for mask, names in groups.items()]


def load_apis(folder: Path) -> dict[str, dict[str, Any]]:
    """What `apis.py` wrote, by version, the oldest first."""
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    return {version: found[version] for version in sorted(found, key=version_key)}


def pack_apis(apis: dict[str, dict[str, Any]], out: Path) -> None:
    """Names, members, modules, deprecations and parameters over all versions."""
    versions = list(apis)
    names: dict[str, dict[str, int]] = {}
    members: dict[str, dict[str, int]] = {}
    modules: dict[str, int] = {}
    deprecated: dict[str, list[Any]] = {}
    gone: dict[str, int] = {}
    messages: list[str] = []

    def message(text: str) -> int:
        if text not in messages:
            messages.append(text)
        return messages.index(text)

    for index, version in enumerate(versions):
        bit = 1 << index
        data = apis[version]
        for module in data["modules"]:
            modules[module] = modules.get(module, 0) | bit
        for kind, into in (("names", names), ("members", members)):
            for owner, found in data[kind].items():
                held = into.setdefault(owner, {})
                for name in found:
                    if not name.startswith("_"):
                        held[name] = held.get(name, 0) | bit
        for name, text in data["deprecated"].items():
            entry = deprecated.setdefault(name, [0, 0])
            entry[0] |= bit
            entry[1] = message(text)
        for name, text in data["gone"].items():
            gone[name] = message(text)
    write_json(
        out / "apis.json.gz",
        {
            "modules": {name: f"{mask:x}" for name, mask in sorted(modules.items())},
            "names": {owner: grouped(masks) for owner, masks in sorted(names.items())},
            "members": {owner: grouped(masks) for owner, masks in sorted(members.items())},
            "deprecated": {name: [f"{mask:x}", text] for name, (mask, text) in sorted(deprecated.items())},
            "gone": dict(sorted(gone.items())),
            "messages": messages,
        },
    )
    parameters: dict[str, list[tuple[int, str | None]]] = {}
    for index, version in enumerate(versions):
        data = apis[version]
        for owner, found in data["names"].items():
            for name in found:
                canonical = f"{owner}.{name}"
                listed = data["parameters"].get(canonical)
                text = " ".join(listed) if listed is not None else None
                history = parameters.setdefault(canonical, [])
                if (history[-1][1] if history else None) != text:
                    history.append((index, text))
    write_json(
        out / "parameters.json.gz",
        {name: histories.spell(found) for name, found in sorted(parameters.items()) if found},
    )


def load_registries(folder: Path, version: str) -> dict[str, list[str]]:
    """What `registries.py` wrote of a version."""
    path = folder / f"{version}.json"
    if not path.exists():
        raise SystemExit(f"no registries for jax {version}: run the registries stage")
    found: dict[str, list[str]] = json.loads(path.read_text())["registries"]
    return found


def pack_primitives(by_version: dict[str, dict[str, list[str]]], out: Path) -> None:
    """Lowering registries as masks over the known versions."""
    registries: dict[str, dict[str, int]] = {}
    exists: dict[str, int] = {}
    for index, found_there in enumerate(by_version.values()):
        for registry, found in found_there.items():
            exists[registry] = exists.get(registry, 0) | 1 << index
            held = registries.setdefault(registry, {})
            for name in found:
                held[name] = held.get(name, 0) | 1 << index
    write_json(
        out / "primitives.json.gz",
        {
            "exists": {name: f"{mask:x}" for name, mask in sorted(exists.items())},
            "registries": {name: grouped(masks) for name, masks in sorted(registries.items())},
        },
    )


def pack_functions(work: Path, measured: list[str], out: Path, before: OutcomeTable | None = None) -> int:
    """Lowering, compile and hardware results of every measured version; those of the first ones may be there before."""
    functions = before or OutcomeTable([])
    kept, functions.measured = len(functions.measured), measured
    for index, version in list(enumerate(measured))[kept:]:
        _add_version(functions, work, version, index)
    return _write_functions(functions, out)


def _add_version(functions: OutcomeTable, work: Path, version: str, index: int) -> None:
    """What was measured with one version."""
    rows = _lowered_rows(work, version)
    unstorable = _unstorable(rows)
    for row in rows:
        key, dtype = (row["f"], row["v"]), dtype_of(row)
        if "p" in row:
            functions.primitives.setdefault(row["f"], {}).setdefault(index, set()).update(row["p"])
        for backend in ("triton", "tpu"):
            result = _lowered(row, backend, unstorable)
            if result is not None:
                functions.add(key, backend, index, dtype, result)
    for device in DEVICES:
        _add_compiled(functions, work, version, index, device)
    mosaic_gpu.add(functions, work, version, index)
    subcores.add(functions, work, version, index)
    on_gpu = work / f"hardware-triton-{version}.jsonl"
    if on_gpu.exists():
        functions.has_compiled("triton:h200", index)
        _add_hardware(functions, on_gpu, "triton", index, {row["f"] for row in rows})


def _lowered_rows(work: Path, version: str) -> list[dict[str, Any]]:
    return [row for row in rows_of(work / f"lower-{version}.jsonl") if "modes" not in row]


def _lowered(row: dict[str, Any], backend: str, unstorable: dict[tuple[str, str], list[Any]]) -> list[Any] | None:
    """The result of lowering a case for a backend, if it was measured."""
    result = [row["s"], "", None] if "s" in row else row.get(backend)
    if result is not None and result[0] == "h":
        return unstorable.get((backend, dtype_of(row)), result)
    return result


def _add_compiled(functions: OutcomeTable, work: Path, version: str, index: int, device: str) -> None:
    """The result of compiling for a TPU, if it was measured; functions that were not measured anew stay."""
    if not (work / "done" / f"compile-{version}-{device}").exists():
        return
    rows = _lowered_rows(work, version)
    by_key = {row["k"]: row["r"] for row in rows_of(work / f"compile-{version}-{device}.jsonl")}
    target = f"tpu:{device}"
    anew = index in functions.compiled.get(target, ())
    functions.has_compiled(target, index)
    unstorable, unloadable = _unstorable(rows), _unloadable(rows, by_key)
    for row in rows:
        lowered = _lowered(row, "tpu", unstorable)
        if lowered is None:
            continue
        verdict = _compiled(row, lowered, by_key)
        if verdict[0] == "-" and not row["v"].startswith("scalar"):
            verdict = unloadable.get(row["d"], verdict)
        if not anew or verdict[0] != "-":
            functions.add((row["f"], row["v"]), target, index, dtype_of(row), verdict)


def _write_functions(functions: OutcomeTable, out: Path) -> int:
    functions.soften()
    write_json(out / "ingredients.json.gz", functions.primitive_histories())
    return packed_outcomes.write(functions, out)


def _unstorable(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str], list[Any]]:
    """Dtypes whose tile cannot even be loaded and stored, with the message."""
    found = {}
    for row in rows:
        if row["f"] == "kernel:identity" and row["v"] == "plain":
            for backend in ("triton", "tpu"):
                if backend in row and row[backend][0] not in ("k", "h"):
                    found[backend, row["d"]] = row[backend][:3]
    return found


def _unloadable(rows: Iterable[dict[str, Any]], by_key: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Dtypes of which not even a tile can be copied, with the compiler's message: nothing else works then."""
    found = {}
    for row in rows:
        if row["f"] == "kernel:identity" and row["v"] == "plain" and row["tpu"][0] == "k":
            verdict = _compiled(row, row["tpu"], by_key)
            if verdict[0] == "c":
                found[row["d"]] = verdict
    return found


def _compiled(row: dict[str, Any], lowered: list[Any], by_key: dict[str, list[Any]]) -> list[Any]:
    """The compiler's result; of what does not lower for v5e, the other generations may have another rule."""
    if lowered[0] not in "kl" or len(lowered) < len(("status", "message", "primitive", "plan", "text")):
        return lowered
    compiled = by_key.get(lowered[4] or "|".join((row["f"], row["v"], row["d"])))
    return compiled or (["-", "", None] if lowered[0] == "k" else lowered)


def _reviewed(row: dict[str, Any]) -> list[Any]:
    """A difference on hardware counts as wrong only where it was looked at.

    argmax and argmin over all axes return another element's index (checked with distinct values, f32, i32
    and u32). The rest were rounding in 16-bit sums and products, divisions by False, and int4 stores.
    """
    name = row["f"].rpartition(".")[2].rpartition(":")[2]
    if row["r"][0] != "w":
        return list(row["r"])
    if name in ("argmax", "argmin", "nanargmax", "nanargmin") and row["v"] in ("plain", "all"):
        return ["w", "the index of another element, for a reduction over all axes", None]
    if row["v"] == "i4":
        return ["-", "", None]
    return ["k", "", None]


def _add_hardware(functions: OutcomeTable, path: Path, backend: str, index: int, names: Collection[str]) -> None:
    """The results of a real GPU for these functions, over those of lowering."""
    verdicts = {(row["f"], row["v"], dtype_of(row)): _reviewed(row) for row in rows_of(path) if "r" in row}
    for key, by_target in functions.table.items():
        lowered = by_target.get(backend, {}).get(index)
        if lowered is None or key[0] not in names:
            continue
        for dtype, number in lowered.items():
            letter, primitive, message = functions.outcomes[number]
            result: list[Any] = [letter, message, primitive]
            if letter == "k":
                result = verdicts.get((*key, dtype), result)
            functions.add(key, f"{backend}:h200", index, dtype, result)


def pack(work: Path, out: Path, measured_with: dict[str, str]) -> None:
    """Write every data file. `measured_with` is libtpu's version for each measured jax."""
    out.mkdir(parents=True, exist_ok=True)
    apis = load_apis(work / "api")
    measured = sorted((path.name.partition("-")[2] for path in (work / "done").glob("lower-[0-9]*")), key=version_key)
    pack_apis(apis, out)
    pack_primitives({version: load_registries(work / "reg", version) for version in apis}, out)
    count = pack_functions(work, measured, out)
    versions = {
        "schema": 1,
        "known": list(apis),
        "measured": measured,
        # Every case of a sample lowered for ROCm as it does for CUDA: one table serves both.
        "same": {"triton:rocm": "triton"},
        "libtpu": {version: measured_with.get(version, "") for version in measured},
    }
    finish(out, versions, count)


def add(work: Path, out: Path, version: str, libtpu: str) -> None:
    """Add one version, newer than all that are there, to the data. What was measured before stays as it is packed."""
    versions = json.loads((out / "versions.json").read_text(encoding="utf-8"))
    known, measured = versions["known"], versions["measured"]
    if version_key(version) <= max(map(version_key, known)):
        raise SystemExit(f"jax {version} is not newer than {known[-1]}: build the data anew")
    pack_apis({**unpack.apis(out, known), version: load_apis(work / "api")[version]}, out)
    registries = unpack.registries(out, known)
    pack_primitives({**registries, version: load_registries(work / "reg", version)}, out)
    count = pack_functions(work, [*measured, version], out, unpack.functions(out, measured))
    versions |= {"known": [*known, version], "measured": [*measured, version]}
    versions["libtpu"][version] = libtpu
    finish(out, versions, count)


def add_devices(work: Path, out: Path, devices: Collection[str], releases: Collection[str]) -> None:
    """Add what was compiled for these TPUs with the versions `releases`, all of which the data have, to the data."""
    versions = json.loads((out / "versions.json").read_text(encoding="utf-8"))
    measured: list[str] = versions["measured"]
    functions = unpack.functions(out, measured)
    for version in releases:
        for device in devices:
            _add_compiled(functions, work, version, measured.index(version), device)
    finish(out, versions, _write_functions(functions, out))


def measured_versions(out: Path) -> tuple[str, ...]:
    """The versions that the packed data have measured."""
    return tuple(json.loads((out / "versions.json").read_text(encoding="utf-8"))["measured"])


def compiled_versions(out: Path, device: str) -> tuple[str, ...]:
    """The measured versions with which kernels were compiled for a TPU."""
    measured = measured_versions(out)
    return tuple(measured[index] for index in unpack.functions(out, [*measured]).compiled.get(f"tpu:{device}", ()))


def replace(work: Path, out: Path, names: Collection[str]) -> None:
    """The data of these functions, from what was measured anew; everything else stays as it is packed."""
    versions = json.loads((out / "versions.json").read_text(encoding="utf-8"))
    measured: list[str] = versions["measured"]
    functions = unpack.functions(out, measured)
    functions.forget(names)
    others = copy.deepcopy(functions.table)
    for index, version in enumerate(measured):
        _add_version(functions, work, version, index)
    functions.table |= others  # some of them were measured again, to judge these
    finish(out, versions, _write_functions(functions, out))


def finish(out: Path, versions: dict[str, Any], count: int) -> None:
    """Write which versions the data are of, and print how large they are."""
    (out / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
    sizes = {path.name: path.stat().st_size for path in sorted(out.iterdir())}
    print("functions", count, "bytes", sizes, "total", sum(sizes.values()))
