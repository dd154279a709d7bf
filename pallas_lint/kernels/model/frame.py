"""Frames of the interpreter: the context in which code runs, and the record of what it does in a kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.kernels.model.trace import Access, Agreement, Concretization, Op
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, OneOf, Ref, options
from pallas_lint.records import define, evolve, field, frozen
from pallas_lint.syntax import Site, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Bindings, Env
    from pallas_lint.kernels.model.trace import (
        AgreementKind,
        Allocation,
        ConcretizationKind,
        Event,
        Guard,
        KernelTrace,
    )
    from pallas_lint.kernels.model.tracer import CodeModule
    from pallas_lint.kernels.model.values import Func, Value
    from pallas_lint.syntax import Piece

_FAILING = re.compile(r"\b(?:mark\.xfail|expectedFailure)\b")


@frozen
class ProgramPoint:
    """When code runs: when a piece is executed, or (`called`) when the function that it defines is called."""

    piece: Piece
    called: bool = False


@define(eq=False)
class JitProgram:
    """The code in an outermost `jit`, or under a mesh that was set. `shardings`: all those in it."""

    shardings: list[Value] = field(factory=list)


@frozen
class ShardingContext:
    """How code outside kernels is sharded. `shard_map` is the innermost."""

    program: JitProgram | None = None
    shard_map: CallResult | None = None
    nested: bool = False  # it is inside another one, or may be
    hidden: bool = False  # unknown code is in between, which may be a `shard_map`
    sure: bool = True  # independent of branches that the text does not decide
    traced: bool = False  # only traced, not run, as by `jax.eval_shape`
    mesh: Value | None = None  # the one that `jax.set_mesh` has set; None: not here
    in_other_module: bool = False  # the code is of another module, with whose launches its own analysis deals


@frozen(eq=False)
class StackEntry:
    """A call outside kernels: the function, its bound parameters and the call site, which is None for a root."""

    func: Func
    bindings: Bindings
    site: Site | None
    certain: bool  # the call does not depend on a branch that the text does not decide


@define(eq=False)
class Frame:
    """The frame of a function call, or of a statement at a module's top level. It starts as a copy of the caller's."""

    module: CodeModule
    piece: Piece
    sharding_context: ShardingContext
    stack: tuple[Func, ...] = ()  # the functions being called, outermost first
    scope: Env | None = None  # the call's variables: facts from its guards hold in its callees
    kernel: KernelTrace | None = None
    launch: Launch | None = None  # whose grid the code runs over: a pipeline's body has one of its own
    guards: tuple[Guard, ...] = ()
    uncertain: int = 0  # the number of undecided branches or unknown callers around the code
    may_be_left: bool = False  # a known call may have returned before: whether it has is open
    for_some_machines: bool = False  # a condition around the code hangs on the machine, and on nothing else
    allocation: Allocation | None = None  # the innermost one
    iterations: int = 1  # how often the enclosing loops run the code
    calls: tuple[Site, ...] = ()  # in a kernel: the calls that lead to the code, outermost first
    entries: tuple[StackEntry, ...] = ()  # the calls of `stack`, where callers of launchers run
    call_node: nodes.Node | None = None  # ... and the current call
    differentiated: bool = False  # `jax.grad` or one of its like calls it
    matmul_precision: Value | None = None  # that of `jax.default_matmul_precision`, where it is set around the code
    failed_call: nodes.Call | None = None  # the last one evaluated, if its function certainly raised an exception
    # A function that `contextlib.contextmanager` decorates, and the body of the `with` statement that calls it.
    with_body: tuple[nodes.Node, Callable[[Value], None]] | None = None
    # A boolean operation whose left side is unknown, with the value of its right side.
    short_circuit_rhs: tuple[nodes.Node, Value] | None = None

    def site(self, node: nodes.Node) -> Site:
        return Site(self.piece, node)

    @property
    def fails_on_purpose(self) -> bool:
        """Whether the code is expected to raise: by a `with` around it, or by its test's decorator."""
        if any(guard.kind == "raises" for guard in self.guards):
            return True
        if not self.stack or not isinstance(self.stack[0].node, nodes.FunctionDef):
            return False
        piece, decorators = self.stack[0].piece, self.stack[0].node.decorators
        return any(piece.search(_FAILING, decorator) for decorator in decorators)

    @property
    def is_caught(self) -> bool:
        """Whether the code is inside a `try` or `pytest.raises`."""
        return any(guard.kind == "caught" for guard in self.guards)

    # -- recording: nothing outside kernels ----------------------------------------------------------------------

    def record(self, event: Event) -> None:
        if self.kernel is not None:
            self.kernel.events.append(event)

    def access(self, kind: str, ref: Ref, index: Value, node: nodes.Node | Site, value: Value = UNKNOWN) -> None:
        site = node if isinstance(node, Site) else self.site(node)
        certain = self.uncertain == 0
        self.record(Access(kind, ref, index, site, value, self.guards, certain, self.calls))  # type: ignore[arg-type]

    def agree(self, kind: AgreementKind, name: str, one: Value, other: Value, node: nodes.Node) -> None:
        """Record that jax requires two values to be of one type."""
        self.record(Agreement(kind, (one, other), self.site(node), name, self.guards, self.uncertain == 0))

    def concretize(self, kind: ConcretizationKind, value: Value, node: nodes.Node, name: str = "") -> None:
        """Record that Python concretizes `value` (`if x`, `int(x)`), if it may be a tracer."""
        if self.kernel is None:
            return
        certain = self.uncertain == 0
        if value is UNKNOWN and self.short_circuit_rhs is not None and self.short_circuit_rhs[0] is node:
            value, certain = self.short_circuit_rhs[1], False  # the right side of an `and` whose left side is open
        found = [option for option in options(value) if isinstance(option, Array | Ref)]
        traced = [option for option in found if isinstance(option, Ref) or not option.host]
        if traced:
            certain &= not isinstance(value, OneOf)
            self.record(Concretization(kind, traced[0], self.site(node), name, self.guards, certain))

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
            self.guards,
            self.uncertain == 0,
            arguments.open,
            self.launch,
            self.calls,
        )
        self.kernel.events.append(op)
        return result.made_by(op) if isinstance(result, Array) else result

    def opaque_call(self, name: str, arguments: Arguments, node: nodes.Node, callee: Value | None = None) -> CallResult:
        """The result of a call that is not modelled: its name and arguments."""
        keywords = tuple(arguments.keywords.items())
        return CallResult(name, tuple(arguments.positional), keywords, self.site(node), arguments.open, callee)
