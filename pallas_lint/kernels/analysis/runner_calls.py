"""Arguments with which test runners and scripts call a function: pytest, unittest, absl, jax's own tests.

Only test runners call a test, so that its decorators, fixtures and defaults give all its arguments. Of their
combinations, those are used that differ most in what a kernel depends on.
"""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

from pallas_lint.kernels.analysis.project_text import is_test_file, project_folder
from pallas_lint.kernels.interpreter import expressions
from pallas_lint.kernels.library.host import classes
from pallas_lint.kernels.library.host.known_numbers import items_of
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.queries import MENTIONS
from pallas_lint.kernels.model.scope import Env
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    CallResult,
    Class,
    Const,
    Dictionary,
    DType,
    External,
    Func,
    Instance,
    Seq,
    Value,
)
from pallas_lint.records import evolve, frozen
from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.modules import ModuleGraph
    from pallas_lint.kernels.model.tracer import CodeModule
    from pallas_lint.syntax import Piece

    Row = dict[str, Value]  # what one call gives to some parameters

_MAX_CALLS = 3  # of one function
_MAX_COMBINATIONS = 256  # that they are chosen from
_MAX_ROWS = 64  # of one list of cases
_MAX_DEPTH = 4  # of fixtures that need fixtures
_NOT_RUN = frozenset(("skip", "xfail", "expectedFailure"))
_SKIPPING = frozenset(("skip", "skipTest", "xfail"))
_SET_UP = ("setUpClass", "setUp", "setup_class", "setup_method")
_CASES = frozenset(("parametrize", "parameters", "named_parameters", "product", "sample_product"))
_PARAM = "pytest.param"
_REQUEST = "request"  # how a fixture gets the one of its `params` that it is run for


@frozen(eq=False)
class _Mark:
    """A decorator that test runners know, by the last part of its name, and what it was given."""

    name: str
    given: Arguments


def calls_of(interp: Interpreter, func: Func, instance: Instance | None) -> Iterator[Arguments]:
    """The calls of a function by test runners; without any, one with open arguments."""
    first = [] if instance is None else [instance]
    if not isinstance(func.node, nodes.FunctionDef) or not _is_run(func):
        yield Arguments([*first], open=instance is not None or not _uses_defaults(interp, func))
        return
    marks = list(_marks(interp, func, None if instance is None else instance.cls))
    if any(mark.name in _NOT_RUN for mark in marks) or _skips_itself(func.node):
        return
    names = _names(func.node)[len(first) :]
    fixtures = _fixtures(interp, func, instance, names)
    axes = [axis for mark in marks if mark.name in _CASES for axis in _axes(mark, names)]
    axes += [axis for fixture in fixtures.values() for axis in _params(interp, fixture)]
    rows = [_most_different(axis) for axis in axes if axis]
    for row in _most_different([_merged(rows) for rows in islice(product(*rows), _MAX_COMBINATIONS)]):
        owner = _set_up(interp, instance) if instance is not None else None
        requests = {name: value for name, value in row.items() if name.startswith(_REQUEST + " ")}
        given = {name: value for name, value in row.items() if name in names}
        for name in names:
            if name not in given and name in fixtures:
                given[name] = _provided(interp, fixtures[name], owner, requests, 0)
        yield Arguments([] if owner is None else [owner], given)


def runs_with_defaults(module: CodeModule, piece: Piece) -> bool:
    """Whether the piece is a function with a default for each parameter that nothing in its file calls."""
    if piece.kind != "def" or piece.nested:
        return False
    return any(_is_not_called(module, node) for node in piece.kept(_with_defaults))


def _with_defaults(piece: Piece) -> list[nodes.FunctionDef]:
    return [node for node in piece.body if isinstance(node, nodes.FunctionDef) and _has_defaults(node)]


def _has_defaults(node: nodes.FunctionDef) -> bool:
    each = node.params.named
    return bool(each) and all(parameter.default is not None for parameter in each)


