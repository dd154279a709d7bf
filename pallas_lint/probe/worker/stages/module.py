"""The compiled XLA module around a kernel: its name among the program's operations, its operands' layouts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...cost.values import Words

_DEFINED = re.compile(r"^[ \t]*(?:ROOT )?%(?P<name>[\w.\-]+) = (?P<type>\S+) ", re.MULTILINE)
_KERNEL = re.compile(
    r"^[ \t]*(?:ROOT )?%(?P<name>[\w.\-]+) = .*? custom-call\((?P<operands>[^()\n]*)\), "
    r'custom_call_target="tpu_custom_call"',
    re.MULTILINE,
)
# Dimensions from minor to major, then tiles: "s32[4,200]{1,0:T(4,128)}", "s8[300]{0:T(512)(128)(4,1)}".
_LAYOUT = re.compile(
    r"(?P<type>\w+)\[[\d,]*\]\{(?P<order>[\d,]*)(?::T\((?P<tile>[\d,]+)\)(?P<within>(?:\([\d,]+\))*))?"
)
_COMMENT = re.compile(r"/\*[^*\n]{0,99}\*/")  # "/*index=5*/", in long lists
_LANES = 128


@dataclass(frozen=True)
class CompiledModule:
    """A program of one kernel. `operands`: the types of the kernel's operands, with their layouts."""

    kernel: str
    operands: list[str]

    @classmethod
    def read(cls, text: str) -> CompiledModule | None:
        """The module of a compiled program's text; None where it has no kernel, or several."""
        text = _COMMENT.sub("", text)
        kernels = list(_KERNEL.finditer(text))
        if len(kernels) != 1:
            return None
        types = {match["name"]: match["type"] for match in _DEFINED.finditer(text)}
        names = [name.strip().lstrip("%") for name in kernels[0]["operands"].split(",") if name.strip()]
        return cls(kernels[0]["name"], [types.get(name, "") for name in names])

    def words(self, number: int, value: Any, unknown: Any = None) -> Words | None:
        """An integer operand's value as scalar memory has it, in words of 32 bits; None where that is not known.

        `unknown`: a mask of the elements that are not known.
        """
        return laid_out(value, self.operands[number], unknown) if number < len(self.operands) else None


def laid_out(value: Any, layout: str, unknown: Any = None) -> Words | None:
    """The words of an array of integers or booleans in one of XLA's layouts ("s32[4,200]{1,0:T(4,128)}"); None for
    others. `unknown`: a mask of the elements that are not known, whose words are None.

    Rows of 128 stand in tiles. Of numbers of 8 or 16 bits, 4 or 2 rows share a row of words. Kernels get booleans as
    numbers of 32 bits.
    """
    import numpy as np

    if unknown is not None:
        words, marks = laid_out(value, layout), laid_out(unknown.astype(value.dtype), layout)
        return words and marks and [None if mark else word for word, mark in zip(words, marks)]
    match = _LAYOUT.match(layout)
    if match is not None and value.dtype.kind == "b":
        value = value.astype(np.int32 if match["type"] == "s32" else np.int8)
    if match is None or value.dtype.kind not in "iu" or value.dtype.itemsize > 4:
        return None
    packed = 4 // value.dtype.itemsize
    if not value.ndim:
        return [int(value)]
    order = [int(each) for each in match["order"].split(",")]
    tile = [int(each) for each in (match["tile"] or "").split(",") if each]
    if order != list(range(value.ndim))[::-1] or len(tile) != min(value.ndim, 2):
        return None
    if not (match["within"] or "").endswith(f"({packed},1)" if packed > 1 else ""):
        return None
    if value.ndim == 1:
        rows, value = tile[0] // _LANES, np.resize(value, (1, value.size))
        value = np.pad(value, ((0, 0), (0, -value.size % tile[0]))).reshape(-1, _LANES)
    elif tile[1] != _LANES:
        return None
    else:
        rows = tile[0]
    if not rows or rows % packed:
        return None
    *leading, height, width = value.shape
    value = np.pad(value, [(0, 0)] * len(leading) + [(0, -height % rows), (0, -width % _LANES)])
    value = value.reshape(*leading, -1, rows // packed, packed, value.shape[-1] // _LANES, _LANES)
    # (..., tile row, row of words, part of the word, tile column, lane) to (..., tile row, column, row, lane, part)
    value = np.ascontiguousarray(np.moveaxis(np.moveaxis(value, -2, -4), -2, -1))
    found: list[int | None] = value.view(np.int32).ravel().tolist()
    return found
