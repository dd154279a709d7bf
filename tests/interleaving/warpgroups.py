"""Mosaic GPU kernels, each right and with one defect that nothing but a model of the GPU's units notices."""

import inspect

import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

_TAKES = inspect.signature(plgpu.kernel).parameters
OUT = "out_type" if "out_type" in _TAKES else "out_shape"
SCRATCH = "scratch_types" if "scratch_types" in _TAKES else "scratch_shapes"


def launch(kernel, shape, dtype, *scratch, **more):
    return plgpu.kernel(kernel, **{OUT: jax.ShapeDtypeStruct(shape, dtype), SCRATCH: list(scratch)}, **more)


def store(smem, gmem):
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(smem, gmem)
    plgpu.wait_smem_to_gmem(0)


def total(x, y, defect=""):
    """Two operands through one barrier."""

    def kernel(x_gmem, y_gmem, o_gmem, x_smem, y_smem, arrived):
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
        plgpu.copy_gmem_to_smem(y_gmem, y_smem, arrived)
        if defect != "no wait":
            plgpu.barrier_wait(arrived)
        x_smem[...] = x_smem[...] + y_smem[...]
        store(x_smem, o_gmem)

    arrivals = {"one arrival": 1, "three arrivals": 3}.get(defect, 2)
    buffer = plgpu.SMEM(x.shape, x.dtype)
    return launch(kernel, x.shape, x.dtype, buffer, buffer, plgpu.Barrier(num_arrivals=arrivals))(x, y)


def product(x, y, defect=""):
    """A product in two steps, through one buffer for each operand."""
    m, n = x.shape[0], y.shape[1]

    def kernel(x_gmem, y_gmem, o_gmem, x_smem, y_smem, o_smem, arrived):
        def fetch(step):
            plgpu.copy_gmem_to_smem(x_gmem.at[:, pl.ds(step * 64, 64)], x_smem, arrived)
            plgpu.copy_gmem_to_smem(y_gmem.at[pl.ds(step * 64, 64)], y_smem, arrived)
            plgpu.barrier_wait(arrived)

        def body(sum_ref):
            fetch(0)
            plgpu.wgmma(sum_ref, x_smem, y_smem)
            if defect != "refilled":
                plgpu.wgmma_wait(0)
            fetch(1)
            plgpu.wgmma(sum_ref, x_smem, y_smem)
            return sum_ref[...]

        o_smem[...] = pl.run_scoped(body, plgpu.ACC((m, n))).astype(o_smem.dtype)
        if defect == "no fence":
            plgpu.copy_smem_to_gmem(o_smem, o_gmem)
            plgpu.wait_smem_to_gmem(0)
        else:
            store(o_smem, o_gmem)

    scratch = [plgpu.SMEM(shape, x.dtype) for shape in ((m, 64), (64, n), (m, n))]
    return launch(kernel, (m, n), x.dtype, *scratch, plgpu.Barrier(num_arrivals=2))(x, y)


