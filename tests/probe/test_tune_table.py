"""`probe --tune-table`: tables of tuned block sizes are read without running them, and their rows are compared."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.probe import specs
from pallas_lint.probe.tuning.results_file import Outcome, Results, ResultsError
from pallas_lint.probe.tuning.table_search import Search
from pallas_lint.probe.tuning.table_trials import Row, Trials, row_of, shard
from pallas_lint.probe.tuning.tune_table import Entry, Fields, TableError, entries
from tests.probe.running import run
from tests.rules.interpreted import python
from tests.sampling import examples

KERNELS = (Path(__file__).parents[1] / "cost" / "kernels.py").read_text()


def read(text: str, key: str = "", value: str = "", **how: Any) -> list[Entry]:
    found = list(entries(text, fields(key, value), is_json=how.pop("is_json", False), **how))
    assert not [each for each in found if isinstance(each, TableError)], found
    return [each for each in found if isinstance(each, Entry)]


def fields(key: str, value: str) -> Fields:
    return Fields(key.split(",") if key else (), value.split(",") if value else ())


NESTED = """
import jax.numpy as jnp
raise SystemExit("never run")
TILE = 256
OTHER = [1, 2]
TUNED: dict[str, dict] = {
    "TPU v5e": {(8, "bf16", None): (TILE * 10, -(-7 // 2)), (16, jnp.bfloat16, 1): (128, 4)},
    "TPU v6e": {
        (8, "bf16", None): (512, 2),
    },
}
"""


def test_tuples_below_the_name_of_a_chip() -> None:
    first, second, third = read(NESTED, "chip,m,dtype,window", "bm,buffers")
    assert first == Entry(
        7, {"chip": "TPU v5e", "m": 8, "dtype": "bf16", "window": None}, {"bm": 2560, "buffers": 4}, ["bm", "buffers"]
    )
    assert second.key["dtype"] == "bfloat16" and third.line == 9
    assert read(NESTED, "chip=TPU v6e,m,dtype,window", "bm,buffers") == [third]


NAMED = """
class Key(NamedTuple):
    m: int
    dtype: str = "int8"

@dataclass(frozen=True)
class Sizes:
    bm: int
    limit: int = 64 * 1024

    def fits(self): ...

TABLE = {Key(8): Sizes(bm=128), Key(m=16, dtype="bfloat16"): Sizes(256, 7)}
"""


def test_fields_that_have_names() -> None:
    first, second = read(NAMED)
    assert (first.key, first.value) == ({"m": 8, "dtype": "int8"}, {"bm": 128, "limit": 65536})
    assert (second.key, second.value) == ({"m": 16, "dtype": "bfloat16"}, {"bm": 256, "limit": 7})
    assert read(NAMED, value="bm")[0].tuned == ["bm"]
    assert read(NAMED, "dtype,m") == [first, second] and read(NAMED, "m=16,dtype") == [second]
    (wrong, _) = entries(NAMED, fields("m,k", ""), is_json=False)
    assert str(wrong) == "its key has no field k, which --tune-key names"


def test_strings_that_hold_the_fields() -> None:
    text = "T = {128: {'q_bfloat16_kv_float8_e4m3fn': {'head-8_len-2048-sw-None': (16, 32)}}}"
    (row,) = read(text, "page,q_{q}_kv_{kv},head-{heads}_len-{length}-sw-{window}", "b,q")
    assert row.key == {
        "page": 128, "q": "bfloat16", "kv": "float8_e4m3fn", "heads": 8, "length": 2048, "window": None
    }  # fmt: skip
    (wrong,) = entries(text, fields("page,q_{q}_kv_{kv},heads-{heads}", "b,q"), is_json=False)
    assert str(wrong) == "its key 'head-8_len-2048-sw-None' is not as heads-{heads}"


def test_json_of_measured_configurations() -> None:
    slow, fast = ({"evaluation_times_ms": times, "metadata": {}} for times in ([9.0, 3.0, 8.0], [5.0, 5.0, 5.0]))
    key = json.dumps({"x": "bf16[8,128]", "groups": {"count": 4}, "bias": None})
    table = {key: {json.dumps({"tile": 64, "split": True}): slow, json.dumps({"tile": 128, "split": False}): fast}}
    (row,) = read(json.dumps(table, indent=2), is_json=True)
    assert row.key == {"x": "bf16[8,128]", "groups.count": 4, "bias": None}
    assert row.value == {"tile": 128, "split": False}
    assert read(json.dumps(table, indent=2), "groups.count=4,bias", is_json=True) == [row]


@pytest.mark.parametrize("key", ["8, 128", "[8, 128]", "(8, 128)"])
def test_json_keys(key: str) -> None:
    (row,) = read(json.dumps({key: {"bm": 8, "fast": True}}), "m,k", "bm", is_json=True)
    assert row == Entry(1, {"m": 8, "k": 128}, {"bm": 8, "fast": True}, ["bm"])


def test_json_list_of_rows() -> None:
    text = '[\n{"chip": "v5e", "m": 8, "bm": 64},\n{"chip": "v6e", "m": 8, "bm": 128}\n]'
    assert read(text, "chip=v6e", "bm", is_json=True) == [Entry(3, {"chip": "v6e", "m": 8}, {"bm": 128}, ["bm"])]


@examples(100)
@given(
    st.dictionaries(
        st.tuples(st.integers(-9, 9), st.none() | st.booleans() | st.text("abc_{}'\"\\\n", max_size=4)),
        st.tuples(st.integers(1, 1 << 40), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
    )
)
def test_what_is_written_is_read(table: dict[Any, Any]) -> None:
    found = [(tuple(each.key.values()), tuple(each.value.values())) for each in read(f"T = {table!r}", "a,b", "c,d")]
    assert found == list(table.items())


@pytest.mark.parametrize(
    ("text", "line", "reported"),
    [
        ("\nT = {\n (8,): 1,\n (8, 9): 2}", 4, "its key has 2 fields: --tune-key names 1"),
        ("T = {8:\n (1, 2)}", 2, "its value has 2 fields: --tune-value names 1"),
        ("T = {8: 1,\n **OTHER}", 2, "`**` has no place in a table that is read without running it"),
        ("T = {8:\n open('x')}", 2, "the fields of `open('x')` have no names"),
        ("T = {8:\n 1 if a else 2}", 2, "`1 if a else 2` is not a literal"),
        ("T = {8: 1 << 9}", 1, "`1 << 9` is not a literal"),
        ("T = {8: 9 // 0}", 1, "`9 // 0` is not a literal"),
    ],
)
def test_what_is_wrong_with_a_row(text: str, line: int, reported: str) -> None:
    (error,) = (each for each in entries(text, fields("m", "bm"), is_json=False) if isinstance(each, TableError))
    assert (error.line, error.message) == (line, reported)


@pytest.mark.parametrize(
    ("text", "how", "line", "reported"),
    [
        ("x = 1\n(", {}, 2, "it is not Python: "),
        ("x = 1", {}, 1, "no dict literal is assigned to a variable of the module"),
        ("A = {1: 2}\nB = {1: 2}", {}, 1, "it has several dicts: write FILE::NAME with one of A, B"),
        ("A = {1: 2}\nB = dict(A)", {"name": "B"}, 2, "B is not a dict literal with rows"),
        ('{\n"a": }', {"is_json": True}, 2, "it is not JSON: "),
        ("1", {"is_json": True}, 1, "a table is an object, or a list of objects"),
    ],
)
def test_what_is_no_table(text: str, how: dict[str, Any], line: int, reported: str) -> None:
    with pytest.raises(TableError) as raised:
        list(entries(text, fields("m", "bm"), **{"is_json": False, **how}))
    assert raised.value.line == line and raised.value.message.startswith(reported)


ENTRY = Entry(1, {"m": 64, "dtype": "bfloat16"}, {"bm": 6, "bk": 1, "fast": True}, ["bm", "bk", "fast"])


def test_the_calls_of_a_row() -> None:
    row = row_of(ENTRY, "k.py::matmul", ["{dtype}[{m},128]", "dtype=jnp.{dtype}", "size={bk}"])
    assert row.call.name == "bf16[64,128], dtype=bf16, size=1, bm=6, fast=True"
    assert [dict(each.values) for each in row.neighbours] == [
        {"bm": 3, "bk": 1, "fast": True}, {"bm": 12, "bk": 1, "fast": True}, {"bm": 6, "bk": 2, "fast": True}
    ]  # fmt: skip
    with pytest.raises(specs.SpecError, match=r"the row has no field \{n\}: it has m, dtype, bm, bk, fast"):
        row_of(ENTRY, "k.py::matmul", ["{dtype}[{n}]"])


def row(size: int) -> Row:
    return row_of(Entry(size, {"m": 64}, {"bm": size}, ["bm"]), "k.py::f", ["f32[{m}]"])


ROWS = [row(size) for size in (8, 16, 24, 32, 48, 64, 128)]


@examples(100)
@given(st.integers(1, 9), st.lists(st.integers(1, 50), min_size=len(ROWS), max_size=len(ROWS)))
def test_parts_make_up_the_whole(count: int, times: list[int]) -> None:
    conditions = {"version": 1, "function": "k.py::f", "source": "", "targets": []}

    def tried(rows: list[Row]) -> Trials:
        trials = Trials(conditions)
        for call in trials.missing(rows):
            size = call.values["bm"]
            took = float(times[size % len(times)])
            outcome = Outcome({"tpu:v5e": (took, took * 0.9, took * 1.1)})
            trials.outcomes[call.name] = outcome if size % 5 else Outcome(why={"tpu:v5e": ("fails", "odd")})
        return trials

    whole, merged = tried(ROWS), Trials(conditions)
    parts = [list(shard(ROWS, number, count)) for number in range(1, count + 1)]
    assert sorted(each.call.name for part in parts for each in part) == sorted(each.call.name for each in ROWS)
    for part in parts:
        merged.add(tried(part).text())
    assert not merged.missing(ROWS) and merged.text() == whole.text()
    verdicts = list(merged.verdicts(ROWS))
    assert verdicts == list(whole.verdicts(ROWS)) and len(verdicts) == len(ROWS)
    for each in verdicts:
        if each.took is not None and each.best_took is not None:
            assert (each.state == "beaten") == (each.best_took[2] < each.took[1])


def test_a_row_is_judged_when_all_its_neighbours_are_known() -> None:
    trials = Trials({}, {call.name: Outcome({"tpu:v5e": (3.0, 2.0, 4.0)}) for call in (ROWS[0].call, ROWS[1].call)})
    assert [call.values["bm"] for call in trials.missing(ROWS[:1])] == [4] and not list(trials.verdicts(ROWS))
    trials.outcomes[ROWS[0].neighbours[0].name] = Outcome({"tpu:v5e": (1.5, 1.0, 1.9)})
    (verdict,) = trials.verdicts(ROWS)
    assert verdict.state == "beaten" and verdict.best is not None and verdict.best.values == {"bm": 4}


FASTEST = {"tpu:v5e": 128, "tpu:v6e": 8}


def search_with(trials: Trials, most: int = 1000) -> tuple[Search, bool]:
    """From 32, with times that grow with the distance to the fastest; so many calls until it is interrupted."""
    found = Search(trials, "k.py::f", ["f32[{m}]"])

    def probe(rows: Sequence[Row]) -> bool:
        for call in trials.missing(rows):
            if len(trials.outcomes) >= most:
                return False
            took = {target: abs(call.values["bm"] - size) + 1.0 for target, size in FASTEST.items()}
            trials.outcomes[call.name] = Outcome(
                {target: (each, each - 0.5, each + 1) for target, each in took.items()}
            )
        return True

    rows = [row(32)]
    return found, probe(rows) and found.run(rows, probe)


def test_a_table_for_other_chips() -> None:
    found, finished = search_with(Trials({}))
    assert finished
    rows = list(entries(found.text(), fields("target,m", "bm"), is_json=True))
    assert [(each.key["target"], each.key["m"], each.value["bm"]) for each in rows if isinstance(each, Entry)] == [
        ("tpu:v5e", 64, 128), ("tpu:v6e", 64, 8)
    ]  # fmt: skip
    assert json.loads(found.text())[0] == {"target": "tpu:v5e", "m": 64, "bm": 128, "microseconds": 1.0, "low": 0.5,
                                           "high": 2.0}  # fmt: skip


def test_a_search_goes_on_from_its_results() -> None:
    trials = Trials({})
    _, finished = search_with(trials, most=4)
    assert not finished and len(trials.outcomes) == 4
    again = Trials({})
    again.add(trials.text())
    found, finished = search_with(again)
    assert finished and found.text() == search_with(Trials({}))[0].text()


def test_a_results_file_of_something_else_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("def f(x): ...")
    trials = Trials.of(tmp_path / "k.py", "k.py::f", ["tpu:v5e"])
    trials.outcomes["f32[8]"] = Outcome({"tpu:v5e": (3.0, 2.0, 4.0)})
    again = Trials.of(tmp_path / "k.py", "k.py::f", ["tpu:v5e"])
    again.add(trials.text())
    assert again == trials
    (tmp_path / "k.py").write_text("def f(y): ...")
    with pytest.raises(ResultsError, match="`source` is not as in this run"):
        Trials.of(tmp_path / "k.py", "k.py::f", ["tpu:v5e"]).add(trials.text())
    with pytest.raises(ResultsError, match="`targets` is not as in this run"):
        again.add(trials.text().replace('"tpu:v5e"\n', '"tpu:v6e"\n'))
    for broken in ("[", "[]", '{"calls": 1}', trials.text().replace("4.0", '"4"')):
        with pytest.raises(ResultsError):
            again.add(broken)


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--tune-key", "m"), "are for --tune-table"),
        (("--tune-table", "t.py", "--tune", "bm=1"), "--tune-table is for one FILE::FUNCTION, without --tune"),
        (("--tune-table", "t.py", "--shard", "3/2"), "'3/2' is not a part of a table, as in 1/8"),
        (("--tune-results", "r.json"), "--tune-results is for --tune and --tune-table"),
        (("--tune-table", "no.py"), "no.py: cannot be read: No such file"),
        (("--tune-table", "t.py"), "t.py:2: error: its key has 1 fields: name them with --tune-key"),
        (("--tune-table", "t.py", "--tune-key", "m", "--tune-value", "bm", "{n}"), "t.py:2: error: the row has no fi"),
        (("--tune-table", "t.py::U"), "t.py:1: no dict literal is assigned to U"),
        (
            ("--tune-table", "t.py", "--tune-key", "m", "--tune-value", "bx"),
            "t.py:2: `rows` cannot be called so: got an unexpected keyw",
        ),
        (("--tune-table", "t.py", "--tune-key", "m=9", "--tune-value", "bm"), "t.py has no row with m=9"),
        (("--tune-table", "t.py", "--target", "triton"), "times are predicted for TPUs"),
        (("--tune-table", "t.py", "--tune-key", "m", "--tune-value", "bm", "--tune-results", "t.py"), "not a results"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, words: tuple[str, ...], reported: str) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "t.py").write_text("T = {\n8: 128}")
    done = run("kernels.py::rows", "f32[8,128]", *words, "--python", "no-python", cwd=tmp_path)
    assert done.returncode == 2 and reported in done.stderr, done.stderr


TABLE = """
TUNED = {
    "TPU v5e": {
        (1024, 1024, 1024, "bfloat16"): (512, 512, 512),
        (1024, 1024, 1024, "float32"): (128, 128, 128),
        (4096, 4096, 4096, "bfloat16"): (512, 2048, 1024),
        (512, 512, 512, "bfloat16"): (512, 512),
    },
}
"""


@pytest.mark.nightly  # a minute of compiling
def test_a_table_is_checked(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "table.py").write_text(TABLE)
    words = (
        "kernels.py::matmul", "{dtype}[{m},{k}]", "{dtype}[{k},{n}]", "--tune-table", "table.py",
        "--tune-key", "chip=TPU v5e,m,k,n,dtype", "--tune-value", "bm,bk,bn", "--python", python(),
        "--target", "tpu:v5e", "--target", "tpu:v6e",
    )  # fmt: skip
    first = run(*words, "--shard", "1/2", "--tune-results", "one.json", cwd=tmp_path)
    assert "tpu:v5e: 2 of 2 rows: 1 ok, 1 too large\n" in first.stdout, first.stdout + first.stderr
    assert (
        "  table.py:6 bm=512 bk=2048 bn=1024: with what the compiler keeps there it needs 18.08 MiB of VMEM"
        in first.stdout
    )
    assert re.search(r", and may use 16 MiB.*; bm=512 bk=1024 bn=1024 takes [\d.]+ µs\n", first.stdout)
    assert "tpu:v6e: 2 of 2 rows: 1 ok, 1 beaten by a neighbour\n" in first.stdout, "it has twice the VMEM there"
    results = ("--tune-results", "all.json", "--tune-results", "one.json")
    done = run(*words, *results, "--output-format", "json", cwd=tmp_path)
    assert done.returncode == 2 and "table.py:7: error: its value has 2 fields: --tune-value names 3" in done.stderr
    rows = json.loads(done.stdout)["rows"]
    states = {(each["line"], each["target"]): each["state"] for each in rows}
    assert states[4, "tpu:v5e"] == "ok" and states[5, "tpu:v5e"] == "beaten" and states[6, "tpu:v5e"] == "too-large"
    beaten = [each for each in rows if each["state"] == "beaten"]
    assert all(each["best"]["microseconds"] < each["microseconds"] for each in beaten)
    again = run(*words, *results[:2], "--python", "no-python", "--output-format", "json", cwd=tmp_path)
    assert again.stdout == done.stdout, "nothing is left to probe"


def test_choices_that_are_known_are_not_tried_again(tmp_path: Path) -> None:
    """`--tune` reads and writes the same files: here all but one choice is known, and there is no jax to try that."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    results = Results.of(tmp_path / "kernels.py", "kernels.py::rows", ["tpu:v5e"])
    results.outcomes["f32[4096,128], bm=8"] = Outcome({"tpu:v5e": (3.0, 2.0, 4.0)})
    results.outcomes["f32[4096,128], bm=16"] = Outcome({"tpu:v5e": (2.0, 1.0, 3.0)})
    results.outcomes["f32[4096,128], bm=32"] = Outcome(why={"tpu:v5e": ("too-large", "more VMEM than there is")})
    (tmp_path / "known.json").write_text(results.text())
    words = ("kernels.py::rows", "f32[4096,128]", "--target", "tpu:v5e", "--tune-results", "known.json")
    done = run(*words, "--tune", "bm=8,16,32", "--python", sys.executable, cwd=tmp_path)
    lines = [
        "tpu:v5e: 2 of 3 choices have a number",
        "       2 µs  best     bm=16",
        "       3 µs  +50%     bm=8",
        "  no number for bm=32: more VMEM than there is",
    ]
    assert (done.stdout.splitlines()[-4:], done.returncode) == (lines, 0), done.stdout + done.stderr
    run(*words, "--tune", "bm=8,64", "--python", sys.executable, cwd=tmp_path)
    again = Results(results.conditions)
    again.read(tmp_path / "known.json")
    assert again.outcomes.items() > results.outcomes.items() and "f32[4096,128], bm=64" in again.outcomes


def test_an_order_for_a_gpu_is_kept_too() -> None:
    results, again = Results({}, {"f32[8]": Outcome(clocks={"triton:sm90": 12.5})}), Results({})
    again.add(results.text())
    assert again == results


def test_of_many_rows_that_cannot_be_read_some_are_printed(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "t.py").write_text("T = {\n" + "".join(f"    ({m}, 1): 8,\n" for m in range(9)) + "}\n")
    words = ("kernels.py::rows", "f32[{m},128]", "--tune-table", "t.py", "--tune-key", "m", "--tune-value", "bm")
    done = run(*words, cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert lines[:5] == [f"t.py:{at}: error: its key has 2 fields: --tune-key names 1" for at in range(2, 7)]
    assert lines[5] == "pallas-lint: 4 more rows cannot be read" and done.returncode == 2


def test_a_row_without_a_number_has_its_reason(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "t.py").write_text("T = {\n    8: 3,\n}\n")
    call = row_of(Entry(2, {"m": 8}, {"bm": 3}, ["bm"]), "kernels.py::rows", ["f32[{m},128]"])
    trials = Trials.of(tmp_path / "kernels.py", call.call.spec.text, ["tpu:v5e"])
    for each in trials.missing([call]):
        trials.outcomes[each.name] = Outcome(why={"tpu:v5e": ("unknown", "rows_ref is not known")})
    (tmp_path / "known.json").write_text(trials.text())
    words = ("kernels.py::rows", "f32[{m},128]", "--tune-table", "t.py", "--tune-key", "m", "--tune-value", "bm")
    done = run(*words, "--target", "tpu:v5e", "--tune-results", "known.json", cwd=tmp_path)
    lines = ["tpu:v5e: 1 of 1 rows: 1 without a number", "  t.py:2 bm=3: rows_ref is not known"]
    assert (done.stdout.splitlines(), done.returncode) == (lines, 0), done.stderr
