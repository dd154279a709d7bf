"""PAL312 collective-id."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import NONE, Context, Example, Finding, Launch, Rule, Severity
from pallas_lint.kernels.model.compiler_params import compiler_param, compiler_param_site
from pallas_lint.kernels.model.known_names import BARRIER_SEMAPHORE, is_integer

_ALLOWED = "allow_collective_id_without_custom_barrier"


class CollectiveId(Rule):
    """A barrier semaphore without a `collective_id`, an id without a barrier, or one id for two kernels.

    `pltpu.get_barrier_semaphore()` gives the semaphore that belongs to the launch's `collective_id`, by which all
    devices mean the same one. Lowering refuses a kernel that takes it and has no id (`collective_id has to be specified
    when using a custom barrier`), and one that has an id and takes none (`collective_id has to be unspecified or None
    when not using a custom barrier`). Interpret mode looks at neither.

    Two launches of one program that use the barrier semaphore under one `collective_id` get the same semaphore: a
    device that is ahead signals its neighbour's previous kernel.

    ## How to fix

    `compiler_params=pltpu.CompilerParams(collective_id=0)` together with the barrier, another number for each kernel
    that synchronises in another way. A kernel that sends to other devices needs a barrier before its first copy: a
    device that has not begun has not made room yet.

    ## Known limits

    Silent where the compiler parameters are not seen, where a barrier is taken with arguments (then newer releases find
    an id), where the program has ids assigned (`auto_assign_collective_ids`), and, for an id without a barrier, where
    the kernel calls what is not seen. One id for two launches is a warning where they synchronise in code of their own,
    and a hint where it is the same code: that is allowed if a device cannot enter the second before its neighbours left
    the first.

    ## References

    - Lowered for TPU inside a `shard_map` with jax 0.6.2, 0.8.3, 0.10.2 and 0.12.0: the first two are refused by all.
    - The docstring of `get_barrier_semaphore`, and jax issue 27963: one `collective_id` in two kernels.
    """

    code = "PAL312"
    name = "collective-id"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    invalid = (
        Example(
            """
            def shift(x_ref, o_ref, send, recv):
                count = lax.axis_size("x")
                right = lax.rem(lax.axis_index("x") + 1, count)
                barrier = pltpu.get_barrier_semaphore()  #!
                pl.semaphore_signal(barrier, 1, device_id=right)
                pl.semaphore_wait(barrier, 1)
                copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=right)
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
            """
        ),
        Example(
            """
            def double(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            def run(x):
                return pl.pallas_call(  #!
                    double,
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(collective_id=3),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def shift(x_ref, o_ref, send, recv):
                count = lax.axis_size("x")
                right = lax.rem(lax.axis_index("x") + 1, count)
                left = lax.rem(lax.axis_index("x") + count - 1, count)
                barrier = pltpu.get_barrier_semaphore()
                pl.semaphore_signal(barrier, 1, device_id=left)
                pl.semaphore_wait(barrier, 1)
                copy = pltpu.make_async_remote_copy(x_ref, o_ref, send, recv, device_id=right)
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
                    compiler_params=pltpu.CompilerParams(collective_id=0),
                )(x)
            """
        ),
        Example(
            """
            def double(x_ref, o_ref, *, devices):
                devices.meet()
                o_ref[...] = x_ref[...] * 2

            def run(x, devices):
                return pl.pallas_call(
                    functools.partial(double, devices=devices),
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(collective_id=3),
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        target = context.target
        if target is None or target.backend != "tpu" or launch.form.is_inner or launch.interpret or not launch.traces:
            return
        if _are_assigned(context):
            return
        number = compiler_param(launch, "collective_id")
        taken = [op for trace in launch.traces for op in trace.ops(BARRIER_SEMAPHORE)]
        if number in (None, NONE):
            for op in taken[:1]:
                if not (op.args or op.keywords or op.open):
                    yield context.finding(
                        op.site,
                        "the kernel takes the barrier semaphore, but its launch has no `collective_id`",
                        help="give it one: `compiler_params=pltpu.CompilerParams(collective_id=0)`",
                        certain=op.certain and launch.path.certain,
                        related=[(launch.called_at, "launched here")],
                    )
            return
        seen = all(
            trace.complete and trace.tracked_until is None and not trace.runs_foreign_code for trace in launch.traces
        )
        if is_integer(number) and not taken and seen and compiler_param(launch, _ALLOWED) in (None, NONE):
            yield context.finding(
                launch.called_at,
                f"`collective_id={number.value}`, but the kernel never takes the barrier semaphore",
                help="leave the id out, or have the devices wait for each other: `pltpu.get_barrier_semaphore()`",
                certain=launch.path.certain,
            )

    def check_module(self, context: Context) -> Iterator[Finding]:
        """One id for two launches that both take the barrier semaphore."""
        if _are_assigned(context):
            return
        seen: list[tuple[Launch, int]] = []
        for launch in context.analysis.launches:
            number = compiler_param(launch, "collective_id")
            if not is_integer(number) or launch.form.is_inner or not _barriers(launch):
                continue
            for other, taken in seen:
                severity = _severity_of_reuse(launch, other) if taken == number.value else None
                if severity is not None:
                    yield context.finding(
                        compiler_param_site(launch, "collective_id"),
                        f"another launch has the same barrier semaphore: `collective_id={taken}` is used twice",
                        help="give each launch a `collective_id` of its own, unless all synchronise in the same way",
                        severity=severity,
                        related=[(other.called_at, "the other launch")],
                    )
                    break
            seen.append((launch, number.value))


def _are_assigned(context: Context) -> bool:
    """Whether the program has jax choose the ids."""
    return "auto_assign_collective_ids" in context.module.source.text


def _barriers(launch: Launch) -> set[object]:
    """The places at which the launch's kernel takes the barrier semaphore."""
    return {op.site.key for trace in launch.traces for op in trace.ops(BARRIER_SEMAPHORE)}


def _severity_of_reuse(one: Launch, other: Launch) -> Severity | None:
    """By how likely two launches with one id disturb each other; None where they may never meet.

    Launches that synchronise in the same way may share an id, according to jax; "if in doubt, prefer not sharing".
    """
    again = one.site.key == other.site.key and {b.node for b in one.bodies} == {b.node for b in other.bodies}
    if again or not one.path.callers or not other.path.callers or not (one.path.certain and other.path.certain):
        return None
    roots = one.path.callers[0], other.path.callers[0]
    alike = bool(_barriers(one) & _barriers(other))
    if roots[0].node is roots[1].node:
        return Severity.INFO if alike else Severity.WARNING
    tests = any(root.method_of is not None or root.name.startswith("test") for root in roots)
    return None if alike or tests else Severity.INFO
