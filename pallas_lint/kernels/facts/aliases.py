"""Aliasing of operands and outputs of a call: `input_output_aliases` and its like.

`pallas_call` counts the leaves of all operands, scalar-prefetch operands included, and the leaves of `out_shape`;
it refuses indices out of range (negative ones too) and pairs of different shape or dtype while it is traced, with the
same checks in jax 0.4.35 to 0.12.0. `triton_call` counts its array operands only, Python numbers take no buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.launches.foreign_calls import is_scalar
from pallas_lint.kernels.model.called import short_name
from pallas_lint.kernels.model.dtypes import element_of
from pallas_lint.kernels.model.kinds import described, differ
from pallas_lint.kernels.model.known_names import declares_array, is_shape_struct, is_spec
from pallas_lint.kernels.model.launch import ForeignCall
from pallas_lint.kernels.model.trace import Access
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    OneOf,
    Seq,
    Shape,
    Sym,
    Value,
    shape_of,
)
from pallas_lint.records import evolve, frozen
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from pallas_lint.kernels.model.kinds import Element
    from pallas_lint.kernels.model.launch import Launch

_MAKERS = frozenset({"zeros", "empty", "zeros_like", "empty_like", "full", "full_like", "ones", "ones_like"})
ALIASES = ("input_output_aliases", "operand_output_aliases")


@frozen
class Leaf:
    """One array among operands or outputs. `sure`: it certainly is exactly one, no tree and not None."""

    value: Value
    sure: bool
    argument: int  # which operand or element of `out_shape` it belongs to
    likely: bool = False  # it probably is one array: the kernel does not use it

    @property
    def shape(self) -> Shape | None:
        if isinstance(self.value, Array):
            return self.value.shape
        if is_shape_struct(self.value):
            return shape_of(self.value.argument("shape", 0) or UNKNOWN)
        return None

    @property
    def element(self) -> Element:
        if isinstance(self.value, Array):
            return self.value.element
        if is_shape_struct(self.value):
            return element_of(self.value.argument("dtype", 1))
        return None


def declared(call: Launch | ForeignCall) -> Value | None:
    """The aliases as passed; None where there certainly are none, UNKNOWN where that is not known."""
    value = call.aliases if isinstance(call, ForeignCall) else call.argument("input_output_aliases")
    if value is None or value == NONE:
        return UNKNOWN if call.open else None
    if isinstance(value, Dictionary) and not value.items and not value.open:
        return None
    return value


def pairs(call: Launch | ForeignCall) -> list[tuple[int | None, int | None]] | None:
    """(operand, output) of each alias, None for a number that is not known; None where their number is not known."""
    value = declared(call)
    if value is None:
        return []
    if not isinstance(value, Dictionary) or value.open:
        return None
    return [(_number(operand), _number(output)) for operand, output in value.items]


def aliased_outputs(call: Launch | ForeignCall) -> frozenset[int] | None:
    """The outputs that certainly have an alias; None where it is not known which have."""
    value = declared(call)
    if isinstance(value, OneOf):
        return None
    found = pairs(call)
    if found is None or any(output is None for _, output in found):
        return None
    return frozenset(output for _, output in found if output is not None)


def _number(value: Value) -> int | None:
    return value.value if isinstance(value, Const) and type(value.value) is int else None


def aliases_site(call: Launch | ForeignCall) -> Site:
    """The aliases as they are written in the call; its callee where they come from elsewhere."""
    site = call.site
    if isinstance(site.node, nodes.Call):
        written = site.node.keyword(*ALIASES)
        return Site(site.piece, site.node.func if written is None else written.value)
    return site


def pair_site(call: Launch | ForeignCall, at: int) -> Site:
    """The alias number `at`, where the aliases are a literal dict."""
    site = aliases_site(call)
    if isinstance(site.node, nodes.Dict):
        elements = site.node.elements
        if at < len(elements) and all(isinstance(element, nodes.DictElement) for element in elements):
            return Site(site.piece, elements[at])
    return site


def operand_leaves(call: Launch | ForeignCall) -> list[Leaf] | None:
    """The arrays that aliases count among the operands; None where their number is not known."""
    if isinstance(call, ForeignCall):
        return _foreign_operands(call)
    prefetch = call.prefetch_count
    specs = call.in_specs
    if prefetch is None:
        return None
    known = specs.items if specs is not None and not specs.open else None
    used, unused = _used_as_refs(call), _unused(call)
    if call.operands is None or call.operands_open:
        if known is None or not all(is_spec(spec) for spec in known):
            return None
        leaves = [Leaf(UNKNOWN, at in used, at) for at in range(prefetch)]
        return [*leaves, *(Leaf(UNKNOWN, True, prefetch + at) for at in range(len(known)))]
    leaves = []
    for at, operand in enumerate(call.operands):
        spec = known[at - prefetch] if known is not None and 0 <= at - prefetch < len(known) else None
        found = _leaves(operand, at, sure=at in used or (spec is not None and is_spec(spec)))
        if found is None:
            return None
        likely = at in unused and isinstance(operand, Sym) and (spec is None or is_spec(spec))
        leaves.extend(evolve(leaf, likely=likely) for leaf in found)
    return leaves


def _unused(launch: Launch) -> set[int]:
    """The operands of which the kernel certainly makes no use."""
    if not all(trace.complete and trace.tracked_until is None for trace in launch.traces):
        return set()
    prefetch = launch.prefetch_count or 0
    refs = [ref for trace in launch.traces for ref in trace.refs if ref.role in ("in", "prefetch") and not ref.owner]
    used = {event.ref.buffer for trace in launch.traces for event in trace.events if isinstance(event, Access)}
    return {
        ref.index + (0 if ref.role == "prefetch" else prefetch)
        for ref in refs
        if ref.index is not None and ref.buffer not in used
    }


def _used_as_refs(launch: Launch) -> set[int]:
    """The operands of which a kernel reads or writes what it gets as a ref: they certainly are single arrays."""
    prefetch = launch.prefetch_count or 0
    return {
        event.ref.index + (0 if event.ref.role == "prefetch" else prefetch)
        for trace in launch.traces
        for event in trace.events
        if isinstance(event, Access) and event.kind in ("load", "store", "accumulate")
        if event.ref.role in ("in", "prefetch") and event.ref.index is not None and not event.ref.owner
        if not event.ref.in_tree
    }


def _foreign_operands(call: ForeignCall) -> list[Leaf] | None:
    if call.operands is None or call.operands_open:
        return None
    leaves = []
    for at, operand in enumerate(call.operands):
        if call.form.is_triton:
            scalar = is_scalar(operand)
            if not scalar:
                leaves.append(Leaf(operand, scalar is False, at))
        else:
            # FFI calls and custom calls take no trees.
            leaves.append(Leaf(operand, True, at))
    return leaves


def output_leaves(call: Launch | ForeignCall) -> list[Leaf] | None:
    """The arrays that aliases count among the outputs; None where their number is not known."""
    shapes = call.outputs if isinstance(call, ForeignCall) else call.out_shapes
    if shapes is None:
        return None
    leaves = []
    for at, item in enumerate(shapes.items):
        found = _leaves(item, at, sure=False)
        if found is None:
            return None
        leaves.extend(found)
    return leaves


def _leaves(value: Value, at: int, *, sure: bool) -> list[Leaf] | None:
    if value == NONE:
        return []
    if isinstance(value, Seq):
        if value.open:
            return None
        leaves = []
        for item in value.items:
            found = _leaves(item, at, sure=False)
            if found is None:
                return None
            leaves.extend(found)
        return leaves
    if isinstance(value, Dictionary):
        return None
    if isinstance(value, Array):
        return [Leaf(value, True, at)]
    if declares_array(value):
        return [Leaf(value, True, at)]
    if isinstance(value, OneOf) and not sure:
        return None
    return [Leaf(value, sure or (isinstance(value, Sym) and value.text.endswith("]")), at)]


def made_blank(value: Value) -> bool:
    """Whether an operand was made for the call, by `jnp.zeros` or its like: nothing else reads it."""
    return maker(value) is not None


def maker(value: Value) -> str | None:
    """The last part of the name of the function that made a fresh array: "zeros", "empty_like"; None for others."""
    node = value.site.node if isinstance(value, Array | CallResult) and value.site is not None else None
    if not isinstance(node, nodes.Call):
        return None
    name = short_name(node.func)
    return name if name in _MAKERS else None


def contradicts(operand: Leaf, output: Leaf) -> str | None:
    """How shape or dtype of an operand and the output in its memory certainly differ."""
    if not operand.sure or not output.sure:
        return None
    if differ(operand.element, output.element):
        return f"{described(operand.element)} and {described(output.element)}"
    a, b = operand.shape, output.shape
    if a is None or b is None:
        return None
    if len(a) != len(b) or any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in zip(a, b, strict=True)):
        return f"shapes {_spelled(a)} and {_spelled(b)}"
    return None


def _spelled(shape: Shape) -> str:
    parts = [size.text if isinstance(size, Sym) else "?" if size is None else str(size) for size in shape]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
