"""Statements of the abstract interpreter: one handler a class of nodes, in SMALL and COMPOUND.

A handler returns whether control certainly leaves the block (return, raise, break, continue).
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING

from pallas_lint.kernels.interpreter import expressions
from pallas_lint.kernels.interpreter.iteration import element_of
from pallas_lint.kernels.interpreter.narrowing import facts_of, narrowed
from pallas_lint.kernels.library import members, products, sharding
from pallas_lint.kernels.library.equality import equal
from pallas_lint.kernels.library.host import type_tests
from pallas_lint.kernels.library.host.classes import is_decorated
from pallas_lint.kernels.library.host.known_numbers import items_of
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.known_names import name_of
from pallas_lint.kernels.model.scope import Env, LoopExits, fork, merge, repeat, run_iteration
from pallas_lint.kernels.model.trace import Guard, refs_in
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    CallResult,
    Class,
    Const,
    Dictionary,
    External,
    Func,
    Instance,
    Ref,
    Seq,
    Sym,
    Value,
    as_tuple,
    of_any_items,
    truth,
)
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pallas_lint.kernels.model.scope import Facts
    from pallas_lint.kernels.model.tracer import Tracer

_MAX_ITEMS = 8  # of a loop that is run element by element
_MAX_ITERATIONS = 256  # of loops in loops, together
_MAX_ROUNDS = 32  # of a `while` whose condition is known each time
# The exceptions of a concretization of a tracer, and their base classes.
_FOR_TRACERS = frozenset(
    "BaseException Exception TypeError JAXTypeError ConcretizationTypeError TracerBoolConversionError"
    " TracerIntegerConversionError TracerArrayConversionError".split()
)
# Exceptions that jax raises for no kernel that it refuses.
_NOT_OF_LAUNCHES = frozenset(
    "ImportError ModuleNotFoundError KeyError OSError FileNotFoundError PermissionError StopIteration TimeoutError"
    " KeyboardInterrupt EOFError".split()
)
_SUPPRESSES = re.compile(r"\bsuppress\s*\(")
_EXPECTS_FAILURE = re.compile(r"\b(?:raises|assertRaises\w*|(suppress))\s*\(")


def _goes_on(function: Callable[..., bool | None]) -> Callable[..., bool]:
    """A handler for statements after which control goes on."""
    return lambda *arguments: bool(function(*arguments))


def _assign(interp: Tracer, node: nodes.Assign, env: Env) -> bool:
    value = interp.evaluate(node.value, env)
    if _failed(interp, node.value, env):
        return True
    for target in node.targets:
        interp.assign(target.target, value, env)
    return False


def _failed(interp: Tracer, expression: nodes.BaseExpression, env: Env) -> bool:
    """Whether an expression, evaluated just now, calls a function that certainly raises an exception."""
    if interp.frame.failed_call is not expression:
        return False
    interp.frame.failed_call = None
    env.fails = True
    return True


def _ann_assign(interp: Tracer, node: nodes.AnnAssign, env: Env) -> None:
    if node.value is not None:
        interp.assign(node.target, interp.evaluate(node.value, env), env)


def _aug_assign(interp: Tracer, node: nodes.AugAssign, env: Env) -> None:
    expressions.augmented(interp, node, env)


def _return(interp: Tracer, node: nodes.Return, env: Env) -> bool:
    value = NONE if node.value is None else interp.evaluate(node.value, env)
    if node.value is None or not _failed(interp, node.value, env):
        env.returns.append(value)
        env.fails = False
    return True


def _raise(interp: Tracer, node: nodes.Raise, env: Env) -> bool:
    env.fails = True
    return True


def _expression(interp: Tracer, node: nodes.Expr, env: Env) -> bool:
    mesh = sharding.mesh_set(interp.evaluate(node.value, env))
    if mesh is not None:
        sharding.set_mesh(interp, mesh, env)
    return _failed(interp, node.value, env)


def _delete(interp: Tracer, node: nodes.Del, env: Env) -> None:
    targets = node.target.elements if isinstance(node.target, nodes.Tuple) else [node.target]
    for target in targets:
        expression = target.value if isinstance(target, nodes.Element) else target
        if isinstance(expression, nodes.BaseExpression):
            for ref in refs_in(interp.evaluate(expression, env)):
                interp.frame.access("delete", ref, UNKNOWN, node)
        if isinstance(expression, nodes.Subscript):
            owner = interp.evaluate(expression.value, env)
            if isinstance(owner, Seq | Dictionary):
                members.rebind(interp, expression.value, owner, of_any_items(owner), env)


def _assert(interp: Tracer, node: nodes.Assert, env: Env) -> bool:
    holds = interp.evaluate(node.test, env)
    interp.frame.concretize("assert", holds, node.test)
    if truth(holds) is False:
        env.fails = True
        return True
    if isinstance(node.test, nodes.Comparison) and isinstance(node.test.comparisons[0].operator, nodes.Equal):
        size = interp.evaluate(node.test.left, env) if isinstance(node.test.left, nodes.Name) else UNKNOWN
        if isinstance(size, Sym):
            interp.effects.remainders.add(size)  # `assert k == block`: it has one block
    known = env.facts
    env.facts = {**known, **facts_of(interp, node.test, env)[0]}
    _note_guarded(interp, known, env)
    return False


def _note_guarded(interp: Tracer, before: Facts, env: Env, *, rejects: bool = True) -> None:
    """The facts from a guard: `block % 128` is 0 from here on, `max(block, 128)` is the block.

    A guard that does not reject the others, but returns, may launch for these, too.
    """
    for symbol, value in env.facts.items():
        if symbol in before or symbol.operation is None:
            continue
        operator, size, number = symbol.operation
        if isinstance(number, Const) and number.kind is int:
            if operator == "%" and value == Const(0):
                interp.effects.multiples.add((size, number.value))
            elif rejects and operator == "max" and value == size:
                interp.effects.least.add((size, number.value))


def _import(interp: Tracer, node: nodes.Import, env: Env) -> None:
    for alias in node.names:
        dotted = expressions.dotted(alias.name)
        if alias.asname is not None and isinstance(alias.asname.name, nodes.Name):
            env.bind(alias.asname.name.value, env.module.import_value(dotted, interp))
        else:
            root = dotted.split(".", 1)[0]
            env.bind(root, External(root))


def _import_from(interp: Tracer, node: nodes.ImportFrom, env: Env) -> None:
    if isinstance(node.names, nodes.ImportStar):
        return
    prefix = "." * len(node.relative) + (expressions.dotted(node.module) if node.module is not None else "")
    for alias in node.names:
        name = expressions.dotted(alias.name)
        bound = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, nodes.Name) else name
        separator = "" if not prefix or prefix.endswith(".") else "."
        env.bind(bound, env.module.import_value(f"{prefix}{separator}{name}", interp))


def _scope_declaration(interp: Tracer, node: nodes.Global | nodes.Nonlocal, env: Env) -> None:
    if isinstance(node, nodes.Nonlocal):
        env.outer_names.update(item.name.value for item in node.names)


def _break(interp: Tracer, node: nodes.Node, env: Env) -> bool:
    if env.loop_exits is not None:
        env.loop_exits.broken.append(dict(env.vars))
    env.fails = False
    return True


def _continue(interp: Tracer, node: nodes.Node, env: Env) -> bool:
    if env.loop_exits is not None:
        env.loop_exits.continued.append(dict(env.vars))
    env.fails = False
    return True


def _if(interp: Tracer, node: nodes.If, env: Env) -> bool:
    condition = interp.evaluate(node.test, env)
    interp.frame.concretize("if", condition, node.test)
    known = truth(condition)

    def otherwise() -> bool:
        if node.orelse is None:
            return False
        return (
            _if(interp, node.orelse, env) if isinstance(node.orelse, nodes.If) else interp.suite(node.orelse.body, env)
        )

    if known is not None:
        return interp.suite(node.body, env) if known else otherwise()
    site = interp.frame.site(node.test)
    narrowings, facts = narrowed(interp, node.test, env), facts_of(interp, node.test, env)

    left: list[bool] = []
    raised = False
    branches = interp.branches()

    def branch(run: Callable[[], bool], negated: bool) -> Callable[[], bool]:
        def taken() -> bool:
            nonlocal raised
            env.vars.update(narrowings[negated])
            env.facts = {**env.facts, **facts[negated]}
            with branches.take(Guard("if", condition, site, negated)):
                ended = run()
            if ended and not env.fails:
                left.append(negated)
            raised |= ended and env.fails
            return ended

        return taken

    before = env.facts
    ended = fork(env, [branch(lambda: interp.suite(node.body, env), False), branch(otherwise, True)])
    _note_guarded(interp, before, env, rejects=not left)
    if ended:
        return True
    understood = any((*narrowings, *facts))  # then what comes after it is for the arguments that pass
    if interp.kernel is None and interp.run.as_called and not understood and _reads_variable(node.test, env):
        interp.frame.may_be_left |= bool(left)
        if raised:
            interp.effects.open_guards.add(node.test)
    if left and interp.kernel is not None:
        # What follows, up to the end of the loop or the function, is the other branch.
        interp.frame.guards = (*interp.frame.guards, Guard("if", condition, site, not left[0]))
        interp.frame.uncertain += 1
    return False


def _reads_variable(test: nodes.BaseExpression, env: Env) -> bool:
    """Whether a test depends on a variable of the function, as on an argument: not on the machine alone."""
    return env.parent is not None and any(
        isinstance(node, nodes.Name) and node.value in env.vars for node in walk(test)
    )


def _for(interp: Tracer, node: nodes.For, env: Env) -> bool:
    iterable = interp.evaluate(node.iter, env)
    if isinstance(iterable, Ref):
        interp.frame.concretize("iterate", iterable, node.iter)
    items = items_of(iterable)
    exact = items is not None and len(items) <= _MAX_ITEMS and interp.frame.iterations * len(items) <= _MAX_ITERATIONS
    guard = Guard("loop", iterable, interp.frame.site(node.iter), exact=exact)

    def body(item: Value) -> bool:
        interp.assign(node.target, item, env)
        with interp.under(guard):
            return interp.suite(node.body, env)

    def each() -> bool:
        if items is not None and exact:
            # Short known sequences (lists of refs and specs, mostly) are run element by element.
            with interp.repeated(len(items)):
                return any(run_iteration(env, lambda item=item: body(item)) for item in items)  # type: ignore[misc]
        element = element_of(iterable, interp, node)
        return _repeat(interp, env, lambda: body(element))

    return _loop(interp, env, each, node.orelse)


def _while(interp: Tracer, node: nodes.While, env: Env) -> bool:
    def body(exact: bool = False) -> bool:
        condition = interp.evaluate(node.test, env)
        interp.frame.concretize("while", condition, node.test)
        with interp.under(Guard("loop", condition, interp.frame.site(node.test), exact=exact)):
            return interp.suite(node.body, env)

    def each() -> bool:
        # Conditions on numbers that are known: `while size % block: block //= 2`.
        most = _MAX_ROUNDS if interp.kernel is None else _MAX_ITEMS
        for _ in range(min(most, _MAX_ITERATIONS // interp.frame.iterations)):
            known = truth(interp.evaluate(node.test, env))
            if known is False:
                return False
            if known is None or (env.loop_exits is not None and env.loop_exits.broken):
                break
            if run_iteration(env, lambda: body(exact=True)):
                return True
        return _repeat(interp, env, body)

    return _loop(interp, env, each, node.orelse)


def _loop(interp: Tracer, env: Env, run: Callable[[], bool], otherwise: nodes.Else | None) -> bool:
    """Run a loop and merge its exits; `run` runs its iterations until there certainly are no more."""
    outer, known = env.loop_exits, env.facts
    env.loop_exits = exits = LoopExits()
    over = run()
    env.loop_exits = outer
    if not over and otherwise is not None:
        over = interp.suite(otherwise.body, env)
    if exits.broken:
        env.vars = merge([*exits.broken, *([] if over else [env.vars])])
        env.facts = known
    return over and not exits.broken


def _repeat(interp: Tracer, env: Env, body: Callable[[], bool]) -> bool:
    """Run the body of a loop for any of its iterations: once, and once more with what it changed."""
    again = interp.frame.iterations * 2 <= _MAX_ITERATIONS
    with interp.repeated(2 if again else 1):
        if not repeat(env, body, again=again):
            interp.frame.mark_untracked()
    return False  # it may have no iteration at all


def _try(interp: Tracer, node: nodes.Try, env: Env) -> bool:
    expected = _is_swallowed(interp, node, env) if interp.kernel is None else _expects_tracers(interp, node, env)
    caught = _caught(interp, node) if node.handlers and expected else nullcontext()

    def attempt() -> bool:
        with caught:
            ended = interp.suite(node.body, env)
        if not ended and node.orelse is not None:
            ended = interp.suite(node.orelse.body, env)
        return ended

    def handle(handler: nodes.ExceptHandler) -> Callable[[], bool]:
        def run() -> bool:
            if handler.name is not None and isinstance(handler.name.name, nodes.Name):
                env.bind(handler.name.name.value, UNKNOWN)
            with interp.maybe():
                return interp.suite(handler.body, env)

        return run

    ended = fork(env, [attempt, *(handle(handler) for handler in node.handlers)])
    if node.finalbody is not None:
        ended |= interp.suite(node.finalbody.body, env)
    return ended


def _caught(interp: Tracer, node: nodes.Node) -> AbstractContextManager[None]:
    return interp.under(Guard("caught", UNKNOWN, interp.frame.site(node)))


def _is_swallowed(interp: Tracer, node: nodes.Try, env: Env) -> bool:
    """Whether a handler takes the failure of the body without passing it on: a demonstration, or a second way."""
    return any(
        not any(isinstance(inner, nodes.Raise) for inner in walk(handler.body))
        and not _classes_of(interp, handler, env) <= _NOT_OF_LAUNCHES
        for handler in node.handlers
    )


def _expects_tracers(interp: Tracer, node: nodes.Try, env: Env) -> bool:
    """Whether a handler catches jax's concretization errors: a `TypeError`."""
    return any(not _classes_of(interp, handler, env).isdisjoint(_FOR_TRACERS) for handler in node.handlers)


