"""The shapes file: read, written, merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.known_calls.choice import MAX_CALLS, choose
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.known_calls.shapes_file import content, merged, parse, read, render, replace
from tests.sampling import examples

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
# Argument types that calls really had. Written by pallas-lint; lint reads it.
version = 1

["src/kernels/softmax.py::softmax"]
calls = [
  { args = { bm = "64", x = "f32[512,1024]" }, on = "interpret", seen = "tests/test_softmax.py::test_rows" },
]
"""
CALL = KnownCall(
    "src/kernels/softmax.py::softmax",
    (("bm", "64"), ("x", "f32[512,1024]")),
    "tests/test_softmax.py::test_rows",
    "interpret",
    "file",
)


def test_the_text_of_the_contract_there_and_back() -> None:
    shapes = parse(TEXT, "s.toml")
    assert (shapes.known_calls, shapes.problems) == ((CALL,), ())
    assert shapes.known_calls[0].source == CALL.source
    assert shapes.lines == {CALL.function: 4}
    assert render(shapes.known_calls) == TEXT


def test_no_file_no_shapes(tmp_path: Path) -> None:
    assert not read(tmp_path / "none.toml", "none.toml").problems


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("version = 1\n[[[", "cannot read", 2),
        ("version = 2\n", "version 2", 1),
        ("", "version None", 1),
        ('version = 1\n\n["../etc"]\ncalls = []\n', "names no function", 3),
        ('version = 1\n["k.py::f"]\ncall = []\n', "no list of `calls`", 2),
        ('version = 1\n["k.py::f"]\ncalls = [{ args = { x = 8 } }]\n', "are texts", 2),
        ('version = 1\n["k.py::f"]\ncalls = [{ args = { x = "f99[8]" } }]\n', "not a dtype", 2),
        ('version = 1\n["k.py::f"]\ncalls = [{ args = { x = "open(1)" } }]\n', "cannot read", 2),
        ('version = 1\n["k.py::f"]\ncalls = [{ args = { x = "f32[999999999,999999999]" } }]\n', "no memory", 2),
        ("x = " + "[" * 5000, "cannot read", 1),
    ],
)
def test_problems_are_reported_with_their_line(text: str, message: str, line: int) -> None:
    (problem,) = parse(text, "s.toml").problems
    assert message in problem.message
    assert (problem.path, problem.line) == ("s.toml", line)


def test_what_is_wrong_with_one_function_leaves_the_others() -> None:
    shapes = parse(TEXT + '\n["k.py::f"]\ncalls = 1\n', "s.toml")
    assert shapes.known_calls == (CALL,)
    assert len(shapes.problems) == 1


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_bytes(b"version = 1\n\xff")
    (problem,) = read(file, "s.toml").problems
    assert problem.line == 2


def test_recording_again_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    assert replace(file, None, [CALL], tmp_path)
    before = content(file)
    assert replace(file, before, merged(read(file, "s.toml").known_calls, [CALL]), tmp_path)
    assert content(file) == before
    assert file.read_text() == TEXT


names = st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True)
texts = st.sampled_from(
    ["f32[8,128]", "bf16[16,200]", "64", "True", "'a\\\\b\"c'", "dtype:i8", "(f32[8], 3)", "{'a': 1}"]
)
calls = st.builds(
    KnownCall,
    st.sampled_from(["k.py::f", "a/b.py::C.m"]),
    st.dictionaries(names | st.just("*0"), texts, max_size=3).map(lambda given: tuple(sorted(given.items()))),
    st.text(max_size=20),
    st.sampled_from(["trace", "interpret", "TPU v5e"]),
    st.just("file"),
)


@examples(100)
@given(st.lists(calls, max_size=6))
def test_what_is_written_is_read(known_calls: list[KnownCall]) -> None:
    shapes = parse(render(known_calls), "s.toml")
    assert not shapes.problems
    assert set(shapes.known_calls) == set(known_calls)
    assert render(shapes.known_calls) == render(known_calls)


@examples(100)
@given(st.lists(calls, max_size=30), st.randoms())
def test_the_choice_is_the_same_in_any_order(known_calls: list[KnownCall], random: object) -> None:
    kept, _ = choose(known_calls)
    random.shuffle(known_calls)  # type: ignore[attr-defined]
    assert choose(known_calls)[0] == kept
    assert set(kept) <= set(known_calls)


def call(kind: str = "file", **arguments: str) -> KnownCall:
    return KnownCall("k.py::f", tuple(arguments.items()), "t.py:1", kind=kind)  # type: ignore[arg-type]


def test_the_most_different_calls_are_kept() -> None:
    alike = [call(x=f"f32[{128 * n},128]") for n in range(2, 40)]
    unlike = [
        call(x="bf16[128,128]"),
        call(x="f32[128,200]"),
        call(x="f32[128]"),
        call(x="f32[128,128]", causal="True"),
    ]
    kept, left_out = choose([*alike, *unlike])
    assert len(kept) == MAX_CALLS
    assert left_out == len(alike) + len(unlike) - MAX_CALLS
    assert set(unlike) <= set(kept)


def test_a_call_that_another_refines_is_dropped() -> None:
    exact = call(x="f32[128,200]", bm="64")
    assert choose([call(x="f32[?,200]"), call(x="f32[...]"), exact, call(bm="64")])[0] == (exact,)


def test_nearer_sources_have_their_places() -> None:
    recorded = [call(x=f"f32[{n},{dtype}]") for n in range(100, 120) for dtype in (1, 7)]
    comment = call("comment", x="f32[128,128]")
    assert comment in choose([*recorded, comment])[0]
