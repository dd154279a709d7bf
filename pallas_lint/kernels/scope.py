"""Scopes: what names are bound to, and what is left of that after a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from pallas_lint.kernels.values import Frame, Value, join

if TYPE_CHECKING:
    from pallas_lint.kernels.modules import Module
    from pallas_lint.kernels.trace import KernelTrace

Bindings = dict[str, Value]


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
    frame: Frame = field(factory=Frame)  # what owns the symbols that stand for its parameters
    fails: bool = False  # what ended the last block that was left was a `raise`

    def find(self, name: str) -> Value | None:
        """The value bound to `name` here or in an enclosing function; None where it is not a local of any."""
        env: Env = self
        while env.parent is not None:
            value = env.vars.get(name)
            if value is not None and (env is self or not env.is_class):
                return value
            env = env.parent
        return None

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
