"""Roles of kernel parameters: the hard cases, each traced with real jax when they were written."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.kernels.launches.roles import expected
from pallas_lint.kernels.model.trace import Access
from tests.kernels.test_discovery import run


def roles(code: str) -> list[str]:
    """ "name:role" of the refs of the last kernel, those inside tuples too."""
    trace = run(code).traces[-1]
    return [f"{ref.parameter}:{ref.role}" for ref in trace.refs]


def counts(code: str) -> tuple[int | None, int | None, int | None, int | None]:
    launch = run(code).launches[-1]
    wanted = expected(launch)
    return wanted.prefetch, wanted.inputs, wanted.outputs, wanted.scratch_count


CASES = {
    "operands tell the inputs": (
        """
        def kernel(a, b, o): o[...] = a[...] + b[...]
        def f(x, y): return pl.pallas_call(kernel, out_shape=SHAPE)(x, y)
        """,
        ["a:in", "b:in", "o:out"],
    ),
    "specs tell the inputs": (
        """
        def kernel(a, b, o, s): o[...] = a[...]
        def f(*xs):
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            return pl.pallas_call(kernel, out_shape=SHAPE, grid=(1,), in_specs=[spec] * 2,
                                  scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])(*xs)
        """,
        ["a:in", "b:in", "o:out", "s:scratch"],
    ),
    "scalar prefetch without in_specs": (
        """
        def kernel(rows, a, o): o[...] = a[...]
        def f(rows, x):
            spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,))
            return pl.pallas_call(kernel, grid_spec=spec, out_shape=SHAPE)(rows, x)
        """,
        ["rows:prefetch", "a:in", "o:out"],
    ),
    "a nested tuple of scratch is one parameter": (
        """
        def kernel(a, o, pair, s): o[...] = a[...]
        def f(x):
            v = pltpu.VMEM((8, 128), jnp.float32)
            return pl.pallas_call(kernel, out_shape=SHAPE, scratch_shapes=[(v, v), v])(x)
        """,
        ["a:in", "o:out", "pair[0]:scratch", "pair[1]:scratch", "s:scratch"],
    ),
    "a dict of scratch comes by keyword": (
        """
        def kernel(a, o, *, acc, sem): o[...] = a[...]
        def f(x):
            scratch = dict(acc=pltpu.VMEM((8, 128), jnp.float32), sem=pltpu.SemaphoreType.DMA)
            return pl.pallas_call(kernel, out_shape=SHAPE, scratch_shapes=scratch)(x)
        """,
        ["a:in", "o:out", "acc:scratch", "sem:scratch"],
    ),
    "None in place of an input is a parameter": (
        """
        def kernel(a, mask, o): o[...] = a[...]
        def f(x):
            return pl.pallas_call(kernel, out_shape=SHAPE, in_specs=[pl.BlockSpec(), None])(x, None)
        """,
        ["a:in", "o:out"],
    ),
    "an input that may be None": (
        """
        def kernel(a, mask, o):
            if mask is not None: o[...] = a[...] * mask[...]
            else: o[...] = a[...]
        def f(x, mask):
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            return pl.pallas_call(kernel, out_shape=SHAPE, grid=(1,),
                                  in_specs=[spec, spec if mask is not None else None])(x, mask)
        """,
        ["a:in", "mask:in", "o:out"],
    ),
    "a tuple of outputs in one element": (
        """
        def kernel(a, o, pair): o[...] = a[...]
        def f(x): return pl.pallas_call(kernel, out_shape=(SHAPE, (SHAPE, SHAPE)))(x)
        """,
        ["a:in", "o:out", "pair[0]:out", "pair[1]:out"],
    ),
    "a dict of outputs is one parameter": (
        """
        def kernel(a, outs): outs["o"][...] = a[...]
        def f(x): return pl.pallas_call(kernel, out_shape={"o": SHAPE})(x)
        """,
        ["a:in", "outs[0]:out"],
    ),
    "a tuple among the operands": (
        """
        def kernel(pair, o): o[...] = pair[0][...]
        def f(x, y): return pl.pallas_call(kernel, out_shape=SHAPE)((x, y))
        """,
        ["pair[0]:in", "pair[1]:in", "o:out"],
    ),
    "a default leaves a trailing ref out": (
        """
        def kernel(a, o, s=None): o[...] = a[...]
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
        """,
        ["a:in", "o:out"],
    ),
    "partial by keyword and by position": (
        """
        def kernel(n, a, o, *, m): o[...] = a[...]
        def f(x): return pl.pallas_call(functools.partial(kernel, 3, m=2), out_shape=SHAPE)(x)
        """,
        ["a:in", "o:out"],
    ),
    "packed refs": (
        """
        def kernel(*refs):
            a, o = refs
            o[...] = a[...]
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
        """,
        ["refs[0]:in", "refs[1]:out"],
    ),
    "a grid spec from a variable": (
        """
        def kernel(a, o, s): o[...] = a[...]
        def f(x):
            spec = pl.GridSpec(grid=(1,), in_specs=[pl.BlockSpec()], out_specs=pl.BlockSpec(),
                               scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])
            return pl.pallas_call(kernel, grid_spec=spec, out_shape=SHAPE)(x)
        """,
        ["a:in", "o:out", "s:scratch"],
    ),
    "outputs and scratch from the back": (
        """
        def kernel(a, b, o, s): o[...] = a[...]
        scratch = [pltpu.VMEM((8, 128), jnp.float32)]
        def f(*xs): return pl.pallas_call(kernel, out_shape=SHAPE, scratch_shapes=scratch)(*xs)
        """,
        ["a:in", "b:in", "o:out", "s:scratch"],
    ),
    "nothing from the back where a default may be filled": (
        """
        def kernel(a, b, o=None): b[...] = a[...]
        def f(*xs): return pl.pallas_call(kernel, out_shape=SHAPE)(*xs)
        """,
        ["a:None", "b:None", "o:None"],
    ),
    "unknown keywords of the launch": (
        """
        def kernel(a, o): o[...] = a[...]
        def f(x, **options): return pl.pallas_call(kernel, out_shape=SHAPE, **options)(x)
        """,
        ["a:None", "o:None"],
    ),
    "the same names with other specs at a second launch": (
        """
        def kernel(a, b, o): o[...] = a[...]
        def f(x, rows):
            spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[pl.BlockSpec()])
            return pl.pallas_call(kernel, grid_spec=spec, out_shape=SHAPE)(rows, x)
        """,
        ["a:prefetch", "b:in", "o:out"],
    ),
    "operands that follow an unknown number of others": (
        """
        def kernel(*refs): refs[-1][...] = refs[0][...]
        def f(x, *xs): return pl.pallas_call(kernel, out_shape=SHAPE)(*xs, x)
        """,
        [],
    ),
    "pl.kernel": (
        """
        @functools.partial(pl.kernel, out_type=SHAPE, mesh=MESH, scratch_types=[pltpu.VMEM((8, 128), jnp.float32)])
        def kernel(a, o, s): pltpu.sync_copy(a, o)
        def f(x): return kernel(x)
        """,
        ["a:in", "o:out", "s:scratch"],
    ),
    "kernel of a method": (
        """
        class Op:
            def kernel(self, a, o): o[...] = a[...]
            def __call__(self, x): return pl.pallas_call(self.kernel, out_shape=SHAPE)(x)
        """,
        ["a:in", "o:out"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_roles(name: str) -> None:
    code, wanted = CASES[name]
    assert roles(textwrap.dedent(code)) == wanted


def accesses(code: str) -> list[tuple[str, str | None]]:
    traces = run(textwrap.dedent(code)).traces
    trace = next(trace for trace in traces if trace.launch.kind in ("pallas_call", "kernel"))
    return [
        (event.ref.parameter, event.ref.role)
        for event in trace.events
        if isinstance(event, Access) and event.kind != "escape"
    ]


def test_pipeline_body_on_tpu() -> None:
    found = accesses("""
        def body(x_ref, o_ref, acc): o_ref[...] = x_ref[...] + acc[...]
        def kernel(a, o, acc_ref):
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(a, o, scratches=[acc_ref])
        def f(x):
            return pl.pallas_call(kernel, out_shape=SHAPE, scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)])(x)
    """)
    assert found == [("x_ref", "in"), ("acc_ref", "scratch"), ("o_ref", "out")]


def test_pipeline_body_on_mosaic_gpu_gets_indices_first() -> None:
    found = accesses("""
        from jax.experimental.pallas import mosaic_gpu as plgpu
        def kernel(a, o):
            def body(indices, x_ref, o_ref): o_ref[...] = x_ref[...]
            spec = plgpu.BlockSpec((8, 128), lambda i: (i, 0))
            plgpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(a, o)
        def f(x): return plgpu.kernel(kernel, out_type=SHAPE)(x)
    """)
    assert found == [("x_ref", "in"), ("o_ref", "out")]


def test_buffers_of_the_same_name_are_distinct() -> None:
    trace = run(
        textwrap.dedent("""
        def kernel(x_ref, o_ref):
            def body(x_ref, o_ref): o_ref[...] = x_ref[...]
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(body, grid=(4,), in_specs=[spec], out_specs=[spec])(x_ref, o_ref)
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """)
    ).traces[-1]
    stores = {event.ref.buffer for event in trace.events if isinstance(event, Access) and event.kind == "store"}
    escapes = {event.ref.buffer for event in trace.events if isinstance(event, Access) and event.kind == "escape"}
    assert stores and not stores & escapes


def test_counts_that_are_not_seen() -> None:
    assert counts("def k(*r): pass\ndef f(x, specs): return pl.pallas_call(k, out_shape=SHAPE, in_specs=specs)(x)") == (
        0,
        None,
        1,
        0,
    )
    assert counts("def k(*r): pass\ndef f(x, n): return pl.pallas_call(k, out_shape=SHAPE, grid_spec=n)(x)") == (
        None,
        None,
        1,
        None,
    )
    assert counts("def k(*r): pass\ndef f(x, out): return pl.pallas_call(k, out_shape=out)(x)") == (0, 1, None, 0)


def test_launch_behind_a_flag_that_every_caller_sets_alike() -> None:
    found = run(
        textwrap.dedent("""
        def first(x_ref, o_ref): o_ref[...] = x_ref[...]
        def second(x_ref, o_ref): o_ref[...] = x_ref[...]
        def launch(x, fast=False):
            if fast:
                return pl.pallas_call(first, out_shape=SHAPE)(x)
            return pl.pallas_call(second, out_shape=SHAPE)(x)
        def f(x): return launch(x + pl.pallas_call(second, out_shape=SHAPE)(x))
    """)
    )
    assert {trace.name for trace in found.traces} == {"first", "second"}


def test_a_launch_bound_by_name_gets_the_operands_of_its_callers() -> None:
    found = run(
        textwrap.dedent("""
        @functools.partial(pl.pallas_call, out_shape=SHAPE)
        def kernel(a, b, o): o[...] = a[...] + b[...]
        def f(x): return kernel(x, jnp.zeros((8, 128), jnp.bfloat16))
    """)
    )
    refs = [ref for trace in found.traces for ref in trace.refs]
    assert ("b", "in", "bf16") in {(ref.parameter, ref.role, ref.dtype) for ref in refs}
