"""PAL316: device ids that no device of the mesh has."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P


def shift(x_ref, o_ref, send, recv, many=None, other=None):
    me, n = lax.axis_index("x"), lax.axis_size("x")
    pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id={device}{more}).start()


def run(x, devices, many, other):
    mesh = {mesh}

    def body(x):
        return pl.pallas_call(
            lambda *refs: shift(*refs, many, other),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
        )(x)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)
"""
RING = 'jax.make_mesh((8,), ("x",))'
GRID = 'jax.make_mesh((2, 4), ("x", "y"))'
UNSIZED = 'jax.sharding.Mesh(devices, ("x",))'
LOGICAL = ", device_id_type=pl.DeviceIdType.LOGICAL"


def found(device: str, mesh: str, more: str = "") -> list[str]:
    source = _MODULE.format(device=device, mesh=mesh, more=more)
    return [f"{f.severity.name} {f.message}" for f in lint(source, "0.10.2", select="PAL316")]


@pytest.mark.parametrize(
    ("device", "mesh", "more", "text"),
    [
        ("(lax.rem(me - 1, n),)", RING, "", "ERROR device id -1 for axis `x` of size 8, on device 0"),
        ("lax.rem(me - 1, 8)", RING, "", "ERROR device id -1 for axis `x` of size 8, on device 0"),
        ("(me + 1,)", RING, "", "ERROR device id 8 for axis `x` of size 8, on device 7"),
        ("{'x': me + 1}", RING, "", "ERROR device id 8 for axis `x` of size 8, on device 7"),
        ("me + 1", RING, LOGICAL, "ERROR device id 8 for a mesh of size 8, on device 7"),
        ("(lax.rem(me - 1, n),)", UNSIZED, "", "WARNING device id -1 for axis `x`, on device 0"),
        ("(me + 1,)", UNSIZED, "", "WARNING device id 8 for axis `x`, on device 7"),
        ("(lax.rem(me - 1, many),)", RING, "", "WARNING device id -1 for axis `x` of size 8, on device 0"),
        ("lax.rem(me + 1, n)", GRID, "", "ERROR 1 device id for a mesh with the axes `x`, `y`"),
        ("(me, lax.axis_index('y') + 1)", GRID, "", "ERROR device id 4 for axis `y` of size 4, on device (0, 3)"),
        ("(me, 0, 0)", GRID, "", "ERROR 3 device ids for a mesh with the axes `x`, `y`"),
    ],
)
def test_outside(device: str, mesh: str, more: str, text: str) -> None:
    assert found(device, mesh, more) == [text]


@pytest.mark.parametrize(
    ("device", "mesh", "more"),
    [
        ("((me - 1) % n,)", RING, ""),
        ("(lax.rem(me + n - 1, n),)", RING, ""),
        ("(lax.select(me == n - 1, 0, me + 1),)", RING, ""),
        ("(jnp.where(me == n - 1, 0, me + 1),)", RING, ""),
        ("(lax.rem(me + 1, n),)", UNSIZED, ""),
        ("(lax.rem(me + many - 1, many),)", RING, ""),
        ("(lax.rem(me + other - 1, many),)", RING, ""),
        ("(1 - me,)", UNSIZED, ""),  # right for two devices
        ("{'y': lax.axis_index('y')}", GRID, ""),
        ("lax.rem(lax.axis_index(('x', 'y')) + 1, 8)", GRID, LOGICAL),
        ("(1 - me, lax.axis_index('y'))", GRID, ""),
    ],
)
def test_inside(device: str, mesh: str, more: str) -> None:
    assert found(device, mesh, more) == []


def test_negative_on_a_mesh_of_which_nothing_is_known() -> None:
    """`lax.rem` of the left neighbour, in a function that is mapped over a mesh that it is given."""
    code = """
    import jax
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def neighbour(axis, step):
        return {}

    def kernel(x_ref, o_ref, send, recv):
        left = neighbour("ring", -1)
        pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=left).start()

    def shift(x):
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
        )(x)
    """
    me, size = "lax.axis_index(axis)", "lax.axis_size(axis)"
    (finding,) = lint(code.format(f"lax.rem({me} + step, {size})"), "0.12.0.1", select="PAL316")
    assert finding.message.startswith("device id -1 on device 0 of `ring`") and finding.severity.name == "WARNING"
    for right in (f"lax.rem({me} + step + {size}, {size})", f"({me} + step) % {size}", f"1 - {me}"):
        assert lint(code.format(right), "0.12.0.1", select="PAL316") == []
    (finding,) = lint(code.format(f"{me} - step"), "0.12.0.1", select="PAL316")
    assert finding.message.startswith("device id 8 on device 7 of `ring`") and finding.severity.name == "WARNING"


@pytest.mark.parametrize(
    ("condition", "method", "outside"),
    [
        ("me < 7", "start", False),
        ("me < 8", "start", True),
        ("me < many", "start", False),
        ("me < 8", "wait_recv", False),
    ],
)
def test_where_the_copy_starts(condition: str, method: str, outside: bool) -> None:
    """Along a chain of devices the last one sends nothing; one that only receives needs no device to send to."""
    code = (
        _MODULE.replace("    pltpu.make", "    copy = pltpu.make")
        .replace(").start()", ")")
        .format(device="(me + 1,)", mesh=RING, more="")
    )
    guarded = code.replace("\n\n\ndef run", f"\n    pl.when({condition})(copy.{method})\n\n\ndef run")
    assert [f.code for f in lint(guarded, "0.10.2", select="PAL316")] == ["PAL316"] * outside
