"""The packed data can be read back, and take a version more: everything that is there stays."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from pallas_lint import compat
from pallas_lint.compat import known_versions

pytestmark = pytest.mark.slow  # all data is packed again

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "pallas_lint" / "compat" / "data"
VERSIONS: dict[str, Any] = json.loads((DATA / "versions.json").read_text(encoding="utf-8"))


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `tools/pack.py` defines."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return runpy.run_path(str(ROOT / "tools" / "pack.py"))


def loaded(folder: Path, name: str) -> Any:
    return sys.modules["unpack"].load(folder / name)


@pytest.mark.nightly
def test_what_is_packed_is_packed_again(tools: dict[str, Any], tmp_path: Path) -> None:
    unpack, known = tools["unpack"], VERSIONS["known"]
    tools["pack_apis"](unpack.apis(DATA, known), tmp_path)
    tools["pack_primitives"](unpack.registries(DATA, known), tmp_path)
    tools["pack_functions"](tmp_path, VERSIONS["measured"], tmp_path, unpack.functions(DATA, VERSIONS["measured"]))
    for name in ("parameters.json.gz", "primitives.json.gz", "ingredients.json.gz"):
        assert loaded(tmp_path, name) == loaded(DATA, name), name
    again, packed = loaded(tmp_path, "apis.json.gz"), loaded(DATA, "apis.json.gz")
    assert [again[name] for name in ("modules", "names", "members")] == [
        packed[name] for name in ("modules", "names", "members")
    ]
    assert spelt_out(again) == spelt_out(packed)
    assert outcomes(unpack, tmp_path) == outcomes(unpack, DATA)


def spelt_out(packed: dict[str, Any]) -> Any:
    """Deprecations with their messages instead of the messages' numbers."""
    messages = packed["messages"]
    return (
        {name: (mask, messages[at]) for name, (mask, at) in packed["deprecated"].items()},
        {name: messages[at] for name, at in packed["gone"].items()},
    )


def outcomes(unpack: Any, folder: Path) -> Any:
    """Every outcome of every case by target and version."""
    table = unpack.functions(folder, VERSIONS["measured"])
    return {
        key: {
            target: {
                index: {dtype: table.outcomes[number] for dtype, number in cells.items()}
                for index, cells in by_version.items()
            }
            for target, by_version in by_target.items()
        }
        for key, by_target in table.table.items()
    }


