"""Operations of Mosaic GPU warpgroups that others see: barriers, copies by TMA, matrix units, fences.

A barrier counts arrivals and is never lowered: the n-th wait of a line goes on when it has completed n times. Copies to
main memory and wgmma are waited for by how many younger ones may still be under way.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ...interleaving.events import Copy, Event, Fence, Region, Semaphore, Signal, Wait
from .. import environment
from .communication import access, part
from .references import UNKNOWN, Buffer, UnknownValue, Unmodelled, View
from .scopes import scoped
from .unroller import Core, Home, Unroller, rule

_LOADS, _STORES, _WGMMA, _TCGEN05 = "loads", "stores", "wgmma", "tcgen05"
CANCELS = "cancels"
# Whose work is done in order: with wgmma each warpgroup's products, in tensor memory all of a block.
_ORDERED: dict[str, Literal["", "line", "device"]] = {
    _LOADS: "", _STORES: "", CANCELS: "", _WGMMA: "line", _TCGEN05: "device"
}  # fmt: skip


@dataclass
class Cluster:
    """Blocks of threads that see each other's memory: where they are in the grid, and their lines, warps included."""

    grid: tuple[int, ...]
    point: tuple[int, ...]
    grid_axes: dict[str, int]
    sizes: dict[str, int]  # of its own axes
    names: list[str] = field(default_factory=list)
    lines: list[list[Event]] = field(default_factory=list)
    homes: list[int] = field(default_factory=list)  # the first line of each block, whose the block's memory is
    vague: int = 0
    others: list[tuple[int, ...]] = field(default_factory=list)  # the clusters whose work it takes over, one by one

    def begin(self, threads: int, axis: str | None) -> list[Unroller]:
        """The lines of all blocks, before they run."""
        runs = []
        for block, at in enumerate(itertools.product(*map(range, self.sizes.values()))):
            self.homes.append(len(self.lines))
            coordinates = dict(zip(self.grid_axes, self.point)) | dict(zip(self.sizes, at))
            for number in range(threads):
                name = f"warpgroup {number}" if threads > 1 else "the kernel" if self.size == 1 else ""
                where = f"block {block}" if self.size > 1 else ""
                words = ", ".join(word for word in (where, name) if word)
                runs.append(
                    self.line(block, words, Core(number, threads, axis), self.grid_axes | self.sizes, coordinates)
                )
        return runs

    def line(self, block: int, name: str, core: Core, axes: dict[str, int], coordinates: dict[str, int]) -> Unroller:
        """A new line, of a warpgroup or of a warp."""
        run = Unroller(0, core, axes, coordinates, self.grid)
        run.home = Home(len(self.lines), self.homes[block])
        run.point = self.point
        run.work = Work(self, block)
        self.names.append(name)
        self.lines.append(run.events)
        return run

    @property
    def size(self) -> int:
        return math.prod(self.sizes.values())

    def along(self, block: int, axes: Any) -> list[int]:
        """The blocks that differ from one in their places along these axes only."""
        wanted = (axes,) if isinstance(axes, str) else tuple(axes)
        places = list(itertools.product(*map(range, self.sizes.values())))
        fixed = [at for at, name in enumerate(self.sizes) if name not in wanted]
        return [other for other, at in enumerate(places) if all(at[k] == places[block][k] for k in fixed)]


@dataclass
class Work:
    """What a line has begun, and waits for by its number."""

    cluster: Cluster
    block: int
    waits: dict[Semaphore, int] = field(default_factory=lambda: defaultdict(int))
    stores: list[tuple[Semaphore, Semaphore]] = field(default_factory=list)  # read, and done, of the open group
    groups: list[list[tuple[Semaphore, Semaphore]]] = field(default_factory=list)
    products: list[Semaphore] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)
    responses: dict[Region, int] = field(default_factory=dict)  # to requests for other clusters' work, by number
    requests: int = 0

    def semaphore(self, line: int, name: str) -> Semaphore:
        """A new one, of a single work."""
        return Semaphore(line, name, (next(self.numbers),), "work")

    def barrier(self, view: View, place: Any, block: int | None = None) -> Semaphore:
        """A barrier of its own block, or of another one. Raises Unmodelled."""
        declared = view.buffer.barrier
        if declared is None:
            raise Unmodelled("a barrier that is none", place)
        scale = self.cluster.size
        whole = declared.num_arrivals * self._arriving(declared) * scale
        plain = view.semaphore(place, None if block is None else self.cluster.homes[block])
        return replace(plain, phase=whole, unit=scale, entry=view.buffer.entry)

    def _arriving(self, declared: Any) -> int:
        """How many blocks arrive at a barrier for one of its arrivals."""
        axes = getattr(declared, "collective_axes", ())
        return sum(len(self.cluster.along(self.block, each)) for each in axes) - len(axes) + 1

    def arrives_at(self, declared: Any) -> list[int]:
        """The blocks at whose barriers an arrival is one."""
        found = {self.block}
        for axes in getattr(declared, "collective_axes", ()):
            along = self.cluster.along(self.block, axes)
            if getattr(declared, "leader_tracked", False):
                return along[:1]
            found |= set(along)
        return sorted(found)

    def take_over(self, warps: list[Work]) -> None:
        """What warps have stored: from now on all of their threads commit and wait together."""
        most = max(len(warp.groups) for warp in warps)
        from_last = range(most, 0, -1)
        self.groups = [
            [store for warp in warps if len(warp.groups) >= back for store in warp.groups[-back]] for back in from_last
        ]
        self.stores = [store for warp in warps for store in warp.stores]


