"""PAL407 alias-mismatch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pallas_lint.api import Const, Context, Example, Finding, KernelTrace, Launch, Rule, Seq, Severity
from pallas_lint.kernels.facts.aliases import (
    aliases_site,
    contradicts,
    declared,
    made_blank,
    operand_leaves,
    output_leaves,
    pair_site,
    pairs,
)
from pallas_lint.kernels.facts.writes import rows_kept
from pallas_lint.kernels.model.launch import ForeignCall
from pallas_lint.kernels.model.values import CallResult, Sym
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.aliases import Leaf


class AliasMismatch(Rule):
    """Aliases of operands and outputs that do not fit: a wrong index, another shape, an output too few.

    `input_output_aliases={operand: output}` hands the memory of an operand to an output. `pallas_call` counts all
    operands, scalar-prefetch operands first, and None not at all; the outputs are counted on their own. Forgetting the
    prefetch operands is the usual slip: with one of them, `{0: 0}` names the indices, not the data. Pallas refuses
    indices out of range and pairs of different shape or dtype when it traces the call; a wrong operand that happens to
    have the right shape goes through, and another array is overwritten.

    The same holds for `jax.ffi.ffi_call`, and for `jax_triton.triton_call`, which checks nothing itself and counts
    arrays only: a Python number among the operands takes no buffer.

    A kernel that updates buffers in place, writing the rows that an index names and keeping the others, needs an alias
    for each of them: an output that has none starts with garbage in the rows that are kept. And an output that
    `zeroed_outputs` names loses what its alias brought.

    ## How to fix

    Count the operands as they are passed, prefetch operands included (`{num_scalar_prefetch + k: output}`), give the
    output the operand's shape and dtype, and alias every output that keeps rows.

    ## Known limits

    Operands whose number or shape the text does not show are not checked; one of which the kernel uses nothing may be a
    tree of arrays, and makes a warning of the error. An operand of the right shape that is not the intended one is not
    known. Of shapes that have only names, an output declared with the shape of the operand that is meant without those
    that are prefetched (`old.shape`) is a warning.

    ## References

    - jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.10.2, 0.11.2 and 0.12.0, `pallas_call` traced: indices out of range,
      negative ones and pairs of other shape or dtype raise `ValueError`; an output claimed by two operands passes, and
      interpret mode of 0.11 and 0.12 takes the second operand, that of older releases and `InterpretParams` the first.
    - jax 0.12, `jax._src.ffi.ffi_call`: the same checks, negative indices excepted.
    - jax_triton 0.3.1, `triton_call`: no check; indices go to the custom call, whose operands are the arrays.
    """

    code = "PAL407"
    name = "alias-mismatch"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(rows_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run():
                rows = jnp.arange(2, dtype=jnp.int32)
                x = jnp.ones((16, 128), jnp.float32)
                return pl.pallas_call(
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(2,),
                        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (rows[i], 0))],
                        out_specs=pl.BlockSpec((8, 128), lambda i, rows: (i, 0)),
                    ),
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    input_output_aliases={0: 0},  #!
                )(rows, x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    input_output_aliases={1: 0},  #!
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(rows_ref, x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run():
                rows = jnp.arange(2, dtype=jnp.int32)
                x = jnp.ones((16, 128), jnp.float32)
                return pl.pallas_call(
                    kernel,
                    grid_spec=pltpu.PrefetchScalarGridSpec(
                        num_scalar_prefetch=1,
                        grid=(2,),
                        in_specs=[pl.BlockSpec((8, 128), lambda i, rows: (rows[i], 0))],
                        out_specs=pl.BlockSpec((8, 128), lambda i, rows: (i, 0)),
                    ),
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    input_output_aliases={1: 0},
                )(rows, x)
            """
        ),
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        for call in context.analysis.outcome.foreign_calls:
            yield from _check(call, context)
            yield from _zeroed(call, context)

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if launch.form.is_over_blocks:
            yield from _check(launch, context)

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """Some of the outputs of an in-place kernel are aliased."""
        launch = trace.launch
        if not launch.form.is_over_blocks:
            return
        for ref, access in rows_kept(trace):
            yield context.finding(
                access.site,
                f"output `{ref.parameter}` keeps rows as they were, but has no alias although other outputs have",
                help=f"the rows that are not written hold garbage: alias output {ref.index} to its operand too",
                severity=Severity.WARNING,
                op=None,
                related=[(aliases_site(launch), "aliases given here")],
            )


def _check(call: Launch | ForeignCall, context: Context) -> Iterator[Finding]:
    if declared(call) is None:
        return
    found = pairs(call)
    if not found:
        return
    operands, outputs = operand_leaves(call), output_leaves(call)
    prefetch = 0 if isinstance(call, ForeignCall) else call.prefetch_count or 0
    seen: dict[int, int] = {}
    for at, (operand, output) in enumerate(found):
        spelled = f"{'?' if operand is None else operand}: {'?' if output is None else output}"
        place = pair_site(call, at)
        problem = _out_of_range(call, operand, operands, "operand", prefetch) or _out_of_range(
            call, output, outputs, "output", 0
        )
        if problem is not None:
            leaves = (*(operands or ()), *(outputs or ()))
            yield context.finding(
                place, f"alias `{spelled}`: {problem}", help=_counting(prefetch), severity=_certainty(leaves)
            )
            continue
        if output is not None and output in seen:
            yield context.finding(
                place,
                f"alias `{spelled}`: output {output} has the memory of operand {seen[output]} already",
                help="one output can take the memory of one operand only",
                severity=Severity.WARNING,
            )
        if output is not None and operand is not None:
            seen[output] = operand
        if operand is None or output is None or operands is None or outputs is None:
            continue
        yield from _pair(call, context, at, operand, output, operands, outputs, prefetch)


