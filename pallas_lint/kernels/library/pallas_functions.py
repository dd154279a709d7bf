"""Pallas functions whose effect on refs and values the rules rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library import arrays, indexing
from pallas_lint.kernels.library.wrappers import run_callbacks
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import element_of
from pallas_lint.kernels.model.kinds import FLOATING, INTEGER
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.launch import memory_space
from pallas_lint.kernels.model.symbols import closed_shape, symbolic
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    UNKNOWN,
    Array,
    Const,
    Func,
    Ref,
    Slice,
    Sym,
    Unknown,
    Value,
    chosen_number,
    dim,
)
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.kernels.library.operands import Model
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer


def _program_id(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    if interp.kernel is None:
        interp.note_outside(name, arguments, node)
    # The size of a static grid is a Python number, weak as these are.
    return interp.frame.op(name, node, arguments, Array((), "i32", weak=name.endswith("num_programs")))


def _slice(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`pl.ds(start, size)`; `pl.dslice(size)` starts at 0."""
    start, size = arguments.get("start", 0) or UNKNOWN, arguments.get("size", 1)
    if size in (None, NONE) and "size" not in arguments.keywords:
        start, size = Const(0), start
    return Slice(start, NONE, arguments.get("stride", 2) or Const(1), size or UNKNOWN)


