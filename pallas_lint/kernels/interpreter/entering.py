"""Entering functions of other modules: which of them can affect launches, and are short enough to be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.launch_forms import FORMS
from pallas_lint.kernels.model.values import Array, Const, Instance

if TYPE_CHECKING:
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.values import Func, Value

_MAX_HELPER_LINES = 15  # of a helper that is always entered
_MAX_LINES_OF_SIZES = 60  # of one that gets a number, an array of known shape, or an object with sizes


def is_worth_entering(interp: Interpreter, func: Func, arguments: Arguments) -> bool:
    """Whether a function of another module, called outside kernels, can affect launches of this module."""
    if arguments.bring_code or interp.enters_all:
        return True
    if func.piece.has(FORMS.over_blocks):
        return False  # that module's own analysis finds the launch, with no less known
    if func.module.mentions_pallas:
        return True
    of_sizes = any(map(_has_sizes, (*arguments.positional, *arguments.keywords.values())))
    return func.piece.text.count("\n") <= (_MAX_LINES_OF_SIZES if of_sizes else _MAX_HELPER_LINES)


def _has_sizes(value: Value) -> bool:
    """Whether a value brings sizes: a number, an array of known shape, or an object such as a configuration."""
    if isinstance(value, Const):
        return type(value.value) is int
    return isinstance(value, Instance) or (isinstance(value, Array) and value.has_known_shape)
