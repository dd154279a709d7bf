"""PAL302 to PAL305 and PAL501: what is flagged is what jax refuses to trace, and nothing else.

Each case holds the code of the one finding that it deserves, or None. The slow test traces every case with a real jax.
"""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import codes, lint
from tests.rules.traced import PRELUDE, outcomes

OURS = frozenset({"PAL302", "PAL303", "PAL304", "PAL305", "PAL501"})
NO_TRACE = frozenset({"a function of a helper's jit"})  # refused later than tracing


def blocks(index_map: str, grid: str = "grid=(2,)", block: str = "(128, 128)") -> str:
    return f"""
        def f(x):
            spec = pl.BlockSpec({block}, {index_map})
            return pl.pallas_call(lambda x_ref, o_ref: None, {grid}, in_specs=[spec], out_specs=spec, out_shape=OUT)(x)
    """


def prefetching(index_map: str, count: int = 1) -> str:
    return f"""
        args = (ROWS, X)
        def f(rows, x):
            spec = pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch={count}, grid=(2,), in_specs=[pl.BlockSpec((128, 128), {index_map})],
                out_specs=pl.BlockSpec((128, 128), lambda i, *_: (i, 0)))
            return pl.pallas_call(lambda r, x_ref, o_ref: None, grid_spec=spec, out_shape=OUT)(rows, x)
    """


def kernel(parameters: str, launch: str = "", operands: str = "x", body: str = "None") -> str:
    return f"""
        def f(x):
            return pl.pallas_call(lambda {parameters}: {body}, {launch or "out_shape=OUT"})({operands})
    """


def inside(expression: str, before: str = "pass", around: str = "pass") -> str:
    return f"""
        {around}
        def f(x):
            {before}
            def kernel(x_ref, o_ref):
                o_ref[...] = {expression}
            return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    """


