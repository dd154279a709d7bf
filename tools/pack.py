"""Pack what was measured into the data files of `pallas_lint/compat/data`."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

DTYPES = ("f32", "bf16", "f16", "i32", "i8", "u32", "bool")
NOT_MEASURED = ("-", None, None)
MESSAGE_LIMIT = 120
# These only hold other primitives: naming them says nothing.
_CALLS = frozenset({"pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"})


def version_key(version: str) -> tuple[int, ...]:
    """Sort key of a version."""
    return tuple(int(part) for part in version.split("."))


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a JSON-lines file that are whole."""
    if path.exists():
        with path.open() as lines:
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    continue


def write(path: Path, content: Any) -> None:
    """Write compressed JSON; the same content always gives the same bytes."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


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
    write(
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
    write(out / "parameters.json.gz", {name: found for name, found in sorted(parameters.items()) if found})


def pack_primitives(folder: Path, versions: list[str], out: Path) -> None:
    """Lowering registries as masks over the known versions."""
    registries: dict[str, dict[str, int]] = {}
    exists: dict[str, int] = {}
    for index, version in enumerate(versions):
        path = folder / f"{version}.json"
        if not path.exists():
            raise SystemExit(f"no registries for jax {version}: run the registries stage")
        for registry, found in json.loads(path.read_text())["registries"].items():
            exists[registry] = exists.get(registry, 0) | 1 << index
            held = registries.setdefault(registry, {})
            for name in found:
                held[name] = held.get(name, 0) | 1 << index
    write(
        out / "primitives.json.gz",
        {
            "exists": {name: f"{mask:x}" for name, mask in sorted(exists.items())},
            "registries": {name: grouped(masks) for name, masks in sorted(registries.items())},
        },
    )


def unimplemented(message: str) -> str | None:
    """The primitive that a backend says it has no rule for."""
    found = re.match(r"(?:Unimplemented|Unsupported) primitive[^:]*: ([\w-]+)", message)
    return found.group(1) if found else None


def clean(message: str) -> str:
    """The message without what belongs to the measuring: places in the recipes, addresses, wrappers."""
    if "The kernel function in the pallas_call" in message and " cap" in message:
        return "the function makes an array constant, which a kernel cannot capture"
    message = re.sub(r"^(?:INTERNAL: )?Mosaic failed to compile TPU kernel: ", "", message)
    message = re.sub(r"^Lowering(?:Exception|Error): (?=\w+:)", "", message)
    message = re.sub(r"\b\d{9,}\b", "…", message)
    message = re.sub(r": %\d+ = .*$", "", message)
    if message.startswith('error: "'):
        said = re.search(r"\)+: ([^()\"]+)$", message)
        return said.group(1) if said else "refused by the verifier of the compiler's own language"
    return message.rstrip(": ")


class Functions:
    """Collects outcomes and gives equal ones one number."""

    def __init__(self, measured: list[str]) -> None:
        self.measured = measured
        self.outcomes: list[tuple[str, str | None, str | None]] = [NOT_MEASURED]
        self._outcome_numbers = {NOT_MEASURED: 0}
        # (function, variant) → target → version index → dtype → outcome number
        self.table: dict[tuple[str, str], dict[str, dict[int, dict[str, int]]]] = {}
        self.primitives: dict[str, dict[int, set[str]]] = {}
        self.compiled: dict[str, list[int]] = {}

    def add(self, key: tuple[str, str], target: str, index: int, dtype: str, outcome: list[Any]) -> None:
        """Record one case."""
        cells = self.table.setdefault(key, {}).setdefault(target, {}).setdefault(index, {})
        cells[dtype] = self._number(outcome)

    def _number(self, outcome: list[Any]) -> int:
        letter, message, primitive = outcome[0], outcome[1] or None, outcome[2]
        if message is not None and message.startswith(("Unimplemented primitive", "Unsupported primitive")):
            # The primitive says it all; the sentence changes from version to version.
            primitive = unimplemented(message)
            message = None
        elif primitive in _CALLS:
            primitive = None
        if message is not None:
            message = clean(message)[:MESSAGE_LIMIT]
        found = (letter, primitive, message)
        if found not in self._outcome_numbers:
            self._outcome_numbers[found] = len(self.outcomes)
            self.outcomes.append(found)
        return self._outcome_numbers[found]

    def soften(self) -> None:
        """Take back failures of u32 along all axes where i32 fails there too but works along one axis.

        u32 is only measured along all axes: its failure there says nothing about the function.
        """
        for (name, variant), by_target in self.table.items():
            if variant != "plain":
                continue
            for target, by_version in by_target.items():
                for index, cells in by_version.items():
                    along = self.table.get((name, "axis1"), {}).get(target, {}).get(index)
                    if along is None or "u32" in along or "u32" not in cells:
                        continue
                    same = self._letter(cells.get("i32")) not in "ku" and self._letter(along.get("i32")) == "k"
                    if same and self._letter(cells["u32"]) not in "ku":
                        cells["u32"] = self._number(["T", "", None])

    def _letter(self, number: int | None) -> str:
        return self.outcomes[number or 0][0]

    def content(self, targets: list[str]) -> dict[str, Any]:
        """The packed form."""
        cells: dict[str, int] = {}
        histories: dict[str, int] = {}
        used: Counter[int] = Counter()
        for by_target in self.table.values():
            for by_version in by_target.values():
                for found in by_version.values():
                    used.update(found.values())
        # Frequent outcomes get short numbers.
        order = [0] + [number for number, _ in used.most_common() if number]
        renumbered = {number: place for place, number in enumerate(order)}
        functions: dict[str, dict[str, list[int]]] = {}
        for (name, variant), by_target in sorted(self.table.items()):
            row = []
            for target in targets:
                history: list[list[int]] = []
                for index in range(len(self.measured)):
                    found = by_target.get(target, {}).get(index)
                    number = -1
                    if found is not None:
                        text = " ".join(str(renumbered[found.get(dtype, 0)]) for dtype in DTYPES)
                        number = cells.setdefault(text, len(cells))
                    if not history or history[-1][1] != number:
                        history.append([index, number])
                if history == [[0, -1]]:
                    row.append(-1)
                else:
                    row.append(histories.setdefault(json.dumps(history), len(histories)))
            functions.setdefault(name, {})[variant] = row
        return {
            "targets": targets,
            "dtypes": DTYPES,
            "compiled": self.compiled,
            "outcomes": [self.outcomes[number] for number in order],
            "cells": list(cells),
            "histories": [json.loads(history) for history in histories],
            "functions": functions,
            "primitives": {name: self._primitives(by) for name, by in sorted(self.primitives.items())},
        }

    def _primitives(self, by_version: dict[int, set[str]]) -> list[tuple[int, str]]:
        history: list[tuple[int, str]] = []
        for index, names in sorted(by_version.items()):
            text = " ".join(sorted(names))
            if not history or history[-1][1] != text:
                history.append((index, text))
        return history


def pack_functions(work: Path, measured: list[str], out: Path) -> dict[str, Any]:
    """Lowering, compile and hardware results of every measured version."""
    functions = Functions(measured)
    targets = ["triton", "tpu", "tpu:v5e", "tpu:v6e", "triton:h200", "mosaic_gpu"]
    for index, version in enumerate(measured):
        rows = [row for row in rows_of(work / f"lower-{version}.jsonl") if "modes" not in row]
        unstorable = _unstorable(rows)
        compiled = {
            device: {row["k"]: row["r"] for row in rows_of(work / f"compile-{version}-{device}.jsonl")}
            for device in ("v5e", "v6e")
            if (work / "done" / f"compile-{version}-{device}").exists()
        }
        for device in compiled:
            functions.compiled.setdefault(f"tpu:{device}", []).append(index)
        unloadable = {device: _unloadable(rows, by_key) for device, by_key in compiled.items()}
        for row in rows:
            key, dtype = (row["f"], row["v"]), _dtype(row)
            if "p" in row:
                functions.primitives.setdefault(row["f"], {}).setdefault(index, set()).update(row["p"])
            for backend in ("triton", "tpu"):
                result = [row["s"], "", None] if "s" in row else row.get(backend)
                if result is None:
                    continue
                if result[0] == "h":
                    result = unstorable.get((backend, dtype), result)
                functions.add(key, backend, index, dtype, result)
                if backend == "tpu":
                    for device, by_key in compiled.items():
                        said = _compiled(row, result, by_key)
                        if said[0] == "-" and not row["v"].startswith("scalar"):
                            said = unloadable[device].get(row["d"], said)
                        functions.add(key, f"tpu:{device}", index, dtype, said)
        on_gpu = work / f"hardware-mosaic_gpu-{version}.jsonl"
        if on_gpu.exists():
            functions.compiled.setdefault("mosaic_gpu", []).append(index)
            registries = json.loads((work / "reg" / f"{version}.json").read_text())["registries"]
            _add_mosaic_gpu(functions, on_gpu, index, registries)
        on_gpu = work / f"hardware-triton-{version}.jsonl"
        if on_gpu.exists():
            functions.compiled.setdefault("triton:h200", []).append(index)
            _add_hardware(functions, on_gpu, "triton", index)
    functions.soften()
    content = functions.content(targets)
    write(out / "ingredients.json.gz", content.pop("primitives"))
    write(out / "functions.json.gz", content)
    return content


# Recipes without an operand of the tested dtype are measured once, as "f32"; this is what they really make.
_MAKES = {
    ("jax.numpy.arange", "vector"): "i32",
    ("jax.numpy.arange", "start"): "i32",
    ("jax.lax.broadcasted_iota", "lanes"): "i32",
    ("jax.lax.broadcasted_iota", "rows"): "i32",
}


def _dtype(row: dict[str, Any]) -> str:
    made = _MAKES.get((row["f"], row["v"]))
    if made is None and row["d"] == "f32" and row["v"] in DTYPES and row["f"] in _NO_OPERANDS:
        made = row["v"]
    return made or row["d"]


_NO_OPERANDS = frozenset(
    {"jax.numpy.arange", "jax.lax.iota", "jax.lax.broadcasted_iota", "jax.numpy.full", "jax.numpy.zeros",
     "jax.numpy.ones", "jax.numpy.empty"}
)  # fmt: skip


def _unstorable(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str], list[Any]]:
    """Dtypes whose tile cannot even be loaded and stored, with what that says."""
    found = {}
    for row in rows:
        if row["f"] == "kernel:identity" and row["v"] == "plain":
            for backend in ("triton", "tpu"):
                if backend in row and row[backend][0] not in ("k", "h"):
                    found[backend, row["d"]] = row[backend][:3]
    return found


def _unloadable(rows: Iterable[dict[str, Any]], by_key: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Dtypes of which not even a tile can be copied, with what the compiler says: nothing else works then."""
    found = {}
    for row in rows:
        if row["f"] == "kernel:identity" and row["v"] == "plain" and row["tpu"][0] == "k":
            said = _compiled(row, row["tpu"], by_key)
            if said[0] == "c":
                found[row["d"]] = said
    return found


