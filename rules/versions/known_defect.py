"""PAL706 known-defect."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    UNKNOWN,
    Access,
    Array,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Op,
    Rule,
    Severity,
    Sym,
    Value,
    nodes,
)
from pallas_lint.compat.advisories import Advisory, advisory
from pallas_lint.kernels.facts.aliases import pairs
from pallas_lint.kernels.facts.writes import all_seen
from pallas_lint.kernels.grid.blocks import symbols_in
from pallas_lint.kernels.grid.grid_points import axis_of
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, PALLAS
from pallas_lint.kernels.model.trace import refs_in

_COPIES = tuple(
    f"{PALLAS}.{module}{name}" for module in ("", "tpu.") for name in ("make_async_copy", "async_copy", "sync_copy")
)
_MODULES = (f"{PALLAS}.triton", PALLAS)  # where the atomic operations are, and were up to jax 0.8
_ADD = tuple(f"{module}.atomic_add" for module in _MODULES)
_MAX = tuple(f"{module}.atomic_{name}" for module in _MODULES for name in ("max", "min"))


class KnownDefect(Rule):
    """Code that a known defect of the jax or libtpu version in use makes wrong.

    Releases of jax and libtpu have defects that compile and give wrong numbers. `pallas-lint advisories` lists those
    that are known, with their reports and what was tried; this rule finds the code that they concern:

    - `num-programs-of-first-grid`, jax 0.11.0 to 0.11.2: a kernel that is a function of the module is traced once for
      all launches with the same block shapes. With another grid `pl.num_programs` still is the size of the first one,
      so that `pl.program_id(0) == pl.num_programs(0) - 1` holds too early or never.
    - `triton-integer-atomic-add`, jax before 0.12: `atomic_add` of an array of integers adds floats.
    - `triton-integer-atomic-max`, jax 0.10.0 to 0.11.2: `atomic_max` and `atomic_min` of an array of integers do not
      lower.
    - `zeros-with-unused-hbm-operand`, libtpu 0.0.43 to 0.0.45: with an operand in HBM that the kernel never uses,
      copies out of another one may bring zeros.

    ## How to fix

    Use a version without the defect. Each message has a workaround for where the version cannot be changed.

    ## Known limits

    Silent where the version is not known. That of libtpu has the same source as jax's: the environment, the
    lock file or the requirements; `--jax-version` gives none. The probe takes both from the interpreter that it ran
    with. Of a range of jax versions in which only some have the defect, it is an info. `num-programs-of-first-grid` is
    found where a grid's size depends on something that no block shape depends on, and between launches of one file.

    ## References

    - jax issues 40847 and 39744.
    - `pallas-lint advisories`: what was run and lowered with which versions.
    """

    code = "PAL706"
    name = "known-defect"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref, acc_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    acc_ref[...] = jnp.zeros_like(acc_ref)

                acc_ref[...] += x_ref[...]

                @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)  #!
                def _():
                    o_ref[...] = acc_ref[...]

            def total(x):
                return pl.pallas_call(
                    kernel,
                    grid=(x.shape[0] // 8,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(x)
            """,
            jax="0.11.2",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                ones = jnp.ones((128,), jnp.int32)
                plgpu.atomic_add(o_ref, (x_ref[...],), ones)  #!

            def histogram(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16,), jnp.int32))(x)
            """,
            jax="0.11.2",
        ),
    )
    valid = (
        Example(
            """
            import functools

            def kernel(x_ref, o_ref, acc_ref, *, steps):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    acc_ref[...] = jnp.zeros_like(acc_ref)

                acc_ref[...] += x_ref[...]

                @pl.when(pl.program_id(0) == steps - 1)
                def _():
                    o_ref[...] = acc_ref[...]

            def total(x):
                steps = x.shape[0] // 8
                return pl.pallas_call(
                    functools.partial(kernel, steps=steps),
                    grid=(steps,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                    scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
                )(x)
            """,
            jax="0.11.2",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                ones = jnp.ones((128,), jnp.int32)
                plgpu.atomic_add(o_ref, (x_ref[...],), ones)

            def histogram(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16,), jnp.int32))(x)
            """,
            jax="0.12.0",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        yield from _num_programs(trace, context)
        if not trace.launch.interpret:
            yield from _integer_atomics(trace, context)
            yield from _unused_operand(trace, context)


def _finding(found: Advisory, where: Op | Access, message: str, context: Context) -> Finding:
    """A finding for the checked jax versions that have the defect."""
    failing = found.affected(context.versions)
    everywhere = failing == context.versions
    return context.finding(
        where.site,
        f"{message} in jax {context.spelled_versions(failing)} (advisory {found.id})",
        help=found.remedy,
        severity=None if everywhere else Severity.INFO,
        op=where,
        versions=failing,
    )


def _concerns(found: Advisory, context: Context) -> bool:
    return not context.assumed and bool(found.affected(context.versions))


# -- jax: the number of programs -------------------------------------------------------------------------------------


def _num_programs(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    found, launch = advisory("num-programs-of-first-grid"), trace.launch
    uses = [*trace.ops(NUM_PROGRAMS)]
    if not uses or not _concerns(found, context) or launch.api != f"{PALLAS}.pallas_call":
        return
    shapes = _ref_shapes(trace)
    if shapes is None or not _is_kept_function(trace):
        return
    for use in uses:
        size = _axis_size(use, trace)
        if size is None:
            continue
        if isinstance(size, Const):
            differs = any(
                _axis_size(other, each) not in (None, size)
                for each in context.analysis.traces
                if each.site.node is trace.site.node and each.launch.site.node is not launch.site.node
                if _is_kept_function(each) and _ref_shapes(each) == shapes
                for other in each.ops(NUM_PROGRAMS)
                if other.site.span == use.site.span
            )
        else:
            # A call with other sizes has other blocks, unless the axis depends on something that they do not.
            differs = bool(symbols_in([size]) - symbols_in(each for shape in shapes for each in shape))
        if differs:
            spelled = f"`pl.num_programs({axis_of(use, launch)})`"
            message = f"{spelled} is the size of the first grid that the kernel was traced for"
            yield _finding(found, use, message, context)


def _is_kept_function(trace: KernelTrace) -> bool:
    """Whether each launch certainly passes the same function: one of the module, by its name."""
    launch, bodies = trace.launch, trace.launch.bodies
    call = launch.site.node
    if len(bodies) != 1 or not isinstance(call, nodes.Call) or not call.args:
        return False
    body = bodies[0]
    plain = not (body.bound or body.keywords or body.open_keywords or body.method_of or body.hidden)
    named = isinstance(call.args[0].value, nodes.Name | nodes.Attribute)
    return plain and named and body.env is body.module.env and isinstance(body.node, nodes.FunctionDef)


def _axis_size(use: Op, trace: KernelTrace) -> Const | Sym | None:
    """The size of the axis, where Python computes it; None for others."""
    axis, grid = axis_of(use, trace.launch), trace.launch.grid
    if axis is None or grid is None or grid.open or axis >= len(grid.items):
        return None
    size = grid.items[axis]
    if isinstance(size, Sym) and not any(symbol.traced for symbol in symbols_in([size])):
        return size
    return size if isinstance(size, Const) else None


def _ref_shapes(trace: KernelTrace) -> list[tuple[Value, ...]] | None:
    """The shapes of the kernel's refs, semaphores left out; None where one is not known."""
    shapes: list[tuple[Value, ...]] = []
    for ref in trace.refs:
        if ref.dtype == "semaphore" or ref.space == "semaphore":
            continue
        if ref.shape is None or None in ref.shape:
            return None
        shapes.append(tuple(Const(size) if isinstance(size, int) else size for size in ref.shape if size is not None))
    return shapes


# -- jax: Triton's atomic operations ---------------------------------------------------------------------------------


def _integer_atomics(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    for identifier, names, what in (
        ("triton-integer-atomic-add", _ADD, "adds floats where the values are an array of integers"),
        ("triton-integer-atomic-max", _MAX, "does not lower for an array of integers: an AssertionError without text"),
    ):
        for op in trace.ops(*names):
            found, value = advisory(identifier), op.argument("val", 2)
            if not isinstance(value, Array) or not value.shape or value.dtype is None or not _concerns(found, context):
                continue
            if value.dtype[0] in "iu":
                yield _finding(found, op, f"`{op.short}` {what}", context)


# -- libtpu ----------------------------------------------------------------------------------------------------------


def _unused_operand(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    found, version = advisory("zeros-with-unused-hbm-operand"), context.jax.libtpu
    if version is None or not found.affects(version) or not all_seen(trace):
        return
    if pairs(trace.launch) != []:
        return  # an aliased operand is used by way of its output
    inputs = {ref.buffer: ref for ref in trace.refs if ref.role == "in" and ref.space in ("hbm", "any")}
    touched = {event.ref.buffer for event in trace.events if isinstance(event, Access)}
    unused = [ref for buffer, ref in inputs.items() if buffer not in touched]
    for op in trace.ops(*_COPIES) if unused else ():
        source, target = (next(refs_in(value), None) for value in (*op.args, UNKNOWN, UNKNOWN)[:2])
        if source is None or target is None:
            continue
        if source.view and source.buffer in inputs and target.space == "vmem":
            other = unused[0].parameter
            where = f"the operand in HBM `{other}`" if other.isidentifier() else "another operand in HBM"
            yield context.finding(
                op.site,
                f"copies may bring zeros with libtpu {version}: {where} is never used (advisory {found.id})",
                help=found.remedy,
                op=op,
            )
            return
