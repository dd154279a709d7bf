"""Shapes and dtypes of convolutions and of windows that slide over an array, as `jax.lax` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pallas_lint.kernels.library.operands import Keywords, argument, shape
from pallas_lint.kernels.model.dtypes import element_of, operand_element
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import UNKNOWN, Array, Const, Dim, Seq, Shape, Value

_CHANNELS_FIRST = {3: ("NCH", "OIH", "NCH"), 4: ("NCHW", "OIHW", "NCHW"), 5: ("NCDHW", "OIDHW", "NCDHW")}
_CHANNELS_LAST = {3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NDHWC", "DHWIO", "NDHWC")}
_Layout = tuple[str, str, str]


class _Window(NamedTuple):
    """A window along one dimension; `padding`: before and after together, or "SAME", "VALID"."""

    size: Dim
    stride: int
    padding: int | str
    dilation: int = 1  # of the window
    spread: int = 1  # of the array

    def over(self, size: Dim) -> Dim:
        """At how many places it fits; None where that is not known."""
        if not isinstance(size, int) or not isinstance(self.size, int):
            return None
        length, window = (size - 1) * self.spread + 1, (self.size - 1) * self.dilation + 1
        if self.padding in ("SAME", "SAME_LOWER"):
            return -(-length // self.stride)
        more = 0 if isinstance(self.padding, str) else self.padding
        return max((length + more - window) // self.stride + 1, 0)


def _convolution(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`conv_general_dilated` and what only has fewer parameters."""
    left, right, layout, dtype = _operands(args, keywords, 6, _CHANNELS_FIRST)
    if left is None or right is None or layout is None:
        return dtype
    count = len(left) - 2
    strides = _numbers(argument(args, keywords, "window_strides", 2), count)
    padding = _paddings(argument(args, keywords, "padding", 3), count)
    spread = _numbers(argument(args, keywords, "lhs_dilation", 4) or Const(1), count)
    dilation = _numbers(argument(args, keywords, "rhs_dilation", 5) or Const(1), count)
    if strides is None or padding is None or spread is None or dilation is None:
        return dtype
    sizes = _spatial(right, layout)
    windows = [_Window(*each) for each in zip(sizes, strides, padding, dilation, spread, strict=True)]
    return _result(left, right, layout, windows, dtype)


