"""Blocks of inputs that a kernel reads, and that none of its results depends on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..launches.launch import Launch
from ..stages.grid import EvaluatedGrid

_MAX_RUNS = 32


def block(launch: Launch, values: list[Any]) -> str | None:
    """The first such block, as "block (0, 1) of `x_ref`"; None where every block counts, or where they are too many.

    Runs it on one core, in the order of the grid, with NaN in one block after the other.
    """
    import jax
    import numpy as np

    def call(*given: Any) -> Any:
        return jax.tree_util.tree_leaves(launch.record.bind(*given, interpret=True))

    run = jax.jit(call)
    expected = [np.asarray(result) for result in run(*values)]
    for number, (name, index, changed) in enumerate(_poisoned(launch, values)):
        if number >= _MAX_RUNS:
            return None
        results = run(*changed)
        if all(np.array_equal(np.asarray(one), two, equal_nan=True) for one, two in zip(results, expected)):
            return f"block ({', '.join(map(str, index))}{',' * (len(index) == 1)}) of `{name}`"
    return None


def _poisoned(launch: Launch, values: list[Any]) -> Iterator[tuple[str, list[int], list[Any]]]:
    """The name of an input, the indices of one of its blocks, and all operands with NaN there."""
    import numpy as np

    grid = EvaluatedGrid(launch)
    inputs = [at for at, operand in enumerate(launch.operands) if operand.role == "in"]
    ahead = len(values) - len(inputs)
    for at in inputs:
        operand = launch.operands[at]
        value = np.asarray(values[ahead + operand.index])
        if at not in grid.starts or not str(value.dtype).startswith(("float", "bfloat")):
            continue
        sizes = [size for _, size in operand.block or []]
        starts, firsts = np.unique(grid.starts[at], axis=0, return_index=True)
        for start, first in zip(starts, firsts):
            changed = value.copy()
            changed[tuple(slice(begin, begin + size) for begin, size in zip(start, sizes))] = np.nan
            index = grid.blocks(at)[first].tolist()
            yield operand.name, index, [*values[: ahead + operand.index], changed, *values[ahead + operand.index + 1 :]]
