"""Arguments to begin a probe with: taken from the text, its analysis and earlier probes; nothing is run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.server.probing.probe_targets import launches_from

from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import Array, Const, Sym
from pallas_lint.probe import specs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pallas_lint.server.probing.probe_targets import Chosen, Parameter

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.probe.stored_runs import StoredRun

_SIZE = 512  # of a dimension of which nothing is known: a multiple of every tile, and quick to run
_BLOCK = 128  # of a size that a parameter gives
_STEPS = 4  # blocks along a dimension that the grid walks over
_TYPED = re.compile(r"(?:\w+\.)*(\w+)\[[^\"']*[\"']([^\"']*)[\"']\s*\]")
_DTYPES = {
    "Float": "f32", "Float32": "f32", "Float16": "f16", "Float64": "f64", "BFloat16": "bf16", "Half": "f16",
    "Int": "i32", "Int8": "i8", "Int16": "i16", "Int32": "i32", "Integer": "i32", "UInt8": "u8", "UInt32": "u32",
    "UInt": "u32", "Bool": "bool", "Num": "f32", "Inexact": "f32", "Real": "f32", "Shaped": "f32",
}  # fmt: skip


_SCALARS = {"int": str(_BLOCK), "float": "1.0", "bool": "False", "str": "''"}


def suggestion(chosen: Chosen, analysis: Analysis, runs: Sequence[StoredRun], known: KnownCall | None) -> str:
    """Arguments to begin with: of the known call that is shown, those of the last probe, else what is likely.

    That is what captures, annotations and specs give; it also stands for what the call leaves open.
    """
    for run in reversed(runs) if known is None else ():
        if run.function == chosen.name:
            return run.arguments
    guess = _Guess(chosen, analysis, runs)
    given = {} if known is None else _given(known, chosen)
    return _spelled(chosen, {each.name: given.get(each.name) or guess.value(each) for each in chosen.required} | given)


def arguments_of(known: KnownCall, chosen: Chosen) -> str | None:
    """The arguments of a known call as a probe takes them; None where it leaves one open that must be given."""
    given = _given(known, chosen)
    if chosen.parameters is None or any(each.name not in given for each in chosen.required):
        return None
    return _spelled(chosen, given)


def _given(known: KnownCall, chosen: Chosen) -> dict[str, str]:
    """The arguments of a known call that a probe can be given, by parameter; defaults are left out."""
    parameters = {each.name: each for each in chosen.parameters or () if not each.variadic}
    return {
        name: text
        for name, text in known.arguments
        if name in parameters and text != parameters[name].default and _is_argument(text)
    }


def _is_argument(text: str) -> bool:
    try:
        specs.parse_argument(text)
    except specs.SpecError:
        return False
    return True


def _spelled(chosen: Chosen, given: Mapping[str, str]) -> str:
    """Arguments as they are written: by position as long as none is left out, then by name."""
    parts: list[str] = []
    by_position = True
    for each in chosen.parameters or ():
        by_position = by_position and not each.keyword and not each.variadic and each.name in given
        if each.name in given:
            by_position = by_position and each.default is None
            parts.append(given[each.name] if by_position else f"{each.name}={given[each.name]}")
    return ", ".join(parts)


class _Guess:
    """What is known of a function's parameters from its launches."""

    def __init__(self, chosen: Chosen, analysis: Analysis, runs: Sequence[StoredRun]) -> None:
        self.text = chosen.piece.text
        self.blocks: dict[str, Block] = {}
        self.seen: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        for launch in launches_from(analysis, chosen):
            self.sizes.update(launch.path.assumptions)
            blocks = blocks_of(launch, analysis)
            prefetched = launch.prefetch_count or 0
            inputs = (blocks.inputs if blocks is not None else None) or ()
            for at, operand in enumerate(launch.operands or ()):
                name = _name_of(operand)
                if name is None:
                    continue
                if prefetched <= at < prefetched + len(inputs):
                    block = inputs[at - prefetched]
                    if block is not None:
                        self.blocks.setdefault(name, block)
                shown = _captured(launch, at, runs)
                if shown is not None:
                    self.seen[name] = shown

    def value(self, parameter: Parameter) -> str:
        name, annotation = parameter.name, (parameter.annotation or "").strip("\"' ")
        if name in self.seen:
            return self.seen[name]
        typed = _TYPED.fullmatch(annotation)
        if typed is not None and typed[1] in _DTYPES:
            return (
                f"{_DTYPES[typed[1]]}[{','.join(str(self._size(size)) for size in typed[2].split() if _counts(size))}]"
            )
        if name in self.sizes:
            return str(self.sizes[name])
        if annotation in _SCALARS:
            return _SCALARS[annotation]
        if name in self.blocks or self._is_array(name) or annotation:
            return self._array(name)
        # A parameter that is used as a number stands for the size of something; flags are given by name.
        if self._is_number(name):
            return str(_BLOCK)
        return "False" if parameter.keyword else self._array(name)

    def _size(self, text: str) -> int:
        """The size of a dimension as jaxtyping writes it: `512`, `n`, `#n`, `rows=8`."""
        text = text.lstrip("#_*?").rpartition("=")[2]
        return int(text) if text.isdecimal() else self.sizes.get(text, _SIZE)

    def _is_array(self, name: str) -> bool:
        return re.search(rf"\b{name}\.(?:shape|dtype|ndim|size|astype|reshape|T|at)\b", self.text) is not None

    def _is_number(self, name: str) -> bool:
        return (
            re.search(
                rf"\b{name}\s*(?://|%|\*|,\s*\w+\)|\)\s*,\s*lambda)|(?:cdiv\(|//|%)[^\n]{{0,200}}\b{name}\b", self.text
            )
            is not None
        )

    def _array(self, name: str) -> str:
        block = self.blocks.get(name)
        dtype = (block.dtype if block is not None else None) or "f32"
        if block is not None and block.array_shape is not None:
            known = tuple(_number(size) for size in block.array_shape)
            if all(known):
                return f"{dtype}[{','.join(map(str, known))}]"
        if block is not None and block.dims is not None:
            sizes = [self._along(block, axis) for axis in range(len(block.dims))]
            # Other parameters are annotated with the same names.
            for dimension, size in zip(self._unpacked(name), sizes, strict=False):
                self.sizes.setdefault(dimension, size)
            return f"{dtype}[{','.join(map(str, sizes))}]"
        return f"{dtype}[{','.join([str(_SIZE)] * self._rank(name))}]"

    def _along(self, block: Block, axis: int) -> int:
        """The size of an array along one axis of its blocks."""
        assert block.dims is not None
        known = _number(block.array_shape[axis]) if block.array_shape is not None else None
        size = _number(block.dims[axis].size)
        if known:
            return known
        if not size:
            return _SIZE
        results = block.index_map.results if block.index_map is not None else None
        stays = results is not None and axis < len(results) and isinstance(results[axis][1], Const)
        return size if stays or block.dims[axis].kind == "whole" else size * _STEPS

    def _unpacked(self, name: str) -> list[str]:
        """The names that the function unpacks the shape of an array into."""
        unpacked = re.search(
            rf"^[ \t]*(?:\([ \t]*)?(\w[\w, \t]*)(?:\)[ \t]*)?=[ \t]*{name}\.shape\b[ \t]*(?:#.*)?$",
            self.text,
            re.MULTILINE,
        )
        return [] if unpacked is None else [name for each in unpacked[1].split(",") if (name := each.strip())]

    def _rank(self, name: str) -> int:
        unpacked = self._unpacked(name)
        if unpacked:
            return len(unpacked)
        indexed = [int(at) for at in re.findall(rf"\b{name}\.shape\[(\d)\]", self.text)]
        return max(indexed, default=1) + 1


def _counts(size: str) -> bool:
    """Whether a word of a jaxtyping shape is a dimension: `...` and `*batch` may stand for none."""
    return not size.startswith(("...", "*"))


def _name_of(operand: Value) -> str | None:
    if isinstance(operand, Sym):
        return operand.text
    if not isinstance(operand, Array):
        return None
    first = operand.shape[0] if operand.shape else None
    if operand.named is None and isinstance(first, Sym) and first.text.endswith(".shape[0]"):
        return first.text.removesuffix(".shape[0]")  # of which only the rank is known
    return operand.named.text if operand.named is not None else None


def _number(size: object) -> int | None:
    if isinstance(size, int):
        return size
    default = size.default if isinstance(size, Sym) else None
    return integer(default)


def _captured(launch: Launch, at: int, runs: Sequence[StoredRun]) -> str | None:
    """An operand as a probe or a captured program had it: "f32[512,512]"."""
    name = launch.traces[0].name if launch.traces else None
    for run in reversed(runs):
        for each in run.launches:
            given = [operand for operand in each.facts["operands"] if operand["role"] in ("prefetch", "in")]
            if each.kernel == name and at < len(given):
                return f"{given[at]['dtype']}[{','.join(map(str, given[at]['shape']))}]"
    return None
