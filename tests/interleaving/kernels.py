"""Kernels on several devices, right ones and with one defect each, as the tests of the probe call them."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
IN_SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
LOGICAL = pl.DeviceIdType.LOGICAL
PARAMS = pltpu.CompilerParams(collective_id=0)


def on_mesh(function, count, *operands, specs=None):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:count]), ("x",))
    mapped = jax.shard_map(function, mesh=mesh, in_specs=specs or P(None, "x"), out_specs=P(None, "x"), check_vma=False)
    return jax.jit(mapped)(*operands)


def neighbours(count, defect):
    me = lax.axis_index("x")
    left, right = lax.rem(me + count - 1, jnp.int32(count)), lax.rem(me + 1, jnp.int32(count))
    if defect == "no modulo":
        right = me + 1
    if defect == "wrong neighbour":
        right = jnp.where(me == 0, me, right)
    return me, left, right


def barrier(left, right, defect):
    semaphore = pltpu.get_barrier_semaphore()
    for other in (left, right):
        pl.semaphore_signal(semaphore, 1, device_id=other, device_id_type=pl.DeviceIdType.LOGICAL)
    pl.semaphore_wait(semaphore, {"waits for too many": 3, "waits for too few": 1}.get(defect, 2))


def permute_kernel(x_ref, o_ref, send, recv, extra, *, count, defect):
    me, left, right = neighbours(count, defect)
    barrier(left, right, defect)
    copy = pltpu.make_async_remote_copy(
        x_ref, o_ref, send, recv, device_id=right, device_id_type=pl.DeviceIdType.LOGICAL
    )
    if defect == "only device 0 sends":
        pl.when(me == 0)(copy.start)
        pl.when(me == 0)(copy.wait_send)
        copy.wait_recv()
        return
    copy.start()
    if defect == "a signal too many":
        pl.semaphore_signal(extra, 1)
    if defect == "never signalled":
        pl.semaphore_wait(extra, 1)
    if defect != "no wait_send":
        copy.wait_send()
    if defect != "no wait_recv":
        copy.wait_recv()


def permute(x, count, defect=""):
    call = pl.pallas_call(
        functools.partial(permute_kernel, count=count, defect=defect),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR],
        compiler_params=PARAMS,
    )
    return on_mesh(call, count, x)


def gather_kernel(x_ref, o_ref, local, send, recvs, *, count, defect):
    step = pl.program_id(0)
    me, left, right = neighbours(count, defect)
    slot = me if defect == "wrong slot" else lax.rem(me - step + count, jnp.int32(count))
    mine = pltpu.make_async_copy(x_ref, o_ref.at[me], local)

    @pl.when(step == 0)
    def _():
        barrier(left, right, defect)
        mine.start()
        if defect != "local copy not awaited":
            mine.wait()

    copy = pltpu.make_async_remote_copy(
        o_ref.at[slot], o_ref.at[slot], send, recvs.at[step], device_id=right, device_id_type=pl.DeviceIdType.LOGICAL
    )
    copy.start()
    copy.wait()
    if defect == "local copy not awaited":
        pl.when(step == count - 2)(mine.wait)


def gather(x, count, defect=""):
    call = pl.pallas_call(
        functools.partial(gather_kernel, count=count, defect=defect),
        out_shape=jax.ShapeDtypeStruct((count, 8, 128), jnp.float32),
        grid=(count - 1,),
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        scratch_shapes=[
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((max(count - 1, 1),)),
        ],
        compiler_params=PARAMS,
    )
    return on_mesh(call, count, x)


def sum_kernel(x_ref, o_ref, buffer, copied, recv, send, room, part, *, count, defect):
    step = pl.program_id(0)
    working = lax.rem(step, jnp.int32(2))
    _, left, right = neighbours(count, defect)

    def send_to_right(source, slot):
        return pltpu.make_async_remote_copy(
            source, buffer.at[slot], send, recv, device_id=right, device_id_type=pl.DeviceIdType.LOGICAL
        )

    @pl.when(step == 0)
    def _():
        barrier(left, right, defect)
        o_ref[...] = jnp.zeros_like(o_ref)
        part[...] = jnp.zeros_like(part)
        first = send_to_right(x_ref, working)
        first.start()
        first.wait()

    if defect != "no room":
        pl.semaphore_signal(room, 1, device_id=left, device_id_type=pl.DeviceIdType.LOGICAL)
    load = pltpu.make_async_copy(buffer.at[working], part, copied)
    load.start()
    if defect != "no room":
        pl.semaphore_wait(room, 1)
    copy = send_to_right(buffer.at[working], working if defect == "same slot" else 1 - working)
    copy.start()
    if defect != "read too early":
        load.wait()
    o_ref[...] += part[...]
    if defect == "read too early":
        load.wait()
    copy.wait()


def total(x, count, defect=""):
    call = pl.pallas_call(
        functools.partial(sum_kernel, count=count, defect=defect),
        out_shape=[
            jax.ShapeDtypeStruct((8, 128), jnp.float32),
            jax.ShapeDtypeStruct((2, 8, 128), jnp.float32),
        ],
        grid=(count,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=[pl.BlockSpec(memory_space=pltpu.VMEM), ANYWHERE],
        scratch_shapes=[
            *[pltpu.SemaphoreType.DMA] * 3,
            pltpu.SemaphoreType.REGULAR,
            pltpu.VMEM((8, 128), jnp.float32),
        ],
        compiler_params=PARAMS,
    )
    return on_mesh(lambda x: call(x)[0], count, x)


def sent_by_argument_kernel(to_ref, x_ref, o_ref, send, recv):
    """The device to send to is in the operands."""
    me = lax.axis_index("x")
    copy = pltpu.make_async_remote_copy(
        x_ref, o_ref, send, recv, device_id=to_ref[me], device_id_type=pl.DeviceIdType.LOGICAL
    )
    copy.start()
    copy.wait()


def sent_by_argument(to, x):
    call = pl.pallas_call(
        sent_by_argument_kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            in_specs=[ANYWHERE],
            out_specs=ANYWHERE,
            scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
        ),
    )
    return on_mesh(call, 4, to, x, specs=(P(), P(None, "x")))


def sent_by_table_kernel(to_ref, x_ref, o_ref, table, loaded, send, recv):
    """The device to send to is in its own part of an operand, read as it is or copied to scalar memory first."""
    if table is not None:
        pltpu.make_async_copy(to_ref, table, loaded).start()
        pltpu.make_async_copy(to_ref, table, loaded).wait()
        to_ref = table
    copy = pltpu.make_async_remote_copy(
        x_ref, o_ref, send, recv, device_id=to_ref[0], device_id_type=pl.DeviceIdType.LOGICAL
    )
    copy.start()
    copy.wait()


def sent_by_table(to, x, space):
    """Each device has its part of `to`, computed from an argument of the function."""
    copied = space == "hbm"
    call = pl.pallas_call(
        sent_by_table_kernel if copied else lambda to, x, o, *sems: sent_by_table_kernel(to, x, o, None, None, *sems),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=int(space == "prefetch"),
            in_specs=[ANYWHERE] if space == "prefetch" else [{"smem": IN_SMEM, "hbm": ANYWHERE}[space], ANYWHERE],
            out_specs=ANYWHERE,
            scratch_shapes=[
                *([pltpu.SMEM((1,), jnp.int32), pltpu.SemaphoreType.DMA] if copied else []),
                pltpu.SemaphoreType.DMA,
                pltpu.SemaphoreType.DMA,
            ],
        ),
    )

    def each(to, x):
        return lax.fori_loop(0, 2, lambda _, x: call(lax.rem(to + 4, jnp.int32(4)), x), x)

    return on_mesh(each, 4, to, x, specs=(P("x"), P(None, "x")))


def sent_by_position(x, step):
    """The position in the mesh is read outside of the kernel."""
    call = pl.pallas_call(
        lambda to, x, o, *semaphores: sent_by_table_kernel(to, x, o, None, None, *semaphores),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        in_specs=[IN_SMEM, ANYWHERE],
        out_specs=ANYWHERE,
        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
    )
    return on_mesh(lambda x: call(jnp.array([lax.rem(lax.axis_index("x") * step + 1, jnp.int32(4))]), x), 4, x)


def count_received_kernel(x_ref, o_ref, table, ready, send, recv):
    """The number that it signals came from another device into its scalar memory, whatever it wrote there itself."""
    me = lax.axis_index("x")
    other = lax.rem(me + 1, jnp.int32(4))
    table[0] = 0
    table[1] = me
    barrier(lax.rem(me + 3, jnp.int32(4)), other, "")
    copy = pltpu.make_async_remote_copy(
        table.at[pl.ds(1, 1)], table.at[pl.ds(0, 1)], send, recv, device_id=other, device_id_type=LOGICAL
    )
    copy.start()
    copy.wait()
    pl.semaphore_signal(ready, table[0] + 1, device_id=other, device_id_type=LOGICAL)
    pl.semaphore_wait(ready, 1)


def count_received(x):
    call = pl.pallas_call(
        count_received_kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        scratch_shapes=[
            pltpu.SMEM((2,), jnp.int32),
            pltpu.SemaphoreType.REGULAR,
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA,
        ],
        compiler_params=PARAMS,
    )
    return on_mesh(call, 4, x)
