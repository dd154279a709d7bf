"""Models of Mosaic GPU functions; read and lowered with jax 0.12.0.1."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.kernels.model.trace import Access, KernelTrace
from pallas_lint.kernels.model.values import Array, Const, Seq
from tests.kernels.test_discovery import run

_MODULE = """
from jax.experimental.pallas import mosaic_gpu as plgpu

def kernel(x_gmem, o_gmem, a, b, tmem, acc, barrier, semaphore):
{body}

def launch(x):
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((128, 64), jnp.float32),
        scratch_types=[
            plgpu.SMEM((128, 64), jnp.float16),
            plgpu.SMEM((64, 64), jnp.float16),
            plgpu.TMEM((128, 64), jnp.float32),
            plgpu.ACC((128, 64), jnp.float32),
            plgpu.Barrier(),
            plgpu.SemaphoreType.REGULAR,
        ],
    )(x)
"""


def trace_of(body: str) -> KernelTrace:
    code = _MODULE.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))
    launch = next(launch for launch in run(code).launches if launch.form.nesting == "own")
    (trace,) = launch.traces
    return trace


def accesses(body: str) -> list[str]:
    trace = trace_of(body)
    assert trace.complete
    assert trace.tracked_until is None
    return [f"{event.kind} {event.ref.parameter}" for event in trace.events if isinstance(event, Access)]


DONE = {
    "plgpu.wgmma(acc, a, b)": ["load a", "load b", "accumulate acc"],
    "plgpu.wgmma(acc, jnp.zeros((128, 64), jnp.float16), b)": ["load b", "accumulate acc"],
    "plgpu.wgmma_wait(0)": [],
    "plgpu.wgmma_accumulator_load(acc, wait_n=None)": ["load acc"],
    "plgpu.tcgen05_mma(tmem, a, b, barrier)": ["load a", "load b", "accumulate tmem"],
    "plgpu.tcgen05_mma(tmem, a, b, barrier, accumulate=False)": ["load a", "load b", "store tmem"],
    "plgpu.tcgen05_mma(tmem, a, b, accumulate=x_gmem[0, 0] > 0)": ["load x_gmem", "load a", "load b", "store tmem"],
    "plgpu.tcgen05_commit_arrive(barrier)": [],
    "plgpu.async_load_tmem(tmem)": ["load tmem"],
    "plgpu.async_store_tmem(tmem, jnp.zeros((128, 64)))": ["store tmem"],
    "plgpu.commit_tmem()\nplgpu.wait_load_tmem()": [],
    "plgpu.async_copy_smem_to_tmem(a, tmem)": ["load a", "store tmem"],
    "plgpu.async_copy_scales_to_tmem(a, tmem)": ["load a", "store tmem"],
    "plgpu.async_copy_sparse_metadata_to_tmem(a, tmem)": ["load a", "store tmem"],
    "plgpu.multimem_load_reduce(x_gmem, collective_axes='x', reduction_op='add')": ["load x_gmem"],
    "plgpu.multimem_store(jnp.zeros((128, 64)), o_gmem, 'x')": ["store o_gmem"],
    "plgpu.atomic_add(o_gmem, jnp.zeros((128, 64)))": ["accumulate o_gmem"],
    "plgpu.barrier_arrive_and_wait(barrier)": ["escape barrier"],
    "plgpu.semaphore_signal_multicast(semaphore, collective_axes='x')": ["escape semaphore"],
    "plgpu.set_max_registers(40, action='decrease')\nplgpu.print_layout('{}', a)": [],
    "o_gmem[plgpu.planar_snake(lax.axis_index('x'), (4, 4), 0, 2)] = 1.0": ["store o_gmem"],
    "plgpu.layout_cast(a[...], plgpu.Layout.WGMMA.reduce(x_gmem.shape[0]))": ["load a"],
    "plgpu.warp_map(lambda warp: o_gmem.at[warp].set(1.0))": ["store o_gmem"],
    "@plgpu.warp_map\ndef per_warp(warp):\n    o_gmem[warp] = 1.0": ["store o_gmem"],
    "def body(ref):\n    plgpu.wgmma(ref, a, b)\nc = pl.run_state(body)(plgpu.ACC.init(jnp.zeros((128, 64))))": [
        "store ref", "load a", "load b", "accumulate ref", "load ref",
    ],
    "@pl.run_state\ndef body(refs):\n    plgpu.wgmma(refs[0], a, b)\n"
    "c, d = body((plgpu.ACC.init(a[...]), jnp.zeros(8)))": [
        "load a", "store refs[0]", "store refs[1]", "load a", "load b", "accumulate refs[0]", "load refs[0]",
        "load refs[1]",
    ],
    "@plgpu.nd_loop((4, 4), collective_axes='x')\ndef body(info):\n    m, n = info.index\n"
    "    plgpu.copy_gmem_to_smem(x_gmem.at[m, n], a.at[info.local_index], barrier)": ["load x_gmem", "store a"],
    "@plgpu.dynamic_scheduling_loop(('x',))\ndef body(info):\n    (m,) = info.index\n    o_gmem[m] = 1.0": [
        "store o_gmem"
    ],
}  # fmt: skip


@pytest.mark.parametrize("body", DONE)
def test_effects_on_refs(body: str) -> None:
    assert accesses(body) == DONE[body]


def test_another_devices_buffer_may_be_any() -> None:
    trace = trace_of("plgpu.remote_ref(o_gmem, 1)[...] = x_gmem[...]")
    (store,) = [access for access in trace.accesses() if access.kind == "store"]
    assert store.ref.role is None
    assert store.ref.buffer != trace.refs[1].buffer
    assert trace.tracked_until is None


MADE = {
    "plgpu.broadcasted_iota(jnp.int32, (128, 64), 0, layout=plgpu.Layout.WGMMA)": ((128, 64), "i32"),
    "plgpu.mma(jnp.zeros((16, 8)), a[...], b[...])": ((16, 8), "f32"),
    "plgpu.async_load_tmem(tmem)": ((128, 64), "f32"),
    "plgpu.async_load_tmem(tmem, reduce='max')[0]": ((128, 64), "f32"),
    "plgpu.wgmma_accumulator_load(acc)": ((128, 64), "f32"),
    "plgpu.max(x, axis=1, accumulator_ilp=4)": ((128,), "f32"),
    "plgpu.planar_snake(lax.axis_index('x'), (4, 4), 0, 2)[1]": ((), "i32"),
    "plgpu.query_cluster_cancel(a, ('x', 'y'))[0][1]": ((), "i32"),
    "plgpu.query_cluster_cancel(a, ('x', 'y'))[1]": ((), "bool"),
    "pl.run_state(lambda ref: plgpu.wgmma(ref, a, b))(plgpu.ACC.init(x))": ((128, 64), "f32"),
}


@pytest.mark.parametrize("expression", MADE)
def test_results(expression: str) -> None:
    trace = trace_of(f"x = jnp.zeros((128, 64), jnp.float32)\no_gmem[...] = {expression}")
    store = [access for access in trace.accesses() if access.kind == "store"][-1]
    assert isinstance(store.value, Array)
    assert (store.value.shape, store.value.dtype) == MADE[expression]


@pytest.mark.parametrize(("bits", "swizzle"), [(1024, 128), (1536, 64), (768, 32), (640, 16)])
def test_the_largest_swizzle_of_which_a_row_is_a_multiple(bits: int, swizzle: int) -> None:
    trace = trace_of(f"o_gmem[plgpu.find_swizzle({bits}, 'lhs')] = 1.0")
    (store,) = trace.accesses()
    assert store.index == Const(swizzle)


def test_a_compute_context_runs_the_body_amid_its_own_work() -> None:
    trace = trace_of("""
        def step(indices, x_smem, carry):
            return carry + x_smem[...]

        def context(pipeline):
            a[...] = jnp.zeros((128, 64))
            total = pipeline(jnp.zeros((8, 64), jnp.float32))
            o_gmem[...] = total

        plgpu.emit_pipeline_warp_specialized(
            step, grid=(4,), in_specs=[plgpu.BlockSpec((8, 64), lambda i: (i, 0))], memory_registers=40, wg_axis="wg",
            num_compute_wgs=1, compute_context=context,
        )(x_gmem)
    """)
    assert trace.tracked_until is None
    seen = [event for event in trace.events if isinstance(event, Access) and event.kind != "escape"]
    assert [f"{event.kind} {event.ref.parameter}" for event in seen] == ["store a", "load x_smem", "store o_gmem"]
    total = seen[-1].value
    assert isinstance(total, Array)
    assert (total.shape, total.dtype) == ((8, 64), "f32")


def test_a_compute_context_that_is_not_seen_to_run_the_body() -> None:
    trace = trace_of("""
        def step(indices, x_smem, carry):
            o_gmem[...] = x_smem[...]
            return carry

        plgpu.emit_pipeline_warp_specialized(
            step, grid=(4,), in_specs=[plgpu.BlockSpec((8, 64), lambda i: (i, 0))], memory_registers=40, wg_axis="wg",
            num_compute_wgs=1, compute_context=lambda pipeline: None,
        )(x_gmem)
    """)
    assert [access.ref.parameter for access in trace.accesses() if access.kind == "store"] == ["o_gmem"]


def test_buffers_of_a_tuple_are_several() -> None:
    trace = trace_of("""
        def body(pair):
            pair[0][...] = jnp.zeros(8)
            pair[1][...] = jnp.zeros(8)

        pl.run_scoped(body, (plgpu.SMEM((8,), jnp.float32), plgpu.SMEM((8,), jnp.float32)))
    """)
    assert len({access.ref.buffer for access in trace.accesses()}) == 2


def test_indices_of_a_grid_are_several() -> None:
    trace = trace_of("o_gmem[plgpu.planar_snake(lax.axis_index('x'), (4, 4), 0, 2)] = 1.0")
    (store,) = trace.accesses()
    assert isinstance(store.index, Seq)
    first, second = store.index.items
    assert first is not second
