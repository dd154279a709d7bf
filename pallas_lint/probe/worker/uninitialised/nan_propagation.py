"""Propagation of NaN: a kernel that does the same at each grid point for all numbers passes on NaN that it reads."""

from __future__ import annotations

from ..launches.launch import Launch, equations, jaxprs_in, kernel_jaxpr

# Operations on floating-point numbers of which each result is NaN where an operand is.
_PASS_ON = frozenset({
    "get", "swap", "addupdate", "add", "add_any", "sub", "mul", "div", "neg", "dot_general", "reduce_sum", "exp", "log",
    "tanh", "logistic", "sqrt", "rsqrt", "convert_element_type", "broadcast_in_dim", "reshape", "squeeze", "transpose",
})  # fmt: skip


def passes_on(launch: Launch) -> bool:
    """Whether what the kernel reads first, in the first step of any core, decides about NaN in its results."""
    jaxpr = kernel_jaxpr(launch.record.params)
    return jaxpr is not None and all(
        (
            bool(jaxprs_in(equation))
            if str(equation.primitive) in ("pjit", "jit")
            else str(equation.primitive) in _PASS_ON
        )
        and all(str(each.aval.dtype).startswith(("float", "bfloat")) for each in equation.outvars)
        for equation in equations(jaxpr)
    )
