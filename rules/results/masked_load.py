"""PAL424 masked-load."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import NONE, Array, Const, Context, Example, Finding, KernelTrace, Op, Rule, Severity, Value
from pallas_lint.kernels.facts.dataflow import operands
from pallas_lint.kernels.facts.padding import DOTS, ELEMENTWISE, REDUCING, contracted, reduced_axes
from pallas_lint.kernels.grid.index_ranges import as_slice, number
from pallas_lint.kernels.model.known_names import PALLAS, named
from pallas_lint.records import define, field, frozen

_LOADS = (f"{PALLAS}.triton.load", f"{PALLAS}.load")
_LESS = named("less lt")
_RESHAPING = named("expand_dims ndarray.__getitem__ reshape broadcast_to")
_NEUTRAL = {"max": "-jnp.inf", "amax": "-jnp.inf", "argmax": "-jnp.inf", "min": "jnp.inf", "amin": "jnp.inf"} | {
    "argmin": "jnp.inf", "prod": "1", "logsumexp": "-jnp.inf", "softmax": "-jnp.inf",
}  # fmt: skip
_MAX_DEPTH = 4


class MaskedLoad(Rule):
    """A sum, maximum or product over elements that a mask kept from being loaded, without `other`.

    `plgpu.load(ref.at[index], mask=index < n)` leaves the elements beyond `n` alone: what the array has there is not
    specified, zeros on one GPU and old registers on another. Elementwise kernels store them under the same mask, and
    never see them. A reduction over that axis, or a product that sums over it, mixes them into every result; a maximum
    of negative numbers is wrong even where they are zeros.

    ## How to fix

    Pass what does not change the result: `other=0.0` for sums and products, `other=-jnp.inf` for maxima. Or replace
    them afterwards, with `jnp.where` under the same mask.

    ## Known limits

    For masks of a range of indices, `index < n`; a warning where the numbers show that some are left out, a hint where
    they have only names. What goes through `jnp.where`, or is multiplied by a mask, is taken to be masked.

    ## References

    - jax documentation, `plgpu.load`: "If mask is False and other is not given, no assumptions can be made about the
      value in the resulting array."
    """

    code = "PAL424"
    name = "masked-load"
    severity = Severity.WARNING
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                index = jnp.arange(1024)
                x = plgpu.load(x_ref.at[index], mask=index < 1000)  #!
                o_ref[...] = jnp.max(x)[None]

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(x.shape[0],),
                    in_specs=[pl.BlockSpec((None, 1000), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((1,), lambda i: (i,)),
                    out_shape=jax.ShapeDtypeStruct(x.shape[:1], x.dtype),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """,
            target="triton",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                index = jnp.arange(1024)
                mask = index < 1000
                x = plgpu.load(x_ref.at[index], mask=mask, other=-jnp.inf)
                y = plgpu.load(x_ref.at[index], mask=mask)
                total = jnp.max(x) + jnp.sum(jnp.where(mask, y, 0))
                plgpu.store(o_ref.at[index], y * total, mask=mask)

            def run(x):
                row = pl.BlockSpec((None, 1000), lambda i: (i, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(x.shape[0],),
                    in_specs=[row],
                    out_specs=row,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """,
            target="triton",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        if trace.launch.backend != "triton":
            return
        reported = set()
        for left_out, op in _Lanes().mixed(trace):
            site = left_out.load.site
            if site.key in reported:
                continue
            reported.add(site.key)
            yield context.finding(
                site,
                f"elements that the mask leaves out go into `{op.short}`: without `other` they may be anything",
                help=f"pass `other={_NEUTRAL.get(op.short, '0')}`",
                severity=None if left_out.sure else Severity.INFO,
                op=op,
                related=[(op.site, "mixed into the result here")],
            )


@frozen
class _LeftOut:
    """The axes of a value along which a masked load left elements out. `sure`: the numbers show that it did."""

    load: Op
    axes: frozenset[int]
    sure: bool


@define(eq=False)
class _Lanes:
    values: dict[Op, _LeftOut] = field(factory=dict)  # by the operation that made the value

    def mixed(self, trace: KernelTrace) -> Iterator[tuple[_LeftOut, Op]]:
        """Reductions and products over such axes."""
        for op in trace.ops():
            if op.open:
                continue
            if op.name in _LOADS:
                found = _left_out(op)
                if found is not None:
                    self.values[op] = found
            elif op.name in REDUCING:
                left_out, axes = self._of(op.args[0]) if op.args else None, reduced_axes(op)
                if left_out is not None and axes is not None and left_out.axes <= axes:
                    yield left_out, op
            elif op.name in DOTS or op.name == "jax.lax.dot_general":
                for operand, axes in zip(op.args[:2], _summed(op), strict=False):
                    left_out = self._of(operand)
                    if left_out is not None and left_out.axes <= axes:
                        yield left_out, op
            elif op.name in ELEMENTWISE:
                self._elementwise(op)

    def _of(self, value: Value) -> _LeftOut | None:
        return self.values.get(value.origin) if isinstance(value, Array) and value.origin is not None else None

    def _elementwise(self, op: Op) -> None:
        arrays = [value for value in operands(op) if isinstance(value, Array)]
        ranks = [value.rank for value in arrays]
        top = max((rank for rank in ranks if rank is not None), default=0)
        for value, rank in zip(arrays, ranks, strict=True):
            left_out = self._of(value)
            if left_out is None or rank is None or None in ranks:
                continue
            if op.short in ("multiply", "mul") and any(_is_mask(other) for other in arrays):
                continue
            moved = frozenset(axis + top - rank for axis in left_out.axes)
            self.values[op] = _LeftOut(left_out.load, moved, left_out.sure)


def _left_out(load: Op) -> _LeftOut | None:
    """What a load leaves out: None where it has no mask of a range, or something in its place."""
    mask, other = load.argument("mask"), load.argument("other")
    rank = load.result.rank if isinstance(load.result, Array) else None
    if not isinstance(mask, Array) or other not in (None, NONE) or rank is None or mask.shape is None:
        return None
    partial = _is_partial(mask)
    if partial is None or len(mask.shape) > rank:
        return None
    axes = frozenset(at + rank - len(mask.shape) for at, size in enumerate(mask.shape) if size != 1)
    return _LeftOut(load, axes, partial) if axes else None


def _is_partial(mask: Array) -> bool | None:
    """Whether `index < n` is false for some of a range; False where that is not known, None where it is not so."""
    op = mask.origin
    for _ in range(_MAX_DEPTH):
        if op is None or op.name not in _RESHAPING or not op.args:
            break
        op = op.args[0].origin if isinstance(op.args[0], Array) else None
    if op is None or op.name not in _LESS or len(op.args) != 2:
        return None
    indices, bound = as_slice(op.args[0]), number(op.args[1])
    if indices is None or indices.size is None:
        return None
    size, start = number(indices.size), number(indices.start)
    if bound is None or size is None:
        return False
    if start == 0:
        return True if size > bound else None
    return True if bound % size else None


def _is_mask(value: Value) -> bool:
    """Whether it is a comparison, or one as numbers."""
    origin = value.origin if isinstance(value, Array) else None
    if origin is not None and origin.short in ("astype", "convert_element_type") and origin.args:
        return _is_mask(origin.args[0])
    return isinstance(value, Array) and (value.dtype == "bool" or (origin is not None and origin.name in _LESS))


def _summed(op: Op) -> tuple[frozenset[int], frozenset[int]]:
    """The axes of both operands over which a product sums, as far as they are known."""
    unknown: frozenset[int] = frozenset()
    if len(op.args) < 2:
        return unknown, unknown
    if op.name == "jax.lax.dot_general":
        pairs = contracted(op.argument("dimension_numbers", 2) or NONE)
        return (unknown, unknown) if not pairs else (frozenset(a for a, _ in pairs), frozenset(b for _, b in pairs))
    if any(op.argument(name) not in (None, Const(False)) for name in ("trans_a", "trans_b")):
        return unknown, unknown
    left, right = (value.rank if isinstance(value, Array) else None for value in op.args[:2])
    return (
        unknown if left is None else frozenset((left - 1,)),
        unknown if right is None else frozenset((max(right - 2, 0),)),
    )
