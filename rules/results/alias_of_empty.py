"""PAL409 alias-of-empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    Access,
    Array,
    CallResult,
    Context,
    Example,
    Finding,
    Fix,
    KernelTrace,
    Launch,
    Rule,
    Severity,
    Site,
    Value,
    nodes,
)
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.aliases import maker, operand_leaves, output_leaves, pair_site, pairs
from pallas_lint.kernels.facts.triton_kernels import triton_kernel
from pallas_lint.kernels.facts.writes import gap, outputs_of, writes_to
from pallas_lint.kernels.grid.row_permutations import is_data_dependent
from pallas_lint.kernels.model.called import short_name
from pallas_lint.kernels.model.trace import is_full_index

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import ForeignCall


class AliasOfEmpty(Rule):
    """An output that is aliased to a `jnp.empty`, and of which the kernel writes only a part.

    An alias gives the output what the operand holds, and an empty array holds nothing in particular. What the kernel
    does not write, or adds to, is therefore garbage: the alias looks like an initialisation and is none. Up to jax 0.10
    `jnp.empty` happened to be `jnp.zeros`; since 0.11 it is left uninitialised on GPU and TPU, so that code which
    always worked breaks with the update. On CPU, and so in interpret mode, it is zeros to this day.

    ## How to fix

    Pass `jnp.zeros(...)`, or whatever the accumulation starts from.

    ## Fix safety

    Unsafe: zeros are right for a sum and for rows that stay empty, not for a maximum.

    ## Known limits

    Only where the `empty` is seen in the function that launches. Silent where a store takes the whole output, where
    stores go by loop or grid indices, and for FFI targets, of which nothing is known.

    ## References

    - Lowered for CPU, CUDA and TPU: with jax 0.4.35, 0.8.3 and 0.10.2 `jnp.empty` and `jnp.empty_like` are zeros; with
      0.11.2 and 0.12.0 they are an `AllocateBuffer` on CUDA and TPU, as `jax.lax.empty` is in 0.8.3 already.
    - jax issue 19399: aliasing a zeroed operand is how an output gets initial values.
    """

    code = "PAL409"
    name = "alias-of-empty"
    severity = Severity.WARNING
    fix = "unsafe"
    invalid = (
        Example(
            """
            def kernel(index_ref, x_ref, _init_ref, o_ref):
                o_ref[index_ref[0], :] = x_ref[0, :]

            def place(index, x):
                rows = jnp.empty((64, 128), jnp.float32)  #!-
                rows = jnp.zeros((64, 128), jnp.float32)  #+
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    input_output_aliases={2: 0},
                )(index, x, rows)
            """,
            jax="0.12.0.1",
            run="place(i32(4), f32(32, 128))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, _init_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    input_output_aliases={1: 0},
                )(x, jnp.empty((64, 128), jnp.float32))
            """
        ),
    )

    def check_module(self, context: Context) -> Iterator[Finding]:
        for call in context.analysis.outcome.foreign_calls:
            if not call.form.is_triton or call.operands is None:
                continue
            for output, value, at in _empties(call):
                if _is_gathered(call, output):
                    yield _finding(
                        value, output, call, at, context, "the kernel writes only the rows that an index names"
                    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        if not launch.form.is_over_blocks:
            return
        refs = {ref.index: ref for ref in outputs_of(trace)}
        for output, value, at in _empties(launch):
            ref = refs.get(output)
            stores = writes_to(trace, ref) if ref is not None else None
            if ref is None or not stores or any(_is_whole(store) for store in stores):
                continue
            if any(store.kind == "accumulate" for store in stores):
                yield _finding(value, output, launch, at, context, "the kernel adds to it")
            elif gap(trace, ref, context.analysis) is not None:
                yield _finding(value, output, launch, at, context, "the kernel writes a part of it only")
            elif all(is_data_dependent(store, trace) for store in stores):
                yield _finding(
                    value, output, launch, at, context, "the kernel writes only the rows that an index names"
                )


def _empties(call: Launch | ForeignCall) -> Iterator[tuple[int, Value, int]]:
    """The outputs that take the memory of an empty array: their number, the array, the number of the alias."""
    found, operands = pairs(call), operand_leaves(call)
    if not found or operands is None:
        return
    for at, (operand, output) in enumerate(found):
        if operand is None or output is None or not 0 <= operand < len(operands):
            continue
        if maker(operands[operand].value) in ("empty", "empty_like"):
            yield output, operands[operand].value, at


def _is_whole(store: Access) -> bool:
    plain = all(guard.kind == "loop" for guard in store.guards)
    return store.kind == "store" and plain and is_full_index(store.index) and store.ref.indexer is None


def _is_gathered(call: ForeignCall, output: int) -> bool:
    """Whether a Triton kernel writes an output by rows that it reads, or adds to it."""
    outputs = output_leaves(call)
    if outputs is None or call.operands is None or len(call.kernels) != 1:
        return False
    kernel = triton_kernel(call.kernels[0])
    if kernel is None or len(call.operands) + output >= len(kernel.parameters):
        return False
    name = kernel.parameters[len(call.operands) + output]
    stores = [store for store in kernel.stores if store.pointer == name]
    scattered = {ById(move.store) for move in kernel.moves({name}) if move.how == "scatter"}
    return bool(stores) and all(store.atomic or ById(store) in scattered for store in stores)


def _finding(value: Value, output: int, call: Launch | ForeignCall, at: int, context: Context, how: str) -> Finding:
    assert isinstance(value, Array | CallResult) and value.site is not None
    fails = context.failing(lambda version: tuple(int(part) for part in version.split(".")[:2]) >= (0, 11))
    name = value.site.code.partition("(")[0]
    uninitialised = fails or not name.startswith(("jnp.", "jax.numpy."))
    return context.finding(
        value.site,
        f"output {output} has the memory of this empty array, and {how}",
        help="write `jnp.zeros`: what the kernel does not write is garbage, on GPU and TPU from jax 0.11 on",
        severity=Severity.WARNING if uninitialised else Severity.INFO,
        versions=fails,
        related=[(pair_site(call, at), "aliased here")],
        fixes=_fixes(value.site, context),
    )


def _fixes(site: Site, context: Context) -> list[Fix]:
    node = site.node
    if not isinstance(node, nodes.Call):
        return []
    func = node.func
    short = short_name(func)
    wanted = short.replace("empty", "zeros")
    name = site.piece.code(func)
    if isinstance(func, nodes.Attribute) and name.rpartition(".")[0] not in ("lax", "jax.lax"):
        return [context.unsafe(f"use `{wanted}`", context.replace(type(site)(site.piece, func.attr), wanted))]
    spelled, imports = context.spell(f"jax.numpy.{wanted}", context.module_of(site))
    return [context.unsafe(f"use `{wanted}`", context.replace(type(site)(site.piece, func), spelled), *imports)]
