"""Scopes: bindings of names, facts from guards, and how both are merged after branches and loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.values import UNKNOWN, Sym, SymbolOwner, Value
from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.tracer import CodeModule

Bindings = dict[str, Value]
Facts = dict[Sym, Value]


@define(eq=False)
class LoopExits:
    """The variables at each exit of the current loop (`break`), and of its current iteration (`continue`)."""

    broken: list[Bindings] = field(factory=list)
    continued: list[Bindings] = field(factory=list)


@define(eq=False)
class Env:
    """The variables of one call of a function (or of a module or class body).

    Closures hold the Env itself, so that they see later assignments as Python's do; a branch therefore swaps
    `vars` in place instead of making a new Env.
    """

    module: CodeModule
    parent: Env | None = None
    vars: Bindings = field(factory=dict)
    returns: list[Value] = field(factory=list)
    outer_names: set[str] = field(factory=set)  # declared `global` or `nonlocal`
    is_class: bool = False
    kernel: KernelTrace | None = None  # the kernel that this call is part of
    call: SymbolOwner = field(factory=SymbolOwner)  # owns the symbols of unknown parameters
    fails: bool = False  # the last block that ended early ended with a `raise`
    # Known values of symbols: after `assert x.shape[1] == 1`, here or before the call.
    facts: Facts = field(factory=dict)
    loop_exits: LoopExits | None = None  # of the innermost loop

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

    def change(self, name: str, value: Value, elsewhere: Value) -> None:
        """Bind a name, where it is bound, to what its value was changed into: `elsewhere` in an enclosing function."""
        env = self
        while env.parent is not None:
            if name in env.vars and (env is self or not env.is_class):
                env.vars[name] = value if env is self else elsewhere
                return
            env = env.parent
        self.bind(name, value)

    def known(self) -> Facts:
        """The facts established here and in enclosing functions."""
        outer = {} if self.parent is None else self.parent.known()
        return {**outer, **self.facts} if outer and self.facts else outer or self.facts

    def meaning(self, symbol: Sym) -> Value:
        """The value of a symbol according to guards here or in enclosing functions; the symbol itself without one."""
        env: Env | None = self
        while env is not None:
            if env.facts and symbol in env.facts:  # hashing a symbol takes longer than to see that there are none
                return env.facts[symbol]
            env = env.parent
        return symbol


def fork(env: Env, branches: Sequence[Callable[[], bool]]) -> bool:
    """Run each branch from the same variables and merge those that fall through; whether none does."""
    start, known = env.vars, env.facts
    ends: list[tuple[Bindings, Facts]] = []
    for branch in branches:
        env.vars, env.facts = dict(start), known
        if not branch():
            ends.append((env.vars, env.facts))
    env.vars = merge([end for end, _ in ends]) if ends else start
    env.facts = _common([facts for _, facts in ends]) if ends else known
    return not ends


def run_iteration(env: Env, body: Callable[[], bool]) -> bool:
    """Run one iteration of the current loop; whether it is certainly the last."""
    assert env.loop_exits is not None
    env.loop_exits.continued = []
    over = body()
    if env.loop_exits.continued:
        env.vars = merge([*env.loop_exits.continued, *([] if over else [env.vars])])
    return over and not env.loop_exits.continued


def repeat(env: Env, body: Callable[[], bool], *, again: bool = True) -> bool:
    """Run a loop body until its variables are stable: once as entered, once more with what it changed.

    Returns False where it was not run `again` although it should: variables that it changed are then unknown.
    """
    before, known = dict(env.vars), env.facts
    run_iteration(env, body)
    after = merge([before, env.vars], looped=True)
    env.vars, env.facts = after, known
    changed = [name for name, value in before.items() if after.get(name) != value]
    if changed and again:
        run_iteration(env, body)
        env.vars, env.facts = merge([after, env.vars], looped=True), known
    elif changed:
        env.vars.update(dict.fromkeys(changed, UNKNOWN))
    return again or not changed


def _common(branches: list[Facts]) -> Facts:
    """The facts that hold after every branch."""
    first, *rest = branches
    return {symbol: value for symbol, value in first.items() if all(facts.get(symbol) == value for facts in rest)}


def merge(branches: list[Bindings], *, looped: bool = False) -> Bindings:
    """The variables after one of several branches, or iterations, ran.

    A name that only some bind keeps what those bound.
    """
    first, *rest = branches
    merged = dict(first)
    for branch in rest:
        for name, value in branch.items():
            if name not in merged:
                merged[name] = value
            elif merged[name] is not value:
                merged[name] = join(merged[name], value, looped=looped)
    return merged
