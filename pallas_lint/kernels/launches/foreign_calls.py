"""Calls of other kernels than Pallas's: jax_triton's `triton_call`, FFI calls and custom calls in lowering rules.

The kernel behind such a call is not run abstractly; only the operands and outputs of the call are known, and which of
them share memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.kernels.launches import launching
from pallas_lint.kernels.model.known_names import is_shape_struct
from pallas_lint.kernels.model.launch_forms import FOREIGN_FORMS, ForeignForm
from pallas_lint.kernels.model.values import UNKNOWN, CallResult, Const, Func, Seq, Value, options
from pallas_lint.records import define

if TYPE_CHECKING:
    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.syntax import Site, nodes

_MAX_CONTEXTS = 2  # of one call; see launches


@define(eq=False)
class ForeignCall:
    """One such call found by the interpreter. `operands` is None where they are not known."""

    form: ForeignForm
    made: CallResult
    module: Module
    operands: list[Value] | None = None
    operands_open: bool = False
    result_used: bool = False

    @property
    def site(self) -> Site:
        return self.made.site

    @property
    def open(self) -> bool:
        return self.made.open

    @property
    def aliases(self) -> Value | None:
        """The argument with the aliases of operands and outputs; None where nothing was passed."""
        return self.made.argument(self.form.aliases)

    @property
    def outputs(self) -> Seq | None:
        """The declarations of the outputs; None where their number is not known."""
        value = self.made.argument(*self.form.outputs)
        if isinstance(value, Seq):
            return None if value.open else value
        return Seq((value,)) if is_shape_struct(value) else None

    @property
    def kernels(self) -> tuple[Func, ...]:
        """The functions that a `triton_call` runs, decorators taken off."""
        return tuple(func for value in options(self.made.argument("kernel") or UNKNOWN) for func in _functions(value))


def _functions(value: Value) -> list[Func]:
    if isinstance(value, Func):
        return [value]
    if isinstance(value, CallResult):  # `triton.jit(f)`, `triton.autotune(...)(f)`
        return [func for inner in value.args for func in _functions(inner)]
    return []


def call(interp: Interpreter, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A foreign call: what it returns is known by its outputs' declarations, FFI calls return a function first."""
    form = FOREIGN_FORMS[name]
    made = interp.opaque_call(name, arguments, node)
    found = ForeignCall(form, made, interp.frame.module)
    keep(interp.outcome.foreign_calls, found)
    if form.operands == "here":
        found.operands, found.operands_open = list(arguments.positional), arguments.open
        return launching.declared_arrays(made.argument(*form.outputs))
    if isinstance(form.operands, tuple):
        operands = made.argument(*form.operands)
        if isinstance(operands, Seq):
            found.operands, found.operands_open = list(operands.items), operands.open
    return made


def keep(calls: list[ForeignCall], call: ForeignCall) -> None:
    """Add a call, but for one that is made in too many ways."""
    if sum(other.site.key == call.site.key for other in calls) < _MAX_CONTEXTS:
        calls.append(call)


def call_result(interp: Interpreter, callee: CallResult, arguments: Arguments) -> Value:
    """`ffi_call(target, shapes)(x, y)`: the operands are here."""
    for found in reversed(interp.outcome.foreign_calls):
        if found.made is callee and found.operands is None:
            found.operands, found.operands_open = list(arguments.positional), arguments.open
            break
    return launching.declared_arrays(callee.argument(*FOREIGN_FORMS[callee.function].outputs))


def is_scalar(value: Value) -> bool | None:
    """Whether an operand of a `triton_call` is a Python number, which takes no buffer; None where not known."""
    from pallas_lint.kernels.model.values import Array, Sym

    if isinstance(value, Const):
        return isinstance(value.value, int | float)
    if isinstance(value, Array):
        return False
    if isinstance(value, Sym):
        if value.operation is not None or value.text.endswith((".size", ".ndim", ".itemsize")):
            return True
        return True if value.text.endswith("]") and re.search(r"\.shape\b", value.text) else None
    return None