def _multiple_of(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    value = arguments.get("x", 0) or UNKNOWN
    if isinstance(value, Array):
        return interp.frame.op(name, node, arguments, Array(value.shape, value.element))
    return value


def _constrained(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`pltpu.with_memory_space_constraint(x, pltpu.HBM)` is x, which most arrays are in HBM anyway."""
    space = memory_space(arguments.get("memory_space", 1))
    if interp.kernel is None and arguments.positional and space in ("hbm", "any"):
        return arguments.positional[0]
    return unmodelled(interp, name, arguments, node)


def _cdiv(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    a, b = (chosen_number(arguments.get(name, at) or UNKNOWN) for at, name in enumerate("ab"))
    if (
        isinstance(a, Const)
        and isinstance(b, Const)
        and isinstance(a.value, int)
        and isinstance(b.value, int)
        and b.value
    ):
        return Const(-(-a.value // b.value))
    if isinstance(a, Sym | Const) and isinstance(b, Sym | Const):
        return symbolic("cdiv", a, b)
    if isinstance(a, Array) or isinstance(b, Array):
        return interp.frame.op(name, node, arguments, Array((), "i32"), "operator")  # it is written with operators
    return UNKNOWN


def _next_power_of_2(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    size = integer(arguments.get("x", 0))
    if size is None or size < 0:
        return unmodelled(interp, name, arguments, node)
    return Const(1 << max(size - 1, 0).bit_length())


def _load(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    ref, index = arguments.get("x_ref_or_view", 0) or arguments.get("ref", 0), arguments.get("idx", 1) or ELLIPSIS
    if not isinstance(ref, Ref):
        return interp.frame.op(name, node, arguments, Array())
    loaded = interp.frame.op(name, node, arguments, Array(indexing.result_shape(ref.shape, index), ref.element))
    interp.frame.access("load", ref, index, node, loaded)
    return loaded


def _store(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    ref = arguments.get("x_ref_or_view", 0) or arguments.get("ref", 0)
    # The generation with an index, store(ref, idx, val), and those without, store(ref, val).
    if "val" in arguments.keywords or len(arguments.positional) < 3:
        index = arguments.get("idx") or (
            arguments.positional[1] if "val" in arguments.keywords and len(arguments.positional) > 1 else ELLIPSIS
        )
        value = arguments.get("val") or (arguments.positional[-1] if len(arguments.positional) > 1 else UNKNOWN)
    else:
        index, value = arguments.positional[1], arguments.positional[2]
    if isinstance(ref, Ref):
        interp.frame.access("store", ref, index, node, value)
    else:
        interp.frame.mark_untracked()
    return interp.frame.op(name, node, arguments, NONE)


def _atomic(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    ref = arguments.first
    # `atomic_cas(ref, cmp, val)` has no index.
    index = ELLIPSIS if name.endswith("atomic_cas") else arguments.get("idx", 1) or ELLIPSIS
    if isinstance(ref, Ref):
        interp.frame.access("accumulate", ref, index, node, arguments.get("val", 2) or UNKNOWN)
        return interp.frame.op(name, node, arguments, Array(indexing.result_shape(ref.shape, index), ref.element))
    interp.frame.mark_untracked()
    return interp.frame.op(name, node, arguments, Array())


def _copy(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A copy from the first ref to the second: reads one, writes the other."""
    source, target = (
        arguments.get("src_ref", 0) or arguments.get("src", 0),
        arguments.get("dst_ref", 1) or arguments.get("dst", 1),
    )
    if isinstance(source, Ref):
        interp.frame.access("load", source, ELLIPSIS, node)
    if isinstance(target, Ref):
        interp.frame.access("store", target, ELLIPSIS, node)
    else:
        interp.frame.mark_untracked()
    interp.frame.op(name, node, arguments, UNKNOWN)
    return interp.frame.opaque_call(name, arguments, node)


def _dot(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`pl.dot` accumulates, and returns, in 32 bits whatever its operands are."""
    result = arrays.infer("jax.numpy.dot", arguments.positional, arguments.keywords, interp.root.x64 is not None)
    if isinstance(result, Array) and (result.dtype is not None or result.kinds in (INTEGER, FLOATING)):
        result = Array(result.shape, "i32" if result.kinds == INTEGER else "f32")
    return interp.frame.op(name, node, arguments, result)


def _bitcast(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    value = arguments.get("x", 0)
    if isinstance(value, Ref):
        return evolve(value, view=True, shape=None, dtype=element_of(arguments.get("ty", 1)), parent=None)
    return interp.frame.op(
        name, node, arguments, Array(None, element_of(arguments.get("ty", 1) or arguments.get("dtype", 1)))
    )


def _view(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """Another way to look at a ref: `plgpu.transpose_ref(ref, (1, 0))`."""
    ref = arguments.get("ref", 0)
    return evolve(ref, view=True, shape=None, parent=None) if isinstance(ref, Ref) else UNKNOWN


def _same_shape(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    value = arguments.get("x", 0)
    result = Array(value.shape, value.element) if isinstance(value, Array) else Array()
    return interp.frame.op(name, node, arguments, result)


def _repeat(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`pltpu.repeat` tiles: it has the shape of `jnp.repeat`, with the elements in another order."""
    result = arrays.infer("jax.numpy.repeat", list(arguments.positional), arguments.keywords, more=arguments.open)
    return interp.frame.op(name, node, arguments, result)


def _align(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    a, b = arguments.get("x", 0), arguments.get("a", 1)
    if isinstance(a, Const) and isinstance(b, Const) and isinstance(dim(a), int) and isinstance(dim(b), int):
        return Const(-(-a.value // b.value) * b.value)
    return UNKNOWN


def _broadcast_to(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    return interp.frame.op(
        name,
        node,
        arguments,
        arrays.infer("jax.numpy.broadcast_to", arguments.positional, arguments.keywords, interp.root.x64 is not None),
    )


def _semaphore(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    return interp.frame.op(name, node, arguments, UNKNOWN)


def _with_closed_block(arguments: Arguments) -> Arguments:
    """The arguments of a BlockSpec; a block shape `(1, *x.shape[1:])` has as many sizes as its index map returns."""
    shape, index_map = arguments.get("block_shape", 0), arguments.get("index_map", 1)
    body = index_map.node.body if isinstance(index_map, Func) else None
    if (
        shape is None
        or not isinstance(body, nodes.Tuple)
        or any(each.__class__ is not nodes.Element for each in body.elements)
    ):
        return arguments
    return arguments.replaced("block_shape", 0, closed_shape(shape, len(body.elements)))


def unmodelled(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """A Pallas function with no model: classes construct, functions in a kernel are operations."""
    short = last_part(name)
    if interp.kernel is None or short[:1].isupper():
        interp.escape_refs(arguments, node)
        made = interp.frame.opaque_call(
            name, _with_closed_block(arguments) if short == "BlockSpec" else arguments, node
        )
        if short == "BlockSpec" and not interp.frame.fails_on_purpose:
            interp.effects.specs_made.append(made)
        return made
    interp.escape_refs(arguments, node)
    given = (*arguments.positional, *arguments.keywords.values())
    if any(isinstance(value, Unknown | Sym) and not interp.is_from_outside(value) for value in given):
        interp.frame.mark_untracked()  # it may be a ref
    run_callbacks(interp, name, arguments)
    interp.frame.op(name, node, arguments, UNKNOWN)
    return interp.frame.opaque_call(name, arguments, node)


def _to_pallas_key(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`pltpu.to_pallas_key(key)`: a key for each of jax's, whose old ones are rows of uint32."""
    key = arguments.get("key", 0)
    if interp.kernel is not None or not isinstance(key, Array) or key.shape is None:
        return unmodelled(interp, name, arguments, node)
    return Array(key.shape[:-1] if key.dtype == "u32" else key.shape)


PALLAS_FUNCTIONS: dict[str, Model] = {}


def _register(model: Model, *names: str) -> None:
    PALLAS_FUNCTIONS.update({f"{PALLAS}.{name}": model for name in names})


_register(_program_id, "program_id", "num_programs")
_register(_slice, "ds", "dslice")
_register(_multiple_of, "multiple_of", "max_contiguous", "triton.max_contiguous", "triton.multiple_of")
_register(_constrained, "tpu.with_memory_space_constraint")
_register(_to_pallas_key, "tpu.to_pallas_key")
_register(_cdiv, "cdiv", "triton.cdiv")
_register(_align, "align_to")
_register(_next_power_of_2, "next_power_of_2")
_register(_load, "load", "tpu.load", "triton.load", "mosaic_gpu.load", "gpu.load")
_register(_store, "store", "tpu.store", "triton.store", "mosaic_gpu.store", "gpu.store")
_register(
    _atomic,
    *(
        f"{module}{function}"
        for module in ("", "triton.", "gpu.")
        for function in (
            "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg",
            "atomic_cas", "swap",
        )
    ),
)  # fmt: skip
_register(
    _copy,
    "tpu.make_async_copy", "tpu.async_copy", "tpu.sync_copy", "tpu.make_async_remote_copy", "tpu.async_remote_copy",
    "mosaic_gpu.copy_gmem_to_smem", "mosaic_gpu.copy_smem_to_gmem", "make_async_copy", "async_copy", "sync_copy",
    "mosaic_gpu.copy_smem_to_tmem", "mosaic_gpu.async_prefetch",
)  # fmt: skip
_register(_dot, "dot", "triton.dot")
_register(_bitcast, "tpu.bitcast", "tpu_sc.bitcast")
_register(
    _view,
    *(f"mosaic_gpu.{name}" for name in ("transpose_ref", "untile_ref", "unswizzle_ref", "transform_ref", "im2col_ref")),
)
_register(_same_shape, "reciprocal", "tpu.roll", "triton.approx_tanh", "tpu.stochastic_round", "mosaic_gpu.layout_cast")
_register(_repeat, "tpu.repeat")
_register(_broadcast_to, "broadcast_to")
_register(
    _semaphore,
    "semaphore_signal", "semaphore_wait", "semaphore_read", "tpu.semaphore_signal", "tpu.semaphore_wait",
    "tpu.semaphore_read", "mosaic_gpu.barrier_wait", "mosaic_gpu.barrier_arrive", "mosaic_gpu.commit_smem",
    "mosaic_gpu.wait_smem_to_gmem", "debug_print", "debug_check", "delay", "tpu.delay",
)  # fmt: skip
