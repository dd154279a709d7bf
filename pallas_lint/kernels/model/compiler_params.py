"""What a launch passes as `compiler_params`: a call of one of their classes, or the dictionary of older releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.values import NONE, UNKNOWN, CallResult, Dictionary, Sym, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax.piece import Site


def compiler_param(launch: Launch, name: str) -> Value | None:
    """A field of the launch's `compiler_params`; None where it certainly has none, else it may be anything."""
    params = launch.argument("compiler_params")
    if params in (None, NONE):
        return Sym(name, 0) if launch.open else None
    if isinstance(params, Dictionary):
        nested = params.get("mosaic") or params.get("mosaic_tpu")
        params = nested if isinstance(nested, Dictionary) else params
        found = params.get(name)
        return found if found is not None or not params.open else Sym(name, 0)
    while isinstance(params, CallResult):
        found = params.argument(name)
        if found is not None or params.open:
            return found or Sym(name, 0)
        if not params.function.endswith(".replace"):
            return None
        params = params.args[0] if params.args else UNKNOWN  # a copy of other parameters
    return Sym(name, 0)


def compiler_param_site(launch: Launch, name: str) -> Site:
    """Where a field of the launch's `compiler_params` is written; the launch where that is not seen."""
    params = launch.argument("compiler_params")
    written = params.site.keyword(name) if isinstance(params, CallResult) else None
    return written or launch.called_at
