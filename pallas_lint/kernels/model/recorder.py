"""Recording of a kernel's events: operations, accesses to refs, concretizations."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pallas_lint.kernels.model.trace import Access, Agreement, Concretization, Op
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, Func, Instance, OneOf, Ref, Value, options
from pallas_lint.records import evolve
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.frame import Frame
    from pallas_lint.kernels.model.result import Effects, InterpreterResult
    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.trace import AgreementKind, ConcretizationKind, Event, KernelTrace
    from pallas_lint.syntax import Piece


_FAILING = re.compile(r"\b(?:mark\.xfail|expectedFailure)\b")
TOP_LEVEL = "top level"  # the run of a module's top level


class OutOfBudget(Exception):
    """The step budget is exhausted; results so far are kept."""


TOO_MUCH = (OutOfBudget, RecursionError)  # exceptions that end a run: too long, or too deep


class Recorder:
    """The part of the interpreter that records; the fields are the interpreter's."""

    __slots__ = ()

    frame: Frame
    short_circuit_rhs: tuple[nodes.Node, Value] | None
    current_run: object
    has_cross_run_effects: bool
    mutations: int
    outcome: InterpreterResult
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

    def agree(self, kind: AgreementKind, name: str, one: Value, other: Value, node: nodes.Node) -> None:
        """Record that jax requires two values to be of one type."""
        site, frame = self.site(node), self.frame
        self.record(Agreement(kind, (one, other), site, name, frame.guards, frame.uncertain == 0))

    def note_outside(self, name: str, arguments: Arguments, node: nodes.Node) -> None:
        """Record a call, outside any kernel, of a function that only kernels may call."""
        op = Op(name, self.site(node), tuple(arguments.positional), (), certain=self.frame.uncertain == 0)
        self.effects.outside.append((op, self.frame.stack))

    def concretize(self, kind: ConcretizationKind, value: Value, node: nodes.Node, name: str = "") -> None:
        """Record that Python concretizes `value` (`if x`, `int(x)`), if it may be a tracer."""
        if self.kernel is None:
            return
        certain = self.frame.uncertain == 0
        if value is UNKNOWN and self.short_circuit_rhs is not None and self.short_circuit_rhs[0] is node:
            value, certain = self.short_circuit_rhs[1], False  # the right side of an `and` whose left side is open
        found = [option for option in options(value) if isinstance(option, Array | Ref)]
        traced = [option for option in found if isinstance(option, Ref) or not option.host]
        if traced:
            certain &= not isinstance(value, OneOf)
            self.record(Concretization(kind, traced[0], self.site(node), name, self.frame.guards, certain))

    @property
    def fails_on_purpose(self) -> bool:
        """Whether the current code is expected to raise: by a `with` around it, or by its test's decorator."""
        if any(guard.kind == "raises" for guard in self.frame.guards):
            return True
        if not self.frame.stack or not isinstance(self.frame.stack[0].node, nodes.FunctionDef):
            return False
        piece, decorators = self.frame.stack[0].piece, self.frame.stack[0].node.decorators
        return any(piece.search(_FAILING, decorator) for decorator in decorators)

    @property
    def is_caught(self) -> bool:
        """Whether the current code is inside a `try` or `pytest.raises`."""
        return any(guard.kind == "caught" for guard in self.frame.guards)

    def mark_untracked(self, at: int | None = None) -> None:
        """An unknown function is called: from here on, captured refs may have been read or written.

        `at`: the index of the next event; by default the call is after all events so far.
        """
        if self.kernel is not None:
            at = len(self.kernel.events) if at is None else at
            self.kernel.untracked_at.append(at)
            if self.kernel.tracked_until is None:
                self.kernel.tracked_until = at

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

    def opaque_call(self, name: str, arguments: Arguments, node: nodes.Node, callee: Value | None = None) -> CallResult:
        """The result of a call that is not modelled: its name and arguments."""
        keywords = tuple(arguments.keywords.items())
        return CallResult(name, tuple(arguments.positional), keywords, self.site(node), arguments.open, callee)

    # -- effects ---------------------------------------------------------------------------------------------------

    def record_mutation(self, made_by: object) -> None:
        """Record that an object made by the run `made_by` is mutated."""
        if made_by is not self.current_run:
            self.has_cross_run_effects = True  # type: ignore[misc]  # the interpreter has the slot

    def set_attributes(self, owner: Instance, attributes: dict[str, Value]) -> None:
        """Set attributes of an object."""
        self.record_mutation(owner.made_by)
        self.mutations += 1  # type: ignore[misc]  # the interpreter has the slot
        owner.attributes.update(attributes)

    def record_name(self, func: Func) -> None:
        """Record that a function of a module's top level was looked up."""
        if self.effects.lookup:
            self.effects.named[func.node] = func
        elif self.kernel is None and self.frame.stack:
            self.named[self.frame.stack[0].node, func.node] = func

    @contextmanager
    def looking_up(self, effects: Effects, piece: Piece | None = None) -> Iterator[None]:
        """Record effects within in `effects`: they belong to the name that is looked up, not to this run alone."""
        before, self.effects = self.effects, effects  # type: ignore[misc]  # the interpreter has the slot
        effects.lookup = effects.is_open = True
        try:
            yield
        finally:
            self.effects = before  # type: ignore[misc]  # the interpreter has the slot
            effects.close(piece)

    def merge_effects(self, effects: Effects) -> None:
        """Merge the effects recorded when a module-level name was first evaluated into the current run."""
        for part in effects.with_pending():
            if part is self.effects:
                continue
            if part.is_open and not any(part is other for other in self.effects.pending):
                self.effects.pending.append(part)
            self.effects.add(part)
            for func in part.named.values():
                self.record_name(func)

    def unentered(self, outer: Func) -> list[tuple[Env, nodes.FunctionDef, Piece]]:
        """Functions defined while `outer` ran that did not run themselves."""
        found = [(env, node, piece) for env, node, piece, root in self.outcome.inner if root is outer.node]
        found += [
            (func.env, func.node, func.piece)
            for (root, _), func in self.named.items()
            if root is outer.node and isinstance(func.node, nodes.FunctionDef)
        ]
        return [(env, node, piece) for env, node, piece in found if node not in self.outcome.entered]
