"""Refs that a kernel gets: for inputs, outputs and scratch declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.dtypes import element_of
from pallas_lint.kernels.model.known_names import declares_array, is_shape_struct
from pallas_lint.kernels.model.launch import ACCUMULATORS, memory_space
from pallas_lint.kernels.model.values import NONE, UNKNOWN, Array, CallResult, OneOf, Ref, shape_of
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.model.kinds import Element
    from pallas_lint.kernels.model.launch import BlockSpec
    from pallas_lint.kernels.model.values import Shape, Value


def scratch_ref(name: str, value: Value) -> Ref:
    """The ref that a scratch declaration (`pltpu.VMEM(shape, dtype)`, `pltpu.SemaphoreType.DMA`) gives."""
    if isinstance(value, OneOf):
        return _chosen_ref([scratch_ref(name, option) for option in value.options if option != NONE])
    if isinstance(value, CallResult):
        function = value.short
        if is_shape_struct(value):
            return Ref(
                name,
                "scratch",
                shape=shape_of(value.argument("shape", 0) or UNKNOWN),
                dtype=element_of(value.argument("dtype", 1)),
            )
        if "Semaphore" in value.function or function in ("Barrier", "ClusterBarrier", "DMA", "REGULAR", "BARRIER"):
            return Ref(
                name,
                "scratch",
                shape=shape_of(value.argument("shape", 0) or UNKNOWN),
                dtype="semaphore",
                space="semaphore",
                declared=value,
            )
        space = memory_space(value)
        if function in ACCUMULATORS:
            space = "regs"
        return Ref(
            name,
            "scratch",
            shape=shape_of(value.argument("shape", 0) or UNKNOWN),
            dtype=element_of(value.argument("dtype", 1)),
            space=space,
            declared=value,
        )
    declared = getattr(value, "name", "")
    if "Semaphore" in str(declared):
        return Ref(name, "scratch", shape=(), dtype="semaphore", space="semaphore")
    return Ref(name, "scratch")


def _chosen_ref(refs: list[Ref]) -> Ref:
    """The ref of a declaration that a branch chooses: where its memory is the same in all of them, it has that."""
    spaces = {(ref.space, ref.element if ref.space == "semaphore" else None) for ref in refs}
    space, element = spaces.pop() if len(spaces) == 1 else (None, None)
    return Ref(refs[0].parameter, "scratch", dtype=element, space=space)


def output_ref(name: str, index: int | None, struct: Value, spec: BlockSpec | None) -> Ref:
    """The ref of an output, from its shape struct (from the ref that it is written to, in a pipeline) and its spec."""
    shape: Shape | None = None
    element: Element = None
    if declares_array(struct):
        shape = shape_of(struct.argument("shape", 0) or UNKNOWN)
        element = element_of(struct.argument("dtype", 1))
    elif isinstance(struct, Array | Ref):
        shape, element = struct.shape, struct.element
    return _shaped(Ref(name, "out", index, shape, element), spec)


def input_ref(name: str, index: int | None, operand: Value, spec: BlockSpec | None) -> Ref:
    """The ref of an input, from the operand passed to the launch and its spec."""
    shape = operand.shape if isinstance(operand, Array | Ref) else None
    element = operand.element if isinstance(operand, Array | Ref) else None
    return _shaped(Ref(name, "in", index, shape, element), spec)


def _shaped(ref: Ref, spec: BlockSpec | None) -> Ref:
    if spec is None:
        return ref
    if spec.has_block_shape:
        ref = evolve(ref, shape=spec.ref_shape)
    ref = evolve(ref, declared=spec.value)
    return evolve(ref, space=spec.memory_space) if spec.memory_space is not None else ref
