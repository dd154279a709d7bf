"""Analysis of one module: its launches, its kernels and their events."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pallas_lint.identity import ByIds
from pallas_lint.kernels.analysis.call_contexts import run_callers
from pallas_lint.kernels.analysis.conventions import conventional_calls
from pallas_lint.kernels.analysis.known_call_runs import run_known_calls
from pallas_lint.kernels.analysis.runs import RootRuns
from pallas_lint.kernels.analysis.version_guards import VersionGuards
from pallas_lint.kernels.interpreter.interpreter import Interpreter
from pallas_lint.kernels.launches import launching
from pallas_lint.kernels.library import sharding
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.frame import ProgramPoint
from pallas_lint.kernels.model.known_names import SHARD_MAPS
from pallas_lint.kernels.model.launch_forms import FOREIGN_CALL, FOREIGN_WORDS, FORMS
from pallas_lint.kernels.model.queries import MEMBER, MEMBERS, NAMED, OWNER
from pallas_lint.kernels.model.run import TOO_MUCH, Run
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.values import CallResult, Class, Func, Instance, options
from pallas_lint.records import define, field
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from pallas_lint.config.targets import InferredBackend
    from pallas_lint.kernels.analysis.conventions import HarnessCall
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.result import InterpreterResult
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.memo.query_cache import Memo, Query
    from pallas_lint.syntax import Piece

_DEF = re.compile(r"\bdef\b")
_IMPORTS_PALLAS = re.compile(r"jax\.experimental(?:\.|[ \t]+import[ \t(][\w, \t(]*)pallas\b|jax_triton")
_ASSUME = re.compile(r"(?<![^ \t\n])#[ \t]*pallas-lint:[ \t]*assume[ \t]+(.*)")
_VALUE = re.compile(r"(?<!\w)(\w+)[ \t]*=[ \t]*(\d+)")
_DERIVERS = frozenset("grad value_and_grad vjp jvp jacrev jacfwd jacobian hessian linearize".split())
_DERIVING = re.compile(rf"\b(?:{'|'.join(sorted(_DERIVERS))})\s*[(,]")
ANALYSIS = "analysis"  # of the results that a memo keeps


@define(eq=False, slots=False)
class Analysis:
    """The results of analysing one module."""

    module: Module
    interpreter: Interpreter
    runs: RootRuns
    launches: list[Launch] = field(factory=list)
    stale: tuple[KnownCall, ...] = ()  # those whose function was removed, or has another signature
    inferred_backends: dict[Launch, InferredBackend] = field(factory=dict)  # of launches that name none
    early_imports: frozenset[str] = frozenset()  # the checked versions of jax that do not have yet what is imported
    # By index map: the blocks that it places in any launch, and the dependencies of finding them.
    blocks_of_maps: dict[nodes.Node, tuple[list[Block], set[Query]]] = field(factory=dict)

    @property
    def memo(self) -> Memo:
        """The cache of the file, across its revisions."""
        return self.interpreter.memo

    @property
    def outcome(self) -> InterpreterResult:
        """The merged results of all runs."""
        return self.interpreter.outcome

    @property
    def traces(self) -> list[KernelTrace]:
        """Each kernel under each launch, once."""
        return list(dict.fromkeys(trace for launch in self.launches for trace in launch.traces))

    @cached_property
    def guards(self) -> VersionGuards:
        """The version guards of the module."""
        return VersionGuards(self.module, self.interpreter)

    @property
    def kernel_count(self) -> int:
        """The number of distinct kernels found."""
        return len({trace.site.key for trace in self.traces})

    def judged(self, line: int) -> bool:
        """Whether the code at `line` of the file was run: helpers of other modules were not."""
        at = bisect_right(self._enterable, line, key=lambda piece: piece.first) - 1
        if at < 0 or self._enterable[at].last < line:
            return True
        piece = self._enterable[at]
        names = [node for node in piece.body if isinstance(node, nodes.FunctionDef)] if piece.was_parsed else []
        return any(node in self.outcome.entered for node in names)

    @cached_property
    def _enterable(self) -> list[Piece]:
        """The pieces of the file that run when they are called."""
        pieces = self.module.outline.walk()
        return [piece for piece in pieces if not piece.members and (piece.kind == "def" or piece.nested)]


def analyse(
    module: Module,
    versions: tuple[str, ...],
    assumptions: dict[str, int] | None = None,
    is_stale: Callable[[], bool] = lambda: False,
    known_calls: tuple[KnownCall, ...] = (),
    harness_calls: tuple[str, ...] = (),
    chips: tuple[str, ...] = (),
) -> Analysis:
    """Run `module` abstractly from every function that may lead to a launch, and once more as `known_calls` call it.

    `harness_calls` are expressions that a harness evaluates in the file, by the settings; `chips` the TPUs that it is
    for, where these are known.

    Raises Abandoned once `is_stale()`: the text is outdated.
    """
    everywhere = {**(assumptions or {}), **_assumed(module.source.text, inside=False)}
    interpreter = Interpreter(module.graph, module, versions, everywhere, chips)
    runs = RootRuns(interpreter, module, is_stale)
    runs.begin()
    roots = _roots(module)
    memo = interpreter.memo
    conventional = tuple(conventional_calls(module, harness_calls)) if roots else ()
    key = _outside_of_queries(module, roots, known_calls, conventional) if memo.persistent else ()
    earlier: Analysis | None = memo.repeated(ANALYSIS, key)
    if earlier is not None:
        earlier.runs.resume(is_stale)
        return earlier
    try:
        # Each function is analysed with unknown arguments first: known callers only add to that.
        kernels = dict.fromkeys(piece for piece in reversed(roots) if piece.kept(_is_kernel))
        for piece in (*(piece for piece in reversed(roots) if piece not in kernels), *kernels):
            if piece not in kernels or not _has_run(interpreter, piece):
                _run(runs, piece, "root")
        _run_unresolved(runs)
        run_callers(runs, roots, partial(_run_root, interpreter, module, as_called=True), conventional)
        entered = partial(run_entered, interpreter, module)
        stale = run_known_calls(runs, known_calls, partial(entered, as_called=True))
        if "jaxtyping" in module.source.text:
            from pallas_lint.kernels.analysis.annotations import run_annotated

            run_annotated(runs, [piece for piece in roots if piece not in kernels], known_calls, entered)
        if interpreter.effects.dtypes:
            from pallas_lint.kernels.analysis.allowed_dtypes import run_allowed

            run_allowed(runs, entered)
        launches = [launch for launch in interpreter.outcome.launches if not launch.meant_to_fail]
        analysis = Analysis(module, interpreter, runs, launches, stale)
        memo.keep(ANALYSIS, key, analysis)
    finally:
        runs.end()
    return analysis


def _outside_of_queries(
    module: Module, roots: list[Piece], known_calls: tuple[KnownCall, ...], conventional: tuple[HarnessCall, ...]
) -> Hashable:
    """What the results of all runs depend on besides the inputs of a revision and its queries."""
    pieces = tuple(module.outline.walk())
    lines = tuple(piece.first for piece in pieces)  # calls in scripts are named by their line
    annotated = "jaxtyping" in module.source.text
    return ByIds(pieces), lines, ByIds(tuple(roots)), known_calls, conventional, annotated


def _assumed(text: str, *, inside: bool) -> dict[str, int]:
    """The values that `# pallas-lint: assume bm=128` comments give: those in functions (`inside`) or outside of any."""
    found: dict[str, int] = {}
    at = text.find("pallas-lint")
    while at >= 0:  # the lines with the word only: they are few
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        start = text.rfind("\n", 0, at) + 1
        match = _ASSUME.search(text, start, end)
        if match is not None and (text[start] in " \t") is inside:
            found.update((name, int(value)) for name, value in _VALUE.findall(match[1]))
        at = text.find("pallas-lint", end)
    return found


def _roots(module: Module) -> list[Piece]:
    leading = _leading_names(module)
    text = module.source.text
    foreign = any(word in text for word in FOREIGN_WORDS)
    if not _IMPORTS_PALLAS.search(text) and not leading and "pallas_call" not in text and not foreign:
        return []  # it may mention Pallas, but contains no recognisable launch
    leading |= _launches_by_name(module) | _renamed(module)
    leading.add("checkify")
    return [
        piece
        for piece in module.outline.walk()
        if piece.kind in ("def", "class", "block", "other", "assign")
        and not piece.members
        and (piece.kept(_may_launch) or not leading.isdisjoint(piece.words) or (foreign and piece.has(FOREIGN_CALL)))
    ]


def _may_launch(piece: Piece) -> bool:
    return (FORMS.may_prepare(piece.text) and piece.has(FORMS.preparing)) or (
        not _DERIVERS.isdisjoint(piece.words) and piece.has(_DERIVING)
    )


def _is_kernel(piece: Piece) -> bool:
    """Whether what it launches can only be launched in a kernel."""
    return piece.kind == "def" and piece.has(FORMS.in_kernels) and not piece.has(FORMS.launching)


def _has_run(interp: Interpreter, piece: Piece) -> bool:
    return any(isinstance(node, nodes.FunctionDef) and node in interp.outcome.entered for node in piece.body)


def _renamed(module: Module) -> set[str]:
    """Aliases of imported names that prepare launches: `from ... import BlockSpec as BS`."""
    return {
        alias
        for alias, targets in module.imported.items()
        for target in targets
        if target.startswith("jax.experimental.pallas")
        and (name := last_part(target)) != alias
        and FORMS.preparing.search(f".{name}(")
    }


def _launches_by_name(module: Module) -> set[str]:
    """Names at the top level that are launches themselves: `@partial(pl.pallas_call, ...)`, `f = pl.kernel(...)`.

    Their callers pass the operands.
    """
    return {name for piece in module.outline.pieces if piece.kept(_is_named_launch) for name in piece.names}


def _is_named_launch(piece: Piece) -> bool:
    if piece.kind == "assign":
        return piece.has(FORMS.preparing)
    if piece.kind != "def" or not piece.text.startswith("@"):
        return False
    return FORMS.preparing.search(_DEF.split(piece.text, maxsplit=1)[0]) is not None


def _leading_names(module: Module) -> set[str]:
    """Imported names of the project's modules that launch kernels themselves: calls of them bring arguments."""
    names: set[str] = set()
    for piece_import in module.outline.imports:
        bound = piece_import[1]
        if bound.target.split(".", 1)[0] in ("jax", "numpy"):
            continue
        parent = bound.target.rpartition(".")[0]
        for candidate in (bound.target, parent if parent.strip(".") else bound.target[: bound.target.rfind(".") + 1]):
            found = module.graph.find(candidate, module) if candidate else None
            if found is not None:
                if FORMS.launched_in(found.source.text):
                    names.add(bound.name)
                break
    return names


