"""What is to be probed, as people write it."""

from __future__ import annotations

import contextlib
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.probe.specs import (
    SpecError,
    UnreadableComment,
    comments_in,
    every_comment_in,
    parse_argument,
    parse_arguments,
    parse_target,
    reference_of,
)


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("f32[8,128]", "f32", [8, 128]),
        ("bf16[16]", "bf16", [16]),
        ("i32[]", "i32", []),
        ("f8_e4m3fn[ 8 , 128 ]", "f8_e4m3fn", [8, 128]),
        ("bool[4,]", "bool", [4]),
        ("key<fry>[]", "key<fry>", []),
        ("int32[8,128]", "i32", [8, 128]),
        ("bfloat16[16]", "bf16", [16]),
        ("float8_e4m3fn[8]", "f8_e4m3fn", [8]),
    ],
)
def test_arrays_as_jax_prints_them_or_with_long_names(text: str, dtype: str, shape: list[int]) -> None:
    assert parse_argument(text) == {"kind": "array", "dtype": dtype, "shape": shape}


def test_arrays_with_values() -> None:
    assert parse_argument("i32[4]=[3,1,0,2]")["values"] == [3, 1, 0, 2]
    assert parse_argument("i32[4]=arange")["values"] == "arange"
    assert parse_argument("i32[]=-4")["values"] == -4


def test_trees_and_literals() -> None:
    assert parse_argument("(f32[8], [i32[2], 3])") == {
        "kind": "tuple",
        "value": [
            {"kind": "array", "dtype": "f32", "shape": [8]},
            {
                "kind": "list",
                "value": [{"kind": "array", "dtype": "i32", "shape": [2]}, {"kind": "literal", "value": "3"}],
            },
        ],
    }
    assert parse_argument("{'w': f32[8]}")["value"][0][0] == "w"
    assert parse_argument("'f32[8]'") == {"kind": "literal", "value": "'f32[8]'"}
    assert parse_argument("None") == {"kind": "literal", "value": "None"}
    assert parse_argument("jnp.bfloat16") == {"kind": "dtype", "value": "bf16"}


def test_warnings_of_python_about_arguments_are_not_printed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_argument('"a\\-"') == parse_arguments('"a\\-"', "f.py", "f").arguments[0]


def test_targets() -> None:
    spec = parse_target("a/b.py::Model.run", ["f32[8]", "2", "bm=128", "flags=(1, 2)"])
    assert (spec.file, spec.function) == ("a/b.py", "Model.run")
    assert len(spec.arguments) == 2 and [name for name, _ in spec.keywords] == ["bm", "flags"]


@pytest.mark.parametrize(
    ("target", "words"),
    [("a.py", []), ("a.py::", []), ("a.py::1x", []), ("a.py::f", ["f32[8"]), ("a.py::f", ["x=1", "2"]),
     ("a.py::f", ["open('x')"]), ("a.py::f", ["f33[8]"]), ("a.py::f", ["("]), ("a.py::f", [""])],
)  # fmt: skip
def test_unreadable_files_are_reported(target: str, words: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_target(target, words)
    assert "\n" not in str(caught.value)


COMMENTED = """
# pallas-lint: probe(f32[512,512], f32[512,512], bm=128)
@functools.partial(jax.jit, static_argnames=("bm",))
def matmul(x, y, *, bm): ...

class Model:
    # pallas-lint: probe(i32[]=[3])
    @staticmethod
    def run(i): ...

# pallas-lint: probe(f32[8])
fast = jax.jit(matmul)
"""


def test_comments() -> None:
    found = list(comments_in(COMMENTED, "k.py"))
    assert [(spec.function, spec.line) for spec in found] == [("matmul", 2), ("Model.run", 7), ("fast", 11)]
    assert found[0].keywords == (("bm", {"kind": "literal", "value": "128"}),)


def test_a_reference_is_named_above_a_function() -> None:
    text = """
# pallas-lint: reference(plain)
# pallas-lint: probe(f32[8,128])
@jax.jit
def fast(x): ...

class Layer:
    # pallas-lint: reference(other.py::Layer.plain)
    def fast(self, x): ...

def alone(x): ...
"""
    assert [reference_of(text, each) for each in ("fast", "Layer.fast", "alone")] == [
        (2, "plain"), (8, "other.py::Layer.plain"), None
    ]  # fmt: skip
    assert [spec.function for spec in comments_in(text, "k.py")] == ["fast"]


@pytest.mark.parametrize("inside", ["", "plain, x", "plain(x)", "other.py::", "1st"])
def test_a_reference_that_is_no_name(inside: str) -> None:
    text = f"\n# pallas-lint: reference({inside})\ndef fast(x): ...\n"
    (error,) = every_comment_in(text, "k.py")
    assert isinstance(error, UnreadableComment) and "write reference(function)" in str(error) and error.line == 2
    assert reference_of(text, "fast") is None


def test_a_comment_without_a_function_is_reported_with_its_line() -> None:
    with pytest.raises(SpecError, match=r"k\.py:1"):
        list(comments_in("# pallas-lint: probe(f32[8])\n", "k.py"))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SpecError):
        parse_argument(text)


def test_what_to_write_instead() -> None:
    reported = parse_target("a b.py::f", ["i32[4]", "mode='f32[8,128]'", "name='f32'"])
    assert list(reported.quoted_types()) == ["f32[8,128]"]
    assert reported.called_with(["f32[8,128]", "bm=8"]) == "`pallas-lint probe 'a b.py::f' \"f32[8,128]\" bm=8`"
    [commented] = comments_in("# pallas-lint: probe()\ndef f(x): ...\n", "k.py")
    assert commented.called_with(["f32[8,128]", "bm=8"]) == "`# pallas-lint: probe(f32[8,128], bm=8)`"
