"""Work of one block of a Triton kernel, from its PTX and its jaxpr: the order of its configurations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...protocol import BlockWork
from ..launches.launch import Launch, Operand, compiler_params, jaxprs_in, kernel_jaxpr
from . import ptx

_LINE = 128  # bytes
_STAGES = 3  # of software pipelining, by default
_READS = ("get", "masked_load")
_WRITES = ("swap", "masked_swap")
_LOOPS = ("scan", "while")


class UnknownWork(Exception):
    """Why it is not known, as a clause."""


def of_block(launch: Launch, text: str) -> BlockWork:
    """The work of each block of a launch, from the PTX that it was compiled to. Raises UnknownWork."""
    if launch.record.kind != "pallas_call" or launch.grid is None or kernel_jaxpr(launch.record.params) is None:
        raise UnknownWork("its grid is not known")
    counts = ptx.counted(text)
    if counts is None:
        raise UnknownWork("it has several loops")
    kernel = kernel_jaxpr(launch.record.params)
    operands = dict(zip(kernel.invars, launch.operands))
    turns, products = 1, 0
    lines = {False: 0.0, True: 0.0}  # in the loop, and outside
    for equation, known, looped in _equations(kernel, operands, looped=False):
        name = str(equation.primitive)
        if name == "scan":
            if turns > 1:
                raise UnknownWork("it has several loops")
            turns = int(equation.params["length"])
        elif name == "while":
            raise UnknownWork("how often its loop turns depends on values")
        elif name == "cond":
            raise UnknownWork("it has branches")
        elif name == "dot_general":
            if any(each.aval.dtype.itemsize != 2 for each in equation.invars):
                raise UnknownWork("it multiplies matrices of other types than of 16 bits")
            products += 1
        elif name in (*_READS, *_WRITES):
            lines[looped] += _lines(equation, known.get(equation.invars[0]))
    if not products:
        raise UnknownWork("it multiplies no matrices")
    once, turn = counts
    if not turn["issued"]:
        raise UnknownWork("its loop is unrolled" if turns > 1 else "it has no loop")
    return {
        "once": once, "turn": turn, "turns": turns, "lines": lines[False], "turn_lines": lines[True],
        "stages": _stages(launch), "blocks": launch.points,
    }  # fmt: skip


def _equations(
    jaxpr: Any, operands: dict[Any, Operand], *, looped: bool
) -> Iterator[tuple[Any, dict[Any, Operand], bool]]:
    """The equations at any depth, the operands behind variables there, and whether a loop is around them."""
    for equation in jaxpr.eqns:
        yield equation, operands, looped
        within = looped or str(equation.primitive) in _LOOPS
        for inner in jaxprs_in(equation):
            body = getattr(inner, "jaxpr", inner)
            given = ((var, operands.get(atom)) for var, atom in zip(body.invars, equation.invars) if _hashable(atom))
            yield from _equations(body, {var: operand for var, operand in given if operand is not None}, looped=within)


def _hashable(atom: Any) -> bool:
    return not hasattr(atom, "val")  # a literal stands for no operand


def _lines(equation: Any, operand: Operand | None) -> float:
    """How many lines of memory are read or written: rows that follow each other in the array are one."""
    if operand is None or (str(equation.primitive) == "get" and any(each.aval.shape for each in equation.invars[1:])):
        raise UnknownWork("it reads or writes single places")
    shape: tuple[int, ...] = tuple(equation.outvars[0].aval.shape)
    if not shape or operand.itemsize == 0:
        return 1.0
    kinds = [kind for kind, _ in operand.block] if operand.block is not None else ["blocked"] * len(operand.shape)
    together, sizes = 1, [*shape]
    if len(shape) != sum(kind != "squeezed" for kind in kinds):
        together = shape[-1]
    else:
        for kind, size in zip(reversed(kinds), reversed(operand.shape)):
            taken = 1 if kind == "squeezed" else sizes.pop()
            together *= taken
            if taken != size:
                break
    return math.prod(shape) / together * math.ceil(together * operand.itemsize / _LINE)


def _stages(launch: Launch) -> int:
    for word, given in compiler_params(launch.record.params):
        if "triton" in word:
            number = given.get("num_stages") if hasattr(given, "get") else getattr(given, "num_stages", None)
            return int(number) if number else _STAGES
    return _STAGES
