"""Frames of the interpreter: the context in which the current code runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Bindings, Env
    from pallas_lint.kernels.model.trace import Allocation, Guard, KernelTrace
    from pallas_lint.kernels.model.tracer import CodeModule
    from pallas_lint.kernels.model.values import CallResult, Func, Value
    from pallas_lint.syntax import Piece, Site, nodes


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
    in_other_module: bool = False  # the code is of another module, entered only to find its launches


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
    entries: tuple[StackEntry, ...] = ()  # the calls of `stack`, where callers of launchers run
    call_node: nodes.Node | None = None  # ... and the current call
    differentiated: bool = False  # `jax.grad` or one of its like calls it
    matmul_precision: Value | None = None  # that of `jax.default_matmul_precision`, where it is set around the code
