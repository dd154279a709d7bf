"""Shapes of `einops.rearrange`, `repeat` and `reduce`, from their patterns: `"b (h d) n -> b h n d"`."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.operands import shape
from pallas_lint.kernels.model.dtypes import operand_element
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import Array, Const, Dim, Seq, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

    _Axes = list[tuple[str, ...]]  # for each dimension the axes that are merged in it; one axis mostly

_DIMENSION = re.compile(r"\(([^()]*)\)|(\S+)")


def _rearranged(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value | None:
    if interp.kernel is not None or arguments.open:
        return None
    source, pattern = arguments.get("tensor", 0), arguments.get("pattern", 1)
    if isinstance(source, Seq) or not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        return None
    before, arrow, after = pattern.value.partition("->")
    sizes = None if source is None else shape(source)
    if sizes is None or source is None or not arrow or "..." in pattern.value:
        return None
    left, right = _dimensions(before), _dimensions(after)
    if len(left) != len(sizes):
        return None
    given = {axis: size for axis, value in arguments.keywords.items() if (size := integer(value)) is not None}
    known: dict[str, Dim] = {"1": 1, **given}
    for axes, whole in zip(left, sizes, strict=True):
        _split(axes, whole, known)
    dtype, weak = operand_element(source)
    return Array(tuple(_merged(axes, known) for axes in right), dtype, weak)


def _dimensions(side: str) -> _Axes:
    return [(one,) if one else tuple(inside.split()) for inside, one in _DIMENSION.findall(side)]


def _split(axes: tuple[str, ...], size: Dim, known: dict[str, Dim]) -> None:
    """The axes that one dimension is split into: the one that is not given takes the rest."""
    open_axes = [axis for axis in axes if axis not in known]
    if len(open_axes) != 1:
        return
    others = _merged(tuple(axis for axis in axes if axis in known), known)
    if others == 1:
        known[open_axes[0]] = size
    elif isinstance(size, int) and isinstance(others, int) and others:
        known[open_axes[0]] = size // others


def _merged(axes: tuple[str, ...], known: dict[str, Dim]) -> Dim:
    if len(axes) == 1:
        return known.get(axes[0])
    sizes = [known.get(axis) for axis in axes]
    numbers = [size for size in sizes if isinstance(size, int)]
    return prod(numbers) if len(numbers) == len(sizes) else None


# They return None where too little is known.
EINOPS: dict[str, Callable[[Tracer, str, Arguments, nodes.Node], Value | None]] = dict.fromkeys(
    ("einops.rearrange", "einops.repeat", "einops.reduce"), _rearranged
)
