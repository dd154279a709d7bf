"""Support of each jax version for each Pallas backend, from measurements.

Names are canonical ("jax.experimental.pallas.load", "jax.numpy.cumsum", "operator:%"), backends are "tpu",
"triton" and "mosaic_gpu", devices "v5e", "v6e", "cuda", "rocm" and so on, dtypes as jax prints them ("bf16").
Importing this reads no data: tables and modules are loaded lazily.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pallas_lint.compat.advice import ApiReplacement, replacement, replacements, substitutes
    from pallas_lint.compat.apis import (
        ApiHistory,
        ApiParameters,
        ApiStatus,
        api,
        available,
        is_module,
        known_module,
        module_exists,
        names_in,
        nearest_names,
        parameters,
    )
    from pallas_lint.compat.functions import (
        FunctionSupport,
        OtherBackend,
        can_copy,
        function,
        function_names,
        provenance,
        status,
        unmeasured,
    )
    from pallas_lint.compat.operations import operation_failure
    from pallas_lint.compat.outcomes import DTYPES, Measurement, Status, Support, SupportStatus
    from pallas_lint.compat.primitives import (
        cores,
        known_primitive,
        primitive_names,
        primitive_since,
        primitive_supported,
    )
    from pallas_lint.compat.versions import (
        UnknownVersionError,
        cuda_default,
        known_versions,
        measured_versions,
        nearest,
        newest,
        oldest,
        parse,
        versions_in,
    )

__all__ = [
    "DTYPES",
    "ApiHistory",
    "ApiParameters",
    "ApiReplacement",
    "ApiStatus",
    "FunctionSupport",
    "Measurement",
    "OtherBackend",
    "Status",
    "Support",
    "SupportStatus",
    "UnknownVersionError",
    "api",
    "available",
    "can_copy",
    "cores",
    "cuda_default",
    "function",
    "function_names",
    "is_module",
    "known_module",
    "known_primitive",
    "known_versions",
    "measured_versions",
    "module_exists",
    "names_in",
    "nearest",
    "nearest_names",
    "newest",
    "oldest",
    "operation_failure",
    "parameters",
    "parse",
    "primitive_names",
    "primitive_since",
    "primitive_supported",
    "provenance",
    "replacement",
    "replacements",
    "status",
    "substitutes",
    "unmeasured",
    "versions_in",
]

if not TYPE_CHECKING:
    # Those that most runs need first. A run that finds every verdict in the cache needs `versions` alone.
    _MODULES = ("versions", "outcomes", "primitives", "apis", "advice", "functions", "operations")

    def __getattr__(name):
        from importlib import import_module

        if name in __all__:
            for module in _MODULES:
                found = vars(import_module(f"{__name__}.{module}"))
                if name in found:
                    return globals().setdefault(name, found[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
