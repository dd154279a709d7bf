"""PAL502 python-control-flow."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import (
    Array,
    CallResult,
    Concretization,
    Context,
    Example,
    Finding,
    Fix,
    IndexMap,
    KernelTrace,
    Launch,
    Ref,
    Rule,
    Seq,
    Severity,
    Site,
    Sym,
    Value,
)
from pallas_lint.fixes.when_rewrites import branch_as_when, sliced_by_ds
from pallas_lint.kernels.library.concretizations import traced_concretizations
from pallas_lint.kernels.model.launch import block_spec

_KEYWORDS = {
    "if": "if", "while": "while", "assert": "assert", "ternary": "if ... else", "and": "and", "or": "or",
    "not": "not", "in": "in", "match": "match", "filter": "if",
}  # fmt: skip
_HELP = {
    "if": "use `@pl.when(condition)` for stores, `jnp.where` or `lax.cond` for values",
    "while": "use `lax.while_loop(condition, body, init)`",
    "assert": "use `pl.debug_check`, or assert on shapes and other static values only",
    "ternary": "use `jnp.where(condition, a, b)`",
    "and": "use `jnp.logical_and(a, b)` or `(a) & (b)`",
    "or": "use `jnp.logical_or(a, b)` or `(a) | (b)`",
    "not": "use `jnp.logical_not(a)`",
    "chain": "write `(a < b) & (b < c)`",
    "in": "compare with each element and join with `|`",
    "match": "use `lax.switch(index, branches)`",
    "filter": "use `jnp.where(condition, a, b)`",
    "index": "use `lax.switch`, or one ref with a leading dimension that is indexed",
    "slice": "use `pl.ds(start, size)` with a static size",
    "size": "take a block of static size and mask what is too much",
    "iterate": "load it first, or loop over `range(ref.shape[0])`",
    "method": "keep it an array: no Python number exists while the kernel is traced",
    "format": "print with `pl.debug_print`; a format spec needs a number",
}
_CALLS = {
    "range": "use `lax.fori_loop(start, stop, body, init)`",
    "int": "use `.astype(jnp.int32)`",
    "float": "use `.astype(jnp.float32)`",
    "bool": "use a comparison, and `pl.when` or `jnp.where` on it",
    "max": "use `jnp.maximum(a, b)`",
    "min": "use `jnp.minimum(a, b)`",
    "any": "join the conditions with `|`",
    "all": "join the conditions with `&`",
    "sorted": "use `jnp.minimum` and `jnp.maximum`",
}


class PythonControlFlow(Rule):
    """Python's `if`, `range` or `int`, or numpy, needs the value of something that is only traced.

    A kernel's Python code runs once, while jax traces it; loads, `pl.program_id`, loop indices and whatever jnp makes
    of them have no value then. `if`, `while`, `assert`, `and`, `range(n)`, `int(x)`, `max(a, b)`, a list's index and
    functions of `math` and numpy need one, and raise `TracerBoolConversionError`, `TracerIntegerConversionError`,
    `ConcretizationTypeError` or `TracerArrayConversionError`, whatever the backend. The same holds for index maps.

    So do shapes: arguments of a function under `jax.jit` are traced unless `static_argnames` or `static_argnums` name
    them, and a block, an output or scratch cannot have a traced size. A default that no caller replaces is not traced.

    Shapes, dtypes, `ref is None`, arguments bound by `functools.partial`, and `pl.num_programs` on a grid of Python
    numbers are known while tracing: branching on them is how kernels are specialised.

    ## How to fix

    Guard stores with `@pl.when(condition)`, choose values with `jnp.where` or `lax.cond`, loop with `lax.fori_loop`,
    combine conditions with `&`, `|` and `jnp.logical_not`, and slice refs with `pl.ds(start, size)`. Name arguments
    that make shapes in `static_argnames`.

    ## Fix safety

    Safe for an `if` whose body only stores, as the code could not run before; with an `else` unsafe, because the
    second condition is computed after the first body ran. `ref[i * B:(i + 1) * B]` becomes `ref[pl.ds(i * B, B)]`.

    ## Known limits

    One step down for code behind a Python branch that is not decided, and for parameters of which it is not known
    that they are refs. Values of unknown origin, such as results of functions that are not seen, count as static.
    Silent in a `try` with an `except` for what jax raises then, which is a `TypeError`.

    ## References

    - 66 constructs traced with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: all
      versions agree on each.
    - jax documentation, "Control flow and logical operators with JIT".
    - Sizes of blocks, outputs and scratch that `jax.jit` traces, lowered for TPU with jax 0.6.2, 0.9.2, 0.10.2 and
      0.12.0.1: `ValueError` or `TypeError` in each; sizes of the grid lower.
    """

    code = "PAL502"
    name = "python-control-flow"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                if pl.program_id(0) == 0:  #!-
                @pl.when(pl.program_id(0) == 0)  #+
                def _():  #+
                    o_ref[...] = x_ref[...]

            def run(x):
                return pl.pallas_call(kernel, grid=(4,), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            run="run(f32(16, 128))",
        ),
        Example(
            """
            def kernel(n_ref, x_ref, o_ref):
                total = x_ref[0]
                for row in range(n_ref[0]):  #!
                    total += x_ref[row]
                o_ref[0] = total * 2 if n_ref[0] > 1 else total  #!

            def run(n, x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[
                        pl.BlockSpec((1,), lambda i: (0,)),
                        pl.BlockSpec((8, 128), lambda i: (max(i - 1, 0), 0)),  #!
                    ],
                    out_specs=pl.BlockSpec((1, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((4, 128), x.dtype),
                )(n, x)
            """
        ),
        Example(
            """
            import functools

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            @functools.partial(jax.jit, static_argnames="interpret")
            def run(x, block, interpret=False):  #!
                spec = pl.BlockSpec((block, x.shape[1]), lambda i: (i, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(pl.cdiv(x.shape[0], block),),
                    in_specs=[spec],
                    out_specs=spec,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    interpret=interpret,
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            import functools
            import jax
            import jax.numpy as jnp
            from jax.experimental import pallas as pl

            def kernel(x_ref, mask_ref, o_ref, *, causal, steps=None):
                if x_ref.shape[0] > 8 and x_ref.dtype == jnp.float32:
                    scale = 2.0
                else:
                    scale = 1.0
                x = x_ref[...] * scale
                if mask_ref is not None:
                    x = jnp.where(mask_ref[...], x, 0)
                if causal and pl.num_programs(0) > 1:
                    x += 1
                for _ in range(pl.num_programs(0)):
                    x += 1
                assert x.ndim == 2, x.shape

                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = x

            def run(x, mask=None):
                return pl.pallas_call(
                    functools.partial(kernel, causal=True),
                    grid=(4,),
                    in_specs=[
                        pl.BlockSpec((8, 128), lambda i, rows=8: (i if rows > 4 else 0, 0)),
                        None if mask is None else pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    ],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
                )(x, mask)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        yield from self._report(trace, context, sure=True)

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        trace = index_map.run() if index_map.launch is not None and index_map.launch.is_pallas else None
        if trace is not None:
            yield from self._report(trace, context, sure=index_map.sure, given="a grid index")

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        """Shapes of blocks, outputs and scratch that depend on an argument which `jax.jit` traces."""
        if not launch.is_pallas:
            return
        reported = set()
        for size, what, site in _sizes(launch):
            for symbol in _traced(size):
                func = next((each for each in reversed(launch.path.callers) if symbol.text in each.jitted), None)
                if func is None or func.module is not launch.module or symbol.text in reported:
                    continue
                reported.add(symbol.text)
                parameter = next(each for each in func.node.params.named if each.name.value == symbol.text)
                yield context.finding(
                    Site(func.piece, parameter.name),
                    f"`{symbol.text}` is traced by the `jax.jit` around `{func.name}`, and is a size of {what}: shapes"
                    " need Python numbers",
                    help=f'name it in `static_argnames="{symbol.text}"`',
                    certain=launch.path.certain,
                    related=[(site, f"the shape of {what}")],
                )

    def _report(
        self, trace: KernelTrace, context: Context, *, sure: bool, given: str = "what the loop or branch passes on"
    ) -> Iterator[Finding]:
        concretizations = traced_concretizations(trace, given)
        reported = set()  # a helper that is called often has the same events each time
        for concretization, sources in concretizations:
            if concretization.kind == "shown":
                continue  # text made of a tracer: nothing raises
            place = concretization.site.key, concretization.kind, concretization.name, concretization.value.__class__
            what = *place, concretization.certain, tuple(sources[:2])
            if what in reported:
                continue
            reported.add(what)
            severity = Severity.ERROR if sources and sure else Severity.WARNING
            yield context.finding(
                concretization.site,
                _message(concretization, sources),
                help=_HELP.get(concretization.kind) or _call_help(concretization),
                severity=severity,
                certain=concretization.certain,
                fixes=_fixes(concretization, [other for other, _ in concretizations], context),
            )


def _sizes(launch: Launch) -> Iterator[tuple[Value, str, Site]]:
    """The sizes of blocks, outputs and scratch of a launch, what has them, and where."""
    for specs in (launch.in_specs, launch.out_specs):
        for spec in map(block_spec, specs.items if specs is not None else ()):
            if spec is not None and spec.block_shape is not None:
                yield from ((size, "a block", spec.site) for size in spec.block_shape.items)
    shapes = launch.out_shapes.items if launch.out_shapes is not None else ()
    scratch = launch.scratch.items if isinstance(launch.scratch, Seq) else ()
    for what, declared in (*(("an output", each) for each in shapes), *(("scratch", each) for each in scratch)):
        shape = declared.argument("shape", 0) if isinstance(declared, CallResult) else None
        if isinstance(declared, CallResult) and isinstance(shape, Seq):
            yield from ((size, what, declared.site) for size in shape.items)


def _traced(size: Value) -> Iterator[Sym]:
    """The arguments under `jax.jit` from which a size is computed."""
    if isinstance(size, Sym):
        if size.operation is not None:
            yield from _traced(size.operation[1])
            yield from _traced(size.operation[2])
        elif size.traced:
            yield size


def _message(concretization: Concretization, sources: list[str]) -> str:
    origin = f", which comes from {' and '.join(sources[:2])}" if sources else ""
    value = "a traced value"
    if not isinstance(concretization.value, Array):
        value, origin = f"the ref {sources[0]}" if sources else "a ref", ""
    name = concretization.name.removeprefix("builtins.")
    if concretization.kind == "chain":
        return f"a chained comparison is Python's `and`: it needs {value}{origin}"
    if concretization.kind == "call":
        spelled = name.replace("jax.numpy", "jnp").replace("numpy.", "np.")
        if spelled.startswith(("np.", "math.")):
            return f"`{spelled}` computes while the kernel is traced, and is given {value}{origin}"
        return f"`{spelled}` needs Python numbers, and is given {value}{origin}"
    if concretization.kind == "method":
        return f"`.{name}()` needs the number behind {value}{origin}"
    if concretization.kind == "index":
        return f"a Python container is indexed by {value}{origin}"
    if concretization.kind == "slice":
        return f"a Python slice of a ref is bounded by {value}{origin}"
    if concretization.kind == "size":
        return f"a slice has the size of {value}{origin}"
    if concretization.kind == "iterate":
        return "a ref cannot be iterated over"
    if concretization.kind == "format":
        return f"a format spec is applied to {value}{origin}"
    return f"Python `{_KEYWORDS[concretization.kind]}` on {value}{origin}"


def _call_help(concretization: Concretization) -> str:
    module, _, short = concretization.name.rpartition(".")
    if module in ("numpy", "math"):
        of_ref = " on what the ref holds: `ref[...]`" if isinstance(concretization.value, Ref) else ""
        return f"use `jnp.{short}`{of_ref}"
    if short in _CALLS:
        return _CALLS[short]
    return "sizes have to be Python numbers" if module.startswith("jax") else "compute with jnp instead"


def _fixes(concretization: Concretization, others: list[Concretization], context: Context) -> list[Fix]:
    found = None
    if concretization.kind == "if" and isinstance(concretization.value, Array):
        condition = concretization.site.span  # what is in it would still raise as an argument
        inside = [other for other in others if other.kind != "if" and condition.contains(other.site.span)]
        found = None if inside else branch_as_when(concretization, context)
    elif concretization.kind == "slice":
        found = sliced_by_ds(concretization, context)
    return [found] if found is not None else []
