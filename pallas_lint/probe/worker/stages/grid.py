"""The grid stage: the block of each operand at every grid point, all at once, and errors found there."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from ...protocol import GridProblem, OfOperand, Place
from ..launches.launch import Launch, Operand, axes_behind
from . import overwrites
from .first_steps import is_set_first

MAX_POINTS = 1_000_000
STANDS_FOR_OTHERS = "not judged: jax makes another launch of it, which takes arrays"
PICTURE_POINTS = 4_096  # above it the report's picture would be larger than what it shows
_PARALLEL = ("parallel", "core_parallel", "subcore_parallel")


class Unjudged(Exception):
    """The grid cannot be evaluated; the message is the reason."""


class EvaluatedGrid:
    """The evaluated index maps of a launch. `starts[k]` are element starts, [points, rank]."""

    def __init__(self, launch: Launch) -> None:
        import numpy as np

        if launch.record.kind != "pallas_call":
            raise Unjudged("the kernel gets whole arrays: there are no index maps to check")
        if launch.grid is None:
            raise Unjudged("the grid is dynamic")
        if launch.stands_for_others:
            raise Unjudged(STANDS_FOR_OTHERS)
        if launch.points > MAX_POINTS:
            raise Unjudged(f"the grid has {launch.points} points, more than {MAX_POINTS}")
        self.launch = launch
        self.points = [axis.reshape(-1) for axis in np.indices(launch.grid)] if launch.grid else []
        self.starts: dict[int, Any] = {}
        self.unknown: dict[int, str] = {}
        self._evaluate()

    def _evaluate(self) -> None:
        import jax
        import jax.numpy as jnp
        import numpy as np

        launch = self.launch
        mapping = launch.record.params["grid_mapping"]
        first = mapping.num_dynamic_grid_bounds
        scalars = launch.record.values[first : first + mapping.num_index_operands]
        avals = launch.record.avals[first : first + mapping.num_index_operands]
        # Index maps that look at none of the values are evaluated with any.
        given = [np.zeros(aval.shape, aval.dtype) if value is None else value for value, aval in zip(scalars, avals)]
        for at, operand in enumerate(launch.operands):
            if operand.block is None or operand.memory_space in ("any", "hbm", "semaphore") or not operand.shape:
                continue
            if any(value is None for value in scalars) and _reads_operands(operand.mapping):
                self.unknown[at] = (
                    f"the index map of {operand.name} reads a prefetch operand whose values are not known"
                )
                continue

            def start(*indices: Any, block: Any = operand.mapping, given: Any = tuple(given)) -> Any:
                found = block.compute_start_indices_interpret(indices, *[jnp.asarray(each) for each in given])
                return tuple(jnp.asarray(each, jnp.int32) for each in found)

            if not self.points:
                found = [[int(each) for each in start()]]
            else:
                with jax.default_device(jax.devices("cpu")[0]):
                    columns = jax.vmap(start)(*[axis.astype(np.int32) for axis in self.points])
                    found = np.stack([np.asarray(column) for column in columns], 1)
            self.starts[at] = np.broadcast_to(np.asarray(found, np.int64), (max(launch.points, 0), len(operand.shape)))

    def point(self, at: int) -> list[int]:
        """The grid indices of one point."""
        return [int(axis[at]) for axis in self.points]

    def blocks(self, at: int) -> Any:
        """Block indices of an operand, [points, rank]: element starts where the dimension is not blocked."""
        import numpy as np

        block = self.launch.operands[at].block or []
        starts = self.starts[at]
        columns = [starts[:, k] // size if kind == "blocked" else starts[:, k] for k, (kind, size) in enumerate(block)]
        return np.stack(columns, 1)

    def constants(self) -> dict[int, bool]:
        """Which operands have the same block at every point."""
        return {at: bool((starts == starts[:1]).all()) for at, starts in self.starts.items() if len(starts)}

    def total(self, at: int) -> int:
        """How many blocks the array has."""
        operand = self.launch.operands[at]
        total = 1
        for size, (_, block) in zip(operand.shape, operand.block or []):
            total *= -(-size // max(block, 1))
        return total

    def visited(self, at: int) -> int:
        """How many blocks of the array are touched; those outside of it do not count."""
        import numpy as np

        starts, shape = self.starts[at], np.array(self.launch.operands[at].shape)
        inside = ((starts >= 0) & (starts < shape)).all(1)
        return len(np.unique(self.blocks(at)[inside], axis=0))

    # -- what is wrong ---------------------------------------------------------------------------------------------

    def problems(self) -> list[GridProblem]:
        found: list[GridProblem] = []
        for at, operand in enumerate(self.launch.operands):
            if at not in self.starts or not self.launch.points:
                continue
            outside = self._outside(at, operand)
            found += outside
            found += self._ragged(at, operand)
            if operand.role == "out":
                found += self._visits(at, operand, bool(outside))
            elif operand.role == "in" and not outside:
                found += self._unread(at, operand)
        return found

    def _outside(self, at: int, operand: Operand) -> list[GridProblem]:
        import numpy as np

        starts, shape = self.starts[at], np.array(operand.shape)
        sizes = np.array([size for _, size in operand.block or []])
        bad = ((starts >= shape) | (starts + sizes <= 0)).any(1)
        if not bad.any():
            return []
        first = int(np.argmax(bad))
        return [
            {"kind": "out-of-range", **_of(operand), "dtype": operand.dtype, "point": self.point(first),
             "start": starts[first].tolist(), "count": int(bad.sum()), "points": self.launch.points,
             "places": [place] if (place := operand.index_map_place) is not None else []}
        ]  # fmt: skip

    def _ragged(self, at: int, operand: Operand) -> list[GridProblem]:
        import numpy as np

        starts, shape = self.starts[at], np.array(operand.shape)
        sizes = np.array([size for _, size in operand.block or []])
        partial = ((starts < shape) & (starts + sizes > shape)).any(1)
        if not partial.any():
            return []
        axes = [
            k
            for k in range(len(operand.shape))
            if ((starts[:, k] < shape[k]) & (starts[:, k] + sizes[k] > shape[k])).any()
        ]
        return [{"kind": "ragged", **_of(operand), "axes": axes, "count": int(partial.sum())}]

    def _visits(self, at: int, operand: Operand, outside: bool) -> list[GridProblem]:
        import numpy as np

        found: list[GridProblem] = []
        blocks = self.blocks(at)
        keys = np.unique(blocks, axis=0, return_inverse=True)[1].reshape(-1)
        visited = int(keys.max()) + 1
        total = self.total(at)
        aliased = operand.index in self.launch.aliases.values()
        whole_blocks = all(kind != "element" for kind, _ in operand.block or [])
        if whole_blocks and not outside and visited < total and not aliased:
            found.append({"kind": "uncovered", **_of(operand), "visited": visited, "total": total})
        semantics = self.launch.semantics or ()
        parallel = [axis for axis, each in enumerate(semantics) if each in _PARALLEL]
        if parallel:
            lanes = np.unique(np.stack([self.points[axis] for axis in parallel], 1), axis=0, return_inverse=True)[1]
            lanes = lanes.reshape(-1)
            order = np.lexsort((lanes, keys))
            clash = (keys[order][1:] == keys[order][:-1]) & (lanes[order][1:] != lanes[order][:-1])
            if clash.any():
                first = int(np.argmax(clash))
                one, two = int(order[first]), int(order[first + 1])
                axes = [axis for axis in parallel if self.points[axis][one] != self.points[axis][two]]
                found.append(
                    {"kind": "parallel-writes", **_of(operand, blocks[one].tolist()), "axes": axes,
                     "first": self.point(one), "second": self.point(two),
                     "carried": operand.name in self.launch.reads and not is_set_first(self.launch, at, parallel)}
                )  # fmt: skip
        runs = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        if visited < len(runs) and not operand.fetched_again:
            block = int(np.unique(runs, return_counts=True)[1].argmax())
            visits = np.flatnonzero(keys == block)
            gap = int(np.argmax(np.diff(visits) > 1))
            found.append(
                {"kind": "revisited", **_of(operand, blocks[int(visits[0])].tolist()),
                 "first": self.point(int(visits[gap])), "second": self.point(int(visits[gap + 1]))}
            )  # fmt: skip
        if visited < self.launch.points:
            stores = self._overwritten.get(at, [])
            found.append(
                {"kind": "shared", **_of(operand), "visited": visited, "points": self.launch.points, "places": stores}
            )
        return found

    def _unread(self, at: int, operand: Operand) -> list[GridProblem]:
        """Blocks that a sum leaves out: those behind the last one that an axis comes to which no output depends on.

        An axis whose length is an operand is as long as in the data of a call.
        """
        results = [each for each, other in enumerate(self.launch.operands) if other.role == "out"]
        ahead = self.launch.record.params["grid_mapping"].num_dynamic_grid_bounds
        aliased = operand.index + ahead + self._count("prefetch") in self.launch.aliases
        if aliased or any(each not in self.starts for each in results) or _reads_operands(operand.mapping):
            return []
        kept = {axis for each in results for axes in self._axes(each) for axis in axes}
        sizes = self.launch.record.params["grid_mapping"].grid
        kept |= {axis for axis, size in enumerate(sizes) if not isinstance(size, int)}
        for dimension, axes in enumerate(self._axes(at)):
            kind, size = (operand.block or [])[dimension]
            blocks, total = self._walked(at, dimension), -(-operand.shape[dimension] // size)
            steps = math.prod((self.launch.grid or ())[axis] for axis in axes)
            if kind == "element" or not axes or axes & kept or blocks != set(range(steps)) or steps >= total:
                continue
            if not self._others_reach(at, dimension):
                return [{"kind": "unread", **_of(operand), "visited": self.visited(at), "total": self.total(at)}]
        return []

    def _count(self, role: str) -> int:
        return sum(each.role == role for each in self.launch.operands)

    @cached_property
    def _overwritten(self) -> dict[int, list[Place]]:
        return overwrites.overwritten(self.launch, {at: set().union(*self._axes(at)) for at in self.starts})

    def _axes(self, at: int) -> list[set[int]]:
        """For each dimension of an operand, the axes of the grid that its index map makes the index of."""
        return _dependencies(self.launch.operands[at].mapping, len(self.launch.grid or ()))

    def _walked(self, at: int, dimension: int) -> set[int]:
        """The indices of the blocks that are visited along a dimension."""
        return set(self.blocks(at)[:, dimension].tolist())

    def _others_reach(self, at: int, dimension: int) -> bool:
        """Whether another input of the same type goes further: the array may be passed several times."""
        mine = self.launch.operands[at]
        like = [
            each for each, other in enumerate(self.launch.operands)
            if each != at and other.role == "in" and (other.shape, other.dtype) == (mine.shape, mine.dtype)
        ]  # fmt: skip
        furthest = self.starts[at][:, dimension].max()
        return any(each not in self.starts or self.starts[each][:, dimension].max() > furthest for each in like)

    # -- for the picture -------------------------------------------------------------------------------------------

    def picture(self, at: int) -> list[list[int]] | None:
        """The block indices by grid point; None where there are too many to show."""
        if at not in self.starts or self.launch.points > PICTURE_POINTS:
            return None
        found: list[list[int]] = self.blocks(at).tolist()
        return found


def _of(operand: Operand, block: list[int] | None = None) -> OfOperand:
    """Which operand a problem is about, and the indices of the block if it is about one."""
    return {
        "operand": operand.name,
        "role": operand.role,
        "index": operand.index,
        "shape": list(operand.shape),
        "block": [size for _, size in operand.block or []] if block is None else block,
    }


def _reads_operands(mapping: Any) -> bool:
    """Whether the index map looks into a prefetch operand."""
    jaxpr = mapping.index_map_jaxpr
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    return any("Ref" in type(getattr(var, "aval", None)).__name__ for eqn in jaxpr.eqns for var in eqn.invars)


def _dependencies(mapping: Any, axes: int) -> list[set[int]]:
    """For each index that an index map returns, the axes of the grid that it is computed from."""
    jaxpr = mapping.index_map_jaxpr
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    of = axes_behind(jaxpr, {var: {axis} for axis, var in enumerate(jaxpr.invars[:axes])})
    return [of([atom]) for atom in jaxpr.outvars]