def pipelined(x, y, defect=""):
    """The same by a pipeline, which refills a slot as late as `delay_release` says."""
    m, n = x.shape[0], y.shape[1]
    late = {"delay_release": 0 if defect == "released at once" else 1}

    def kernel(x_gmem, y_gmem, o_gmem, o_smem):
        def body(sum_ref):
            def step(_, x_smem, y_smem):
                plgpu.wgmma(sum_ref, x_smem, y_smem)
                if defect != "no wait":
                    plgpu.wgmma_wait(1)

            blocks = [
                plgpu.BlockSpec((m, 64), lambda i: (0, i), **late),
                plgpu.BlockSpec((64, n), lambda i: (i, 0), **late),
            ]
            plgpu.emit_pipeline(step, grid=(x.shape[1] // 64,), in_specs=blocks, max_concurrent_steps=4)(x_gmem, y_gmem)
            return sum_ref[...]

        o_smem[...] = pl.run_scoped(body, plgpu.ACC((m, n))).astype(o_smem.dtype)
        store(o_smem, o_gmem)

    return launch(kernel, (m, n), x.dtype, plgpu.SMEM((m, n), x.dtype))(x, y)


def specialised(x, defect=""):
    """A warpgroup that computes, and one that moves memory."""

    def kernel(x_gmem, o_gmem):
        def step(_, x_smem, o_smem):
            o_smem[...] = x_smem[...] * 2

        block = plgpu.BlockSpec((64, 128), lambda i: (i, 0))
        plgpu.emit_pipeline_warp_specialized(
            step, grid=(x.shape[0] // 64,), in_specs=[block], out_specs=[block], max_concurrent_steps=2,
            num_compute_wgs=1, memory_registers=40, wg_axis="wg",
        )(x_gmem, o_gmem)  # fmt: skip

    threads = 3 if defect == "a warpgroup too many" else 2
    return launch(kernel, x.shape, x.dtype, num_threads=threads, thread_name="wg")(x)


def handed_on(x, defect=""):
    """A warpgroup writes what another one stores."""

    def kernel(x_gmem, o_gmem, smem, arrived, written):
        own = lax.axis_index("wg")

        @pl.when(own == 0)
        def _():
            plgpu.copy_gmem_to_smem(x_gmem, smem, arrived)
            plgpu.barrier_wait(arrived)
            smem[...] = smem[...] + 1
            if defect != "no fence":
                plgpu.commit_smem()
            if defect != "no arrival":
                plgpu.barrier_arrive(written)

        @pl.when(own == 1)
        def _():
            if defect != "no wait":
                plgpu.barrier_wait(written)
            if defect == "no fence":
                plgpu.commit_smem()  # it is the other one's writes that are not committed
            plgpu.copy_smem_to_gmem(smem, o_gmem)
            plgpu.wait_smem_to_gmem(0)

    scratch = [plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier(), plgpu.Barrier()]
    return launch(kernel, x.shape, x.dtype, *scratch, num_threads=2, thread_name="wg")(x)


def ring(x, defect=""):
    """Results in a ring of two buffers."""

    def kernel(x_gmem, o_gmem, x_smem, o_smem, arrived):
        def body(step, _):
            rows = pl.ds(step * 64, 64)
            slot = lax.rem(step, 2)
            plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
            plgpu.barrier_wait(arrived)
            plgpu.wait_smem_to_gmem(2 if defect == "waits for too few" else 1, wait_read_only=True)
            o_smem[slot] = x_smem[...] * 2
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_smem.at[slot], o_gmem.at[rows])

        lax.fori_loop(0, x.shape[0] // 64, body, None)
        if defect != "no wait at the end":
            plgpu.wait_smem_to_gmem(0, wait_read_only=True)

    one = plgpu.SMEM((64, 128), x.dtype)
    return launch(kernel, x.shape, x.dtype, one, plgpu.SMEM((2, 64, 128), x.dtype), plgpu.Barrier())(x)


def warps(x, defect=""):
    """A warpgroup forks: one warp fetches, all wait for it after they have joined."""

    def kernel(x_gmem, o_gmem, smem, arrived):
        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _():
            @pl.when(lax.axis_index("warp") == 0)
            def _():
                plgpu.copy_gmem_to_smem(x_gmem, smem, arrived)

        if defect != "no wait":
            plgpu.barrier_wait(arrived)
        o_gmem[...] = smem[...]

    return launch(kernel, x.shape, x.dtype, plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier())(x)


def stored_by_warps(x, defect=""):
    """Two warps store, each its half, and the warpgroup waits for both after they have joined."""

    def kernel(x_gmem, o_gmem, smem):
        smem[...] = x_gmem[...]
        plgpu.commit_smem()

        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _():
            for half, warp in ((0, 1), (1, 3)):

                @pl.when(lax.axis_index("warp") == warp)
                def _(first=half * 32):
                    rows = pl.ds(first, 32)
                    plgpu.copy_smem_to_gmem(smem.at[rows], o_gmem.at[rows])

        if defect != "no wait":
            plgpu.wait_smem_to_gmem(1 if defect == "waits for too few" else 0)

    return launch(kernel, x.shape, x.dtype, plgpu.SMEM(x.shape, x.dtype))(x)


def written_twice(x, defect=""):
    """Two warpgroups store the same values in one line, and one of them stores them in main memory."""

    def kernel(x_gmem, o_gmem, smem, written):
        if defect == "differ":

            @pl.when(lax.axis_index("wg") == 0)
            def _():
                smem[...] = x_gmem[...] * 2

        smem[...] = x_gmem[...]
        plgpu.commit_smem()
        plgpu.barrier_arrive(written)
        plgpu.barrier_wait(written)

        @pl.when(lax.axis_index("wg") == 0)
        def _():
            plgpu.copy_smem_to_gmem(smem, o_gmem)
            plgpu.wait_smem_to_gmem(0)

    scratch = [plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier(num_arrivals=2)]
    return launch(kernel, x.shape, x.dtype, *scratch, num_threads=2, thread_name="wg")(x)


def synchronised_inline(x, defect=""):
    """Warpgroups that wait for each other in code of their own, of which the model knows nothing."""

    def kernel(x_gmem, o_gmem, smem, arrived):
        @plgpu.inline_mgpu()
        def synchronise(_):
            pass

        wg = lax.axis_index("wg")

        @pl.when(wg == 0)
        def _():
            plgpu.copy_gmem_to_smem(x_gmem, smem, arrived)
            plgpu.barrier_wait(arrived)

        synchronise()

        @pl.when(wg == 1)
        def _():
            o_gmem[...] = smem[...]

    scratch = [plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier()]
    return launch(kernel, x.shape, x.dtype, *scratch, num_threads=2, thread_name="wg")(x)


def multicast(x, y, defect=""):
    """Two blocks of a cluster that need the same rows: each fetches a half for both."""

    def kernel(x_gmem, y_gmem, o_gmem, x_smem, y_smem, arrived, free):
        rows = pl.ds(lax.axis_index("pair") * 64, 64)
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
        for step in range(2):
            plgpu.copy_gmem_to_smem(y_gmem.at[pl.ds(step * 64, 64)], y_smem, arrived, collective_axes="pair")
            if step:
                plgpu.barrier_arrive(arrived)  # in place of the other operand
            plgpu.barrier_wait(arrived)
            x_smem[...] += y_smem[...]
            if defect != "refilled for both":
                plgpu.barrier_arrive(free)
                plgpu.barrier_wait(free)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(x_smem, o_gmem.at[rows])
        plgpu.wait_smem_to_gmem(0)

    one = plgpu.SMEM((64, 128), x.dtype)
    scratch = [one, one, plgpu.Barrier(num_arrivals=2), plgpu.ClusterBarrier(collective_axes=("pair",))]
    return launch(kernel, x.shape, x.dtype, *scratch, cluster=(2,), cluster_names=("pair",))(x, y)


def scopes(x, defect=""):
    """A barrier that begins anew at every turn: what is not awaited in one does not count in the next."""

    def kernel(x_gmem, o_gmem):
        def turn(step, _):
            rows = pl.ds(step * 64, 64)

            def body(smem, arrived, spare):
                for _ in range(3):  # one more than a wait takes
                    plgpu.barrier_arrive(spare)
                plgpu.barrier_wait(spare)
                plgpu.copy_gmem_to_smem(x_gmem.at[rows], smem, arrived)
                if defect != "no wait":
                    plgpu.barrier_wait(arrived)
                o_gmem[rows] = smem[...]

            pl.run_scoped(body, plgpu.SMEM((64, 128), x.dtype), plgpu.Barrier(), plgpu.Barrier(num_arrivals=2))

        lax.fori_loop(0, x.shape[0] // 64, turn, None)

    return launch(kernel, x.shape, x.dtype)(x)
