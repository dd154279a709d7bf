"""What warpgroups of a Mosaic GPU kernel do that others see: barriers, copies by TMA, matrix units, fences.

A barrier counts arrivals and is never lowered: the n-th wait of a line goes on when it has completed n times. Copies to
main memory and wgmma are waited for by how many younger ones may still be under way.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from ...devices.events import Copy, Event, Fence, Semaphore, Signal, Wait
from .communication import access, part
from .references import UNKNOWN, Buffer, Unknown, Unmodelled, View
from .scopes import scoped
from .unroller import Core, Home, Unroller, rule

_WARPS = 4  # of a warpgroup
_LOADS, _STORES, _WGMMA, _TCGEN05 = "loads", "stores", "wgmma", "tcgen05"
# Who is done in order: with wgmma each warpgroup's products, in tensor memory all of a block.
_ORDERED: dict[str, Literal["", "line", "device"]] = {_LOADS: "", _STORES: "", _WGMMA: "line", _TCGEN05: "device"}


@dataclass
class Block:
    """A block of threads: where it is in the grid, and its lines, those of warps included."""

    grid: tuple[int, ...]
    point: tuple[int, ...]
    names: list[str] = field(default_factory=list)
    lines: list[list[Event]] = field(default_factory=list)
    vague: int = 0

    def begin(self, name: str) -> int:
        """The number of a new line."""
        self.names.append(name)
        self.lines.append([])
        return len(self.lines) - 1


@dataclass
class Work:
    """What a line has begun, and waits for by its number."""

    block: Block
    waits: dict[Semaphore, int] = field(default_factory=lambda: defaultdict(int))
    stores: list[tuple[Semaphore, Semaphore]] = field(
        default_factory=list
    )  # of the group that is not closed: read, done
    groups: list[list[tuple[Semaphore, Semaphore]]] = field(default_factory=list)
    products: list[Semaphore] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)

    def semaphore(self, line: int, name: str) -> Semaphore:
        """A new one, of a single work."""
        return Semaphore(line, name, (next(self.numbers),), "work")


def begin(block: Block, name: str, core: Core, axes: dict[str, int], coordinates: dict[str, int]) -> Unroller:
    """A new line of a block, which stands at these coordinates of the grid, and of warps where it is one."""
    line = block.begin(name)
    run = Unroller(0, core, axes, coordinates, block.grid)
    run.home = Home(line, 0)
    run.point = block.point
    run.events = block.lines[line]
    run.work = Work(block)
    return run


def _work(run: Unroller, place: Any) -> Work:
    work: Work | None = run.work
    if work is None:
        raise Unmodelled("an operation of GPUs", place)
    return work


class _Given:
    """The operands of an operation: references first, then what their transforms are made of, a predicate last."""

    def __init__(self, run: Unroller, equation: Any, values: list[Any], count: int) -> None:
        self.params = equation.params
        self.place = run.place(equation)
        self.refs, self.rest = values[:count], values[count:]
        self.happens: bool = True
        if self.params.get("has_user_predicate"):
            predicate = self.rest.pop()
            if isinstance(predicate, Unknown):
                raise Unmodelled("whether it happens hangs on data", self.place)
            self.happens = bool(predicate)

    def view(self, at: int, tree: str) -> View:
        """The part of a reference; to be asked for in the order in which the operands stand."""
        shape = self.params.get(tree)
        leaves = [] if shape is None else [self.rest.pop(0) for _ in range(shape.num_leaves)]
        return part(self.refs[at], () if shape is None else shape.unflatten(leaves), self.place)


def _barrier(view: View, place: Any) -> Semaphore:
    if view.buffer.semaphore != "arrivals":
        raise Unmodelled("a barrier of several blocks", place)
    return view.semaphore(place)


# -- barriers ----------------------------------------------------------------------------------------------------------


@rule("barrier_arrive")
def _arrive(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 1)
    if given.happens:
        run.tell(Signal(given.place, run.step, _barrier(given.view(0, "transforms_treedef"), given.place), 1))
    return []


@rule("barrier_wait")
def _wait(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 1)
    _wait_for(run, _barrier(given.view(0, "transforms_treedef"), given.place), given.place)
    return []


@rule("barrier_arrive_and_wait")
def _arrive_and_wait(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    _arrive(run, equation, list(values))
    return _wait(run, equation, values)


def _wait_for(run: Unroller, barrier: Semaphore, place: Any) -> None:
    waits = _work(run, place).waits
    waits[barrier] += 1
    run.tell(Wait(place, run.step, barrier, waits[barrier] * barrier.phase, takes=False))


# -- copies ------------------------------------------------------------------------------------------------------------


@rule("copy_gmem_to_smem")
def _load(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    if not equation.params.get("has_barrier", True):
        raise Unmodelled("a copy to shared memory without a barrier", run.place(equation))
    given = _Given(run, equation, values, 3)
    if equation.params.get("collective_axes"):
        raise Unmodelled("a copy for several blocks", given.place)
    source, target = given.view(0, "src_transforms_treedef"), given.view(1, "dst_transforms_treedef")
    barrier = _barrier(given.view(2, "barrier_transforms_treedef"), given.place)
    if given.happens:
        _begin(run, given.place, [source], [target], barrier, unit=_LOADS)
    return []


@rule("copy_smem_to_gmem")
def _store(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 2)
    work = _work(run, given.place)
    source, target = given.view(0, "src_transforms_treedef"), given.view(1, "dst_transforms_treedef")
    if given.happens:
        read, done = work.semaphore(run.line, "copies read"), work.semaphore(run.line, "copies done")
        work.stores.append((read, done))
        added = equation.params.get("reduction_op") is not None  # several may add to one place
        _begin(run, given.place, [source], [] if added else [target], done, read, unit=_STORES)
    if equation.params.get("commit_group", True):
        _close(run, equation, [])
    return []


@rule("commit_group")
def _close(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    work = _work(run, run.place(equation))
    work.groups.append(work.stores)
    work.stores = []
    return []


@rule("wait_smem_to_gmem")
def _wait_for_stores(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    place = run.place(equation)
    work = _work(run, place)
    left = equation.params.get("n", values[0] if values else 0)
    if isinstance(left, Unknown):
        raise Unmodelled("how many copies are waited for hangs on data", place)
    done = not equation.params.get("wait_read_only")
    over = max(len(work.groups) - int(left), 0)
    for group in work.groups[:over]:
        for ends in group:
            run.tell(Wait(place, run.step, ends[done], 1, takes=False))
    if done:
        del work.groups[:over]  # none has to be waited for again
    return []


def _begin(
    run: Unroller,
    place: Any,
    reads: list[View],
    writes: list[View],
    received: Semaphore,
    sent: Semaphore | None = None,
    *,
    unit: str,
    what: str = "copy",
) -> None:
    for view in (*reads, *writes):
        run.vague += not view.region().exact
    source, target = (tuple(view.region() for view in views) for views in (reads, writes))
    run.tell(Copy(place, run.step, source, target, 1, received, sent, what, unit, _ORDERED[unit]))


# -- matrix units ------------------------------------------------------------------------------------------------------


@rule("wgmma_ref")
def _multiply(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 3)
    work = _work(run, given.place)
    views = [given.view(0, "acc_transforms_tree")]
    for at, tree in ((1, "a_transforms_tree"), (2, "b_transforms_tree")):
        if isinstance(given.refs[at], Buffer | View):  # the first may lie in registers
            views.append(given.view(at, tree))
    done = work.semaphore(run.line, "wgmma")
    work.products.append(done)
    _begin(run, given.place, views[1:], views[:1], done, unit=_WGMMA, what="wgmma")
    return []


@rule("wgmma_wait")
def _wait_for_products(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    left = equation.params.get("n", values[0] if values else 0)
    _wait_for_all_but(run, int(left), run.place(equation))
    return []


def _wait_for_all_but(run: Unroller, left: int, place: Any) -> None:
    products = _work(run, place).products
    over = len(products) - left
    if over > 0:  # they are done in order
        run.tell(Wait(place, run.step, products[over - 1], 1, takes=False))
        del products[:over]


@rule("wgmma_accumulator_deref", "wgmma_accumulator_deref_p")
def _read_accumulator(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    place = run.place(equation)
    left = equation.params.get("wait_n", 0)
    if left is not None:
        _wait_for_all_but(run, int(left), place)
    access(run, equation, part(values[0], (), place), writes=False)
    return [UNKNOWN]


@rule("wgmma_accumulator_store")
def _write_accumulator(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    access(run, equation, part(values[0], (), run.place(equation)), writes=True)
    return [UNKNOWN] * len(equation.outvars)


@rule("tcgen05_mma")
def _multiply_in_tensor_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    params = equation.params
    if params.get("collective_axis") is not None:
        raise Unmodelled("a product of several blocks", run.place(equation))
    if params.get("scaled") or params.get("sparse") or params.get("is_sparse"):
        raise Unmodelled("a product with scales or of sparse operands", run.place(equation))
    arrives = bool(params.get("arrive"))
    given = _Given(run, equation, values, 5 if arrives else 4)
    views = [given.view(at, f"{name}_transforms_tree") for at, name in enumerate(("acc", "a", "b"))]
    again = given.refs[3]  # whether it adds to what is there
    reads = views[1:] + ([] if not isinstance(again, Unknown) and not again else views[:1])
    done = _work(run, given.place).semaphore(run.line, "tcgen05_mma")
    _begin(run, given.place, reads, views[:1], done, unit=_TCGEN05, what="tcgen05_mma")
    if arrives:
        barrier = _barrier(given.view(4, "barrier_transforms_tree"), given.place)
        _begin(run, given.place, [], [], barrier, unit=_TCGEN05, what="commit")
    return []


@rule("tcgen05_commit_arrive")
def _commit(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 1)
    if equation.params.get("collective_axis") is not None:
        raise Unmodelled("an arrival at barriers of several blocks", given.place)
    if given.happens:  # it arrives when all is done that the unit was told before
        barrier = _barrier(given.view(0, "barrier_transforms_tree"), given.place)
        _begin(run, given.place, [], [], barrier, unit=_TCGEN05, what="commit")
    return []


@rule("async_copy_smem_to_tmem", "async_copy_scales_to_tmem", "async_copy_sparse_metadata_to_tmem")
def _copy_to_tensor_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 2)
    if equation.params.get("collective_axis") is not None:
        raise Unmodelled("a copy of several blocks", given.place)
    source, target = given.view(0, "smem_tree"), given.view(1, "tmem_tree")
    done = _work(run, given.place).semaphore(run.line, "copies to TMEM")
    _begin(run, given.place, [source], [target], done, unit=_TCGEN05)
    return []


@rule("async_load")
def _load_tensor_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 1)
    access(run, equation, given.view(0, "tree"), writes=False)
    return [UNKNOWN] * len(equation.outvars)


@rule("async_store_tmem", "async_store")
def _store_tensor_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 2)
    access(run, equation, given.view(0, "tree"), writes=True)
    return [UNKNOWN] * len(equation.outvars)


@rule("store")
def _store_itself(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = _Given(run, equation, values, 2)
    access(run, equation, given.view(0, "tree"), writes=True)
    return []


@rule("commit_smem")
def _commit_shared(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    run.tell(Fence(run.place(equation), run.step, "smem"))
    return []


@rule("commit_tmem")
def _commit_tensor(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    run.tell(Fence(run.place(equation), run.step, "tmem"))
    return []


@rule("wait_load_tmem", "set_max_registers", "async_prefetch", "print_layout", "griddepcontrol_wait")
def _seen_by_nobody(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    return [UNKNOWN] * len(equation.outvars)


# -- warps and registers -----------------------------------------------------------------------------------------------


@rule("mpmd_map", "core_map")
def _warps(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    """A warpgroup forks into its warps, and goes on when all of them are through."""
    place = run.place(equation)
    work = _work(run, place)
    meshes = equation.params.get("meshes") or (equation.params.get("mesh"),)
    jaxprs = equation.params.get("jaxprs") or (equation.params.get("jaxpr"),)
    if len(meshes) != 1 or type(meshes[0]).__name__ != "WarpMesh" or run.axes.get(meshes[0].axis_name):
        raise Unmodelled("a kernel in a kernel", place)
    jaxpr = getattr(jaxprs[0], "jaxpr", jaxprs[0])
    axis = meshes[0].axis_name
    fork, join = work.semaphore(run.line, "warps begin"), work.semaphore(run.line, "warps end")
    run.tell(Signal(place, run.step, fork, 1))
    waits: dict[Semaphore, int] = defaultdict(int)
    for warp in range(_WARPS):
        own = begin(
            work.block, f"{work.block.names[run.line]}, warp {warp}", run.core,
            {**run.axes, axis: _WARPS}, {**run.coordinates, axis: warp},
        )  # fmt: skip
        own.within(run)
        assert own.work is not None
        own.work.waits.update(work.waits)
        own.tell(Wait(place, run.step, fork, 1, takes=False))
        if jaxpr.constvars:
            own.run(jaxpr, [], values)
        else:
            own.run(jaxpr, values)
        own.tell(Signal(place, run.step, join, 1))
        work.block.vague += own.vague
        for barrier, count in own.work.waits.items():
            waits[barrier] = max(waits[barrier], count)
    work.waits.update(waits)
    run.tell(Wait(place, run.step, join, _WARPS, takes=False))
    return [UNKNOWN] * len(equation.outvars)


@rule("run_state")
def _with_state(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    """References that are made of values: `pl.run_state(body)(plgpu.ACC.init(x))`."""
    jaxpr = equation.params["jaxpr"]
    body = getattr(jaxpr, "jaxpr", jaxpr)
    made = scoped(run, equation, body)
    given = [value if isinstance(value, Buffer | View) else own for value, own in zip(values, made, strict=True)]
    run.run(jaxpr, given)
    return [UNKNOWN] * len(equation.outvars)
