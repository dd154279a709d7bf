"""PAL411 unused-ref."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pallas_lint.api import Access, Context, Example, Finding, Func, KernelTrace, Ref, Rule, Severity, Site, nodes
from pallas_lint.kernels.facts.aliases import aliased_outputs, pairs
from pallas_lint.kernels.facts.writes import alias_not_fetched, all_seen, outputs_of, use_of
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.syntax.descent import walk

# A kernel that does one of these may be run for that alone.
_EFFECTS = (
    "jax.debug.print",
    "jax.debug.callback",
    *(
        f"{PALLAS}.{module}{function}"
        for module in ("", "tpu.", "triton.", "mosaic_gpu.")
        for function in (
            "debug_print", "debug_check", "semaphore_signal", "semaphore_wait", "delay", "make_async_remote_copy",
            "async_remote_copy", "run_scoped",
        )
    ),
)  # fmt: skip
# Attributes of a ref that do not access its memory.
_STATIC = frozenset({"shape", "dtype", "ndim", "size", "itemsize", "nbytes"})


class UnusedRef(Rule):
    """A kernel parameter whose memory is never read or written.

    An output that is never written is an error: the caller gets whatever the memory held, NaN in interpret mode. An
    alias does not help on TPU: the kernel sees a block in VMEM that is copied to the output afterwards, and nothing
    copies the operand's block into it first. `interpret=True` hides this, since it keeps the operand's values.
    `pltpu.InterpretParams()` shows NaN.

    An input or scratch buffer that is never touched costs its copies and its memory. It may also mean that a line is
    missing.

    ## How to fix

    Write the output: for an aliased one `o_ref[...] = x_ref[...]` where it is to stay as it is, or give both of them
    `memory_space=pl.ANY`, which is the operand's own memory. Drop an input that is not needed from the operands, specs
    and parameters; where it has to stay, call it `_name` or `del` it.

    ## Fix safety

    Unsafe: an input or scratch buffer that is not needed gets a name that shows it, and stays where it is.

    ## Known limits

    Silent where the kernel hands its refs to code that is not seen, and for inputs that share memory with an output:
    those are reached through the output. Scalar-prefetch operands may be there for the index maps, semaphores for
    another device, so neither is looked at. What another launch of the same kernel does use is no finding: a flag may
    leave it out here. Nor are exercises: bodies of nothing but comments, a text, `pass`, `...` or a `raise`. An output
    that the caller drops, or of a kernel that prints or signals, is advice only.

    ## References

    - jax issue 24023: with `input_output_aliases` an output block that the kernel leaves alone comes out as zeros.
    - jax issues 39744 and 39811: operands in HBM that the kernel does not use; results all zero.
    - Run with jax 0.6.2, 0.7.2, 0.8.3, 0.10.2, 0.11.2 and 0.12.0: an unwritten output is NaN throughout in both
      interpreters; an unwritten aliased one is NaN under `pltpu.InterpretParams()` and the operand under
      `interpret=True`; with `memory_space=pl.ANY` it is the operand in both.
    """

    code = "PAL411"
    name = "unused-ref"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(x_ref, mask_ref, o_ref):  #!-
            def kernel(x_ref, _mask_ref, o_ref):  #+
                o_ref[...] = x_ref[...] * 2.0

            def run(x, mask):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, mask)
            """,
        ),
        Example(
            """
            def kernel(x_ref, o_ref):  #!
                doubled = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):  #!
                doubled = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(2,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    input_output_aliases={0: 0},
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                del y_ref
                o_ref[...] = x_ref[...] * 2.0

            def run(x, y):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                del x_ref, o_ref  # one memory, which is right as it is

            def run(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                    out_specs=pl.BlockSpec(memory_space=pl.ANY),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    input_output_aliases={0: 0},
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        if not trace.launch.form.is_program or trace.launch.runs_several or not all_seen(trace):
            return
        func = next((body for body in trace.launch.bodies if _is_traced(body, trace)), None)
        # One with aliases is no exercise: it may mean to leave its output as it came.
        if func is None or (_is_unwritten(func) and trace.launch.argument("input_output_aliases") is None):
            return
        touched = {event.ref.buffer for event in trace.events if isinstance(event, Access) and event.kind != "delete"}
        deleted = {event.ref.buffer for event in trace.events if isinstance(event, Access) and event.kind == "delete"}
        untouched = {ref.buffer: ref for ref in outputs_of(trace) if ref.buffer not in touched}
        untouched |= {
            ref.buffer: ref
            for ref in trace.refs
            if ref.role in ("in", "scratch") and not ref.owner and not ref.optional
            if ref.dtype != "semaphore" and ref.space not in ("semaphore", "regs")
            if ref.buffer not in touched | deleted and not _is_private(ref)
        }
        if untouched and _others_agree(untouched, trace, context):
            for ref in untouched.values():
                if ref.role == "out":
                    yield from _output(ref, func, trace, context, meant=ref.buffer in deleted or _is_private(ref))
                else:
                    yield from _other(ref, func, trace, context)


def _is_traced(body: Func, trace: KernelTrace) -> bool:
    return trace.site.node is (body.node.name if isinstance(body.node, nodes.FunctionDef) else body.node)


def _is_unwritten(func: Func) -> bool:
    """Whether the body is still to be written, as an exercise's is: a text, `pass`, `...`, a `raise`."""
    body = func.node.body
    lines = body.body if isinstance(body, nodes.IndentedBlock) else (body,)
    return all(
        isinstance(line, nodes.SimpleStatementLine | nodes.SimpleStatementSuite) and all(map(_does_nothing, line.body))
        for line in lines
    )


def _does_nothing(small: nodes.BaseSmallStatement) -> bool:
    text = isinstance(small, nodes.Expr) and isinstance(small.value, nodes.BaseString | nodes.Ellipsis)
    return text or isinstance(small, nodes.Pass | nodes.Raise)


def _is_private(ref: Ref) -> bool:
    return ref.parameter.startswith("_")


def _output(ref: Ref, func: Func, trace: KernelTrace, context: Context, *, meant: bool) -> Iterator[Finding]:
    launch, index = trace.launch, ref.index
    taken = aliased_outputs(launch)
    if taken is None or index is None:
        return
    place = _place(ref, func)
    if place is None:
        return
    site, local = place
    name = f"output `{local}`"
    severity = Severity.ERROR
    if index in taken:
        for_tpu = any(target.backend == "tpu" for target in context.settings.target)
        fresh = alias_not_fetched(ref, launch, for_tpu=for_tpu)
        if fresh is None:
            return
        severity = Severity.ERROR if fresh == "sure" else Severity.WARNING
        message = f"{name} is never written: its block does not start with what the aliased operand holds"
        help_text = "copy the input block to it, `o_ref[...] = x_ref[...]`, or give both `memory_space=pl.ANY`"
    elif meant:
        return
    else:
        message = f"{name} is never written"
        help_text = (
            "write it, or take it out of `out_shape`: the caller gets whatever the memory held (NaN in interpret mode)"
        )
    if use_of(launch, index) == "dropped" or any(trace.ops(*_EFFECTS)):
        severity = Severity.INFO
    elif _is_mentioned(local, func, site.node) and index not in taken:
        severity = Severity.WARNING  # in a branch that this launch does not take, or a function that is not called
    yield context.finding(site, message, help=help_text, severity=severity)


def _other(ref: Ref, func: Func, trace: KernelTrace, context: Context) -> Iterator[Finding]:
    place = _place(ref, func)
    if place is None or _is_mentioned(place[1], func, place[0].node):
        return
    launch = trace.launch
    if ref.role == "in":
        found, prefetch = pairs(launch), launch.prefetch_count
        if found is None or prefetch is None or ref.index is None:
            return
        if any(operand is None or operand == prefetch + ref.index for operand, _ in found):
            return
    noun = "input" if ref.role == "in" else "scratch buffer"
    site, local = place
    is_parameter = local == ref.parameter and all(local != name for name, _ in func.keywords)
    rename = context.unsafe(f"call it `_{local}`", context.replace(site, f"_{local}"))
    yield context.finding(
        site,
        f"{noun} `{local}` is never used",
        help=f"drop it, or call it `_{local}` if it has to stay",
        severity=Severity.INFO,
        fixes=[rename] if is_parameter else [],
    )


def _others_agree(untouched: dict[tuple[str, object], Ref], trace: KernelTrace, context: Context) -> bool:
    """Drop what another launch of the same kernel does use; whether something is left."""
    for other in context.analysis.traces:
        if other is trace or other.site.node is not trace.site.node:
            continue
        if not all_seen(other):
            untouched.clear()
        for event in other.events:
            if isinstance(event, Access):
                untouched.pop(event.ref.buffer, None)
    return bool(untouched)


def _place(ref: Ref, func: Func) -> tuple[Site, str] | None:
    """Where the function names a ref, and how: a parameter, or a name that `*refs` is unpacked to and nothing else."""
    parameters = func.node.params
    for parameter in parameters.named:
        if parameter.name.value == ref.parameter:
            return Site(func.piece, parameter.name), ref.parameter
    star = parameters.star_arg
    number = re.search(r"\[(\d+)\]$", ref.parameter)
    if not isinstance(star, nodes.Param) or number is None or func.bound:
        return None
    at = int(number[1])
    uses = [node for node in walk(func.node.body) if nodes.is_name(node, star.name.value)]
    for node in walk(func.node.body):
        if not isinstance(node, nodes.Assign) or len(uses) != 1 or node.value is not uses[0]:
            continue
        target = node.targets[0].target
        if not isinstance(target, nodes.Tuple | nodes.List) or func.keywords:
            return None
        names = [element.value for element in target.elements if isinstance(element, nodes.Element)]
        if len(names) == len(target.elements) and 0 <= at < len(names) and isinstance(name := names[at], nodes.Name):
            return (Site(func.piece, name), name.value) if not name.value.startswith("_") else None
    return None


def _is_mentioned(name: str, func: Func, place: nodes.Node) -> bool:
    """Whether the body names a ref for more than its shape and dtype."""
    return any(node is not place for node in _mentions(func.node.body).get(name, ()))


@lru_cache(maxsize=16)  # called for every ref of a kernel
def _mentions(body: nodes.Node) -> dict[str, list[nodes.Name]]:
    found: dict[str, list[nodes.Name]] = {}
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, nodes.Attribute) and isinstance(node.value, nodes.Name) and node.attr.value in _STATIC:
            continue
        if isinstance(node, nodes.Name):
            found.setdefault(node.value, []).append(node)
        stack.extend(node.children)
    return found
