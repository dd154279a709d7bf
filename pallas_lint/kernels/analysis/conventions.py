"""Calls that no code spells, since a harness makes them by convention: `workload(*create_inputs())`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from pallas_lint.syntax import outline
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.syntax import Piece

# What benchmarks of kernels name the function that is called, and the one that makes its arguments.
_FUNCTIONS = ("workload", "kernel", "solution", "run", "main")
_INPUTS = ("create_inputs", "get_inputs", "make_inputs", "inputs")


def conventional_calls(module: Module, configured: tuple[str, ...]) -> Iterator[str]:
    """The calls that a harness would make of what a file defines, as expressions: those configured first."""
    defined = {name for piece in module.outline.pieces if piece.kind in ("def", "class") for name in piece.names}
    known = {*defined, *module.imported, *dir(builtins)}
    yield from (call for call in configured if _names_in(call) <= known)
    for inputs in (name for name in _INPUTS if name in defined):
        if "Model" in defined:
            yield f"Model({'*get_init_inputs()' if 'get_init_inputs' in defined else ''}).forward(*{inputs}())"
        yield from (f"{function}(*{inputs}())" for function in _FUNCTIONS if function in defined)


@lru_cache(maxsize=256)
def _names_in(expression: str) -> frozenset[str]:
    """The names that a configured call uses; settings hold nothing that does not parse."""
    tree = ast.parse(expression.strip(), mode="eval")
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


@lru_cache(maxsize=256)
def calling(expression: str) -> Piece:
    """A function that evaluates an expression in the file that it is run for."""
    (piece,) = outline(Source("<harness>", f"def harness():\n    {expression}\n")).pieces
    return piece