def _run(runs: RootRuns, piece: Piece, phase: str) -> None:
    runs.run(piece, phase, lambda: _run_root(runs.interp, runs.module, piece))


def _run_root(
    interp: Interpreter,
    module: Module,
    piece: Piece,
    before_kernels: Callable[[], None] = lambda: None,
    *,
    as_called: bool = False,
) -> None:
    run_entered(interp, module, piece, partial(enter, interp, module, piece), before_kernels, as_called=as_called)


def run_entered(
    interp: Interpreter,
    module: Module,
    piece: Piece,
    begin: Callable[[], None],
    before_kernels: Callable[[], None],
    *,
    as_called: bool = False,
) -> None:
    """Run from a root, which `begin` enters, then the kernels that it launches."""
    interp.begin()
    assumptions = {**interp.assumptions, **_assumed(piece.text, inside=True)}
    with interp.within(Run(piece, assumptions, as_called)):
        try:
            with module.at(ProgramPoint(piece, called=True)):
                begin()
                sharding.run_mapped_functions(interp)
        except TOO_MUCH:
            interp.outcome.cut.append(piece)
        before_kernels()
        launching.run_pending(interp)


def enter(interp: Interpreter, module: Module, piece: Piece) -> None:
    if piece.nested:
        owner = next(outer for outer in module.outline.pieces if piece in outer.members)
        interp.memo.record_dependency(OWNER, piece)
        cls = module.lookup(owner.names[0], interp)
        if isinstance(cls, Class):
            instance = Instance(cls, made_by=interp.maker)
            with interp.memo.attribute_dependencies((MEMBER, owner, name) for name in piece.names):
                interp.run_piece(piece, cls.env)
            for name in piece.names:
                interp.memo.record_dependency(MEMBER, owner, name)
                _run_function(interp, cls.env.vars.get(name), instance)
        return
    if not piece.names:
        with interp.memo.attribute_dependencies((NAMED, name) for name in piece.words):
            interp.run_piece(piece, module.env)
            for func in [*_functions_of(piece, module)]:
                if func.node not in interp.outcome.entered:
                    _run_function(interp, func, None)
        return
    scope: Env | None = None
    for name in dict.fromkeys(piece.names):
        value = module.lookup(name, interp)
        # A name bound twice is looked up as the last binding: run the piece itself, once, for the others.
        if not (isinstance(value, Func) and value.piece is piece):
            if scope is None:
                scope = Env(module, module.env)
                interp.run_piece(piece, scope)
            value = scope.vars.get(name)
        if isinstance(value, Class):
            _run_class(interp, value)
        else:
            _run_function(interp, value, None)


