"""What the interpreter writes down of the kernel at hand: operations, accesses, and what Python asks of values."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pallas_lint.kernels.model.trace import Access, Concretization, Op
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, Func, OneOf, Ref, Value, options
from pallas_lint.records import evolve
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.interpreter.effects import Effects
    from pallas_lint.kernels.interpreter.outcome import Outcome
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.frame import Frame
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.trace import Asking, Event, KernelTrace
    from pallas_lint.syntax import Piece


_FAILING = re.compile(r"\b(?:mark\.xfail|expectedFailure)\b")
TOP_LEVEL = "top level"  # what runs while a name of a module is looked up


class OutOfBudget(Exception):
    """The abstract run became too long; what was found so far stands."""


TOO_MUCH = (OutOfBudget, RecursionError)  # what ends a run that is too long, or too deep


class Recorder:
    """The part of the interpreter that records; the fields are the interpreter's."""

    __slots__ = ()

    frame: Frame
    hidden: tuple[nodes.Node, Value] | None
    running: object
    entangled: bool
    changes: int
    outcome: Outcome
    effects: Effects
    named: dict[tuple[nodes.Node, nodes.Node], Func]

    @property
    def kernel(self) -> KernelTrace | None:
        """The kernel that is being traced; None outside of any."""
        return self.frame.kernel

    def site(self, node: nodes.Node) -> Site:
        return Site(self.frame.piece, node)

    def record(self, event: Event) -> None:
        if self.kernel is not None:
            self.kernel.events.append(event)

    def access(self, kind: str, ref: Ref, index: Value, node: nodes.Node | Site, value: Value = UNKNOWN) -> None:
        site = node if isinstance(node, Site) else self.site(node)
        self.record(
            Access(kind, ref, index, site, value, self.frame.guards, self.frame.uncertain == 0)  # type: ignore[arg-type]
        )

    def note_outside(self, name: str, arguments: Arguments, node: nodes.Node) -> None:
        """Keep a call of a function that belongs into kernels, met where there is none."""
        op = Op(name, self.site(node), tuple(arguments.positional), (), certain=self.frame.uncertain == 0)
        self.effects.outside.append((op, self.frame.stack))

    def demand(self, kind: Asking, value: Value, node: nodes.Node, name: str = "") -> None:
        """Python asks what a value is; recorded where the value may be a traced one."""
        if self.kernel is None:
            return
        certain = self.frame.uncertain == 0
        if value is UNKNOWN and self.hidden is not None and self.hidden[0] is node:
            value, certain = self.hidden[1], False  # the right side of an `and` whose left side is open
        found = [option for option in options(value) if isinstance(option, Array | Ref)]
        traced = [option for option in found if isinstance(option, Ref) or not option.host]
        if traced:
            certain &= not isinstance(value, OneOf)
            self.record(Concretization(kind, traced[0], self.site(node), name, self.frame.guards, certain))

    @property
    def fails_on_purpose(self) -> bool:
        """Whether the code at hand is expected to raise: by what stands around it, or by its test's decorator."""
        if any(guard.kind == "raises" for guard in self.frame.guards):
            return True
        if not self.frame.stack or not isinstance(self.frame.stack[0].node, nodes.FunctionDef):
            return False
        piece, decorators = self.frame.stack[0].piece, self.frame.stack[0].node.decorators
        return any(piece.search(_FAILING, decorator) for decorator in decorators)

    @property
    def is_caught(self) -> bool:
        """Whether somebody is prepared for the code at hand to raise."""
        return any(guard.kind == "caught" for guard in self.frame.guards)

    def lose_sight(self, at: int | None = None) -> None:
        """Code runs of which nothing is known: what it closes over may be read or written. `at`: before which event."""
        if self.kernel is not None:
            at = len(self.kernel.events) if at is None else at
            self.kernel.unseen.append(at)
            if self.kernel.seen_until is None:
                self.kernel.seen_until = at

    def op(self, name: str, node: nodes.Node, arguments: Arguments, result: Value, form: str = "call") -> Value:
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
            self.frame.guards,
            self.frame.uncertain == 0,
            arguments.open,
            self.frame.launch,
        )
        self.kernel.events.append(op)
        return result.made_by(op) if isinstance(result, Array) else result

    def made(self, name: str, arguments: Arguments, node: nodes.Node, callee: Value | None = None) -> CallResult:
        """What a call gives of which only the name and the arguments count."""
        keywords = tuple(arguments.keywords.items())
        return CallResult(name, tuple(arguments.positional), keywords, self.site(node), arguments.open, callee)

    # -- who does what to whom -----------------------------------------------------------------------------------

    def change(self, made_by: object) -> None:
        """Something is changed that `made_by` made."""
        if made_by is not self.running:
            self.entangled = True  # type: ignore[misc]  # the interpreter has the slot

    def name(self, func: Func) -> None:
        """A function of a module's top level was looked up."""
        if self.effects.lookup:
            self.effects.named[func.node] = func
        elif self.kernel is None and self.frame.stack:
            self.named[self.frame.stack[0].node, func.node] = func

    @contextmanager
    def looking_up(self, notes: Effects, piece: Piece | None = None) -> Iterator[None]:
        """What is noted within goes to `notes`: it belongs to the value that is found, not to who looks first."""
        before, self.effects = self.effects, notes  # type: ignore[misc]  # the interpreter has the slot
        notes.lookup = notes.is_open = True
        try:
            yield
        finally:
            self.effects = before  # type: ignore[misc]  # the interpreter has the slot
            notes.close(piece)

    def hear(self, notes: Effects) -> None:
        """Somebody looks up a value of which this was noted when it was found."""
        for each in notes.together():
            if each is self.effects:
                continue
            if each.is_open and not any(each is other for other in self.effects.beside):
                self.effects.beside.append(each)
            self.effects.add(each)
            for func in each.named.values():
                self.name(func)

    def unentered(self, outer: Func) -> list[tuple[Env, nodes.FunctionDef, Piece]]:
        """Functions defined while `outer` ran that did not run themselves."""
        found = [(env, node, piece) for env, node, piece, root in self.outcome.inner if root is outer.node]
        found += [
            (func.env, func.node, func.piece)
            for (root, _), func in self.named.items()
            if root is outer.node and isinstance(func.node, nodes.FunctionDef)
        ]
        return [(env, node, piece) for env, node, piece in found if node not in self.outcome.entered]