TABLE = "TABLE = np.arange(128, dtype=np.float32)"
JTABLE = "TABLE = jnp.arange(128, dtype=jnp.float32)"
CASES: dict[str, tuple[str, str | None]] = {
    # -- PAL302
    "map with too few parameters": (blocks("lambda i: (i, 0)", "grid=(2, 1)"), "PAL302"),
    "map with too many parameters": (blocks("lambda i, j: (i, 0)"), "PAL302"),
    "map with star": (blocks("lambda *a: (a[0], 0)", "grid=(2, 1)"), None),
    "map with a default left out": (blocks("lambda i, j=0: (i, j)"), None),
    "map with a default filled": (blocks("lambda i, j=0: (i, j)", "grid=(2, 1)"), None),
    "map with a keyword-only parameter": (blocks("lambda i, *, j: (i, j)"), "PAL302"),
    "map with a keyword-only default": (blocks("lambda i, *, j=0: (i, j)"), None),
    "integer grid": (blocks("lambda i: (i, 0)", "grid=2"), None),
    "integer grid, too many": (blocks("lambda i, j: (i, 0)", "grid=2"), "PAL302"),
    "list grid": (blocks("lambda i: (i, 0)", "grid=[2]"), None),
    "no grid, no parameter": (blocks("lambda: (0, 0)", "name='k'", "(256, 128)"), None),
    "no grid, a parameter": (blocks("lambda i: (i, 0)", "name='k'", "(256, 128)"), "PAL302"),
    "empty grid, a parameter": (blocks("lambda i: (i, 0)", "grid=()", "(256, 128)"), "PAL302"),
    "partial by keyword": (blocks("functools.partial(lambda i, c: (i, c), c=0)"), None),
    "partial by position": (blocks("functools.partial(lambda c, i: (i, c), 0)"), None),
    "partial, then too few": (blocks("functools.partial(lambda i, c: (i, c), c=0)", "grid=(2, 1)"), "PAL302"),
    "prefetch with its parameter": (prefetching("lambda i, rows: (rows[i], 0)"), None),
    "prefetch forgotten": (prefetching("lambda i: (i, 0)"), "PAL302"),
    "prefetch with star": (prefetching("lambda i, *_: (i, 0)"), None),
    # -- PAL303
    "one result too few": (blocks("lambda i: (i,)"), "PAL303"),
    "one result too many": (blocks("lambda i: (i, 0, 0)"), "PAL303"),
    "scalar for rank two": (blocks("lambda i: i"), "PAL303"),
    "list": (blocks("lambda i: [i, 0]"), None),
    "true division": (blocks("lambda i: (i / 2, 0)"), "PAL303"),
    "floor division": (blocks("lambda i: (i // 2, 0)"), None),
    "float constant": (blocks("lambda i: (i, 0.0)"), "PAL303"),
    "division inside a cast": (blocks("lambda i: (jnp.int32(i / 2), 0)"), None),
    "None as index": (blocks("lambda i: (i, None)"), "PAL303"),
    "scalar for rank one": (
        """
        args = (V,)
        def f(x):
            spec = pl.BlockSpec((512,), lambda i: i)
            return pl.pallas_call(lambda a, o: None, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=V)(x)
        """,
        None,
    ),
    # -- PAL304
    "kernel with too few parameters": (kernel("x_ref"), "PAL304"),
    "kernel with too many parameters": (kernel("x_ref, y_ref, o_ref"), "PAL304"),
    "kernel with a default": (kernel("x_ref, o_ref, s_ref=None"), None),
    "kernel with star": (kernel("*refs"), None),
    "kernel with a keyword-only parameter": (kernel("x_ref, o_ref, *, n"), "PAL304"),
    "a pair of scratch is one": (kernel("x_ref, o_ref, pair", "out_shape=OUT, scratch_shapes=[(VMEM, VMEM)]"), None),
    "a pair of scratch is not two": (
        kernel("x_ref, o_ref, a, b", "out_shape=OUT, scratch_shapes=[(VMEM, VMEM)]"),
        "PAL304",
    ),
    "None among the operands": (kernel("x_ref, none, o_ref", operands="x, None"), None),
    "None among the operands is no nothing": (kernel("x_ref, o_ref", operands="x, None"), "PAL304"),
    "None among the outputs": (kernel("x_ref, o_ref, none", "out_shape=[OUT, None]"), None),
    "None among the scratch": (kernel("x_ref, o_ref, none, s", "out_shape=OUT, scratch_shapes=[None, VMEM]"), None),
    "a tuple of operands is one": (kernel("pair, o_ref", operands="(x, x)"), None),
    "a dict of outputs is one": (kernel("x_ref, outs", "out_shape={'a': OUT, 'b': OUT}"), None),
    "a dict of outputs is not two": (kernel("x_ref, a, b", "out_shape={'a': OUT, 'b': OUT}"), "PAL304"),
    "no outputs": (kernel("x_ref", "out_shape=[]"), None),
    "kernel bound by position": (
        """
        def kernel(n, x_ref, o_ref): pass
        def f(x): return pl.pallas_call(functools.partial(kernel, 3), out_shape=OUT)(x)
        """,
        None,
    ),
    "a keyword bound in the middle": (
        """
        def kernel(x_ref, n, o_ref): pass
        def f(x): return pl.pallas_call(functools.partial(kernel, n=3), out_shape=OUT)(x)
        """,
        "PAL304",
    ),
    "one of two launches, each called in its branch": (
        """
        HOW_MANY = int("999")
        def f(x, y=None):
            two = x.shape[0] > HOW_MANY
            run = pl.pallas_call(lambda a, b, o: None, out_shape=OUT) if two else pl.pallas_call(copy, out_shape=OUT)
            return run(x, x) if two else run(x)
        """,
        None,
    ),
    "one of two launches that are jitted": (
        """
        HOW_MANY = int("999")
        def f(x):
            run = jax.jit(pl.pallas_call(copy, out_shape=OUT))
            if x.shape[0] > HOW_MANY: run = jax.jit(pl.pallas_call(lambda a, b, o: None, out_shape=OUT))
            return run(x, x) if x.shape[0] > HOW_MANY else run(x)
        """,
        None,
    ),
    "an attribute of the object around the kernel": (
        """
        class Layer:
            def __init__(self): self.weight = jnp.ones((128,))
            def __call__(self, x):
                def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] * self.weight
                return pl.pallas_call(kernel, out_shape=OUT)(x)
        def f(x): return Layer()(x)
        """,
        "PAL501",
    ),
    "an attribute of the object that the kernel is a method of": (
        """
        class Layer:
            def __init__(self): self.weight = jnp.ones((128,))
            def kernel(self, x_ref, o_ref): o_ref[...] = x_ref[...] * self.weight
            def __call__(self, x): return pl.pallas_call(self.kernel, out_shape=OUT)(x)
        def f(x): return Layer()(x)
        """,
        "PAL501",
    ),
    "an attribute of a bound object": (
        """
        class Layer:
            def __init__(self): self.weight = jnp.ones((128,))
        def kernel(layer, x_ref, o_ref): o_ref[...] = x_ref[...] * layer.weight
        def f(x): return pl.pallas_call(functools.partial(kernel, Layer()), out_shape=OUT)(x)
        """,
        "PAL501",
    ),
    "attributes of an object that the kernel makes": (
        """
        class State:
            def __init__(self, total): self.total = total
        def double(state): return State(state.total * 2)
        def kernel(x_ref, o_ref): o_ref[...] = double(State(x_ref[...] + jnp.ones((128,)))).total
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x)
        """,
        None,
    ),
    "the size of such an attribute, and a number": (
        """
        class Layer:
            def __init__(self): self.weight, self.scale = jnp.ones((128,)), 2.0
            def __call__(self, x):
                def kernel(x_ref, w_ref, o_ref):
                    o_ref[...] = x_ref[...] * w_ref[...] * self.weight.shape[0] * self.scale
                return pl.pallas_call(kernel, out_shape=OUT)(x, self.weight)
        def f(x): return Layer()(x)
        """,
        None,
    ),
    "attributes that the kernel itself sets": (
        """
        class Box: pass
        def f(x):
            box = Box()
            def kernel(x_ref, o_ref):
                box.whole = x_ref[...]
                def add(i, total):
                    box.total = total
                    return box.total + box.whole
                o_ref[...] = lax.fori_loop(0, 3, add, jnp.zeros(x_ref.shape, x_ref.dtype))
            return pl.pallas_call(kernel, out_shape=OUT)(x)
        """,
        None,
    ),
    # -- PAL305
    "one of two launches, with specs for its own operands": (
        """
        HOW_MANY = int("999")
        def f(x):
            spec = pl.BlockSpec((256, 128))
            if x.shape[0] > HOW_MANY:
                run = pl.pallas_call(lambda a, b, o: None, in_specs=[spec, spec], out_shape=OUT)
            else:
                run = pl.pallas_call(copy, in_specs=[spec], out_shape=OUT)
            if x.shape[0] > HOW_MANY: return run(x, x)
            return run(x)
        """,
        None,
    ),
    "a guard that is given what it guards": (
        """
        def kernel(x_ref, o_ref):
            def copy_first(): o_ref[...] = x_ref[...]
            pl.when(pl.program_id(0) == 0, copy_first)
        def f(x): return pl.pallas_call(kernel, grid=(1,), out_shape=OUT)(x)
        """,
        "PAL305",
    ),
    "a guard that decorates, and arguments by name": (
        """
        def kernel(x_ref, o_ref):
            @pl.when(pl.program_id(axis=0) == 0)
            def _(): o_ref[...] = x_ref[...]
        def f(x):
            spec = pl.BlockSpec((pl.cdiv(256, 2), 128), lambda i: (i, 0), memory_space=pltpu.VMEM)
            return pl.pallas_call(kernel, (OUT), grid=(1,), out_specs=pl.BlockSpec(OUT.shape))(x)
        """,
        None,
    ),
    "decorator": ("@pl.pallas_call(out_shape=OUT)\ndef f(x_ref, o_ref): pass", "PAL305"),
    "bare decorator": ("@pl.pallas_call\ndef f(x_ref, o_ref): pass", "PAL305"),
    "partial decorator": ("@functools.partial(pl.pallas_call, out_shape=OUT)\ndef f(x_ref, o_ref): pass", None),
    "no out_shape": ("def f(x): return pl.pallas_call(copy)(x)", "PAL305"),
    "unknown keyword": ("def f(x): return pl.pallas_call(copy, out_shape=OUT, threads=2)(x)", "PAL305"),
    "misspelled keyword": ("def f(x): return pl.pallas_call(copy, out_shapes=OUT, out_shape=OUT)(x)", "PAL305"),
    "grid beside grid_spec": (
        "def f(x): return pl.pallas_call(copy, out_shape=OUT, grid=(2,), grid_spec=pl.GridSpec(grid=(2,)))(x)",
        "PAL305",
    ),
    "empty grid beside grid_spec": (
        "def f(x): return pl.pallas_call(copy, out_shape=OUT, grid=(), grid_spec=pl.GridSpec(grid=(2,)))(x)",
        None,
    ),
    "operands at once": ("def f(x): return pl.pallas_call(copy, x, out_shape=OUT)", "PAL305"),
    "grid by position": ("def f(x): return pl.pallas_call(copy, OUT, (2,))(x)", "PAL305"),
    "out_shape by position": ("def f(x): return pl.pallas_call(copy, OUT)(x)", None),
    "too many in_specs": (
        "def f(x): return pl.pallas_call(lambda a, b, o: None, out_shape=OUT, in_specs=[pl.BlockSpec()] * 2)(x)",
        "PAL305",
    ),
    "too few in_specs": (
        "def f(x): return pl.pallas_call(copy, out_shape=OUT, in_specs=[pl.BlockSpec()])(x, x)",
        "PAL305",
    ),
    "a single spec": ("def f(x): return pl.pallas_call(copy, out_shape=OUT, in_specs=pl.BlockSpec())(x)", "PAL305"),
    "specs without a grid": (
        "def f(x): return pl.pallas_call(copy, out_shape=OUT, in_specs=[pl.BlockSpec((256, 128))])(x)",
        None,
    ),
    "a list of out_specs for one output": (
        "def f(x): return pl.pallas_call(copy, out_shape=OUT, out_specs=[pl.BlockSpec()])(x)",
        "PAL305",
    ),
    "one out_spec for a list": (
        "def f(x): return pl.pallas_call(copy, out_shape=[OUT], out_specs=pl.BlockSpec())(x)",
        "PAL305",
    ),
    "a tuple of out_specs for a list": (
        "def f(x): return pl.pallas_call(copy, out_shape=[OUT], out_specs=(pl.BlockSpec(),))(x)",
        None,
    ),
    "a plain shape": ("def f(x): return pl.pallas_call(copy, out_shape=(256, 128))(x)", "PAL305"),
    "the shape of an operand": ("def f(x): return pl.pallas_call(copy, out_shape=x.shape)(x)", "PAL305"),
    "an array as out_shape": ("def f(x): return pl.pallas_call(copy, out_shape=x)(x)", None),
    "a value by keyword": (
        """
        def kernel(x_ref, o_ref, n):
            for at in range(n): o_ref[at] = x_ref[at]
        def f(x): return pl.pallas_call(kernel, out_shape=OUT)(x, n=3)
        """,
        "PAL305",
    ),
    "a value by keyword, for the kernel's default": (
        "def f(x): return pl.pallas_call(lambda x_ref, o_ref, n=1: None, out_shape=OUT)(x, n=3)",
        "PAL305",
    ),
    "a keyword that the kernel does not know": (
        "def f(x): return pl.pallas_call(copy, out_shape=OUT)(x, n=3)",
        "PAL305",
    ),
    "an operand by keyword": ("def f(x): return pl.pallas_call(copy, out_shape=OUT)(x_ref=x)", "PAL305"),
    "a keyword for a jitted launch": (
        "def f(x): return jax.jit(pl.pallas_call(copy, out_shape=OUT))(x, n=3)",
        "PAL305",
    ),
    "a keyword bound to a launch": (
        "def f(x): return functools.partial(pl.pallas_call(copy, out_shape=OUT), n=3)(x)",
        "PAL305",
    ),
    "a value by keyword for a decorated kernel": (
        """
        @functools.partial(pl.pallas_call, out_shape=OUT)
        def double(x_ref, o_ref, scale=2): o_ref[...] = x_ref[...] * scale
        def f(x): return double(x, scale=4)
        """,
        "PAL305",
    ),
    "a value by keyword in a branch": (
        """
        def f(x):
            if x.shape[0] > HOW_MANY: return x
            return pl.pallas_call(copy, out_shape=OUT)(x, n=3)
        HOW_MANY = int("999")
        """,
        "PAL305",
    ),
    "a keyword for what is another function by then": (
        """
        HOW_MANY = int("1")
        def f(x):
            run = (lambda x, n: x) if x.shape[0] > HOW_MANY else pl.pallas_call(copy, out_shape=OUT)
            return run(x, n=2) if x.shape[0] > HOW_MANY else run(x)
        """,
        None,
    ),
    "no keywords": ("def f(x): return pl.pallas_call(copy, out_shape=OUT)(x, **{})", None),
    "a value bound to the kernel": (
        "def f(x): return pl.pallas_call(functools.partial(lambda x_ref, o_ref, n: None, n=3), out_shape=OUT)(x)",
        None,
    ),
    # -- PAL501
    "jax table": (inside("x_ref[...] + TABLE", around=JTABLE), "PAL501"),
    "numpy table": (inside("x_ref[...] + TABLE", around=TABLE), "PAL501"),
    "numpy table, stored": (inside("np.ones((256, 128), np.float32)"), "PAL501"),
    "numpy table, reshaped first": (inside("x_ref[...] + TABLE[None, :]", around=TABLE), "PAL501"),
    "numpy element": (inside("x_ref[...] * TABLE[3]", around=TABLE), None),
    "numpy elements, one by one": (inside("sum(x_ref[...] * c for c in TABLE[:3])", around=TABLE), None),
    "sum of a numpy table": (inside("x_ref[...] * TABLE.sum()", around=TABLE), None),
    "jnp.sum of a numpy table": (inside("x_ref[...] * jnp.sum(TABLE)", around=TABLE), "PAL501"),
    "jax element": (inside("x_ref[...] * TABLE[3]", around=JTABLE), "PAL501"),
    "jax scalar": (inside("x_ref[...] * SCALE", around="SCALE = jnp.float32(2)"), "PAL501"),
    "jax scalar made a float": (inside("x_ref[...] * float(SCALE)", around="SCALE = jnp.float32(2)"), None),
    "numpy scalar": (inside("x_ref[...] * SCALE", around="SCALE = np.float32(2)"), None),
    "numpy array of rank 0": (inside("x_ref[...] * SCALE", around="SCALE = np.array(2.0, np.float32)"), None),
    "python number": (inside("x_ref[...] * SCALE", around="SCALE = 2.0"), None),
    "shape and dtype of a table": (
        inside("x_ref[...].astype(TABLE.dtype) * TABLE.shape[0] + jnp.zeros_like(TABLE)", around=JTABLE),
        None,
    ),
    "array of the enclosing function": (inside("x_ref[...] + c", before="c = jnp.arange(128.0)"), "PAL501"),
    "operand": (inside("x_ref[...] + x"), "PAL501"),
    "row of an operand": (inside("x_ref[...] + x[0]"), "PAL501"),
    "shape of an operand": (inside("x_ref[...] * x.shape[0]"), None),
    "list of numbers": (inside("x_ref[...] * jnp.array([1.0, 2.0])[1]"), "PAL501"),
    "list with a traced number": (inside("x_ref[...] * jnp.array([x_ref[0, 0], 2.0])[1]"), None),
    "array made inside": (inside("x_ref[...] + jnp.arange(128.0) + jnp.array(1.0)"), None),
    "array in a loop": (inside("lax.fori_loop(0, 3, lambda i, a: a + TABLE, x_ref[...])", around=JTABLE), "PAL501"),
    "array in a branch": (
        inside("lax.cond(x_ref[0, 0] > 0, lambda: x_ref[...] + TABLE, lambda: x_ref[...])", around=JTABLE),
        "PAL501",
    ),
    "numpy index of a value": (inside("x_ref[...][np.array([0] * 256)]"), "PAL501"),
    "a function of a helper's jit": (
        inside("add(x_ref[...])", around=f"{JTABLE}; add = jax.jit(lambda v: v + TABLE)"),
        "PAL501",
    ),
    "partial with an array": (
        """
        def kernel(x_ref, o_ref, *, table): o_ref[...] = x_ref[...] + table
        def f(x): return pl.pallas_call(functools.partial(kernel, table=jnp.arange(128.0)), out_shape=OUT)(x)
        """,
        "PAL501",
    ),
    "map looking up a jax array": (
        "TABLE = jnp.arange(8)\n" + textwrap.dedent(blocks("lambda i: (TABLE[i], 0)")), "PAL501"
    ),
    "map looking up a numpy array": (
        "TABLE = np.arange(8)\n" + textwrap.dedent(blocks("lambda i: (TABLE[i], 0)")), "PAL501"
    ),
    "map with a fixed numpy element": (
        "TABLE = np.arange(8)\n" + textwrap.dedent(blocks("lambda i: (TABLE[0], 0)")), None
    ),
    "map with a jax scalar": ("ONE = jnp.int32(1)\n" + textwrap.dedent(blocks("lambda i: (i + ONE, 0)")), "PAL501"),
    "map with a numpy scalar": ("ONE = np.int32(1)\n" + textwrap.dedent(blocks("lambda i: (i * ONE, 0)")), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_flagged(name: str) -> None:
    code, wanted = CASES[name]
    findings = [finding for finding in lint(PRELUDE + textwrap.dedent(code)) if finding.code in OURS]
    assert codes(findings) == ({wanted} if wanted else set()), [finding.message for finding in findings]


@pytest.mark.parametrize("name", [name for name, (_, wanted) in CASES.items() if wanted])
def test_certain(name: str) -> None:
    code, wanted = CASES[name]
    levels = {finding.severity.value for finding in lint(PRELUDE + textwrap.dedent(code)) if finding.code == wanted}
    assert levels == {"error"}


@pytest.mark.nightly
def test_jax_refuses_what_is_flagged_and_nothing_else() -> None:
    found = outcomes({name: textwrap.dedent(code) for name, (code, _) in CASES.items() if name not in NO_TRACE})
    wrong = {name: error for name, error in found.items() if (error is None) == (CASES[name][1] is not None)}
    assert not wrong