def _is_not_called(module: CodeModule, node: nodes.FunctionDef) -> bool:
    """Whether nothing in its file calls a function: others do, as it is."""
    return not is_test_file(module) and module.mentions(node.name.value) == 1


def _uses_defaults(interp: Interpreter, func: Func) -> bool:
    """Whether a function that was found during a run is called with its defaults; the run depends on who names it."""
    if func.module is interp.root:
        interp.memo.record_dependency(MENTIONS, func.name)
    node = func.node
    return isinstance(node, nodes.FunctionDef) and _has_defaults(node) and _is_not_called(func.module, node)


def _is_run(func: Func) -> bool:
    """Whether a test runner, or the last lines of a script, calls it."""
    return func.name.startswith("test") or func.name == "main"


def _names(node: nodes.FunctionDef) -> list[str]:
    return [param.name.value for param in node.params.named]


def _skips_itself(node: nodes.FunctionDef) -> bool:
    """Whether the body skips the test in any case."""
    body = node.body.body
    for line in body:
        small = line.body[0] if isinstance(line, nodes.SimpleStatementLine) and line.body else None
        if isinstance(small, nodes.Expr) and isinstance(small.value, nodes.Call):
            called = expressions.dotted(small.value.func)
            if "." in called and last_part(called) in _SKIPPING:
                return True
    return False


def _set_up(interp: Interpreter, instance: Instance) -> Instance:
    """The object that a test is a method of: each has its own, set up anew."""
    made = Instance(instance.cls, made_by=interp.maker)
    for name in _SET_UP:
        method = classes.class_member(interp, made.cls, name)
        if isinstance(method, Func):
            interp.call_function(evolve(method, method_of=made), Arguments(open=True))
    return made


# -- decorators ------------------------------------------------------------------------------------------------------


def _marks(interp: Interpreter, func: Func, cls: Class | None) -> Iterator[_Mark]:
    """The marks of a function, the innermost first, then those of its class and its module."""
    owners = [(func.node, func.env)] if cls is None else [(func.node, func.env), (cls.node, cls.env.parent or cls.env)]
    with interp.inside(interp.outside_kernels(func.module, func.piece)):
        for node, env in owners:
            for decorator in reversed(getattr(node, "decorators", ())):
                yield from _mark(interp, decorator.decorator, env)
        for owner in (
            classes.class_member(interp, cls, "pytestmark") if cls is not None else None,
            func.module.lookup("pytestmark", interp),
        ):
            for value in (owner,) if isinstance(owner, CallResult | External) else items_of(owner or UNKNOWN) or ():
                yield from _mark_made(value)


def _mark(interp: Interpreter, node: nodes.BaseExpression, env: Env) -> Iterator[_Mark]:
    called = expressions.dotted(node.func) if isinstance(node, nodes.Call) else ""
    if isinstance(node, nodes.Call) and last_part(called) in _CASES | _NOT_RUN:
        # By its name: in jax's own tests the decorators are functions of the project, which would be run.
        yield _Mark(last_part(called), expressions.arguments_of(interp, node, env))
    elif not isinstance(node, nodes.Call):
        yield from _mark_made(interp.evaluate(node, env))


def _mark_made(value: Value) -> Iterator[_Mark]:
    if isinstance(value, External):
        yield _Mark(last_part(value.name), Arguments())
    elif isinstance(value, CallResult):
        yield _Mark(last_part(value.function), Arguments([*value.args], dict(value.keywords), value.open))