def _out_of_range(
    call: Launch | ForeignCall, index: int | None, leaves: list[Leaf] | None, noun: str, prefetch: int
) -> str | None:
    """What is certainly wrong with an index."""
    if index is None:
        return None
    if index < 0:
        return f"{noun} {index} does not exist: aliases are not counted from the end"
    if leaves is None or index < len(leaves) or not all(leaf.sure or leaf.likely for leaf in leaves):
        return None
    known = "array operand" if noun == "operand" and getattr(call, "kind", "") == "triton_call" else noun
    counted = count_of(len(leaves), known)
    if prefetch:
        counted += f", {prefetch} scalar-prefetch included"
    return f"{noun} {index} does not exist, there {'is' if len(leaves) == 1 else 'are'} {counted}"


def _pair(
    call: Launch | ForeignCall,
    context: Context,
    at: int,
    operand: int,
    output: int,
    operands: list[Leaf],
    outputs: list[Leaf],
    prefetch: int,
) -> Iterator[Finding]:
    before = [leaf for leaf in (*operands[:operand], *outputs[:output]) if leaf.argument >= prefetch or not prefetch]
    if not all(leaf.sure or leaf.likely for leaf in before):
        return  # a tree or None before it would shift the count
    source, target = operands[operand], outputs[output]
    spelled = f"{operand}: {output}"
    differing = contradicts(source, target)
    if differing is not None:
        is_prefetch = source.argument < prefetch
        subject = f"operand {operand}, a scalar-prefetch operand," if is_prefetch else f"operand {operand}"
        message = f"alias `{spelled}`: {subject} {'and ' if is_prefetch else 'and output '}"
        message += f"{'output ' if is_prefetch else ''}{output} differ: {differing}"
        yield context.finding(pair_site(call, at), message, help=_counting(prefetch), severity=_certainty(before))
    elif _is_of_input(operands, operand, target, prefetch):
        yield context.finding(
            pair_site(call, at),
            f"alias `{spelled}`: output {output} has the shape of operand {operand + prefetch}",
            help=_counting(prefetch),
            severity=Severity.WARNING,
        )
    elif source.argument < prefetch and not isinstance(call, ForeignCall) and _is_blocked(call, target):
        yield context.finding(
            pair_site(call, at),
            f"alias `{spelled}`: operand {operand} is a scalar-prefetch operand, output {output} is an array in blocks",
            help=_counting(prefetch),
            severity=Severity.WARNING,
        )


def _is_of_input(operands: list[Leaf], operand: int, target: Leaf, prefetch: int) -> bool:
    """Whether the output has the shape, by its name, of the operand that the number means without prefetched ones."""
    if not prefetch or operand + prefetch >= len(operands):
        return False
    source, meant = operands[operand].value, operands[operand + prefetch].value
    shape = target.value.argument("shape", 0) if isinstance(target.value, CallResult) else None
    if not isinstance(source, Sym) or not isinstance(meant, Sym) or source == meant:
        return False
    return shape == Sym(f"{meant.text}.shape", meant.owner)


def _certainty(leaves: Sequence[Leaf]) -> Severity:
    """An operand of which the kernel uses nothing might be a tree, which would shift the count."""
    return Severity.ERROR if all(leaf.sure for leaf in leaves) else Severity.WARNING


def _is_blocked(launch: Launch, target: Leaf) -> bool:
    """Whether an output is cut into blocks of two dimensions or more: nothing in SMEM is."""
    from pallas_lint.kernels.model.launch import block_spec

    specs = launch.out_specs
    if specs is None or specs.open or target.argument >= len(specs.items):
        return False
    spec = block_spec(specs.items[target.argument], "out")
    if spec is None or spec.block_shape is None or spec.memory_space == "smem":
        return False
    return len(spec.block_shape.items) > 1


def _counting(prefetch: int) -> str:
    if not prefetch:
        return "aliases map the number of an operand to the number of an output, both from 0"
    return f"operands are counted with the scalar-prefetch ones: the first input is number {prefetch}"


def _zeroed(call: ForeignCall, context: Context) -> Iterator[Finding]:
    """Outputs of a `triton_call` that are aliased and zeroed before the kernel starts."""
    value = call.made.argument("zeroed_outputs")
    found, operands = pairs(call), operand_leaves(call)
    if not isinstance(value, Seq) or value.open or not found:
        return
    zeroed = {item.value for item in value.items if isinstance(item, Const)}
    for at, (operand, output) in enumerate(found):
        if output not in zeroed:
            continue
        if operand is None or operands is None or operand >= len(operands) or made_blank(operands[operand].value):
            continue
        yield context.finding(
            pair_site(call, at),
            f"output {output} is zeroed before the kernel starts: what operand {operand} brought is lost",
            help="leave the output out of `zeroed_outputs`, or the alias away",
            severity=Severity.WARNING,
        )