@pytest.mark.nightly
def test_a_new_version_is_added_at_the_end(tools: dict[str, Any], tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "data"
    for folder in (work / "api", work / "reg", work / "done", out):
        folder.mkdir(parents=True)
    for file in DATA.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    newest, version = known_versions()[-1], "99.1.0"
    api = tools["unpack"].apis(DATA, VERSIONS["known"])[newest]
    api["names"]["jax.numpy"].append("brand_new")
    (work / "api" / f"{version}.json").write_text(json.dumps(api))
    registries = tools["unpack"].registries(DATA, VERSIONS["known"])[newest]
    (work / "reg" / f"{version}.json").write_text(json.dumps({"registries": registries}))
    row = {"f": "jax.numpy.cumsum", "v": "plain", "d": "f32", "p": ["cumsum"], "triton": ["k", "", None]}
    row["tpu"] = ["k", "", None, "x", None]
    (work / f"lower-{version}.jsonl").write_text(json.dumps(row) + "\n")
    tools["add"](work, out, version, "1.0")
    assert json.loads((out / "versions.json").read_text(encoding="utf-8"))["known"][-1] == version
    before, after = outcomes(tools["unpack"], DATA), tools["unpack"].functions(out, [*VERSIONS["measured"], version])
    cells = after.table["jax.numpy.cumsum", "plain"]["triton"]
    assert after.outcomes[cells[len(VERSIONS["measured"])]["f32"]][0] == "k"
    assert {index: after.outcomes[found["f32"]] for index, found in list(cells.items())[:-1]} == {
        index: found["f32"] for index, found in before["jax.numpy.cumsum", "plain"]["triton"].items()
    }
    mask = next(
        mask for mask, names in loaded(out, "apis.json.gz")["names"]["jax.numpy"] if "brand_new" in names.split()
    )
    assert int(mask, 16) == 1 << len(VERSIONS["known"])
    with pytest.raises(SystemExit, match="is not newer"):
        tools["add"](work, out, newest, "1.0")


def test_what_calls_functions_is_not_blamed_for_what_they_do() -> None:
    """TPUs add no numbers of 8 bits, and reduce few types: loops and branches take them all the same."""
    for name in ("jax.lax.fori_loop", "jax.lax.cond", "jax.lax.while_loop", "jax.lax.switch", "jax.jit"):
        reported = compat.function(name)
        assert reported is not None
        for dtype in ("f32", "bf16", "i32", "i8", "u32", "bool"):
            assert reported.verdict("tpu", "0.10.2", dtype=dtype, device="v6e").status == "supported", (name, dtype)


def test_functions_are_replaced_and_nothing_else(tools: dict[str, Any], tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "data"
    for folder in (work / "done", out):
        folder.mkdir(parents=True)
    for file in DATA.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    before = outcomes(tools["unpack"], out)
    rows = [
        {"f": "jax.jit", "v": "plain", "d": "f32", "p": ["jit"], "tpu": ["l", "no", None, "", ""]},
        {"f": "kernel:identity", "v": "plain", "d": "f32", "p": [], "tpu": ["l", "no", None, "", ""]},
    ]
    (work / f"lower-{VERSIONS['measured'][-1]}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tools["replace"](work, out, ["jax.jit"])
    after = outcomes(tools["unpack"], out)
    assert {key for key in before if before[key] != after[key]} == {("jax.jit", "plain")}
    last = len(VERSIONS["measured"]) - 1
    reported = {target: by_version for target, by_version in after["jax.jit", "plain"].items() if by_version}
    assert reported == {"tpu": {last: {"f32": ("l", None, "no")}}}


@pytest.mark.nightly
def test_a_device_is_added_to_a_version_that_is_there(tools: dict[str, Any], tmp_path: Path) -> None:
    """What was not measured again stays; its own rules count where those of v5e refuse."""
    work, out = tmp_path / "work", tmp_path / "data"
    for folder in (work / "done", out):
        folder.mkdir(parents=True)
    for file in DATA.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    before = outcomes(tools["unpack"], out)
    rows = [
        {"f": "jax.lax.top_k", "v": "plain", "d": "bf16", "tpu": ["l", "not on this", "top_k", "direct", "one"]},
        {"f": "jax.numpy.exp", "v": "plain", "d": "f32", "tpu": ["k", "", None, "direct", "two"]},
        {"f": "jax.numpy.exp", "v": "plain", "d": "bf16", "tpu": ["k", "", None, "direct", "three"]},
    ]
    text = [{"k": "one", "r": ["k", "", None]}, {"k": "two", "r": ["c", "too new", "exp"]}]
    last = len(VERSIONS["measured"]) - 1
    early = VERSIONS["measured"].index("0.7.2")
    assert early not in before["jax.numpy.exp", "plain"]["tpu:v6e"]
    requested = {("v6e", early), ("v5p", last)}  # for the first time, and anew
    for device, index in requested:
        version = VERSIONS["measured"][index]
        (work / f"lower-{version}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (work / f"compile-{version}-{device}.jsonl").write_text("\n".join(map(json.dumps, text)))
        (work / "done" / f"compile-{version}-{device}").touch()
    tools["add_devices"](work, out, ("v5p", "v6e"), [VERSIONS["measured"][index] for _, index in requested])
    after = outcomes(tools["unpack"], out)
    for device, index in requested:
        assert after["jax.lax.top_k", "plain"][f"tpu:{device}"][index]["bf16"] == ("k", None, None)
        assert after["jax.numpy.exp", "plain"][f"tpu:{device}"][index]["f32"] == ("c", "exp", "too new")
    exp = after["jax.numpy.exp", "plain"]
    assert "bf16" not in exp["tpu:v6e"][early]
    assert exp["tpu:v5p"][last]["bf16"] == before["jax.numpy.exp", "plain"]["tpu:v5p"][last]["bf16"]
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {("jax.lax.top_k", "plain"), ("jax.numpy.exp", "plain")}


def test_operations_of_a_version_are_added(tools: dict[str, Any], tmp_path: Path) -> None:
    del tools  # which put the folder on the path
    import pack_operations

    (tmp_path / "operations.json.gz").write_bytes((DATA / "operations.json.gz").read_bytes())
    rows = [["copy", "f32", "v6e", "ok"], ["add", "i8", "v6e", "abort"], ["add", "i8", "v6e", "compile"]]
    rows += [["copy", "f16", "v6e", "compile"], ["add", "f16", "v6e", "compile"]]
    measured = tmp_path / "operations-99.1.0.jsonl"
    measured.write_text("\n".join(map(json.dumps, rows)))
    before = loaded(tmp_path, "operations.json.gz")
    pack_operations.add(measured, tmp_path, "99.1.0")
    assert loaded(tmp_path, "operations.json.gz") == {
        **before,
        "99.1.0": {"v6e": {"compile": {"add": "i8", "copy": "f16"}}},
    }


def test_what_only_lowers_ends_as_with_the_release_before(tools: dict[str, Any], tmp_path: Path) -> None:
    del tools
    import pack_operations

    (tmp_path / "operations.json.gz").write_bytes((DATA / "operations.json.gz").read_bytes())
    run = [["copy", "i8", "triton", "ok"], ["add", "i8", "triton", "compile"], ["copy", "i4", "triton", "wrong"]]
    lowered = [[*row[:3], "lowers"] for row in [*run, ["max", "i8", "triton", "ok"]]]
    for version, rows in (("99.1.0", run), ("99.2.0", [*lowered, ["neg", "i8", "triton", "lower"]])):
        measured = tmp_path / f"operations-{version}.jsonl"
        measured.write_text("\n".join(map(json.dumps, rows)))
        pack_operations.add(measured, tmp_path, version)
    packed = loaded(tmp_path, "operations.json.gz")
    first = {"compile": {"add": "i8"}, "wrong": {"copy": "i4"}}
    assert packed["99.1.0"] == {"triton": first}
    assert packed["99.2.0"] == {"triton": {**first, "lower": {"neg": "i8"}}}
