"""Stores of several steps of a GPU's grid to one place, each of a value of its own: the steps run at the same time."""

from __future__ import annotations

from typing import Any

from ...protocol import Place
from ..launches import locate
from ..launches.launch import Launch, axes_behind, kernel_jaxpr

# What may order the steps, or make one of them the only one that stores.
_ORDERING = frozenset({
    "atomic_cas", "atomic_rmw", "semaphore_wait", "barrier_wait", "inline_asm", "elementwise_inline_asm", "inline_mgpu",
})  # fmt: skip


def overwritten(launch: Launch, axes_of: dict[int, set[int]]) -> dict[int, list[Place]]:
    """The outputs, by operand, whose blocks are stored to by all steps that share them; where the first store is.

    `axes_of`: the axes of the grid that the block of each operand depends on. Only stores whose place is the same in
    each of these steps, and whose value is not, count; those behind conditions and in loops are left out.
    """
    jaxpr = kernel_jaxpr(launch.record.params)
    if jaxpr is None or not _ORDERING.isdisjoint(launch.primitives):
        return {}
    refs = {var: at for at, var in enumerate(jaxpr.invars)}
    axes = axes_behind(jaxpr, {var: axes_of.get(at, set()) for var, at in refs.items()})
    concurrent = _concurrent(launch)
    found: dict[int, list[Place]] = {}
    for equation in jaxpr.eqns:
        ref, value, where = _stored(equation)
        if ref not in refs or refs[ref] not in axes_of or launch.operands[refs[ref]].role != "out":
            continue
        shared = concurrent - axes_of[refs[ref]]
        if axes([value]) & shared and not axes(where) & shared:
            found.setdefault(refs[ref], locate.of_equation(equation))
    return found


def _concurrent(launch: Launch) -> set[int]:
    """The axes of the grid whose steps run at the same time: of Mosaic GPU those that are declared parallel."""
    semantics = launch.semantics or ()
    return {
        axis
        for axis, size in enumerate(launch.grid or ())
        if size > 1 and (launch.backend == "triton" or (axis < len(semantics) and semantics[axis] == "parallel"))
    }


def _stored(equation: Any) -> tuple[Any, Any, list[Any]]:
    """The ref, the value, and its indices in the ref, mask included; three times None where it is not a store."""
    name, atoms = str(equation.primitive), equation.invars
    if name == "swap":
        return atoms[0], atoms[1], atoms[2:]
    if name == "masked_swap":
        from jax.tree_util import tree_leaves, tree_unflatten

        ref, transforms, value, mask = tree_unflatten(equation.params["args_tree"], atoms)
        return ref, value, [each for each in tree_leaves((transforms, mask)) if not isinstance(each, int)]
    return None, None, []
