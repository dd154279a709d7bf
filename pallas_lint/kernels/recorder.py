"""What the interpreter writes down of the kernel at hand: operations, accesses, and what Python asks of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from attrs import evolve

from pallas_lint.kernels.trace import Access, Demand, Op
from pallas_lint.kernels.values import UNKNOWN, Array, Choice, Func, Made, Ref, Sym, Value, options
from pallas_lint.syntax import Site

if TYPE_CHECKING:
    from collections.abc import Sized

    from pallas_lint.kernels.arguments import Arguments
    from pallas_lint.kernels.launch import Launch
    from pallas_lint.kernels.scope import Env
    from pallas_lint.kernels.trace import Asking, Event, Guard, KernelTrace
    from pallas_lint.syntax import Piece


TOP_LEVEL = "top level"  # what runs while a name of a module is looked up


class Recorder:
    """The part of the interpreter that records; the fields are the interpreter's."""

    __slots__ = ()

    piece: Piece
    kernel: KernelTrace | None
    guards: tuple[Guard, ...]
    uncertain: int
    hidden: tuple[cst.CSTNode, Value] | None
    outside: list[tuple[Op, tuple[Func, ...]]]
    stack: list[Func]
    running: object
    entangled: bool
    launches: list[Launch]
    specs_made: list[Made]
    differentiated: list[tuple[Func, str, Site]]
    not_entered: list[tuple[Func, tuple[Func, ...]]]
    derived: set[int]
    checkified: set[int]
    remainders: set[Sym]
    divisors: set[Sym]
    entered: dict[int, Piece]
    contexts: dict[tuple[int, int], tuple[int, Piece, Piece]]
    named: dict[tuple[int, int], Func]
    below: list[Func]
    inner: list[tuple[Env, cst.FunctionDef, Piece, cst.CSTNode]]

    def site(self, node: cst.CSTNode) -> Site:
        return Site(self.piece, node)

    def record(self, event: Event) -> None:
        if self.kernel is not None:
            self.kernel.events.append(event)

    def access(self, kind: str, ref: Ref, index: Value, node: cst.CSTNode | Site, value: Value = UNKNOWN) -> None:
        site = node if isinstance(node, Site) else self.site(node)
        self.record(
            Access(kind, ref, index, site, value, self.guards, self.uncertain == 0)  # type: ignore[arg-type]
        )

    def note_outside(self, name: str, arguments: Arguments, node: cst.CSTNode) -> None:
        """Keep a call of a function that belongs into kernels, met where there is none."""
        op = Op(name, self.site(node), tuple(arguments.positional), (), certain=self.uncertain == 0)
        self.outside.append((op, tuple(self.stack)))

    def demand(self, kind: Asking, value: Value, node: cst.CSTNode, name: str = "") -> None:
        """Python asks what a value is; recorded where the value may be a traced one."""
        if self.kernel is None:
            return
        certain = self.uncertain == 0
        if value is UNKNOWN and self.hidden is not None and self.hidden[0] is node:
            value, certain = self.hidden[1], False  # the right side of an `and` whose left side is open
        found = [option for option in options(value) if isinstance(option, Array | Ref)]
        traced = [option for option in found if isinstance(option, Ref) or not option.host]
        if traced:
            certain &= not isinstance(value, Choice)
            self.record(Demand(kind, traced[0], self.site(node), name, self.guards, certain))

    def lose_sight(self) -> None:
        """Code runs of which nothing is known: what it closes over may be read or written."""
        if self.kernel is not None:
            self.kernel.unseen.append(len(self.kernel.events))
            if self.kernel.seen_until is None:
                self.kernel.seen_until = len(self.kernel.events)

    def op(self, name: str, node: cst.CSTNode, arguments: Arguments, result: Value, form: str = "call") -> Value:
        """Record an operation and return its result with the operation as its origin."""
        if form != "call" and arguments.on_host:
            return evolve(result, host=True) if isinstance(result, Array) else result
        if self.kernel is None:
            return result
        op = Op(
            name,
            self.site(node),
            tuple(arguments.positional),
            tuple(arguments.keywords.items()),
            result,
            form,  # type: ignore[arg-type]
            self.guards,
            self.uncertain == 0,
            arguments.open,
        )
        self.kernel.events.append(op)
        return evolve(result, origin=op) if isinstance(result, Array) else result

    # -- who does what to whom -----------------------------------------------------------------------------------

    @property
    def noted(self) -> tuple[int, ...]:
        """How much has been noted that is noted once, by whoever comes first."""
        noted: tuple[Sized, ...] = (
            self.launches, self.specs_made, self.differentiated, self.not_entered, self.outside,
            self.checkified, self.remainders, self.divisors, self.entered, self.contexts,
        )  # fmt: skip
        return tuple(map(len, noted))

    def change(self, made_by: object) -> None:
        """Something is changed that `made_by` made."""
        if made_by is not self.running:
            self.entangled = True  # type: ignore[misc]  # the interpreter has the slot

    def name(self, func: Func) -> None:
        """A function of a module's top level was looked up."""
        if self.running is TOP_LEVEL:
            self.below.append(func)
        elif self.kernel is None and self.stack:
            self.named[id(self.stack[0].node), id(func.node)] = func

    def unentered(self, outer: Func) -> list[tuple[Env, cst.FunctionDef, Piece]]:
        """Functions defined while `outer` ran that did not run themselves."""
        found = [(env, node, piece) for env, node, piece, root in self.inner if root is outer.node]
        found += [
            (func.env, func.node, func.piece)
            for (root, _), func in self.named.items()
            if root == id(outer.node) and isinstance(func.node, cst.FunctionDef)
        ]
        return [(env, node, piece) for env, node, piece in found if id(node) not in self.entered]
