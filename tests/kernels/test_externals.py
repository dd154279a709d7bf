"""The table of modelled functions: calls by canonical name, whatever they are imported as."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from pallas_lint.kernels.library import externals
from pallas_lint.kernels.library.builtin_functions import BUILTINS
from pallas_lint.kernels.library.control import CONTROL
from pallas_lint.kernels.library.pallas_functions import PALLAS_FUNCTIONS
from pallas_lint.kernels.library.wrappers import WRAPPERS
from pallas_lint.kernels.model.launch_forms import FOREIGN_FORMS, FORMS
from pallas_lint.kernels.model.values import Array, Value
from tests.kernels.test_discovery import run

if TYPE_CHECKING:
    import libcst as cst

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.arguments import Arguments


def test_a_function_has_one_model() -> None:
    tables = (CONTROL, PALLAS_FUNCTIONS, BUILTINS, WRAPPERS, FOREIGN_FORMS, FORMS.by_name)
    for first, second in combinations(tables, 2):
        assert first.keys() & second.keys() == set()


@pytest.mark.parametrize("spelled", ["jax.lax.doubled", "twice", "lax.doubled"])
def test_a_function_is_added_in_one_place(monkeypatch: pytest.MonkeyPatch, spelled: str) -> None:
    def doubled(i: Interpreter, name: str, arguments: Arguments, node: cst.CSTNode) -> Value:
        return i.frame.op(name, node, arguments, Array((2, 3), "f32"))

    monkeypatch.setitem(externals.MODELS, "jax.lax.doubled", doubled)
    (trace,) = run(f"""
        import jax
        from jax import lax
        from jax.lax import doubled as twice
        def kernel(x_ref, o_ref): o_ref[...] = {spelled}(x_ref[...])
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """).traces
    (op,) = trace.ops("jax.lax.doubled")
    assert isinstance(op.result, Array)
    assert (op.short, op.result.shape, op.result.dtype) == ("doubled", (2, 3), "f32")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("jax.numpy.cumsum", "jax.numpy."),
        ("numpy.random.rand", "numpy.random."),
        ("numpy.tile", "numpy."),
        ("jax.experimental.pallas.tpu.new", "jax.experimental.pallas"),
        ("jax.new", "jax."),
        ("torch.new", ""),
    ],
)
def test_others_do_what_their_family_does(name: str, family: str) -> None:
    assert name not in externals.MODELS
    assert externals._of_family(name) is externals.FAMILIES[family]
