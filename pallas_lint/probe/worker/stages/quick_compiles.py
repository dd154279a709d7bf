"""Fast XLA compilation of interpreted programs, where optimising takes longer than running.

A kernel in an interpreter is a program of many small parts, of which most run a few times on a few thousand numbers.
Optimised code is two to four times as fast, and takes two to four times as long to make.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from .. import environment
from ..launches.launch import Launch, jaxprs_in, kernel_jaxpr

# Numbers computed, of which each takes up to 5 ns more. Programs take half a second less to compile.
_MAX_NUMBERS = 1 << 26


@contextlib.contextmanager
def of_launch(launch: Launch) -> Iterator[None]:
    """Context in which what runs the launch once is compiled in a hurry if that pays."""
    known = launch.record.kind == "pallas_call" and launch.grid is not None
    with _in_a_hurry(known and launch.points * numbers(kernel_jaxpr(launch.record.params)) <= _MAX_NUMBERS):
        yield


@contextlib.contextmanager
def of_program(jaxpr: Any) -> Iterator[None]:
    """Context in which what runs a program once, with its launches, is compiled in a hurry if that pays."""
    with _in_a_hurry(numbers(jaxpr) <= _MAX_NUMBERS):
        yield


def numbers(jaxpr: Any) -> float:
    """How many numbers a program computes; infinite where it is not known."""
    found = 0.0
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        found += sum(math.prod(getattr(var.aval, "shape", ())) for var in equation.outvars)
        inner = jaxprs_in(equation)
        if inner:
            found += _times(equation) * sum(map(numbers, inner))
    return found


def _times(equation: Any) -> float:
    """How often an equation runs what is in it."""
    name, mapping = str(equation.primitive), equation.params.get("grid_mapping")
    if mapping is not None:
        sizes = mapping.grid
        return math.prod(sizes) if all(isinstance(size, int) for size in sizes) else math.inf
    if name == "scan":
        return float(equation.params["length"])
    return math.inf if name in ("while", "core_map", "mpmd_map") else 1


@contextlib.contextmanager
def _in_a_hurry(wanted: bool) -> Iterator[None]:
    compiler = environment.optional("jax._src.compiler")
    original = getattr(compiler, "get_compile_options", None)
    if not wanted or original is None:
        yield
        return

    # Not an option of one `jit`: the interpreter compiles more while it runs, on threads of its own.
    def get_compile_options(*arguments: Any, **named: Any) -> Any:
        options = original(*arguments, **named)
        options.executable_build_options.debug_options.xla_backend_optimization_level = 0
        if (0, 7) <= environment.version() < (0, 11):
            # The other emitter has no levels and takes twice as long. Before it is not used, from then on alone.
            options.env_option_overrides = [*options.env_option_overrides, ("xla_cpu_use_fusion_emitters", False)]
        return options

    compiler.get_compile_options = get_compile_options
    try:
        yield
    finally:
        compiler.get_compile_options = original