def _transposed(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`conv_transpose`: the array is spread by the strides, and padded so that "SAME" multiplies its size by them."""
    left, right, layout, dtype = _operands(args, keywords, 5, _CHANNELS_LAST)
    if left is None or right is None or layout is None:
        return dtype
    if argument(args, keywords, "transpose_kernel", 6) == Const(True):
        layout = layout[0], layout[1].translate(str.maketrans("IO", "OI")), layout[2]
    count = len(left) - 2
    strides = _numbers(argument(args, keywords, "strides", 2), count)
    padding = _paddings(argument(args, keywords, "padding", 3), count)
    dilation = _numbers(argument(args, keywords, "rhs_dilation", 4) or Const(1), count)
    if strides is None or padding is None or dilation is None:
        return dtype
    windows = []
    for size, stride, given, wide in zip(_spatial(right, layout), strides, padding, dilation, strict=True):
        more: int | str = given
        if isinstance(given, str):
            if not isinstance(size, int):
                return dtype
            length = (size - 1) * wide + 1
            more = length + stride - 2 + (max(length - stride, 0) if given == "VALID" else 0)
        windows.append(_Window(size, 1, more, wide, stride))
    return _result(left, right, layout, windows, dtype)


def _reduce_window(name: str, args: list[Value], keywords: Keywords) -> Value:
    """A reduction of each window; strides, paddings and dilations are of all dimensions."""
    operand = args[0] if args else keywords.get("operand", UNKNOWN)
    sizes, dtype = shape(operand), Array(None, *operand_element(operand))
    if sizes is None or not isinstance(operand, Array):
        return dtype
    count = len(sizes)
    windows = _numbers(argument(args, keywords, "window_dimensions", 3), count)
    strides = _numbers(argument(args, keywords, "window_strides", 4) or Const(1), count)
    padding = _paddings(argument(args, keywords, "padding", 5) or Const("VALID"), count)
    spread = _numbers(argument(args, keywords, "base_dilation", 6) or Const(1), count)
    dilation = _numbers(argument(args, keywords, "window_dilation", 7) or Const(1), count)
    if windows is None or strides is None or padding is None or spread is None or dilation is None:
        return dtype
    every = zip(windows, strides, padding, dilation, spread, strict=True)
    result = tuple(_Window(*each).over(size) for each, size in zip(every, sizes, strict=True))
    return Array(result, dtype.element, dtype.weak)


def _operands(
    args: list[Value], keywords: Keywords, numbers_at: int, usual: dict[int, _Layout]
) -> tuple[Shape | None, Shape | None, _Layout | None, Array]:
    """The shapes of both operands and their layout, None where not known, and an array of the result's dtype."""
    lhs, rhs = (args[at] if at < len(args) else keywords.get(side, UNKNOWN) for at, side in enumerate(("lhs", "rhs")))
    wanted = keywords.get("preferred_element_type")
    element, weak = operand_element(lhs) if wanted is None else (element_of(wanted), False)
    left, right = shape(lhs), shape(rhs)
    layout = None
    if left is not None and right is not None and len(left) == len(right):
        layout = _layout(argument(args, keywords, "dimension_numbers", numbers_at), len(left), usual)
    return left, right, layout, Array(None, element, weak)


def _layout(value: Value | None, rank: int, usual: dict[int, _Layout]) -> _Layout | None:
    """("NHWC", "HWIO", "NHWC"); None where it is not known."""
    if value is None:
        return usual.get(rank)
    items = value.items if isinstance(value, Seq) and not value.open else ()
    words = [item.value for item in items if isinstance(item, Const) and isinstance(item.value, str)]
    if len(words) != 3 or len(items) != 3 or any(len(word) != rank or len({*word}) != rank for word in words):
        return None
    if not {*words[0]} == {*words[2]} == {*words[1]} - {*"IO"} | {*"NC"}:
        return None
    return words[0], words[1], words[2]


def _spatial(kernel: Shape, layout: _Layout) -> list[Dim]:
    """The sizes of a kernel along the dimensions that it slides along, in the order of the first operand's."""
    return [kernel[layout[1].index(letter)] for letter in layout[0] if letter not in "NC"]


def _result(left: Shape, right: Shape, layout: _Layout, windows: list[_Window], dtype: Array) -> Array:
    """The result; windows are in the order of the first operand's dimensions."""
    sizes = dict(zip(layout[0], left, strict=True))
    sizes["C"] = right[layout[1].index("O")]
    for letter, window in zip([letter for letter in layout[0] if letter not in "NC"], windows, strict=True):
        sizes[letter] = window.over(sizes[letter])
    return Array(tuple(sizes[letter] for letter in layout[2]), dtype.element, dtype.weak)


def _numbers(value: Value | None, count: int) -> list[int] | None:
    """So many numbers, or one for all; None where they are not known."""
    one = None if value is None else integer(value)
    if one is not None:
        return [one] * count
    if not isinstance(value, Seq) or value.open or len(value.items) != count:
        return None
    found = [number for item in value.items if (number := integer(item)) is not None]
    return found if len(found) == count else None


def _paddings(value: Value | None, count: int) -> list[int | str] | None:
    """The padding of each dimension, before and after together, or its name."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return [value.value.upper()] * count
    if not isinstance(value, Seq) or value.open or len(value.items) != count:
        return None
    pairs = [_numbers(item, 2) if isinstance(item, Seq) else None for item in value.items]
    sums: list[int | str] = [sum(pair) for pair in pairs if pair is not None]
    return sums if len(sums) == count else None


RULES: dict[str, Callable[[str, list[Value], Keywords], Value]] = {
    "jax.lax.conv_general_dilated": _convolution,
    "jax.lax.conv_with_general_padding": _convolution,
    "jax.lax.conv": _convolution,
    "jax.lax.conv_transpose": _transposed,
    "jax.lax.reduce_window": _reduce_window,
}
