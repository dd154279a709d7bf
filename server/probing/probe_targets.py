"""Which function to probe, and arguments to begin with: taken from the text and its analysis, nothing is run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import libcst as cst
from attrs import frozen

from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.kernels.model.values import Array, Const, Sym

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.probe.facts import Run
    from pallas_lint.syntax import Piece

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


class NoFunction(Exception):
    """There is nothing to probe; the message is one sentence that says why."""


@frozen
class Parameter:
    """`default` and `annotation` as they are written."""

    name: str
    default: str | None
    annotation: str | None
    keyword: bool = False  # it can only be given by name
    variadic: bool = False  # *args, **kwargs


@frozen
class Chosen:
    """A function of the file. `line`: the first of it, decorators included, from 1; `parameters`: None if not known."""

    name: str
    line: int
    piece: Piece
    parameters: tuple[Parameter, ...] | None

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters or () if each.default is None and not each.variadic)

    @property
    def needs_arguments(self) -> bool:
        return self.parameters is None or bool(self.required)

    def document(self, suggestion: str) -> dict[str, Any]:
        """What a client asks its user with."""
        told = [
            {
                "name": f"*{each.name}" if each.variadic else each.name,
                "default": each.default,
                "annotation": each.annotation,
            }
            for each in self.parameters or ()
        ]
        return {"name": self.name, "parameters": told, "suggestion": suggestion}


# -- the function ------------------------------------------------------------------------------------------------------


def choose(analysis: Analysis, function: str | None, line: int | None) -> Chosen:
    """The function of that name, else the one that launches what is at `line` (from 1). Raises NoFunction."""
    if function is None:
        if line is None:
            raise NoFunction("no function was named: put the cursor on a launch, or into a function that launches one")
        function = _name_at(analysis, line)
    found = _named(analysis, function)
    if found is None:
        raise NoFunction(f"there is no function `{function}` at the top of this file")
    if found.parameters and found.parameters[0].name in ("self", "cls") and "." in function:
        raise NoFunction(f"`{function}` is a method: probe a function that makes its object and calls it")
    return found


def _name_at(analysis: Analysis, line: int) -> str:
    piece = next((each for each in _walk(analysis) if each.first <= line <= each.last), None)
    if piece is not None:
        here = [launch for launch in analysis.launches if launch.site.piece is piece]
        if here:
            nearest = min(here, key=lambda launch: abs(launch.called_at.span.start.line - line))
            return launching_function(analysis, nearest)
        mine = [launch for launch in analysis.launches if any(body.piece is piece for body in launch.bodies)]
        if mine:
            # A method cannot be probed: rather a function that launches it too.
            return min((launching_function(analysis, launch) for launch in mine), key=lambda name: "." in name)
        leading = _leading(analysis)
        if piece.names and not leading.isdisjoint((piece, *piece.members)):
            return _dotted(analysis, piece, piece.names[0])
        # A kernel that a launcher is called with: probe who calls it.
        user = next((each for each in _walk(analysis) if each in leading and each.words & set(piece.names)), None)
        if piece.kind == "def" and user is not None:
            return _dotted(analysis, user, user.names[0])
    raise NoFunction("no kernel is launched here: put the cursor into a kernel, or a function that launches one")


def _leading(analysis: Analysis) -> set[Piece]:
    """The functions that launch something, and those that may lead to one of them: they speak of it."""
    found = {launch.site.piece for launch in analysis.launches}
    found |= {caller.piece for launch in analysis.launches for caller in launch.callers}
    functions = [piece for piece in _walk(analysis) if piece.kind == "def" and piece.names]
    while True:
        names = {name for piece in found if piece.kind == "def" for name in piece.names}
        more = {piece for piece in functions if piece not in found and names & piece.words}
        if not more:
            return found
        found |= more


def launching_function(analysis: Analysis, launch: Launch) -> str:
    """The name by which the function around a launch is probed. Raises NoFunction where there is none in the file."""
    piece = launch.site.piece
    if piece.source is not analysis.module.source:
        named = [caller for caller in launch.callers if caller.piece.source is analysis.module.source]
        if not named:
            raise NoFunction("this kernel is launched in another file: probe it there")
        piece = named[0].piece
    if not piece.names:
        raise NoFunction("this kernel is launched while the file is imported: put the launch into a function")
    return _dotted(analysis, piece, launch.scope if piece.kind == "class" else piece.names[0])


def called_as(analysis: Analysis, piece: Piece) -> str:
    """The name by which a function of the file is called."""
    return _dotted(analysis, piece, piece.names[0])


def _dotted(analysis: Analysis, piece: Piece, name: str) -> str:
    if piece.nested:
        owner = next(each for each in analysis.module.outline.pieces if piece in each.members)
        return f"{owner.names[0]}.{name}"
    return f"{piece.names[0]}.{name}" if piece.kind == "class" else name


def _walk(analysis: Analysis) -> Iterator[Piece]:
    """The pieces with the smallest first: a member before its class."""
    for piece in analysis.module.outline.pieces:
        yield from piece.members
        yield piece


def _named(analysis: Analysis, name: str) -> Chosen | None:
    outer, _, inner = name.partition(".")
    # The last of several is what the name is bound to.
    for piece in reversed(analysis.module.outline.pieces):
        if outer not in piece.names:
            continue
        if not inner:
            node = _definition(piece, outer)
            return Chosen(name, piece.first, piece, None if node is None else _parameters(node, piece))
        for member in (*piece.members, piece):
            node = _definition(member, inner)
            if node is not None:
                first = member.first if member is not piece else _first_line(piece, node)
                return Chosen(name, first, member, _parameters(node, member))
    return None


def _definition(piece: Piece, name: str) -> cst.FunctionDef | None:
    body: Sequence[cst.CSTNode] = piece.body
    if piece.kind == "class" and not piece.nested and body and isinstance(body[0], cst.ClassDef):
        body = body[0].body.body
    return next((node for node in body if isinstance(node, cst.FunctionDef) and node.name.value == name), None)


def _first_line(piece: Piece, node: cst.FunctionDef) -> int:
    return min(piece.span(each).start.line for each in (node.name, *(d.decorator for d in node.decorators)))


def _parameters(node: cst.FunctionDef, piece: Piece) -> tuple[Parameter, ...]:
    def made(parameter: cst.Param, **how: bool) -> Parameter:
        annotation = parameter.annotation.annotation if parameter.annotation is not None else None
        return Parameter(
            parameter.name.value,
            piece.code(parameter.default) if parameter.default is not None else None,
            piece.code(annotation) if annotation is not None else None,
            **how,
        )

    every = node.params
    found = [made(each) for each in (*every.posonly_params, *every.params)]
    if isinstance(every.star_arg, cst.Param):
        found.append(made(every.star_arg, variadic=True))
    found += [made(each, keyword=True) for each in every.kwonly_params]
    if every.star_kwarg is not None:
        found.append(made(every.star_kwarg, variadic=True))
    return tuple(found)


# -- arguments ---------------------------------------------------------------------------------------------------------


def suggestion(chosen: Chosen, analysis: Analysis, runs: Sequence[Run]) -> str:
    """Arguments to begin with: those of the last probe, else what captures, annotations and specs make likely."""
    for run in reversed(runs):
        if run.function == chosen.name:
            return run.arguments
    guess = _Guess(chosen, analysis, runs)
    return ", ".join(
        f"{each.name}={guess.value(each)}" if each.keyword else guess.value(each) for each in chosen.required
    )


class _Guess:
    """What the launches of a function tell about its parameters."""

    def __init__(self, chosen: Chosen, analysis: Analysis, runs: Sequence[Run]) -> None:
        self.text = chosen.piece.text
        self.blocks: dict[str, Block] = {}
        self.seen: dict[str, str] = {}
        self.sizes: dict[str, int] = {}
        for launch in analysis.launches:
            if launch.site.piece is not chosen.piece and all(each.piece is not chosen.piece for each in launch.callers):
                continue
            self.sizes.update(launch.assumptions)
            blocks = blocks_of(launch, analysis.interpreter)
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
        """Of a dimension as jaxtyping writes it: `512`, `n`, `#n`, `rows=8`."""
        text = text.lstrip("#_*?").rpartition("=")[2]
        return int(text) if text.isdecimal() else self.sizes.get(text, _SIZE)

    def _is_array(self, name: str) -> bool:
        return re.search(rf"\b{name}\.(?:shape|dtype|ndim|size|astype|reshape|T|at)\b", self.text) is not None

    def _is_number(self, name: str) -> bool:
        return (
            re.search(rf"\b{name}\s*(?://|%|\*|,\s*\w+\)|\)\s*,\s*lambda)|(?:cdiv\(|//|%)[^\n]*\b{name}\b", self.text)
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
            rf"^[ \t]*\(?([\w, ]+?),?\)?\s*=\s*{name}\.shape\b[ \t]*(?:#.*)?$", self.text, re.MULTILINE
        )
        return [] if unpacked is None else [each.strip() for each in unpacked[1].split(",")]

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
    return operand.named.text if isinstance(operand, Array) and operand.named is not None else None


def _number(size: object) -> int | None:
    if isinstance(size, int):
        return size
    default = size.default if isinstance(size, Sym) else None
    return default.value if isinstance(default, Const) and isinstance(default.value, int) else None


def _captured(launch: Launch, at: int, runs: Sequence[Run]) -> str | None:
    """An operand as a probe or a captured program had it: "f32[512,512]"."""
    name = launch.traces[0].name if launch.traces else None
    for run in reversed(runs):
        for each in run.launches:
            given = [operand for operand in each.facts["operands"] if operand["role"] in ("prefetch", "in")]
            if each.kernel == name and at < len(given):
                return f"{given[at]['dtype']}[{','.join(map(str, given[at]['shape']))}]"
    return None
