"""Values as known calls write them."""

from __future__ import annotations

import pytest

from pallas_lint.kernels.model.values import UNKNOWN, Array, Const, Dictionary, DType, External, Instance, Seq
from pallas_lint.known_calls.known_call import KnownCall, ValueProblem
from pallas_lint.known_calls.values import check, read, spell


def find(module: str, name: str) -> External:
    return External(f"{module}.{name}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32[512,1024]", Array((512, 1024), "f32")),
        ("bf16[]", Array((), "bf16")),
        ("f32[?,128]", Array((None, 128), "f32")),
        ("?[8,128]", Array((8, 128))),
        ("i8[...]", Array(None, "i8")),
        ("64", Const(64)),
        ("-1", Const(-1)),
        ("True", Const(True)),
        ("None", Const(None)),
        ("'causal'", Const("causal")),
        ("'f32[8]'", Const("f32[8]")),
        ("dtype:bf16", DType("bf16")),
        ("fn:jax.numpy:tanh", External("jax.numpy.tanh")),
        ("(f32[8], 3)", Seq((Array((8,), "f32"), Const(3)))),
        ("[1]", Seq((Const(1),), "list")),
        ("(1,)", Seq((Const(1),))),
        ("{'w': f32[8]}", Dictionary(((Const("w"), Array((8,), "f32")),))),
    ],
)
def test_there_and_back(text: str, value: object) -> None:
    assert read(text, find) == value
    assert spell(value, lambda func: None) == text  # type: ignore[arg-type]


def test_what_is_not_known_of_a_tuple_stays_unknown() -> None:
    assert read("(f32[8], ...)", find) == Seq((Array((8,), "f32"), UNKNOWN))
    assert spell(Seq((Array((8,), "f32"), UNKNOWN)), lambda func: None) == "(f32[8], ...)"
    assert spell(Seq((UNKNOWN,)), lambda func: None) is None


def test_numpy_arrays_are_as_jax_takes_them() -> None:
    assert spell(Array((8,), "f64", host=True), lambda func: None) == "f32[8]"
    assert spell(Array((8,), "f64", host=True), lambda func: None, x64=True) == "f64[8]"


@pytest.mark.parametrize(
    "text",
    [
        "f32[8",
        "__import__('os')",
        "x",
        "f99[8]",
        "(lambda: 1)()",
        "dtype:nope",
        "f32[1000000,1000000,10]",
        "a.b(1)",
        "",
    ],
)
def test_no_value(text: str) -> None:
    assert read(text, find) == UNKNOWN
    with pytest.raises(ValueProblem):
        check(text)


def test_no_instance_of_what_is_no_class() -> None:
    assert not isinstance(read("pkg.config:Config(bm=64)", find), Instance)


MANY = KnownCall(
    "scale.py::scale",
    (
        ("x", "f32[512,1024]"),
        ("weights", "f32[512,1024]"),
        ("bias_vector", "f32[1,1024]"),
        ("rows", "12"),
        ("axis", "'model'"),
        ("skipped", "None"),
    ),
    "scale.py:3",
)


def test_a_long_call_is_cut_behind_its_causes() -> None:
    arrays = "x: f32[512,1024], weights: f32[512,1024], bias_vector: f32[1,1024]"
    assert MANY.brief(100) == f"{arrays}, rows=12, axis='model'"
    assert MANY.brief(80) == f"{arrays}, rows=12, …"
    assert MANY.brief(80, frozenset({"axis"})) == "x: f32[512,1024], weights: f32[512,1024], axis='model', …"
    assert MANY.brief(10) == "x: f32[512…"


def test_a_long_call_shows_sizes_before_scales() -> None:
    arguments = (("q", "bf16[2,2,512,128]"), ("scale", "0.08838834764831843"), ("eps", "1e-05"), ("block_q", "8192"))
    assert KnownCall("a.py::f", arguments, "a.py:3").brief(50) == "q: bf16[2,2,512,128], block_q=8192, …"
