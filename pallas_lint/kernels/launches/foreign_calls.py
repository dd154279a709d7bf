"""Calls of other kernels than Pallas's: jax_triton's `triton_call`, FFI calls and custom calls in lowering rules.

The kernel behind such a call is not run abstractly; only the operands and outputs of the call are known, and which of
them share memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.kernels.launches import launching
from pallas_lint.kernels.model.launch import ForeignCall
from pallas_lint.kernels.model.launch_forms import FOREIGN_FORMS
from pallas_lint.kernels.model.values import CallResult, Const, Seq, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes


def call(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A foreign call: what it returns is known by its outputs' declarations, FFI calls return a function first."""
    form = FOREIGN_FORMS[name]
    made = interp.frame.opaque_call(name, arguments, node)
    found = ForeignCall(form, made, interp.frame.module)
    interp.outcome.keep_foreign_call(found)
    if form.operands == "here":
        found.operands, found.operands_open = list(arguments.positional), arguments.open
        return launching.declared_arrays(made.argument(*form.outputs))
    if isinstance(form.operands, tuple):
        operands = made.argument(*form.operands)
        if isinstance(operands, Seq):
            found.operands, found.operands_open = list(operands.items), operands.open
    return made


def call_result(interp: Tracer, callee: CallResult, arguments: Arguments) -> Value:
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