def _classes_of(interp: Tracer, handler: nodes.ExceptHandler, env: Env) -> set[str]:
    """The exceptions that a handler catches, by the last parts of their names; "" for one that is not known."""
    wanted = NONE if handler.type is None else interp.evaluate(handler.type, env)
    classes = as_tuple(wanted)
    return {"BaseException" if caught == NONE else last_part(name_of(caught)) for caught in classes}


def _with(interp: Tracer, node: nodes.With, env: Env) -> bool:
    return _within(interp, node, tuple(node.items), env)


def _within(interp: Tracer, node: nodes.With, items: Sequence[nodes.WithItem], env: Env) -> bool:
    """Run the rest of a `with` statement, with generators around what follows them."""
    found = ((at, _generator(interp, item.item, env)) for at, item in enumerate(items))
    first, generator = next(((at, generator) for at, generator in found if generator is not None), (len(items), None))
    if first > 0 or generator is None:
        rest = items[first:]
        return _entered(interp, node, items[:first], env, lambda: _body(interp, node, rest, env))
    return _around(interp, items[0], generator, env, lambda: _body(interp, node, items[1:], env))


def _body(interp: Tracer, node: nodes.With, items: Sequence[nodes.WithItem], env: Env) -> bool:
    return _within(interp, node, items, env) if items else interp.suite(node.body, env)


