"""Runs of functions with the array types of jaxtyping annotations: `x: Float[Array, "b m {h} 4"]`.

They give ranks, kinds of numbers and equal sizes. Most programs do not check them at run time, and some are wrong: they
only add to what is known without them, and arguments of known calls take precedence.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.known_call_runs import function_of, functions_in, line_of
from pallas_lint.kernels.analysis.launch_selection import keep_informative
from pallas_lint.kernels.library import sharding
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.dtypes import from_name
from pallas_lint.kernels.model.kinds import FLOATING, INEXACT, INTEGER, differ
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, Const, External, Sym, SymbolOwner
from pallas_lint.known_calls import values
from pallas_lint.known_calls.known_call import KnownCall, ValueProblem
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.analysis.known_call_runs import RunPiece
    from pallas_lint.kernels.analysis.runs import RootRuns
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.kinds import Element
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Dim, Func, Shape, Value
    from pallas_lint.syntax import Piece, nodes


_WORD = "jaxtyping"
# https://docs.kidger.site/jaxtyping/api/array/, by how they constrain an array's dtype.
_KINDS: dict[str, Element] = {
    "Bool": "bool",
    "Int": INTEGER,
    "UInt": INTEGER,
    "Integer": INTEGER,
    "Float": FLOATING,
    "Complex": frozenset({"complex"}),
    "Inexact": INEXACT,
    "Real": INTEGER | FLOATING,
    "Num": INTEGER | INEXACT,
    "Key": frozenset({"other"}),
    "Shaped": None,
}
_WIDE = ("64", "128")  # jax truncates them, unless 64-bit types are enabled
_HOST = "numpy.ndarray"
_ARRAYS = (_HOST, "jax.Array", "jaxtyping.Array", "jax.numpy.ndarray")
_NAMED_SIZE = re.compile(r"(?<!\w)\w+=")


def run_annotated(runs: RootRuns, roots: list[Piece], known_calls: tuple[KnownCall, ...], run: RunPiece) -> None:
    """Run each root with arguments from its annotations; `run` as for known calls; `known_calls` go before."""
    interp, module = runs.interp, runs.module
    known = (*known_calls, *(launch.known_call for launch in interp.outcome.launches if launch.known_call is not None))
    annotated = [(piece, name, node) for piece in roots for name, node in _annotated(module, piece)]
    for piece, name, node in annotated:
        calls = tuple(dict.fromkeys(known_call for known_call in known if known_call.name == name))
        before = tuple(interp.outcome.launches)
        made = partial(_run, interp, module, piece, name, calls, before, run)
        for launch in runs.run(piece, ("annotated", name, calls), made):
            # By an earlier text, perhaps, in which the lines were others.
            launch.known_call = evolve(launch.known_call, source=line_of(piece, node))


def _annotated(module: Module, piece: Piece) -> Iterator[tuple[str, nodes.FunctionDef]]:
    """The functions with annotations that a piece defines, with their names in the file."""
    for name, node in functions_in(module, piece):
        if any(param.annotation is not None for param in node.params.named):
            yield name, node


def _run(
    interp: Interpreter,
    module: Module,
    piece: Piece,
    name: str,
    calls: tuple[KnownCall, ...],
    before: tuple[Launch, ...],
    run: RunPiece,
) -> tuple[Launch, ...]:
    """Run one; the launches to which it adds information."""
    known_call = KnownCall(f"{piece.source.path}::{name}", (), piece.source.path, kind="annotation")

    def enter() -> None:
        nonlocal known_call
        func, instance = function_of(interp, module, name)
        if func is None or func.piece is not piece:
            return
        spelled = dict(_annotations(interp, func))
        arrays = _arrays(spelled)
        if not arrays or any(_contradicts(call, arrays) for call in calls):
            return
        texts = tuple((parameter, _spelled(spelled[parameter])) for parameter in arrays)
        known_call = evolve(known_call, arguments=texts)
        first: list[Value] = [] if instance is None else [instance]
        interp.call_function(func, Arguments(first, dict(arrays), open=True))
        sharding.run_mapped_functions(interp)

    run(piece, enter, lambda: keep_informative(interp, before, lambda launch: known_call))
    return tuple(interp.outcome.launches)


def _annotations(interp: Interpreter, func: Func) -> Iterator[tuple[str, CallResult]]:
    """The parameters with jaxtyping annotations: those whose annotation certainly holds.

    One with a default may get that, `None` most of all.
    """
    with interp.inside(interp.outside_kernels(func.module, func.piece)):
        for parameter in func.node.params.named:
            if parameter.annotation is None or parameter.default is not None:
                continue
            value = interp.evaluate(parameter.annotation.annotation, func.env)
            if isinstance(value, CallResult) and value.function.startswith(f"{_WORD}.") and len(value.args) == 2:
                yield parameter.name.value, value


def _arrays(annotations: dict[str, CallResult]) -> dict[str, Value]:
    """What the parameters of one call are: where they name a size alike, it is the same."""
    call = SymbolOwner()
    found = {name: _array(annotation, call) for name, annotation in annotations.items()}
    return {name: array for name, array in found.items() if array is not None}


def _array(annotation: CallResult, call: SymbolOwner) -> Value | None:
    kind, sizes = annotation.args
    if isinstance(kind, CallResult):  # `Float[Image, "..."]`, of what is annotated itself: both hold
        return None
    if not isinstance(kind, External) or kind.name not in _ARRAYS or not isinstance(sizes, Const):
        return None
    if not isinstance(sizes.value, str):
        return None
    shape = _shape(sizes.value, call)
    element = _element(annotation.short)
    return None if shape is None and element is None else Array(shape, element, host=kind.name == _HOST)


def _element(name: str) -> Element:
    if name in _KINDS:
        return _KINDS[name]
    dtype = from_name(name.lower())
    if dtype is not None and name.endswith(_WIDE):
        return _KINDS.get(name.rstrip("0123456789"))
    return dtype


def _shape(sizes: str, call: SymbolOwner) -> Shape | None:
    """The shape that a string of sizes describes; None where some of them match any number of dimensions."""
    if "{" in sizes:
        sizes = re.sub(r"\{[^{}]*\}", "{}", sizes)  # an expression of arguments, with blanks perhaps
    words = sizes.split()
    if any(word == "..." or "*" in _modifiers(word) for word in words):
        return None
    return tuple(_size(word, call) for word in words)


def _modifiers(word: str) -> str:
    return word[: len(word) - len(word.lstrip("#*?_"))]


def _size(word: str, call: SymbolOwner) -> Dim:
    modifiers = _modifiers(word)
    word = _NAMED_SIZE.sub("", word[len(modifiers) :], count=1)
    if modifiers:
        return None  # it may be 1 instead, or is any
    if word.isdecimal():
        return int(word)
    return Sym(word, call) if word.isidentifier() else None


def _spelled(annotation: CallResult) -> str:
    kind, sizes = annotation.args
    assert isinstance(kind, External)
    assert isinstance(sizes, Const)
    return f'{annotation.short}[{kind.short}, "{" ".join(sizes.value.split())}"]'


def _contradicts(call: KnownCall, arrays: dict[str, Value]) -> bool:
    """Whether a known call contradicts the annotations."""
    given = dict(call.arguments)
    return any(name in given and not _may_be(given[name], array) for name, array in arrays.items())


def _may_be(text: str, annotated: Value) -> bool:
    try:
        value = values.read(text, lambda module, name: UNKNOWN)
    except ValueProblem:
        return True
    if not isinstance(value, Array) or not isinstance(annotated, Array):
        return value is UNKNOWN
    if differ(value.element, annotated.element):
        return False
    if value.shape is None or annotated.shape is None:
        return True
    sizes: dict[Sym, int] = {}
    for size, dimension in zip(value.shape, annotated.shape, strict=False):
        expected = dimension
        if isinstance(dimension, Sym) and isinstance(size, int):
            expected = sizes.setdefault(dimension, size)
        if isinstance(expected, int) and isinstance(size, int) and expected != size:
            return False
    return len(value.shape) == len(annotated.shape)
