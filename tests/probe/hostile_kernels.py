"""Functions that leave the session, kill what watches them, and kernels with hostile names or without end."""

import functools
import os
import pathlib
import subprocess
import time

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
NAMES = (
    "../../../evil", "/evil", "..", "a\0b", "x" * 5000, "\u65e5\u202e", "*/ c_code { evil } /*", "CON", "a\nb", "same",
    "same", "Same", "back\\slash", "$(touch evil)",
)  # fmt: skip


def _daemon(work):
    """A grandchild in a session of its own, whose parent has ended when this returns."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)
    os.wait()


def _linger():
    pathlib.Path(os.environ["MARK"]).touch()
    os.execvp("sleep", ["sleep", "600"])


def _leave_daemons():
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    _daemon(_linger)
    while not pathlib.Path(os.environ["MARK"]).exists():
        time.sleep(0.01)


def leaves_daemons(x):
    _leave_daemons()
    return x


def hangs_with_daemons(x):
    _leave_daemons()
    time.sleep(600)


def kills_the_worker(x):
    _leave_daemons()
    os.kill(os.getppid(), 9)
    time.sleep(600)


def kills_the_guard(x):
    _leave_daemons()
    status = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(status.rpartition(") ")[2].split()[1]), 9)
    time.sleep(600)


def _fill():
    held = bytearray(3 << 29)
    for at in range(0, len(held), 4096):
        held[at] = 1
    time.sleep(600)


def fills_memory_in_a_daemon(x):
    _daemon(_fill)
    time.sleep(600)


def _copied(x_ref, o_ref, semaphore):
    copy = pltpu.make_async_copy(x_ref, o_ref, semaphore)
    copy.start()
    copy.wait()


def _launch(kernel, x, **options):
    shape, scratch = jax.ShapeDtypeStruct(x.shape, x.dtype), options.pop("scratch", [pltpu.SemaphoreType.DMA])
    return pl.pallas_call(
        kernel, in_specs=[ANYWHERE], out_specs=ANYWHERE, scratch_shapes=scratch, out_shape=shape, **options
    )(x)


def named(x):
    for at, name in enumerate(NAMES, start=1):
        _launch(_copied, jnp.zeros((8 * at, 128)), name=name)
    return x


def endless_grid(x):
    return _launch(_copied, x, grid=(100_000, 100_000))


def _again(x_ref, o_ref, semaphore):
    def body(at, carry):
        lax.fori_loop(0, 2**31 - 1, lambda *_: (_copied(x_ref, o_ref, semaphore), 0)[1], 0)
        return carry

    lax.fori_loop(0, 2**31 - 1, body, 0)


def endless_loops(x):
    return _launch(_again, x)


def _all_at_once(x_ref, o_ref, semaphore):
    def body(at, carry):
        pltpu.make_async_copy(x_ref, o_ref, semaphore).start()
        return carry

    lax.fori_loop(0, 50_000, body, 0)


def many_copies(x):
    return _launch(_all_at_once, x)


def _to_the_right(x_ref, o_ref, sent, received, *, count):
    right = lax.rem(lax.axis_index("x") + 1, jnp.int32(count))
    copy = pltpu.make_async_remote_copy(
        x_ref, o_ref, sent, received, device_id=right, device_id_type=pl.DeviceIdType.LOGICAL
    )
    copy.start()
    copy.wait()


def huge_mesh(x):
    count = 1_000_000
    kernel = functools.partial(_to_the_right, count=count)
    launch = functools.partial(_launch, kernel, scratch=[pltpu.SemaphoreType.DMA] * 2)
    mesh = jax.sharding.AbstractMesh((count,), ("x",))
    return jax.shard_map(launch, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(x)
