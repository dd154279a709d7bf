"""Fields of `pltpu.get_tpu_info()`: of the chips that the code is for, or those in which all known chips agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.tpu_info import field_of
from pallas_lint.kernels.model.dtypes import bits, element_of
from pallas_lint.kernels.model.values import NONE, UNKNOWN, CallResult, Const, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer

INFO = ("jax.experimental.pallas.tpu.get_tpu_info", "jax.experimental.pallas.tpu_info.get_tpu_info")
_SPARSE = "method:sparse_core"


def field(interp: Tracer, owner: CallResult, name: str) -> Value | None:
    """`info.vmem_capacity_bytes`, `info.sparse_core.num_lanes`; None where it is not known."""
    if owner.function == _SPARSE:
        return _known(interp, owner.args[0], f"sparse_core.{name}")
    return _known(interp, owner, name)


def sublane_tiling(interp: Tracer, owner: CallResult, arguments: Arguments) -> Value | None:
    """`info.get_sublane_tiling(dtype)`."""
    dtype = element_of(arguments.get("dtype", 0) or UNKNOWN)
    return _known(interp, owner, f"get_sublane_tiling.{bits(dtype)}") if isinstance(dtype, str) else None


def _known(interp: Tracer, owner: Value, name: str) -> Value | None:
    if not isinstance(owner, CallResult) or owner.function not in INFO:
        return None
    found = field_of(name, interp.chips, interp.versions)
    return None if not found else NONE if found[0] is None else Const(found[0])
