"""PAL107 triton-power-of-two."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from pallas_lint.api import (
    Access,
    Array,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Op,
    Ref,
    Rule,
    Severity,
    Shape,
    Sym,
    Value,
)
from pallas_lint.kernels.facts.dataflow import goes_nowhere
from pallas_lint.kernels.facts.guarded_sizes import multiples
from pallas_lint.kernels.grid.block_counts import factored
from pallas_lint.kernels.model.symbols import default_of
from pallas_lint.kernels.model.values import as_tuple, from_dim
from pallas_lint.records import frozen

_MAX_LENGTH = 50  # characters of code that a message quotes
_MAX_ELEMENTS = 1 << 20  # of one array
_FOR_POWERS = re.compile(r"\bis_pow|bit_length|bit_count|log2|[!=]=[ \t]*(?:\w+\.)?next_pow")  # tests for powers of two


class TritonPowerOfTwo(Rule):
    """An array in a Triton kernel whose size is not a power of two, or larger than Triton's arrays can be.

    Triton spreads every array over the threads of a program and knows only sizes that are powers of two. A load or
    store of any other size is refused while the kernel is lowered (`The Pallas Triton lowering currently requires
    that all operations have array arguments and results whose size is a power of 2`), a reduction of one by the
    verifier (`Number of elements must be power-of-two`). What counts is the number of elements of what is loaded,
    stored or made, not the shape of the ref: a row `x_ref[0]` of 64 elements may come from a block of 48 rows.
    An array of more than 1048576 elements lowers, and the compiler refuses it (`Maximum allowed number of elements is
    1048576`), whatever its dtype. Interpret mode, TPU and Mosaic GPU take every size.

    ## How to fix

    Round the block up to the next power of two (`pl.next_power_of_2` in older releases) and mask what lies outside:
    `plgpu.load(x_ref.at[index], mask=index < n, other=0)` with `index = jnp.arange(64)`, and the same mask for
    the store. Or let a `lax.fori_loop` handle pieces that are powers of two. For a large array use a grid, with blocks
    of some thousands of elements: each thread holds its share in registers.

    ## Known limits

    Only known sizes, and those with a known factor like `3 * rows`. A size that depends on parameters is taken at
    their defaults and is a warning then. So is one that a guard only asks to be a multiple (`if n % 64: raise`), with
    the smallest multiple that is no power of two; others are left to the probe. The place that makes the size is
    reported, not the operations that pass it on.

    ## References

    - 31 kernels with 5, 8 and 48 elements, lowered for Triton by jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2,
      0.10.2, 0.11.2 and 0.12.0.1: all loads, stores, reductions and indices of 5 or 48 are refused in all of them;
      refs of these sizes that are read row by row or element by element pass.
    - Run on an H200 with jax 0.11.2: copies of 524288 and 1048576 elements run, of 2097152 are refused, as float32,
      bfloat16 and int8.
    - jax issues 19222 and 20056.
    """

    code = "PAL107"
    name = "triton-power-of-two"
    severity = Severity.ERROR
    backends = frozenset({"triton"})
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.full((4,), x_ref[2:5].sum())  #!

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((4,), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(jnp.zeros((64,)))
            """
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2  #!

            def run(x):
                block = pl.BlockSpec((48,), lambda i: (i,))
                return pl.pallas_call(
                    kernel,
                    grid=(5,),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((240,), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                index = jnp.arange(4)
                x = plgpu.load(x_ref.at[index], mask=index < 3, other=0.0)
                o_ref[...] = jnp.full((4,), x.sum())

            def run(x):
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((4,), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(jnp.zeros((64,)))
            """
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                for row in range(3):  # rows of 64 elements
                    o_ref[row] = x_ref[row] * 2

            def run():
                x = jnp.zeros((3, 64))
                return pl.pallas_call(
                    kernel,
                    out_shape=jax.ShapeDtypeStruct((3, 64), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        found = list(_check(trace, context, {}))
        yield from found or _for_some_size(trace, context)


def _for_some_size(trace: KernelTrace, context: Context) -> Iterator[Finding]:
    """The arrays with the smallest multiple that the guards of the code let through, and Triton does not."""
    if trace.launch.known_call is not None or any(func.piece.has(_FOR_POWERS) for func in trace.launch.path.callers):
        return
    for size, numbers in multiples(context.analysis.outcome.effects):
        odd = next((number for number in numbers if number & (number - 1)), None)
        found = [] if odd is None else list(_check(trace, context, {size: odd}))
        if found:
            yield from found
            return


def _check(trace: KernelTrace, context: Context, given: dict[Sym, int]) -> Iterator[Finding]:
    """The arrays that Triton does not take, with these numbers for sizes."""
    used = _used(trace)
    for event in trace.events:
        if isinstance(event, Access):
            odd = _odd_access(event, given)
            if odd is not None and event.kind == "load" and goes_nowhere(event, trace):
                continue
        elif isinstance(event, Op):
            odd = _odd_operation(event, used, given)
        else:
            continue
        if odd is None:
            continue
        code = event.site.code
        what = f"`{code}`" if len(code) <= _MAX_LENGTH and "\n" not in code else "this"
        # A statement like `x_ref[...] = y` is a store, and its place the target.
        yield context.finding(
            event.site,
            f"{what} has {odd.count} elements{_condition(odd, given)}: {odd.limit}",
            help=odd.help,
            certain=event.certain and not odd.defaults,
        )


def _condition(odd: _Odd, given: dict[Sym, int]) -> str:
    if given:
        size, number = next(iter(given.items()))
        return f" where `{size.text}` is {number}, which the code allows"
    listed = ", ".join(f"`{name}={value}`" for name, value in sorted(odd.defaults.items()))
    return f" (by default: {listed})" if listed else ""


@frozen
class _Odd:
    """A number of elements that Triton does not take, and the defaults of parameters that it depends on.

    `times`: the names that it is multiplied by; the number alone keeps it from being a power of two.
    """

    size: int
    defaults: dict[str, int]
    times: str | None = None

    @property
    def is_power(self) -> bool:
        return not self.size & (self.size - 1)

    @property
    def count(self) -> str:
        return str(self.size) if self.times is None else f"{self.size} x {self.times}"

    @property
    def limit(self) -> str:
        return f"Triton arrays have {_MAX_ELEMENTS} at most" if self.is_power else "Triton arrays need a power of two"

    @property
    def help(self) -> str:
        if self.size > _MAX_ELEMENTS:
            return "use a grid, with a BlockSpec for a part of it"
        if self.times is not None:
            return f"no multiple of {self.size} is one: take the parts one by one"
        upper = 1 << (self.size - 1).bit_length()
        return f"round up to {upper}, and mask: `mask=` and `other=` of `plgpu.load`, `mask=` of `plgpu.store`"


def _used(trace: KernelTrace) -> set[Op]:
    """The operations of which something takes the result; a result that nothing takes is never made."""
    found: set[Op] = set()
    for event in trace.events:
        values: list[Value] = []
        if isinstance(event, Op):
            values = [*event.args, *(value for _, value in event.keywords)]
        elif isinstance(event, Access):
            values = [event.index, event.value]
        while values:
            value = values.pop()
            if isinstance(value, Array) and value.origin is not None:
                found.add(value.origin)
            elif hasattr(value, "items") and isinstance(value.items, tuple):
                values.extend(item for item in value.items if not isinstance(item, tuple))
    return found


def _odd_access(access: Access, given: dict[Sym, int]) -> _Odd | None:
    """How many elements are loaded or stored, where Triton does not take so many."""
    if access.kind not in ("load", "store", "accumulate") or access.ref.space == "semaphore":
        return None
    parts = as_tuple(access.index)
    if any(isinstance(part, Array) and _odd(part.shape, given) is not None for part in parts):
        return None  # reported where the index is made
    if access.kind == "load":
        return _odd(access.value.shape, given) if isinstance(access.value, Array) else None
    from pallas_lint.kernels.library.indexing import result_shape

    if isinstance(access.value, Array) and _odd(access.value.shape, given) is not None:
        return None  # reported where the value is made
    return _odd(result_shape(access.ref.shape, access.index), given)


def _odd_operation(op: Op, used: set[Op], given: dict[Sym, int]) -> _Odd | None:
    """How many elements the result has, where the operation is the first to have such a number of them."""
    if not isinstance(op.result, Array) or op.result.host or op not in used:
        return None
    if any(isinstance(value, Ref) for value in op.args) and not op.name.endswith("_like"):
        return None  # an access, which is an event of its own
    if any(array.shape is None or _odd(array.shape, given) is not None for array in op.arrays):
        return None
    return _odd(op.result.shape, given)


def _odd(shape: Shape | None, given: dict[Sym, int]) -> _Odd | None:
    """The number of elements, where it is known, if by default only, and Triton does not take it."""
    if shape is None or None in shape:
        return None
    taken: dict[str, int] = {}
    sizes = [default_of(from_dim(size), taken, given) for size in shape]
    if given and taken.keys().isdisjoint(size.text for size in given):
        return None
    if None in sizes:
        return _multiple(shape)
    found = _Odd(math.prod(size for size in sizes if size is not None), taken)
    return found if found.size > 0 and (not found.is_power or found.size > _MAX_ELEMENTS) else None


def _multiple(shape: Shape) -> _Odd | None:
    """The number in a size like 3 * rows, where no multiple of it is a power of two."""
    factors = [factored(size) for size in map(from_dim, shape) if isinstance(size, Sym | Const)]
    size = math.prod(number for number, _ in factors)
    names = [rest.text for _, rest in factors if isinstance(rest, Sym)]
    found = _Odd(size, {}, " x ".join(names))
    return None if found.is_power else found
