"""Shardings of arguments that have none: those that the `shard_map` around the launch expects.

On a mesh with explicit axes, which `jax.make_mesh` gives by default, a `shard_map` refuses arguments that lie otherwise
than in its `in_specs`. Callers of the function have placed them; a probe comment does not.
"""

from __future__ import annotations

from typing import Any

_FILE = "shard_map.py"


def expected(error: BaseException, leaves: list[Any], known: dict[int, Any]) -> dict[int, Any]:
    """The shardings that the `shard_map` expects that raised this, by the numbers of the arguments they are for.

    `leaves` are the function's arguments as it was traced with them, `known` the shardings that some already have.
    An array that the function makes itself is none of them.
    """
    found: dict[int, Any] = {}
    for operand, sharding in _refused(error):
        free = [at for at in range(len(leaves)) if at not in known and at not in found]
        same = [at for at in free if leaves[at] is operand]
        alike = [at for at in free if _type(leaves[at]) == _type(operand)]  # within `jit`, they are other objects
        for at in (same or alike)[:1]:
            found[at] = sharding
    return found


def _type(operand: Any) -> tuple[Any, Any]:
    return operand.aval.shape, operand.aval.dtype


def _refused(error: BaseException) -> list[tuple[Any, Any]]:
    """The operands of the `shard_map` that raised this and that lie nowhere yet, with where they should lie."""
    import jax

    scope = _scope(error)
    mesh, operands, specs = scope.get("mesh"), scope.get("dyn_args", ()), scope.get("in_specs_flat", ())
    if not isinstance(mesh, jax.sharding.Mesh):
        return []
    return [
        (operand, jax.sharding.NamedSharding(mesh, spec))
        for operand, spec in zip(operands, specs)
        if hasattr(operand, "aval") and isinstance(spec, jax.sharding.PartitionSpec) and any(spec)
        if not any(getattr(getattr(operand.aval, "sharding", None), "spec", ()))
    ]


def _scope(error: BaseException) -> dict[str, Any]:
    """The variables of the function of jax's that compares operands with `in_specs`, where it raised this."""
    traceback = error.__traceback__
    found: dict[str, Any] = {}
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.endswith(_FILE):
            found = traceback.tb_frame.f_locals
        traceback = traceback.tb_next
    return found if "in_specs passed to shard_map" in str(error) else {}