def _functions_of(piece: Piece, module: Module) -> Iterator[Func]:
    """The functions in an `if` or `try` that may launch: these are no pieces of their own."""
    for value in module.env.vars.values():
        for option in options(value):
            if isinstance(option, Func) and option.piece is piece and piece.search(FORMS.preparing, option.node):
                yield option


def _run_class(interp: Interpreter, cls: Class) -> None:
    interp.memo.record_dependency(MEMBERS, cls.piece)
    instance = Instance(cls, made_by=interp.maker)
    for value in list(cls.env.vars.values()):
        _run_function(interp, value, instance)


def _run_function(interp: Interpreter, value: object, instance: Instance | None) -> None:
    if isinstance(value, CallResult) and value.function in SHARD_MAPS and value.args:
        sharding.call_mapped(interp, value, Arguments(open=True), value.site.node)
        return
    if isinstance(value, CallResult) and value.launch is not None:
        return  # a launch by decorator: what it decorates runs as its kernel
    if isinstance(value, CallResult) and value.args and isinstance(value.args[0], Func):
        value = value.args[0]  # a decorator that is not modelled keeps the function
    if not isinstance(value, Func):
        return
    if interp.run.as_called:
        from pallas_lint.kernels.analysis.runner_calls import calls_of

        calls = calls_of(interp, value, instance)
    else:
        calls = iter((Arguments([instance] if instance is not None else [], open=True),))
    for arguments in calls:
        interp.call_function(value, arguments)
        sharding.run_mapped_functions(interp)
    _run_inner(interp, value)


