"""PAL313 device-id."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Dictionary, Example, Finding, Op, Rule, Seq, Severity
from pallas_lint.kernels.model.known_names import name_of

_OPS = (
    "jax.experimental.pallas.semaphore_signal",
    "jax.experimental.pallas.tpu.semaphore_signal",
    "jax.experimental.pallas.tpu.make_async_remote_copy",
    "jax.experimental.pallas.tpu.async_remote_copy",
)


class DeviceId(Rule):
    """A device id of another kind than its `device_id_type`.

    `DeviceIdType.LOGICAL` takes one number, counted over the whole mesh. Coordinates, one for each axis in a tuple or
    by name in a dict, are what `DeviceIdType.MESH` takes. Interpret mode may let a tuple pass; lowering does not:
    `LOGICAL device_id_type does not support device_id as a tuple or dict`, to 0.6 `Operand 4 of operation
    "tpu.enqueue_dma" must be a Value`.

    ## How to fix

    Write `device_id_type=pl.DeviceIdType.MESH` for coordinates (from jax 0.12 on that is all there is, and the argument
    is deprecated), or give the one number.

    ## Known limits

    Whether a mesh has as many axes as a tuple has numbers, and whether a number is one of its devices, is PAL316's to
    reports where the text makes the mesh, and the probe (PAL902, PAL912).

    ## References

    - Lowered for TPU inside a `shard_map` with jax 0.6.2, 0.8.3, 0.10.2 and 0.12.0: refused by all.
    """

    code = "PAL313"
    name = "device-id"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    ops = _OPS
    invalid = (
        Example(
            """
            def shift(x_ref, o_ref, send, recv):
                right = lax.rem(lax.axis_index("x") + 1, 4)
                copy = pltpu.make_async_remote_copy(  #!
                    x_ref, o_ref, send, recv, device_id=(right,), device_id_type=pl.DeviceIdType.LOGICAL
                )
                copy.start()
                copy.wait()

            def run(x):
                anywhere = pl.BlockSpec(memory_space=pl.ANY)
                return pl.pallas_call(
                    shift,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    in_specs=[anywhere],
                    out_specs=anywhere,
                    scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
                )(x)
            """,
            jax="0.10.2",
        ),
    )
    valid = (
        Example(
            """
            def shift(x_ref, o_ref, send, recv):
                right = lax.rem(lax.axis_index("x") + 1, 4)
                copy = pltpu.make_async_remote_copy(
                    x_ref, o_ref, send, recv, device_id=right, device_id_type=pl.DeviceIdType.LOGICAL
                )
                copy.start()
                copy.wait()

            def run(x):
                anywhere = pl.BlockSpec(memory_space=pl.ANY)
                return pl.pallas_call(
                    shift,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    in_specs=[anywhere],
                    out_specs=anywhere,
                    scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
                )(x)
            """,
            jax="0.10.2",
        ),
    )

    def check_op(self, op: Op, context: Context) -> Iterator[Finding]:
        target = context.target
        given = dict(op.keywords)
        if target is None or target.backend != "tpu" or op.open:
            return
        kind, device = given.get("device_id_type"), given.get("device_id")
        if name_of(kind).endswith("DeviceIdType.LOGICAL") and isinstance(device, Seq | Dictionary):
            what = "a dict" if isinstance(device, Dictionary) else f"a {device.kind}"
            yield context.finding(
                op.site,
                f"`device_id` is {what}, but `DeviceIdType.LOGICAL` takes one number",
                help="pass `device_id_type=pl.DeviceIdType.MESH`, which takes coordinates",
                op=op,
            )