def _generator(interp: Tracer, context: nodes.Node, env: Env) -> Func | None:
    """The function that a `with` in a kernel calls, if `contextlib.contextmanager` decorates it."""
    if interp.kernel is None or not isinstance(context, nodes.Call):
        return None
    owner = context.func.value if isinstance(context.func, nodes.Attribute) else context.func
    called = interp.evaluate(context.func, env) if isinstance(owner, nodes.Name) else UNKNOWN
    if not isinstance(called, Func) or not is_decorated(called, "contextmanager"):
        return None
    return None if any(other.node is called.node for other in interp.frame.stack) else called


def _around(interp: Tracer, item: nodes.WithItem, generator: Func, env: Env, body: Callable[[], bool]) -> bool:
    """Run a generator, and what follows in the `with` statement where it yields for the first time."""
    assert isinstance(item.item, nodes.Call)
    frame, ended = interp.frame, list[bool]()

    def run(value: Value) -> None:
        if ended:
            return
        ended.append(False)
        here = evolve(frame, guards=interp.frame.guards, uncertain=interp.frame.uncertain)
        with interp.inside(here):
            if item.asname is not None and isinstance(item.asname.name, nodes.BaseExpression):
                interp.assign(item.asname.name, value, env)
            ended[0] = body()

    arguments = expressions.arguments_of(interp, item.item, env)
    with interp.inside(evolve(frame, with_body=(generator.node, run))):
        interp.run_function(generator, arguments)
    if not ended:
        run(UNKNOWN)
    return ended[0]


