"""What the code at hand runs in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import define, frozen

if TYPE_CHECKING:
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.library.spreading import Around
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.scope import Bindings, Env
    from pallas_lint.kernels.model.trace import Allocation, Guard, KernelTrace
    from pallas_lint.kernels.model.values import Func
    from pallas_lint.syntax import Piece, Site, nodes


@frozen(eq=False)
class Entry:
    """A function that was called outside kernels, with what its parameters got, and where; None for a root."""

    func: Func
    given: Bindings
    site: Site | None
    certain: bool  # no branch that the text leaves open stands before the call


@define(eq=False)
class Frame:
    """Of one call of a function, or of a statement at a module's top level; it begins as that of the caller ends."""

    module: Module
    piece: Piece
    around: Around  # what spreads the code over devices
    stack: tuple[Func, ...] = ()  # the functions that are being called, outermost first
    scope: Env | None = None  # the call's variables: what its guards said holds for whom it calls
    kernel: KernelTrace | None = None
    launch: Launch | None = None  # over whose grid the code runs: a pipeline's body has one of its own
    guards: tuple[Guard, ...] = ()
    uncertain: int = 0  # how many undecided branches or unknown callers enclose the code
    allocation: Allocation | None = None  # the innermost that is held
    turns: int = 1  # how often the loops around the code run it
    entries: tuple[Entry, ...] = ()  # the calls of `stack`, where callers run
    calling: nodes.Node | None = None  # ... and the call that is being made
