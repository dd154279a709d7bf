"""Memory spaces of refs on TPU: as declared, VMEM by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.known_names import is_shape_struct, is_tensorcore_mesh
from pallas_lint.kernels.model.launch import Launch, block_spec
from pallas_lint.kernels.model.values import NONE, UNKNOWN, Array, Dictionary, OneOf, Ref, Seq, Sym, Value
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import Access


def tpu_space(ref: Ref, launch: Launch) -> str | None:
    """The memory space that the ref certainly has on TPU: "vmem", "smem", "any", "hbm", ...; None if not known.

    `launch` is the one that the kernel at hand runs under: a pipeline's refs are its own.
    """
    if ref.space is not None or ref.role not in ("in", "out") or ref.index is None:
        return ref.space
    owner = launch if ref.owner is None else ref.owner
    if not isinstance(owner, Launch):
        return None
    declared = ref.role == "out" and owner.form.outputs != "operands"
    if declared and not _is_plain(owner, ref.index):
        return None
    if owner.form.refs == "arrays":  # they stay in HBM, on a SparseCore too, from which none of the cores loads
        plain = ref.role == "out" or _is_plain_operand(owner, ref.index)
        core_known = owner.core is not None or is_tensorcore_mesh(owner.argument("mesh"))
        return "any" if plain and core_known else None
    copied = owner.form.refs == "blocks"  # unless their specs name another
    return "vmem" if copied and _is_unspecified(owner, ref.role, ref.index) else None


def _is_plain(launch: Launch, at: int) -> bool:
    """Whether the output is declared by shape and dtype alone: `pltpu.SMEM(shape, dtype)` has a memory space too."""
    shapes = launch.out_shapes
    if shapes is None or shapes.open or at >= len(shapes.items):
        return False
    stack = [shapes.items[at]]
    while stack:
        value = stack.pop()
        if isinstance(value, Seq):
            stack.extend(value.items)
        elif isinstance(value, Dictionary):
            stack.extend(item for _, item in value.items)
        elif not isinstance(value, Array) and not is_shape_struct(value):
            return False
    return True


def _is_plain_operand(launch: Launch, at: int) -> bool:
    """Whether an array is passed, as far as is seen: what jax makes on request may have a memory space."""
    operands = launch.operands
    return operands is not None and at < len(operands) and isinstance(operands[at], Array | Sym)


def _is_unspecified(launch: Launch, role: str, at: int) -> bool:
    """Whether no spec of the parameter can have a memory space."""
    argument = launch.argument("in_specs" if role == "in" else "out_specs")
    if argument in (None, NONE):
        return not launch.open and "grid_spec?" not in launch.arguments
    specs = launch.in_specs if role == "in" else launch.out_specs
    if specs is None or specs.open or at >= len(specs.items):
        return False
    return _no_space(specs.items[at])


def _no_space(value: Value) -> bool:
    if isinstance(value, OneOf):
        return all(_no_space(option) for option in value.options)
    if isinstance(value, Seq):
        return not value.open and all(_no_space(item) for item in value.items)
    spec = block_spec(value)
    if spec is None:
        return value == NONE
    return not spec.value.open and spec.value.argument("memory_space") in (None, NONE)


def is_copy(access: Access) -> bool:
    """Whether the access is a copy's or other whole-ref helper's: it moves memory, no value comes into registers."""
    return isinstance(access.site.node, nodes.Call) and access.value is UNKNOWN