def _entered(
    interp: Tracer, node: nodes.With, items: Sequence[nodes.WithItem], env: Env, body: Callable[[], bool]
) -> bool:
    """Enter contexts, run the body and leave them."""
    raises = computed = False
    entered: list[Instance] = []
    contexts: list[Value] = []
    for item in items:
        value = interp.evaluate(item.item, env)
        contexts.append(value)
        failure = interp.frame.piece.search(_EXPECTS_FAILURE, item.item)
        if failure is not None and interp.run.as_called and interp.kernel is None:
            interp.run.mapped_functions.clear()
            return False  # what is called in there is not meant to work
        raises |= failure is not None and failure[1] is None
        computed |= isinstance(value, CallResult) and value.function == "jax.ensure_compile_time_eval"
        result: Value = UNKNOWN
        if isinstance(value, Instance):
            entered.append(value)
            enter = members.attribute_of(interp, value, "__enter__", item.item)
            result = interp.call_function(enter, Arguments()) if isinstance(enter, Func) else value
        if item.asname is not None and isinstance(item.asname.name, nodes.BaseExpression):
            interp.assign(item.asname.name, result, env)
    if raises:
        _meant_to_fail(interp, node, env)
        return False
    suppressed = interp.kernel is None and any(interp.frame.piece.search(_SUPPRESSES, item.item) for item in items)
    doubt, caught = (
        interp.maybe() if computed else nullcontext(),
        _caught(interp, node) if suppressed else nullcontext(),
    )
    precision = next((each for value in contexts if (each := products.precision_set(value)) is not None), None)
    before = interp.frame.matmul_precision
    interp.frame.matmul_precision = before if precision is None else precision
    with doubt, caught, sharding.within(interp, sharding.on_mesh(interp, contexts)):
        ended = body()
    interp.frame.matmul_precision = before
    for value in reversed(entered):
        leave = members.attribute_of(interp, value, "__exit__", node)
        if isinstance(leave, Func):
            interp.call_function(leave, Arguments([NONE] * 3))
    return ended


