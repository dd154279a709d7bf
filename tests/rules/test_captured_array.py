"""PAL501 beyond what jax's verdict alone shows: places, launches of other kinds, versions, what is not seen."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import codes, lines, lint
from tests.rules.kernels import line_of

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

TABLE = jnp.arange(128.0)
OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)


"""


def module(code: str) -> str:
    return PRELUDE + textwrap.dedent(code).strip() + "\n"


def levels(code: str, jax: str | None = None) -> list[str]:
    return [finding.severity.value for finding in lint(code, jax, select="PAL501")]


def test_place_is_the_name_in_the_kernel() -> None:
    code = module("""
        def kernel(x_ref, o_ref):
            x = x_ref[...]
            o_ref[...] = (x
                + TABLE)
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    findings = lint(code, select="PAL501")
    assert [(finding.span.start.line, finding.span.start.column) for finding in findings] == [
        (line_of(code, "+ TABLE"), 11)
    ]


def test_each_array_once() -> None:
    code = module("""
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + TABLE
            o_ref[...] = o_ref[...] * TABLE
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    assert len(levels(code)) == 1


def test_in_a_helper() -> None:
    code = module("""
        def shift(v): return v + TABLE
        def kernel(x_ref, o_ref): o_ref[...] = shift(x_ref[...])
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    assert lines(lint(code, select="PAL501"), "PAL501") == {line_of(code, "def shift")}


def test_in_the_body_of_a_pipeline() -> None:
    code = module("""
        def kernel(x_ref, o_ref):
            scale = x_ref[0, 0]
            def body(a_ref, b_ref): b_ref[...] = a_ref[...] * scale + TABLE
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    findings = [finding.message for finding in lint(code, select="PAL501")]
    assert findings == ["kernel captures `TABLE`, an array"]


def test_an_operand_is_certain_where_the_launch_takes_its_shape() -> None:
    kernel = "def f(x, n):\n    def kernel(x_ref, n_ref, o_ref): o_ref[...] = x_ref[...] * {used}\n"
    launch = "    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, n)"
    assert levels(module(kernel.format(used="x") + launch)) == ["error"]
    assert levels(module(kernel.format(used="n") + launch)) == ["warning"]  # a Python number may be an operand too
    assert levels(module(kernel.format(used="x_ref.shape[0]") + launch)) == []


def test_parameters_that_are_no_operands() -> None:
    code = module("""
        def f(x, scale, table):
            def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] * scale + table[0]
            return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    assert levels(code) == []


@pytest.mark.parametrize(
    "use",
    [
        "jax.typeof(TABLE).shape[0]",
        "len(TABLE)",
        "TABLE.ndim",
        "jnp.ones_like(TABLE)",
        "np.asarray(TABLE)[0]",
        "TABLE.size",
    ],
)
def test_only_the_value_counts(use: str) -> None:
    code = module(f"""
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] * {use}
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    assert levels(code) == []


@pytest.mark.parametrize(("jax", "found"), [("0.8.3", []), ("0.9.2", []), ("0.10.2", ["error"]), ("0.12.0", ["error"])])
def test_kernel_refuses_arrays_since_0_10_2(jax: str, found: list[str]) -> None:
    code = module("""
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] + TABLE
        def f(x, mesh): return pl.kernel(kernel, out_type=OUT, out_shape=OUT, mesh=mesh)(x)
    """)
    assert levels(code, jax) == found


def test_kernel_takes_scalars() -> None:
    code = module("""
        SCALE = jnp.float32(2)
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] * SCALE
        def f(x, mesh): return pl.kernel(kernel, out_type=OUT, mesh=mesh)(x)
    """)
    assert levels(code, "0.12.0") == []


def test_numpy_arrays_of_unknown_rank_are_left_alone() -> None:
    code = module("""
        def f(x, values):
            table = np.array(values)
            def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] * table
            return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    assert levels(code) == []


def test_numpy_arithmetic_is_done_while_tracing() -> None:
    code = module("""
        HALF = np.arange(8, dtype=np.float32) / 2
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * (HALF * 2 + 1)[3] * -HALF[0] * HALF.max()
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    assert levels(code) == []


def test_nothing_outside_kernels() -> None:
    code = module("""
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x + TABLE) * jnp.array([1.0, 2.0])[0]
    """)
    assert "PAL501" not in codes(lint(code, select="PAL501"))


def test_index_map_with_an_operand() -> None:
    code = module("""
        def f(x, rows):
            spec = pl.BlockSpec((1, 128), lambda i: (rows[i], 0))
            specs = [pl.BlockSpec(), spec]
            return pl.pallas_call(lambda r, a, o: None, grid=(8,), in_specs=specs, out_shape=OUT)(rows, x)
    """)
    findings = lint(code, select="PAL501")
    assert [finding.message for finding in findings] == ["index map captures `rows`, an operand of the launch"]


JITTED = """
    def kernel(x_ref, o_ref, *, scale, n):
        o_ref[...] = x_ref[...] * {used}
    {decorator}
    def f(x, scale, n):
        return pl.pallas_call(functools.partial(kernel, scale=scale, n=n), out_shape=OUT)(x)
"""


@pytest.mark.parametrize(
    ("decorator", "used", "expected"),
    [
        ("@jax.jit", "scale", ["error"]),
        ("@jax.jit", "(2 * scale)", ["error"]),
        ("@functools.partial(jax.jit, static_argnames='n')", "scale", ["error"]),
        ("@functools.partial(jax.jit, static_argnames='n')", "n", []),
        ("@functools.partial(jax.jit, static_argnums=(1, 2))", "scale", []),
        ("@jax.jit(static_argnames=('scale',))", "scale", []),
        ("@functools.partial(jax.jit, static_argnames=STATIC)", "scale", []),
        ("@jax.jit", "scale.shape[0]", []),
        ("", "scale", []),
    ],
)
def test_parameters_that_jit_traces(decorator: str, used: str, expected: list[str]) -> None:
    assert levels(module(JITTED.format(decorator=decorator, used=used))) == expected


def test_default_of_a_traced_parameter_is_no_tracer() -> None:
    code = JITTED.format(decorator="@jax.jit", used="scale").replace("(x, scale, n)", "(x, scale=2.0, n=1)")
    assert levels(module(code)) == []


def test_index_map_of_what_jit_traces() -> None:
    code = module("""
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]
        @jax.jit
        def f(x, order):
            spec = pl.BlockSpec((8, 128), lambda i: (order[i], 0))
            return pl.pallas_call(kernel, grid=(1,), in_specs=[spec], out_shape=OUT)(x)
    """)
    assert levels(code) == ["error"]


def test_jit_in_the_kernel_captures_nothing() -> None:
    code = module("""
        @jax.jit
        def times(x, n):
            return x * n
        def f(x, n):
            def kernel(x_ref, o_ref):
                o_ref[...] = times(x_ref[...], n)
            return pl.pallas_call(kernel, out_shape=OUT)(x)
    """)
    assert levels(code) == []


NUMPY_INDEX = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

IDX = {made}

def kernel(x_ref, o_ref):
    o_ref[0:4] = {read}

def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((4, 128), jnp.float32))(x)
"""


# jax 0.4.35, 0.6.2, 0.8.3, 0.10.2 and 0.12.0.1 alike: "captures constants" from one element on, numbers are folded.
@pytest.mark.parametrize("read", ["x_ref[IDX]", "x_ref[...][IDX]", "x_ref[...][:, IDX]", "x_ref[IDX, :]"])
@pytest.mark.parametrize(
    ("made", "captured"),
    [
        ("np.array([3, 1, 2, 0])", True),
        ("np.array([3])", True),
        ("np.arange(8)[::2] + 1", True),
        ("np.roll(np.arange(4), 1)", True),
        ("np.concatenate([np.arange(2), np.arange(2)])", True),
        ("np.random.permutation(8)[:4]", True),
        ("np.array(3)", False),
        ("np.int32(2)", False),
        ("np.arange(4)[1]", False),
        ("int(np.argmax(np.arange(4)))", False),
    ],
)
def test_numpy_arrays_as_indices(made: str, captured: bool, read: str) -> None:
    code = NUMPY_INDEX.replace("{made}", made).replace("{read}", read)
    assert bool(lint(code, "0.10.2", select="PAL501")) is captured


@pytest.mark.parametrize(("where", "found"), [("run", []), ("__init__", ["error"])])
def test_an_attribute_that_a_method_of_the_base_class_sets(where: str, found: list[str]) -> None:
    code = module("""
        class Base:
            def load(self, table):
                self.tile = table[...] + 1

        class Kernel(Base):
            def load(self, table):
                super().load(table)

            def __init__(self, table):
                ...

            def run(self, x_ref, o_ref):
                table = x_ref
                ...
                o_ref[...] = x_ref[...] + self.tile

        def launch(x):
            return pl.pallas_call(Kernel(TABLE).run, OUT)(x)
        """)
    before, method, after = code.partition(f"def {where}(")
    assert levels(before + method + after.replace("...\n", "self.load(table)\n", 1)) == found
