"""One run of the interpreter from a root, and what ends it early."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pallas_lint.records import define, field

if TYPE_CHECKING:
    from pallas_lint.identity import ById
    from pallas_lint.kernels.model.values import Func, Value
    from pallas_lint.syntax import Piece, nodes


TOP_LEVEL = "top level"  # in place of a run: what a module's top level makes is of no run alone


class OutOfBudget(Exception):
    """The step budget is exhausted; results so far are kept."""


TOO_MUCH = (OutOfBudget, RecursionError)  # exceptions that end a run: too long, or too deep


@define(eq=False)
class Run:
    """What belongs to one run, beside its results. Launches and instances refer to the run that made them."""

    root: Piece | None = None  # None outside of runs: while the module is analysed otherwise, or by rules
    assumptions: dict[str, int] = field(factory=dict)  # the module's, and those of comments in the root
    as_called: bool = False  # the root runs because it calls launchers, or with the arguments of a known call
    outdated: frozenset[ById] = frozenset()  # lists and dictionaries that were changed, under whichever name
    mapped_functions: dict[ById, Value] = field(factory=dict)  # mapped over devices and not called yet
    # How often a kernel was traced for a launch site.
    contexts: Counter[tuple[nodes.Node, nodes.Node]] = field(factory=Counter)
    # How often the functions of a `jax.custom_vjp` were run for its calls.
    derived: Counter[nodes.Node] = field(factory=Counter)
    # Functions of a module's top level that a function outside kernels named, by the nodes of both.
    named: dict[tuple[nodes.Node, nodes.Node], Func] = field(factory=dict)