def _meant_to_fail(interp: Tracer, node: nodes.With, env: Env) -> None:
    """The body of `with pytest.raises(...)`: launches that are only called there are not checked."""
    if interp.kernel is not None:
        interp.frame.mark_untracked()
        return
    before = set(interp.outcome.entered)
    with interp.under(Guard("raises", UNKNOWN, interp.frame.site(node))):
        interp.suite(node.body, env)
    for func in interp.outcome.entered.keys() - before:
        if interp.outcome.entered[func] is not interp.frame.piece:
            del interp.outcome.entered[func]  # a function of others, which is still to be analysed separately


def _match(interp: Tracer, node: nodes.Match, env: Env) -> bool:
    subject = interp.evaluate(node.subject, env)
    if any(isinstance(case.pattern, nodes.MatchValue | nodes.MatchOr) for case in node.cases):
        interp.frame.concretize("match", subject, node.subject)

    def body(each: nodes.MatchCase) -> bool:
        for name in expressions.captured_names(each.pattern):
            whole = isinstance(each.pattern, nodes.MatchAs) and each.pattern.pattern is None
            env.bind(name, subject if whole else UNKNOWN)
        return interp.suite(each.body, env)

    def case(each: nodes.MatchCase) -> Callable[[], bool]:
        def run() -> bool:
            with branches.take(Guard("if", subject, interp.frame.site(each.pattern))):
                return body(each)

        return run

    branches = interp.branches()
    open_: list[Callable[[], bool]] = []
    for each in node.cases:
        fits = None if each.guard is not None else _fits(interp, each.pattern, subject, env)
        if fits and not open_:
            return body(each)
        if fits is not False:
            open_.append(case(each))
        if fits:
            return fork(env, open_)
    return fork(env, [*open_, lambda: False])


