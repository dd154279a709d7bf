"""Functions of Mosaic GPU: tensor cores and their memory, indices of tiles, fences and waits.

Read in jax 0.12.0.1. None of them calls code or touches refs that it is not given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library import arrays
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import element_of
from pallas_lint.kernels.model.known_names import PALLAS, RUN_STATE, integer
from pallas_lint.kernels.model.launch import ACCUMULATORS
from pallas_lint.kernels.model.trace import Guard, Op, loop_index
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    UNKNOWN,
    Array,
    Const,
    Ref,
    Seq,
    Value,
    shape_of,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

GPU = f"{PALLAS}.mosaic_gpu"


def _acts(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A fence, barrier or signal, which does not access the kernel's data."""
    return interp.frame.op(name, node, arguments, NONE)


def _signals(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A signal whose count is not followed: refs that it gets may change."""
    interp.escape_refs(arguments, node)
    return interp.frame.op(name, node, arguments, NONE)


# -- on the host, and on indices -----------------------------------------------------------------------------------


def _find_swizzle(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """The largest swizzle of which a row is a multiple, in bytes."""
    size = integer(arguments.get("minor_dim_bits", 0))
    if size is not None:
        return next((Const(swizzle) for swizzle in (128, 64, 32, 16) if size % (8 * swizzle) == 0), UNKNOWN)
    return interp.frame.opaque_call(name, arguments, node)


def _made(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """What only describes: `plgpu.Layout.WGMMA.reduce(1)`, `plgpu.ACC.init(value)`."""
    return interp.frame.opaque_call(name, arguments, node)


def _planar_snake(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    return _made_together(interp, name, arguments, node, Array((), "i32"), Array((), "i32"))


def _made_together(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node, *arrays: Array) -> Seq:
    """Several arrays as the results of one operation."""
    interp.frame.op(name, node, arguments, UNKNOWN)
    last = interp.kernel.events[-1] if interp.kernel is not None else None
    made_by = last if isinstance(last, Op) else None
    return Seq(tuple(evolve(array, origin=made_by) for array in arrays))


def _broadcasted_iota(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    shape, element = shape_of(arguments.get("shape", 1) or UNKNOWN), element_of(arguments.get("dtype", 0))
    return interp.frame.op(name, node, arguments, Array(shape, element))


def _query_cluster_cancel(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    names = arguments.get("grid_names", 1)
    axes = len(names.items) if isinstance(names, Seq) and not names.open else None
    *indices, success = _made_together(
        interp, name, arguments, node, *[Array((), "i32")] * (axes or 0), Array((), "bool")
    ).items
    return Seq((UNKNOWN if axes is None else Seq(tuple(indices)), success))


def _reduce(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`plgpu.max(x, axis=1)` is as jnp's."""
    result = arrays.infer(f"jax.numpy.{last_part(name)}", arguments.positional, _without(arguments, "accumulator_ilp"))
    return interp.frame.op(name, node, arguments, result)


def _without(arguments: Arguments, *names: str) -> dict[str, Value]:
    return {name: value for name, value in arguments.keywords.items() if name not in names}


def _warp_map(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """Each of the four warps runs the function with its number."""
    with interp.under(Guard("loop", UNKNOWN, interp.frame.site(node))):
        interp.call(
            arguments.get("f", 0) or UNKNOWN, Arguments([loop_index(interp.frame.site(node), Const(0), Const(4))]), node
        )
    return NONE


# -- views ---------------------------------------------------------------------------------------------------------


def _elsewhere(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A buffer on other devices, or in other blocks of the cluster, where it may be any ref."""
    ref = arguments.get("ref", 0)
    interp.escape_refs(arguments, node)
    if not isinstance(ref, Ref):
        interp.frame.mark_untracked()
        return UNKNOWN
    interp.frame.op(name, node, arguments, UNKNOWN)
    return evolve(ref, view=True, role=None, owner=node, parent=None)


# -- loads, stores and copies --------------------------------------------------------------------------------------


def _loads(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A load of a whole ref: from TMEM, from an accumulator, from all devices at once."""
    ref = next(
        (arguments.get(parameter, 0) for parameter in ("src", "acc", "ref") if arguments.get(parameter, 0)), None
    )
    element = ref.element if isinstance(ref, Ref) else None
    loaded = interp.frame.op(name, node, arguments, Array(ref.shape if isinstance(ref, Ref) else None, element))
    if isinstance(ref, Ref):
        interp.frame.access("load", ref, ELLIPSIS, node, loaded)
    if arguments.get("reduce") in (None, NONE):
        return loaded
    return Seq((loaded, Array(None, element)))


def _stores(
    interp: Tracer,
    ref: Value | None,
    value: Value,
    node: nodes.Node,
    kind: str = "store",
    space: str | None = None,
) -> None:
    """`space`: the only one in which such a ref can be."""
    if isinstance(ref, Ref):
        interp.frame.access(kind, evolve(ref, space=ref.space or space), ELLIPSIS, node, value)
    else:
        interp.frame.mark_untracked()


def _store_tmem(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    _stores(interp, arguments.get("ref", 0), arguments.get("value", 1) or UNKNOWN, node, space="tmem")
    return interp.frame.op(name, node, arguments, NONE)


def _multimem_store(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    _stores(interp, arguments.get("ref", 1), arguments.get("source", 0) or UNKNOWN, node)
    return interp.frame.op(name, node, arguments, NONE)


def _atomic(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """Unlike those of other backends they take no index: `plgpu.atomic_add(ref.at[i], value)`."""
    _stores(interp, arguments.get("ref", 0), arguments.get("val", 1) or UNKNOWN, node, "accumulate")
    return interp.frame.op(name, node, arguments, NONE)


def _to_tmem(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    source = arguments.get("smem_ref", 0)
    if isinstance(source, Ref):
        interp.frame.access("load", source, ELLIPSIS, node)
    _stores(interp, arguments.get("tmem_ref", 1), UNKNOWN, node, space="tmem")
    return interp.frame.op(name, node, arguments, NONE)


# -- products ------------------------------------------------------------------------------------------------------


def _mma(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """The one of Ampere, on arrays: `acc + a @ b`."""
    acc = arguments.get("acc", 0)
    result = Array(acc.shape, acc.element) if isinstance(acc, Array) else Array()
    return interp.frame.op(name, node, arguments, result)


def _product_into(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`wgmma` and `tcgen05_mma`: operands are refs, or arrays; the accumulator is added to, or replaced."""
    others = (("a", 1), ("b", 2), ("a_scale", None), ("b_scale", None), ("a_sparse_metadata", None))
    for parameter, position in others:
        operand = arguments.get(parameter, position)
        if isinstance(operand, Ref):
            interp.frame.access("load", operand, ELLIPSIS, node)
    fresh = arguments.get("accumulate") not in (None, Const(True))
    space = "regs" if name.endswith(".wgmma") else "tmem"
    _stores(interp, arguments.get("acc", 0), UNKNOWN, node, "store" if fresh else "accumulate", space)
    return interp.frame.op(name, node, arguments, NONE)


MOSAIC_GPU: dict[str, Model] = {}


def _register(model: Model, *names: str) -> None:
    MOSAIC_GPU.update({f"{GPU}.{name}": model for name in names})


_register(
    _acts,
    "wgmma_wait", "commit_tmem", "wait_load_tmem", "commit_smem_to_gmem_group", "wait_gmem_to_smem",
    "set_max_registers", "griddepcontrol_wait", "griddepcontrol_launch_dependents", "print_layout",
    "tcgen05_commit_arrive",
)  # fmt: skip
_register(
    _signals,
    "barrier_arrive_and_wait", "semaphore_signal", "semaphore_wait", "semaphore_signal_multicast",
    "semaphore_signal_parallel", "try_cluster_cancel", "async_store_smem",
)  # fmt: skip
_register(_find_swizzle, "find_swizzle")
_register(_planar_snake, "planar_snake")
_register(_broadcasted_iota, "broadcasted_iota")
_register(_query_cluster_cancel, "query_cluster_cancel")
_register(_reduce, "sum", "max", "min", "prod")
_register(_warp_map, "warp_map")
_register(_elsewhere, "remote_ref", "multicast_ref", "cluster_ref")
_register(_loads, "async_load_tmem", "wgmma_accumulator_load", "multimem_load_reduce")
_register(_store_tmem, "async_store_tmem")
_register(_multimem_store, "multimem_store")
_register(_atomic, *(f"atomic_{kind}" for kind in ("add", "max", "min", "and", "or", "xor")))
_register(_to_tmem, *(f"async_copy_{what}_to_tmem" for what in ("smem", "scales", "sparse_metadata")))
_register(_mma, "mma")
_register(_made, *(f"{name}.init" for name in ACCUMULATORS))
MOSAIC_GPU[RUN_STATE] = _made  # what it makes is called: see `control.run_state`
_register(_product_into, "wgmma", "tcgen05_mma")

# By the beginnings of their names.
LAYOUTS = dict.fromkeys((f"{GPU}.Layout.", f"{GPU}.TMEMLayout."), _made)