def _axes(mark: _Mark, names: list[str]) -> list[list[Row]]:
    """The lists of cases of which each call takes one."""
    given = mark.given
    if mark.name == "parametrize":
        return [_parametrized(given)]
    if mark.name in ("parameters", "named_parameters"):
        cases = given.positional
        if len(cases) == 1 and not (isinstance(cases[0], Seq) and cases[0].kind == "tuple"):
            cases = [*(items_of(cases[0]) or ())] if not isinstance(cases[0], Dictionary) else cases
        return [[_case(case, names, named=mark.name == "named_parameters") for case in cases[:_MAX_ROWS]]]
    axes = [[_case(case, names) for case in (items_of(cases) or ())[:_MAX_ROWS]] for cases in given.positional]
    for name, values in given.keywords.items():
        axes.append([{name: value} for value in (items_of(values) or ())[:_MAX_ROWS]])
    return axes


def _parametrized(given: Arguments) -> list[Row]:
    named, values = given.get("argnames", 0), given.get("argvalues", 1)
    if named is None or values is None or given.keywords.get("indirect", Const(False)) != Const(False):
        return []
    if isinstance(named, Const) and isinstance(named.value, str):
        names = [name.strip() for name in named.value.split(",") if name.strip()]
        single = len(names) == 1 and "," not in named.value
    else:
        names = [name.value for name in items_of(named) or () if isinstance(name, Const)]
        single = False
    rows: list[Row] = []
    for value in (items_of(values) or ())[:_MAX_ROWS]:
        parts: tuple[Value, ...] | None
        if isinstance(value, CallResult) and value.function == _PARAM:
            marks = dict(value.keywords).get("marks", NONE)
            marked = [mark for value in (items_of(marks) or (marks,)) for mark in _mark_made(value)]
            if any(mark.name in _NOT_RUN for mark in marked):
                continue
            parts = value.args
        else:
            parts = (value,) if single else items_of(value)
        if parts is not None and len(parts) == len(names):
            rows.append(dict(zip(names, parts, strict=True)))
    return rows


def _case(case: Value, names: list[str], *, named: bool = False) -> Row:
    """A case of absl's `parameterized`: a dictionary by name, a tuple by position."""
    if isinstance(case, Dictionary):
        return {key.value: value for key, value in case.items if isinstance(key, Const) and isinstance(key.value, str)}
    parts = items_of(case) if isinstance(case, Seq) else (case,)
    return dict(zip(names, (parts or ())[named:], strict=False))


# -- fixtures --------------------------------------------------------------------------------------------------------


def _fixtures(
    interp: Interpreter, func: Func, instance: Instance | None, names: list[str], depth: int = 0
) -> dict[str, Func]:
    """The fixtures of these names that a test gets, and those that they get."""
    found: dict[str, Func] = {}
    for name in names:
        fixture = _fixture(interp, func.module, instance, name)
        if fixture is not None and fixture.node is not func.node and isinstance(fixture.node, nodes.FunctionDef):
            found[name] = fixture
            if depth < _MAX_DEPTH:
                needed = _names(fixture.node)
                found |= _fixtures(interp, fixture, instance, [need for need in needed if need not in found], depth + 1)
    return found


def _fixture(interp: Interpreter, module: CodeModule, instance: Instance | None, name: str) -> Func | None:
    member = None if instance is None else classes.class_member(interp, instance.cls, name)
    if isinstance(member, Func) and _fixture_decorator(member) is not None:
        return member
    for place in (module, *_conftests(interp.graph, module)):
        value = place.lookup(name, interp)
        if isinstance(value, CallResult) and value.args:
            value = value.args[0]
        if isinstance(value, Func) and _fixture_decorator(value) is not None:
            return value
    return None


def _conftests(graph: ModuleGraph, module: CodeModule) -> Iterator[CodeModule]:
    """What pytest reads for the tests of a file, the nearest first."""
    if module.file is None:
        return
    top = project_folder(module.file)
    for folder in module.file.parents:
        found = graph.load(folder / "conftest.py")
        if found is not None and found is not module:
            yield found
        if folder == top:
            return


def _fixture_decorator(func: Func) -> nodes.BaseExpression | None:
    for decorator in getattr(func.node, "decorators", ()):
        node = decorator.decorator
        if last_part(expressions.dotted(node.func if isinstance(node, nodes.Call) else node)) == "fixture":
            return node  # type: ignore[no-any-return]
    return None