def _compiled(row: dict[str, Any], lowered: list[Any], by_key: dict[str, list[Any]]) -> list[Any]:
    if lowered[0] != "k":
        return lowered
    return by_key.get(lowered[4] or "|".join((row["f"], row["v"], row["d"])), ["-", "", None])


def _add_mosaic_gpu(functions: Functions, path: Path, index: int, registries: dict[str, list[str]]) -> None:
    """Mosaic GPU was tried in warpgroup semantics only, with one layout.

    What works there works; of what fails only a primitive without a rule in either semantics is certain.
    """
    has_rule = set(registries.get("mosaic_gpu.lane", [])) | set(registries.get("mosaic_gpu.warpgroup", []))
    for row in rows_of(path):
        if "modes" in row:
            continue
        result = [row["s"], "", None] if "s" in row else row.get("mosaic_gpu")
        if result is None:
            continue
        said = row.get("r")
        if result[0] == "k" and said is not None and said[0] != "k":
            # The only differences seen were divisions by False, which have no right answer.
            result = ["k", "", None] if said[0] == "w" and row["d"] == "bool" else ["-", "", None]
        missing = unimplemented(result[1])
        if result[0] not in "kus" and (missing is None or missing in has_rule):
            result = ["-", "", None]
        functions.add((row["f"], row["v"]), "mosaic_gpu", index, _dtype(row), result)


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


