"""Calls that one file makes of launchers in other files, found by running its functions in the interpreter."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.analysis import enter, run_entered
from pallas_lint.kernels.analysis.project_text import is_test_file
from pallas_lint.kernels.interpreter.interpreter import Interpreter
from pallas_lint.kernels.model.values import Class, Const, Func, Instance
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.known_calls.values import spelled_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.tracer import CodeModule
    from pallas_lint.known_calls.callers import Callers
    from pallas_lint.syntax import Piece

_MAX_PIECES = 200  # functions of one file that are run
# Expressions evaluated for one file: 10,000 take a twelfth of a second. Where calls are found, more may come; library
# code, whose own arguments are not known, yields calls soon or not at all.
_STEPS_OF_A_TEST = 30_000
_STEPS_OF_OTHERS = 10_000
_STEPS_FOR_A_CALL = 10_000
_MAX_READ = 500_000  # characters of other files: code that needs more is a framework, whose values stay unknown
_MAX_OF_A_FUNCTION = 16  # calls of one launcher that are kept of one file
_MAX_ROUNDS = 3  # callers of callers in the file


def harvest(module: Module, versions: tuple[str, ...], callers: Callers) -> tuple[KnownCall, ...]:
    """The calls that `module` makes of functions in other files of its project that launch, or lead to launches."""
    # No kernel is traced here: its own analysis does that.
    interp = Interpreter(module.graph, module, versions, enters_all=True)
    module.graph.most_read = _MAX_READ
    module.env.vars["__name__"] = Const("__main__")  # scripts do what they do
    found: dict[KnownCall, None] = {}
    calls: Counter[str] = Counter()

    def note() -> None:
        for launch in interp.outcome.launches:
            for known_call in _known_calls(module, launch, callers):
                if known_call in found or calls[known_call.function] >= _MAX_OF_A_FUNCTION:
                    continue
                found[known_call] = None
                calls[known_call.function] += 1
        interp.outcome.launches.clear()
        interp.pending.clear()

    def begin(piece: Piece, budget: int) -> None:
        interp.limit(budget)
        enter(interp, module, piece)

    allowed = _STEPS_OF_A_TEST if is_test_file(module) else _STEPS_OF_OTHERS
    for piece in _callers(module, callers):
        left = allowed + _STEPS_FOR_A_CALL * len(found) - interp.total_steps
        if left <= 0 or module.graph.is_full:
            break
        with interp.separate_result():
            run_entered(interp, module, piece, partial(begin, piece, left), note, as_called=True)
    return tuple(found)


def _callers(module: Module, callers: Callers) -> Iterator[Piece]:
    """The pieces of a file that name something of a module that leads to launches, and those that name these."""
    names = set(_leading_names(module, callers))
    chosen: dict[Piece, None] = {}
    for _ in range(_MAX_ROUNDS):
        new = {
            piece: None
            for piece in module.outline.walk()
            if piece not in chosen
            and piece.kind != "import"
            and not piece.members
            and not names.isdisjoint(piece.words)
        }
        if not new:
            break
        chosen |= new
        names = {name for piece in new for name in piece.names}
    # Tests stand behind the helpers that they share, and know more.
    return iter(sorted(chosen, key=lambda piece: piece.first)[-_MAX_PIECES:])


def _leading_names(module: Module, callers: Callers) -> Iterator[str]:
    imports = [(bound.name, bound.target) for _, bound in module.outline.imports]
    for name, target in (*imports, *module.inner_imports.items()):
        for dotted in (target, target.rpartition(".")[0] or "."):
            found = module.graph.find(dotted, module)
            if found is not None:
                if found.file is not None and found is not module and callers.leads(found.file):
                    yield name
                break


def _known_calls(root: Module, launch: Launch, callers: Callers) -> Iterator[KnownCall]:
    """The calls of functions in other files that led to a launch: in its own file, and in those of its kernels."""
    for module in dict.fromkeys((launch.module, *(body.module for body in launch.bodies))):
        known_call = _known_call(root, launch, module, callers)
        if known_call is not None:
            yield known_call


def _known_call(root: Module, launch: Launch, module: CodeModule, callers: Callers) -> KnownCall | None:
    """The call of the outermost function of a file that has a name there.

    What a factory returns has none: `make(128)(x)` is known by what its function calls.
    """
    file = module.file
    if module is root or launch.path.expects_failure or file is None or root.file is None:
        return None
    if callers.folder not in file.parents:
        return None
    own = (at for at, entry in enumerate(launch.path.entries) if entry.func.module is module)
    at, name = next(((at, name) for at in own if (name := _qualified(launch.path.entries[at].func))), (None, None))
    if at is None or name is None:
        return None
    called = launch.path.entries[at]
    sites = [entry.site for entry in launch.path.entries[: at + 1] if entry.site is not None]
    site = next((site for site in reversed(sites) if site.piece.source is root.source), None)
    if site is None or not all(entry.certain for entry in launch.path.entries[: at + 1]):
        return None
    arguments = spelled_arguments(called, partial(_name_of, callers), x64=root.x64 is not None)
    if not arguments:
        return None
    source = f"{callers.path_of(root.file)}:{site.span.start.line}"
    return KnownCall(f"{callers.path_of(file)}::{name}", arguments, source)


def _qualified(func: Func) -> str | None:
    """A function's name in its file; None for one that is made while another runs."""
    if func.env.parent is not None and not func.env.is_class:
        return None
    cls = func.method_of.cls if isinstance(func.method_of, Instance) else func.method_of
    return func.name if cls is None else f"{cls.name}.{func.name}"


def _name_of(callers: Callers, value: Func | Class) -> str | None:
    """How a function or class of the project is found again: by its file."""
    file = value.module.file
    name = value.name if isinstance(value, Class) else _qualified(value)
    if file is None or name is None or callers.folder not in file.parents:
        return None
    return f"{callers.path_of(file)}:{name}"
