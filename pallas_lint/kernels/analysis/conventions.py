"""Calls that no code spells, since a harness makes them by convention: `workload(*create_inputs())`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from pallas_lint.records import frozen
from pallas_lint.syntax import outline
from pallas_lint.text import paths
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.syntax import Piece

# What benchmarks of kernels name the function that is called, and the one that makes its arguments.
_FUNCTIONS = ("workload", "kernel", "solution", "run", "main")
_INPUTS = ("create_inputs", "get_inputs", "make_inputs", "inputs")
_SPECS = "ARG_SPECS"  # tokamax's list of what an operation is called with
_FORWARD = re.compile(r"\bdef _fwd\b")  # of an operation
_MAX_SPECS, _MAX_OPERATIONS = 3, 4
_RETURNS_DICTIONARY = re.compile(r"\breturn\s+(?:\{\s*[\"']|dict\()")
# Files in the same folder that have them, where the file of the kernel has not.
_SIBLINGS = ("inputs", "reference", "ref", "baseline", "model", "problem", "task", "workload", "harness")


@frozen
class HarnessCall:
    """A call as an expression; `imports` are what it needs, such as the file beside this one that has the inputs."""

    expression: str
    imports: str = ""
    shown: str = ""  # the call as it is shown, where the expression does more


def conventional_calls(module: Module, configured: tuple[str, ...]) -> Iterator[HarnessCall]:
    """The calls that a harness would make of what a file defines: those configured first."""
    defined = _defined(module)
    known = {*defined, *module.imported, *dir(builtins)}
    yield from (HarnessCall(call) for call in configured if _names_in(call) <= known)
    yield from _of_argument_specs(module, defined)
    functions = [function for function in _FUNCTIONS if function in defined]
    if not functions and "Model" not in defined:
        return
    inputs = [name for name in _INPUTS if name in defined]
    if inputs:
        yield from (call for name in inputs for call in _calls(_passed(name, module), functions, defined, ""))
        return
    for stem in _SIBLINGS:
        beside = _beside(module, stem)
        if beside is None:
            continue
        theirs = _defined(beside)
        for name in (name for name in _INPUTS if name in theirs):
            more = ", get_init_inputs" if "get_init_inputs" in theirs - defined else ""
            yield from _calls(_passed(name, beside), functions, defined | theirs, f"from {stem} import {name}{more}")
            return


def _of_argument_specs(module: Module, defined: set[str]) -> Iterator[HarnessCall]:
    """The calls by tokamax of an operation, with each `ArgSpec(args={...})` that is listed here or beside the file."""
    listed = any(_SPECS in piece.names for piece in module.outline.pieces)
    beside = None if listed else _beside(module, "arg_specs")
    if not listed and beside is None:
        return
    text = module.source.text if listed or beside is None else beside.source.text
    operations = [
        f"{piece.names[0]}()._fwd" for piece in module.outline.pieces if piece.kind == "class" and piece.has(_FORWARD)
    ]
    imports = "import jax, jax.numpy" + ("" if listed else f"; from arg_specs import {_SPECS}")
    functions = operations or [name for name in sorted(defined) if listed and not name.startswith("_")]
    for at in range(_MAX_SPECS if "argspec" in text.lower().replace("_", "") else 0):
        listed_arguments = f"{_SPECS}[{at}].args"
        arrays = f"jax.tree.map(lambda s: jax.numpy.zeros(s.shape, s.dtype), {listed_arguments})"
        for function in functions[:_MAX_OPERATIONS]:
            yield HarnessCall(f"{function}(**{arrays})", imports, f"{function}(**{listed_arguments})")


def _beside(module: Module, name: str) -> Module | None:
    """The other module with a name in the folder of a module, where code of that module imports it by the name."""
    if module.file is None:
        return None
    file = module.file.parent / f"{name}.py"
    if file not in module.graph.overlay and not paths.is_file(file):
        return None  # in most folders: resolving the name would search all import roots
    found = module.graph.find(name, module)
    return found if found is not None and found is not module and found.file == file else None


def _defined(module: Module) -> set[str]:
    return {name for piece in module.outline.pieces if piece.kind in ("def", "class") for name in piece.names}


def _passed(inputs: str, module: Module) -> str:
    """The inputs as a call passes them on: what is returned as a dictionary, by name."""
    named = any(piece.has(_RETURNS_DICTIONARY) for piece in module.binders(inputs))
    return f"{'**' if named else '*'}{inputs}()"


def _calls(inputs: str, functions: list[str], defined: set[str], imports: str) -> Iterator[HarnessCall]:
    if "Model" in defined:
        made = "*get_init_inputs()" if "get_init_inputs" in defined else ""
        yield HarnessCall(f"Model({made}).forward({inputs})", imports)
    yield from (HarnessCall(f"{function}({inputs})", imports) for function in functions)


@lru_cache(maxsize=256)
def _names_in(expression: str) -> frozenset[str]:
    """The names that a configured call uses; settings hold nothing that does not parse."""
    tree = ast.parse(expression.strip(), mode="eval")
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


@lru_cache(maxsize=256)
def calling(call: HarnessCall) -> Piece:
    """A function that makes the call in the file that it is run for."""
    lines = (line for line in (call.imports, call.expression) if line)
    (piece,) = outline(Source("<harness>", "".join(("def harness():\n", *(f"    {line}\n" for line in lines))))).pieces
    return piece
