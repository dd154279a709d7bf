"""The example of the page "Several devices": a sum over a ring, with a race and without."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

N = 4  # devices

# --8<-- [start:race]


def relay_kernel(x_ref, o_ref, slots, send, recv, room):
    """Everybody's block goes round the ring, and is added up on its way."""
    step = pl.program_id(0)
    me = lax.axis_index("x")
    left, right = lax.rem(me + N - 1, N), lax.rem(me + 1, N)

    @pl.when(step == 0)
    def _():
        slots[0] = x_ref[...]
        o_ref[...] = x_ref[...]
        barrier = pltpu.get_barrier_semaphore()
        for other in (left, right):
            pl.semaphore_signal(barrier, 1, device_id=other, device_id_type=pl.DeviceIdType.LOGICAL)
        pl.semaphore_wait(barrier, 2)

    here, there = lax.rem(step, 2), lax.rem(step + 1, 2)
    copy = pltpu.make_async_remote_copy(
        slots.at[here], slots.at[there], send, recv, device_id=right, device_id_type=pl.DeviceIdType.LOGICAL
    )
    copy.start()
    copy.wait()
    o_ref[...] += slots[there]


# --8<-- [end:race]


def mended_kernel(x_ref, o_ref, slots, send, recv, room):
    step = pl.program_id(0)
    me = lax.axis_index("x")
    left, right = lax.rem(me + N - 1, N), lax.rem(me + 1, N)

    @pl.when(step == 0)
    def _():
        slots[0] = x_ref[...]
        o_ref[...] = x_ref[...]
        barrier = pltpu.get_barrier_semaphore()
        for other in (left, right):
            pl.semaphore_signal(barrier, 1, device_id=other, device_id_type=pl.DeviceIdType.LOGICAL)
        pl.semaphore_wait(barrier, 2)

    here, there = lax.rem(step, 2), lax.rem(step + 1, 2)
    copy = pltpu.make_async_remote_copy(
        slots.at[here], slots.at[there], send, recv, device_id=right, device_id_type=pl.DeviceIdType.LOGICAL
    )
    # --8<-- [start:mended]

    @pl.when(step > 0)
    def _():
        pl.semaphore_wait(room, 1)  # until the right neighbour is done with the slot

    copy.start()
    copy.wait()
    o_ref[...] += slots[there]

    @pl.when(step < N - 2)
    def _():
        pl.semaphore_signal(room, 1, device_id=left, device_id_type=pl.DeviceIdType.LOGICAL)

    # --8<-- [end:mended]


def total(x, *, mended=False):
    call = pl.pallas_call(
        mended_kernel if mended else relay_kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        grid=(N - 1,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        scratch_shapes=[
            pltpu.VMEM((2, 8, 128), jnp.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.REGULAR,
        ],
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:N]), ("x",))
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"), check_vma=False))(x)
