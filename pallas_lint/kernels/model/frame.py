"""Frames of the interpreter: the context in which the current code runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import define, frozen

if TYPE_CHECKING:
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.library.sharding import ShardingContext
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Bindings, Env
    from pallas_lint.kernels.model.trace import Allocation, Guard, KernelTrace
    from pallas_lint.kernels.model.values import Func
    from pallas_lint.syntax import Piece, Site, nodes


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

    module: Module
    piece: Piece
    sharding_context: ShardingContext
    stack: tuple[Func, ...] = ()  # the functions being called, outermost first
    scope: Env | None = None  # the call's variables: facts from its guards hold in its callees
    kernel: KernelTrace | None = None
    launch: Launch | None = None  # whose grid the code runs over: a pipeline's body has one of its own
    guards: tuple[Guard, ...] = ()
    uncertain: int = 0  # the number of undecided branches or unknown callers around the code
    allocation: Allocation | None = None  # the innermost one
    iterations: int = 1  # how often the enclosing loops run the code
    entries: tuple[StackEntry, ...] = ()  # the calls of `stack`, where callers of launchers run
    call_node: nodes.Node | None = None  # ... and the current call
