"""PAL508 auto-partition."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Context, Example, Finding, Launch, Rule, Severity
from pallas_lint.kernels.library.sharding import partitioning_reason


class AutoPartition(Rule):
    """A TPU kernel in a program for several devices, and no `shard_map` around it.

    `jax.jit` compiles all that runs in it as one program, for all devices that anything in it names: its
    `in_shardings` and `out_shardings`, an argument that lies on a mesh, a `with_sharding_constraint`, a `shard_map`
    beside the launch, a mesh that `jax.set_mesh` sets. XLA partitions the operations of such a program, but cannot
    look into a kernel: "Mosaic kernels cannot be automatically partitioned. Please wrap the call in a shard_map." That
    holds for replicated arrays, `P()`, too, and for a `shard_map` that leaves some axes of the mesh to the compiler. In
    interpret mode, and on a mesh of one device, nothing is refused.

    ## How to fix

    Call the launching function through `jax.shard_map` with the mesh, and with the specs that its operands have there:
    each device then runs the kernel on its own part.

    ## Known limits

    An error where the mesh certainly has several devices (`jax.make_mesh((2, 4), ...)`), a warning where their number
    is not seen. Knows shardings that are written as `NamedSharding(mesh, ...)`; arguments that lie on a mesh where they
    come from a `device_put` in sight. Silent below decorators and functions that are not known: they may hold the
    `shard_map`.

    ## References

    - jax documentation, "Distributed computing in Pallas for TPUs".
    - 31 forms lowered for TPU with jax 0.4.35, 0.5.3, 0.6.0 to 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and
      0.12.0.1: refused and accepted alike in all of them. `pl.kernel` on a tensor core with 0.8.3 and newer: as
      `pallas_call`.
    """

    code = "PAL508"
    name = "auto-partition"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    invalid = (
        Example(
            """
            from jax.sharding import NamedSharding, PartitionSpec as P

            mesh = jax.make_mesh((4,), ("x",))

            def kernel(x_ref, o_ref, s_ref):
                s_ref[...] = x_ref[...]
                o_ref[...] = s_ref[...] * 2.0

            def double(x):
                return pl.pallas_call(  #!
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM(x.shape, x.dtype)],
                )(x)

            rows = NamedSharding(mesh, P("x"))
            double_all = jax.jit(double, in_shardings=rows, out_shardings=rows)
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.sharding import NamedSharding, PartitionSpec as P

            mesh = jax.make_mesh((4,), ("x",))

            def kernel(x_ref, o_ref, s_ref):
                s_ref[...] = x_ref[...]
                o_ref[...] = s_ref[...] * 2.0

            def double(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM(x.shape, x.dtype)],
                )(x)

            rows = NamedSharding(mesh, P("x"))
            mapped = jax.shard_map(double, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
            double_all = jax.jit(mapped, in_shardings=rows, out_shardings=rows)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if context.target is None or not launch.is_pallas or launch.interpret or launch.core is not None:
            return
        if not launch.form.is_program:
            return
        spread = partitioning_reason(launch)
        if spread is None:
            return
        certain = spread.devices is not None and spread.sure and launch.path.certain
        yield context.finding(
            launch.called_at,
            "kernel in a program for several devices, which XLA cannot partition",
            help="call it through `jax.shard_map`, so that each device runs it on its own part",
            certain=certain,
            related=[(spread.site, f"{spread.what} makes it one")],
        )
