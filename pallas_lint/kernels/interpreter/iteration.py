"""Iteration in loops and comprehensions: element by element where these are known, else over any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library.host.known_numbers import items_of
from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.trace import range_length
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, Const, Dictionary, Seq, Sym, Value, truth
from pallas_lint.syntax import nodes
from pallas_lint.syntax.scopes import target_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.tracer import Tracer

_MAX_ELEMENTS = 32
_MAX_ENTRIES = 256  # of a dictionary: a table of block sizes
_MAX_ITERATIONS = 1024  # of comprehensions in comprehensions, together


def element_of(iterable: Value, interp: Tracer, node: nodes.Node) -> Value:
    """What a loop over `iterable` binds, whichever the iteration."""
    if isinstance(iterable, Seq) and iterable.items and not iterable.open:
        result = iterable.items[0]
        for item in iterable.items[1:]:
            result = join(result, item)
        return result
    if isinstance(iterable, CallResult) and iterable.function == "builtins.range":
        return _index_of_range(iterable.args, node)
    if isinstance(iterable, CallResult) and iterable.function == "builtins.enumerate" and iterable.args:
        return Seq((Sym("index", node), element_of(iterable.args[0], interp, node)))
    if isinstance(iterable, Array) and iterable.shape:
        return Array(iterable.shape[1:], iterable.element, iterable.weak, host=iterable.host)
    return UNKNOWN


def _index_of_range(arguments: tuple[Value, ...], node: nodes.Node) -> Sym:
    """Any of the numbers of `range(*arguments)`."""
    bounds = (Const(0), *arguments) if len(arguments) == 1 else arguments
    if len(bounds) == 2 or (len(bounds) == 3 and bounds[2] == Const(1)):
        return Sym("index", node, operation=("range", bounds[0], bounds[1]))
    numbers = [bound.value for bound in bounds if isinstance(bound, Const) and type(bound.value) is int]
    if len(numbers) != 3 or not numbers[2]:
        return Sym("index", node)
    iteration = Sym("turn", node, operation=("range", Const(0), Const(range_length(*numbers))))
    scaled = Sym("scaled", node, operation=("*", iteration, bounds[2]))
    return Sym("index", node, operation=("+", scaled, bounds[0]))


def comprehension(interp: Tracer, node: nodes.ListComp | nodes.GeneratorExp | nodes.SetComp, env: Env) -> Value:
    rows, exact = _iterate(interp, node.for_in, env, lambda: interp.evaluate(node.elt, env))
    if not exact:
        return Seq((), "list", open=True)
    return a_set(rows, False) if isinstance(node, nodes.SetComp) else Seq(tuple(rows), "list")


def dict_comprehension(interp: Tracer, node: nodes.DictComp, env: Env) -> Value:
    def pair() -> Value:
        return Seq((interp.evaluate(node.key, env), interp.evaluate(node.value, env)))

    rows, exact = _iterate(interp, node.for_in, env, pair, _MAX_ENTRIES)
    pairs = tuple((row.items[0], row.items[1]) for row in rows if isinstance(row, Seq))
    return Dictionary(pairs if exact else (), open=not exact)


def _iterate(
    interp: Tracer, clause: nodes.CompFor, env: Env, element: Callable[[], Value], most: int = _MAX_ELEMENTS
) -> tuple[list[Value], bool]:
    """The elements of a comprehension, and whether they are all and exactly those."""
    iterable = interp.evaluate(clause.iter, env)
    items = items_of(iterable)
    if items is None and isinstance(iterable, Array) and iterable.shape and isinstance(iterable.shape[0], int):
        items = (element_of(iterable, interp, clause),) * min(iterable.shape[0], _MAX_ELEMENTS + 1)
    exact = items is not None and len(items) <= most and interp.frame.iterations * len(items) <= _MAX_ITERATIONS
    if items is None or not exact:
        items = (element_of(iterable, interp, clause),)
    with interp.repeated(len(items)):
        return _turns(interp, clause, items, env, element, exact=exact)


def _turns(
    interp: Tracer,
    clause: nodes.CompFor,
    items: tuple[Value, ...],
    env: Env,
    element: Callable[[], Value],
    *,
    exact: bool,
) -> tuple[list[Value], bool]:
    # Other names that are bound meanwhile stay so: those of a module are, where they are met first.
    outer = {name: env.vars.get(name) for name in target_names(clause.target)}
    rows: list[Value] = []
    for item in items:
        interp.assign(clause.target, item, env)
        keep = []
        for test in clause.ifs:
            condition = interp.evaluate(test.test, env)
            interp.frame.concretize("filter", condition, test.test)
            keep.append(truth(condition))
        if False in keep:
            continue
        exact &= None not in keep
        if clause.inner_for_in is not None:
            inner, inner_exact = _iterate(interp, clause.inner_for_in, env, element)
            rows.extend(inner)
            exact &= inner_exact
        else:
            rows.append(element())
    for name, value in outer.items():
        if value is None:
            env.vars.pop(name, None)
        else:
            env.vars[name] = value
    return rows, exact


def a_set(items: list[Value], open_: bool) -> Seq:
    """A set: how many there are is known only of constants."""
    known = all(isinstance(item, Const) for item in items)
    return Seq(tuple(dict.fromkeys(items)) if known else tuple(items), "set", open_ or not known)