def _add_hardware(functions: Functions, path: Path, backend: str, index: int) -> None:
    """What a real GPU said, over what lowering said."""
    said = {(row["f"], row["v"], _dtype(row)): _reviewed(row) for row in rows_of(path) if "r" in row}
    for key, by_target in functions.table.items():
        lowered = by_target.get(backend, {}).get(index)
        if lowered is None:
            continue
        for dtype, number in lowered.items():
            letter, primitive, message = functions.outcomes[number]
            result: list[Any] = [letter, message, primitive]
            if letter == "k":
                result = said.get((*key, dtype), result)
            functions.add(key, f"{backend}:h200", index, dtype, result)


def pack(work: Path, out: Path, measured_with: dict[str, str]) -> None:
    """Write every data file. `measured_with` is libtpu's version for each measured jax."""
    out.mkdir(parents=True, exist_ok=True)
    apis = load_apis(work / "api")
    measured = sorted((path.name.partition("-")[2] for path in (work / "done").glob("lower-[0-9]*")), key=version_key)
    pack_apis(apis, out)
    pack_primitives(work / "reg", list(apis), out)
    content = pack_functions(work, measured, out)
    (out / "versions.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "known": list(apis),
                "measured": measured,
                # Every case of a sample lowered for ROCm as it does for CUDA: one table serves both.
                "same": {"triton:rocm": "triton"},
                "libtpu": {version: measured_with.get(version, "") for version in measured},
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )
    sizes = {path.name: path.stat().st_size for path in sorted(out.iterdir())}
    print("functions", len(content["functions"]), "histories", len(content["histories"]))
    print("outcomes", len(content["outcomes"]), "bytes", sizes, "total", sum(sizes.values()))