def _params(interp: Interpreter, fixture: Func) -> Iterator[list[Row]]:
    """`@pytest.fixture(params=...)`: each is a case."""
    node = _fixture_decorator(fixture)
    if isinstance(node, nodes.Call):
        with interp.inside(interp.outside_kernels(fixture.module, fixture.piece)):
            given = expressions.arguments_of(interp, node, fixture.env)
        rows = _parametrized(Arguments([Const(fixture.name), given.keywords.get("params", UNKNOWN)]))
        yield [{f"{_REQUEST} {name}": value for name, value in row.items()} for row in rows]


def _provided(interp: Interpreter, fixture: Func, owner: Instance | None, requests: Row, depth: int) -> Value:
    """What a fixture returns or yields."""
    node = fixture.node
    if depth > _MAX_DEPTH or not isinstance(node, nodes.FunctionDef):
        return UNKNOWN
    names = _names(node)
    is_member = owner is not None and fixture.env.is_class
    given: Row = {}
    for name in names[is_member:]:
        other = _fixture(interp, fixture.module, owner, name)
        if name == _REQUEST:
            param = requests.get(f"{_REQUEST} {fixture.name}", UNKNOWN)
            given[name] = Instance(
                Class(_REQUEST, None, fixture.piece, fixture.module, Env(fixture.module, fixture.env)),
                {"param": param},
                made_by=interp.maker,
            )
        elif other is not None:
            given[name] = _provided(interp, other, owner, requests, depth + 1)
    arguments = Arguments([owner] if is_member and owner is not None else [], given)
    yielded = next((inner for inner in walk(node.body) if isinstance(inner, nodes.Yield)), None)
    if yielded is None:
        return interp.call_function(fixture, arguments)
    if not isinstance(yielded.value, nodes.BaseExpression):
        return UNKNOWN
    env = Env(fixture.module, fixture.env, vars=dict(given))
    if is_member and owner is not None:
        env.vars[names[0]] = owner
    with interp.inside(interp.outside_kernels(fixture.module, fixture.piece)):
        interp.suite(node.body, env)
        return interp.evaluate(yielded.value, env)


# -- which of them ---------------------------------------------------------------------------------------------------


def _merged(rows: tuple[Row, ...]) -> Row:
    return {name: value for row in rows for name, value in row.items()}


def _most_different(rows: list[Row]) -> list[Row]:
    """A few of the rows: the first, then those with the most that none before had."""
    left = list(rows)
    chosen: list[Row] = []
    seen: set[object] = set()
    while left and len(chosen) < _MAX_CALLS:
        scores = [sum(weight for seen_as, weight in _features(row) if seen_as not in seen) for row in left]
        best = 0 if not chosen else max(range(len(left)), key=scores.__getitem__)
        if chosen and not scores[best]:
            break
        chosen.append(left.pop(best))
        seen.update(feature for feature, _ in _features(chosen[-1]))
    return chosen


def _features(row: Row) -> set[tuple[object, int]]:
    return {((name, *feature), weight) for name, value in row.items() for feature, weight in _seen(value, 0)}


def _seen(value: Value, depth: int) -> Iterator[tuple[tuple[object, ...], int]]:
    """What a kernel can see of a value: its kind before its number."""
    if isinstance(value, Const) and type(value.value) is int:
        number = value.value
        yield ("divided by", min(number & -number, 128)), 4
        yield ("value", number), 1
    elif isinstance(value, Const):
        yield ("value", value.value), 2
    elif isinstance(value, DType):
        yield ("dtype", value.name), 4
    elif isinstance(value, External):
        yield ("name", value.name), 4
    elif isinstance(value, Seq) and depth < _MAX_DEPTH:
        yield ("rank", len(value.items)), 4
        for at, item in enumerate(value.items):
            for feature, weight in _seen(item, depth + 1):
                yield (at, *feature), weight