def work_of(run: Unroller, place: Any) -> Work:
    """What the line has begun. Raises Unmodelled where it is not one of a GPU."""
    work: Work | None = run.work
    if work is None:
        raise Unmodelled("an operation of GPUs", place)
    return work


class Given:
    """The operands of an operation: references first, then what their transforms are made of, a predicate last."""

    def __init__(self, run: Unroller, equation: Any, values: list[Any], count: int) -> None:
        self.params = equation.params
        self.place = run.place(equation)
        self.refs, self.rest = values[:count], values[count:]
        self.happens: bool = True
        if self.params.get("has_user_predicate"):
            predicate = self.rest.pop()
            if isinstance(predicate, UnknownValue):
                raise Unmodelled("whether it happens depends on data", self.place)
            self.happens = bool(predicate)

    def view(self, at: int, tree: str) -> View:
        """The part of a reference; to be read in the order of the operands."""
        shape = self.params.get(tree)
        leaves = [] if shape is None else [self.rest.pop(0) for _ in range(shape.num_leaves)]
        return part(self.refs[at], () if shape is None else shape.unflatten(leaves), self.place)


# -- barriers ----------------------------------------------------------------------------------------------------------


@rule("barrier_arrive")
def _arrive(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 1)
    work = work_of(run, given.place)
    view = given.view(0, "transforms_treedef")
    for block in work.arrives_at(view.buffer.barrier) if given.happens else ():
        run.emit(Signal(given.place, run.step, work.barrier(view, given.place, block), work.cluster.size))
    return []


@rule("barrier_wait")
def _wait(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 1)
    work = work_of(run, given.place)
    barrier = work.barrier(given.view(0, "transforms_treedef"), given.place)
    work.waits[barrier] += 1
    run.emit(Wait(given.place, run.step, barrier, work.waits[barrier] * barrier.phase, takes=False))
    return []