def _fits(interp: Tracer, pattern: nodes.MatchPattern, subject: Value, env: Env) -> bool | None:
    """Whether a value of Python is one that a `match` pattern names; None where that is not known."""
    if isinstance(pattern, nodes.MatchAs):
        return True if pattern.pattern is None else _fits(interp, pattern.pattern, subject, env)
    if isinstance(pattern, nodes.MatchOr):
        found = [_fits(interp, element.pattern, subject, env) for element in pattern.patterns]
        return True if True in found else None if None in found else False
    if isinstance(pattern, nodes.MatchValue):
        return equal(interp.evaluate(pattern.value, env), subject)
    if isinstance(pattern, nodes.MatchClass):
        of_class = type_tests.instance_of(subject, interp.evaluate(pattern.cls, env))
        return None if of_class and (pattern.patterns or pattern.kwds) else of_class
    if isinstance(pattern, nodes.MatchSingleton) and isinstance(subject, Const):
        return subject == interp.evaluate(pattern.value, env)
    return None


def _function_def(interp: Tracer, node: nodes.FunctionDef, env: Env) -> None:
    interp.define(node, env)


def _class_def(interp: Tracer, node: nodes.ClassDef, env: Env) -> None:
    bases = tuple(interp.evaluate(base.value, env) for base in node.bases)
    inside = Env(env.module, env, is_class=True)
    env.bind(node.name.value, Class(node.name.value, node, interp.frame.piece, env.module, inside, bases))
    interp.suite(node.body, inside)


SMALL: dict[type, Callable[..., bool]] = {
    nodes.Assign: _assign,
    nodes.AnnAssign: _goes_on(_ann_assign),
    nodes.AugAssign: _goes_on(_aug_assign),
    nodes.Return: _return,
    nodes.Raise: _raise,
    nodes.Expr: _expression,
    nodes.Del: _goes_on(_delete),
    nodes.Assert: _assert,
    nodes.Import: _goes_on(_import),
    nodes.ImportFrom: _goes_on(_import_from),
    nodes.Global: _goes_on(_scope_declaration),
    nodes.Nonlocal: _goes_on(_scope_declaration),
    nodes.Break: _break,
    nodes.Continue: _continue,
}
COMPOUND: dict[type, Callable[..., bool]] = {
    nodes.If: _if,
    nodes.For: _for,
    nodes.While: _while,
    nodes.Try: _try,
    nodes.TryStar: _try,
    nodes.With: _with,
    nodes.Match: _match,
    nodes.FunctionDef: _goes_on(_function_def),
    nodes.ClassDef: _goes_on(_class_def),
}