def _run_inner(interp: Interpreter, outer: Func) -> None:
    """Run nested functions that launch and were not called (returned, registered, passed to unknown code)."""
    for _ in range(3):
        # Kernels are entered as such, when their launches are.
        bodies = (body for launch in interp.pending for body in launching.bodies_of(launch.kernel))
        known = {*interp.outcome.entered, *(body.node for body in bodies if isinstance(body, Func))}
        missing = [func for func in _inner_functions(interp, outer) if func.node not in known]
        if not missing:
            return
        for func in missing:
            interp.call_function(func, Arguments(open=True))


def _inner_functions(interp: Interpreter, outer: Func) -> Iterator[Func]:
    """Functions defined while `outer` ran that did not run themselves."""
    found = [(env, node, piece) for env, node, piece, root in interp.outcome.inner if root is outer.node]
    found += [
        (func.env, func.node, func.piece)
        for (root, _), func in interp.run.named.items()
        if root is outer.node and isinstance(func.node, nodes.FunctionDef)
    ]
    for env, node, piece in found:
        if node not in interp.outcome.entered:
            yield Func(node.name.value, node, piece, env.module, env)


def _run_unresolved(runs: RootRuns) -> None:
    """Launches whose kernel is a parameter: run the functions that call their launcher."""
    interp, module = runs.interp, runs.module
    resolved = {launch.site.key for launch in interp.outcome.launches if launch.traces}
    missing = {launch.scope for launch in interp.outcome.launches if launch.scope and launch.site.key not in resolved}
    if not missing:
        return
    for piece in module.outline.walk():
        if piece.kind == "def" and not missing.isdisjoint(piece.words) and not piece.has(FORMS.preparing):
            _run(runs, piece, "unresolved")