@rule("barrier_arrive_and_wait")
def _arrive_and_wait(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    _arrive(run, equation, list(values))
    return _wait(run, equation, values)


# -- copies ------------------------------------------------------------------------------------------------------------


@rule("copy_gmem_to_smem")
def _load(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    if not equation.params.get("has_barrier", True):
        raise Unmodelled("a copy to shared memory without a barrier", run.place(equation))
    given = Given(run, equation, values, 3)
    work = work_of(run, given.place)
    source, target = given.view(0, "src_transforms_treedef"), given.view(1, "dst_transforms_treedef")
    barrier = given.view(2, "barrier_transforms_treedef")
    axes = equation.params.get("collective_axes")
    group = work.cluster.along(work.block, axes) if axes else [work.block]
    tracked = equation.params.get("leader_tracked") or equation.params.get("partitioned_axis") is not None
    # A share for each block: of all for one, of a part for all, or, tracked by the first, of one's own for that.
    share = work.cluster.size // len(group)
    if not tracked:
        target = _share(target, group.index(work.block), len(group))
    for block in ([work.block] if tracked else group) if given.happens else ():
        signalled = work.barrier(barrier, given.place, group[0] if tracked else block)
        begin(run, given.place, [source], [(target, block)], signalled, unit=_LOADS, size=share)
    if not given.happens:
        _left_out(run, given, work.barrier(barrier, given.place), share, alone=not axes)
    return []


def _left_out(run: Unroller, given: Given, barrier: Semaphore, share: int, *, alone: bool) -> None:
    """What a copy that its predicate leaves out does at its barrier: in 0.11 it arrives all the same, in 0.12 not.

    Raises Unmodelled where that is not known.
    """
    version = environment.version()[:2]
    if version > (0, 12):
        raise Unmodelled("whether a copy that its predicate leaves out arrives at its barrier in this jax", given.place)
    if version < (0, 12):
        if not alone:
            raise Unmodelled("a copy for several blocks that a predicate leaves out", given.place)
        run.emit(Signal(given.place, run.step, barrier, share))


def _share(view: View, at: int, count: int) -> View:
    """The part number `at` of `count` equal ones of a reference, which blocks fetch for each other."""
    box = list(view.box)
    for dim, (start, size, stride) in enumerate(box):
        if size % count == 0 and start is not None:
            box[dim] = (start + at * (size // count) * stride, size // count, stride)
            return replace(view, box=tuple(box))
    return replace(view, box=tuple((None, size, stride) for _, size, stride in box))  # which part it is is not known


@rule("copy_smem_to_gmem")
def _store(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 2)
    work = work_of(run, given.place)
    source, target = given.view(0, "src_transforms_treedef"), given.view(1, "dst_transforms_treedef")
    if given.happens:
        read, done = work.semaphore(run.line, "copies read"), work.semaphore(run.line, "copies done")
        work.stores.append((read, done))
        added = equation.params.get("reduction_op") is not None  # several may add to one place
        begin(run, given.place, [source], [] if added else [(target, work.block)], done, read, unit=_STORES)
    if equation.params.get("commit_group", True):
        _close(run, equation, [])
    return []


@rule("commit_group")
def _close(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    work = work_of(run, run.place(equation))
    work.groups.append(work.stores)
    work.stores = []
    return []


@rule("wait_smem_to_gmem")
def _wait_for_stores(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    place = run.place(equation)
    work = work_of(run, place)
    left = equation.params.get("n", values[0] if values else 0)
    if isinstance(left, UnknownValue):
        raise Unmodelled("how many copies are waited for depends on data", place)
    done = not equation.params.get("wait_read_only")
    over = max(len(work.groups) - int(left), 0)
    for group in work.groups[:over]:
        for ends in group:
            run.emit(Wait(place, run.step, ends[done], 1, takes=False))
    if done:
        del work.groups[:over]  # none has to be waited for again
    return []


def begin(
    run: Unroller,
    place: Any,
    reads: list[View],
    writes: list[tuple[View, int]],
    received: Semaphore,
    sent: Semaphore | None = None,
    *,
    unit: str,
    what: str = "copy",
    size: int = 1,
) -> None:
    """Emit an operation of a unit. `writes`: with the blocks whose memory it is."""
    cluster = work_of(run, place).cluster
    source = tuple(view.region() for view in reads)
    target = tuple(_of_block(cluster, view, block) for view, block in writes)
    run.vague += sum(not region.exact for region in (*source, *target))
    run.emit(Copy(place, run.step, source, target, size, received, sent, what, unit, _ORDERED[unit]))


def _of_block(cluster: Cluster, view: View, block: int) -> Region:
    """A part of the memory of a block; of main memory, and registers, there is only one's own."""
    return view.region(cluster.homes[block] if view.buffer.space in ("smem", "tmem") else None)


# -- matrix units ------------------------------------------------------------------------------------------------------


@rule("wgmma_ref")
def _multiply(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 3)
    work = work_of(run, given.place)
    views = [given.view(0, "acc_transforms_tree")]
    for at, tree in ((1, "a_transforms_tree"), (2, "b_transforms_tree")):
        if isinstance(given.refs[at], Buffer | View):  # the first may lie in registers
            views.append(given.view(at, tree))
    done = work.semaphore(run.line, "wgmma")
    work.products.append(done)
    begin(run, given.place, views[1:], [(views[0], work.block)], done, unit=_WGMMA, what="wgmma")
    return []


@rule("wgmma_wait")
def _wait_for_products(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    left = equation.params.get("n", values[0] if values else 0)
    _wait_for_all_but(run, int(left), run.place(equation))
    return []


def _wait_for_all_but(run: Unroller, left: int, place: Any) -> None:
    products = work_of(run, place).products
    over = len(products) - left
    if over > 0:  # they are done in order
        run.emit(Wait(place, run.step, products[over - 1], 1, takes=False))
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
    params, place = equation.params, run.place(equation)
    if params.get("scaled") or params.get("sparse") or params.get("is_sparse"):
        raise Unmodelled("a product with scales or of sparse operands", place)
    blocks = _doing(run, params.get("collective_axis"), place)
    arrives = bool(params.get("arrive"))
    given = Given(run, equation, values, 5 if arrives else 4)
    views = [given.view(at, f"{name}_transforms_tree") for at, name in enumerate(("acc", "a", "b"))]
    again = given.refs[3]  # whether it adds to what is there
    reads = views[1:] + ([] if not isinstance(again, UnknownValue) and not again else views[:1])
    work = work_of(run, place)
    for block in blocks:
        own = [_moved(work.cluster, view, block) for view in reads]
        done = work.semaphore(run.line, "tcgen05_mma")
        begin(run, place, own, [(views[0], block)], done, unit=_TCGEN05, what="tcgen05_mma")
    if arrives:
        _signal_done(run, given.view(4, "barrier_transforms_tree"), blocks, place)
    return []


def _doing(run: Unroller, axis: str | None, place: Any) -> list[int]:
    """The blocks that a work of the matrix unit is for: with an axis it is the first one's, for all along it."""
    work = work_of(run, place)
    if axis is None:
        return [work.block]
    along = work.cluster.along(work.block, axis)
    return along if along[0] == work.block else []


def _moved(cluster: Cluster, view: View, block: int) -> View:
    """The view of the same part of another block's memory."""
    if view.buffer.space not in ("smem", "tmem"):
        return view
    return replace(view, buffer=replace(view.buffer, home=cluster.homes[block]))


def _signal_done(run: Unroller, view: View, blocks: list[int], place: Any) -> None:
    """Arrive at a barrier of these blocks when all earlier operations of the unit are done."""
    work = work_of(run, place)
    for block in blocks:
        barrier = work.barrier(view, place, block)
        begin(run, place, [], [], barrier, unit=_TCGEN05, what="commit", size=work.cluster.size)


@rule("tcgen05_commit_arrive")
def _commit(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 1)
    if given.happens:
        blocks = _doing(run, equation.params.get("collective_axis"), given.place)
        _signal_done(run, given.view(0, "barrier_transforms_tree"), blocks, given.place)
    return []


@rule("async_copy_smem_to_tmem", "async_copy_scales_to_tmem", "async_copy_sparse_metadata_to_tmem")
def _copy_to_tensor_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 2)
    work = work_of(run, given.place)
    source, target = given.view(0, "smem_tree"), given.view(1, "tmem_tree")
    for block in _doing(run, equation.params.get("collective_axis"), given.place):
        done = work.semaphore(run.line, "copies to TMEM")
        begin(run, given.place, [_moved(work.cluster, source, block)], [(target, block)], done, unit=_TCGEN05)
    return []


@rule("async_load")
def _load_tensor_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 1)
    access(run, equation, given.view(0, "tree"), writes=False)
    return [UNKNOWN] * len(equation.outvars)


@rule("async_store_tmem", "async_store")
def _store_tensor_memory(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 2)
    access(run, equation, given.view(0, "tree"), writes=True)
    return [UNKNOWN] * len(equation.outvars)


@rule("store")
def _store_itself(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    given = Given(run, equation, values, 2)
    access(run, equation, given.view(0, "tree"), writes=True)
    return []


@rule("commit_smem")
def _commit_shared(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    run.emit(Fence(run.place(equation), run.step, "smem"))
    return []


@rule("commit_tmem")
def _commit_tensor(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    run.emit(Fence(run.place(equation), run.step, "tmem"))
    return []


@rule("wait_load_tmem", "set_max_registers", "async_prefetch", "print_layout", "griddepcontrol_wait")
def _outside_of_events(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    return [UNKNOWN] * len(equation.outvars)


@rule("get_global")
def _global(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    raise Unmodelled("a semaphore in main memory", run.place(equation))


# -- registers -----------------------------------------------------------------------------------------------


@rule("run_state")
def _with_state(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    """References that are made of values: `pl.run_state(body)(plgpu.ACC.init(x))`."""
    import numpy as np

    jaxpr = equation.params["jaxpr"]
    body = getattr(jaxpr, "jaxpr", jaxpr)
    made = scoped(run, equation, body)
    for value, own in zip(values, made, strict=True):
        if not isinstance(value, Buffer | View | UnknownValue) and np.size(value) == math.prod(own.shape):
            own.values = np.asarray(value).astype(object)  # loop indices are handed in like that
    given = [value if isinstance(value, Buffer | View) else own for value, own in zip(values, made, strict=True)]
    run.run(jaxpr, given)
    if run.work is not None:  # the state is read at the end
        _wait_for_all_but(run, 0, run.place(equation))
    return [UNKNOWN] * len(equation.outvars)
