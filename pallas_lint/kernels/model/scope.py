"""Scopes: what names are bound to, what guards say of their values, and what is left of both after a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.values import UNKNOWN, Call, Sym, Value
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.trace import KernelTrace

Bindings = dict[str, Value]
Facts = dict[Sym, Value]


@define(eq=False)
class Turns:
    """The loop that runs: the variables wherever it was left, and wherever the turn at hand was."""

    broken: list[Bindings] = field(factory=list)
    continued: list[Bindings] = field(factory=list)


@define(eq=False)
class Env:
    """The variables of one call of a function (or of a module or class body).

    Closures hold the Env itself, so that they see later assignments as Python's do; a branch therefore swaps
    `vars` in place instead of making a new Env.
    """

    module: Module
    parent: Env | None = None
    vars: Bindings = field(factory=dict)
    returns: list[Value] = field(factory=list)
    outer_names: set[str] = field(factory=set)  # declared `global` or `nonlocal`
    is_class: bool = False
    kernel: KernelTrace | None = None  # the kernel that this call is part of
    call: Call = field(factory=Call)  # what owns the symbols that stand for its parameters
    fails: bool = False  # what ended the last block that was left was a `raise`
    # What symbols surely are here: `assert x.shape[1] == 1` went before, or before the call.
    facts: Facts = field(factory=dict)
    turns: Turns | None = None  # of the innermost loop

    def find(self, name: str) -> Value | None:
        """The value bound to `name` here or in an enclosing function; None where it is not a local of any."""
        env: Env = self
        while env.parent is not None:
            value = env.vars.get(name)
            if value is not None and (env is self or not env.is_class):
                return value
            env = env.parent
        return None

    def captures(self, name: str, kernel: KernelTrace | None) -> bool:
        """Whether `name`, which code here uses, is bound outside the kernel that is being traced."""
        env: Env | None = self
        while env is not None:
            if name in env.vars and (env is self or not env.is_class):
                return env.kernel is not kernel
            env = env.parent
        return True  # a global

    def bind(self, name: str, value: Value) -> None:
        if name in self.outer_names:
            env = self.parent
            while env is not None:
                if name in env.vars:
                    env.vars[name] = value
                    env.module.is_changed |= env.parent is None
                    return
                env = env.parent
        self.vars[name] = value

    def known(self) -> Facts:
        """What guards here and in enclosing functions say."""
        around = {} if self.parent is None else self.parent.known()
        return {**around, **self.facts} if around else self.facts

    def meaning(self, symbol: Sym) -> Value:
        """What a guard here or in an enclosing function says that the symbol is; itself where none does."""
        env: Env | None = self
        while env is not None:
            if symbol in env.facts:
                return env.facts[symbol]
            env = env.parent
        return symbol


def fork(env: Env, branches: Sequence[Callable[[], bool]]) -> bool:
    """Run each branch from the same variables and merge those that go on; whether none does."""
    start, known = env.vars, env.facts
    ends: list[tuple[Bindings, Facts]] = []
    for branch in branches:
        env.vars, env.facts = dict(start), known
        if not branch():
            ends.append((env.vars, env.facts))
    env.vars = merge([end for end, _ in ends]) if ends else start
    env.facts = _common([facts for _, facts in ends]) if ends else known
    return not ends


def turn(env: Env, body: Callable[[], bool]) -> bool:
    """Run one turn of the loop at hand; whether there is surely no other."""
    assert env.turns is not None
    env.turns.continued = []
    over = body()
    if env.turns.continued:
        env.vars = merge([*env.turns.continued, *([] if over else [env.vars])])
    return over and not env.turns.continued


def repeat(env: Env, body: Callable[[], bool], *, again: bool = True) -> bool:
    """Run a loop body until its variables are stable: once as entered, once more with what it changed.

    Returns False where it was not run `again` though it should: what it changed is then not known.
    """
    before, known = dict(env.vars), env.facts
    turn(env, body)
    after = merge([before, env.vars])
    env.vars, env.facts = after, known
    changed = [name for name, value in before.items() if after.get(name) != value]
    if changed and again:
        turn(env, body)
        env.vars, env.facts = merge([after, env.vars]), known
    elif changed:
        env.vars.update(dict.fromkeys(changed, UNKNOWN))
    return again or not changed


def _common(branches: list[Facts]) -> Facts:
    """What holds whichever branch ran."""
    first, *rest = branches
    return {symbol: value for symbol, value in first.items() if all(facts.get(symbol) == value for facts in rest)}


def merge(branches: list[Bindings]) -> Bindings:
    """The variables after one of several branches ran. A name that only some bind keeps what those bound."""
    first, *rest = branches
    merged = dict(first)
    for branch in rest:
        for name, value in branch.items():
            if name not in merged:
                merged[name] = value
            elif merged[name] is not value:
                merged[name] = join(merged[name], value)
    return merged
