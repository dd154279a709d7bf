"""Settings of jax that decide how a launch is traced, lowered and run.

Programs change some for a while, as in `with jax.enable_x64():`, and launches are examined later: as they were made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_OF_KERNELS = ("jax_pallas_", "jax_mosaic_")
_OF_TARGETS = ("jax_pallas_use_mosaic_gpu",)  # which are separate from the program
_OF_NUMBERS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)


def current() -> dict[str, Any]:
    """The settings that hold where this is called, by name."""
    return {name: holder.value for name, holder in _holders().items()}


@contextlib.contextmanager
def restored(values: dict[str, Any]) -> Iterator[None]:
    """Context in which these settings hold, those that `current` gave."""
    with contextlib.ExitStack() as stack:
        for name, holder in _holders().items():
            if name in values and holder.value != values[name]:
                stack.enter_context(holder(values[name]))
        yield


def _holders() -> dict[str, Any]:
    """What holds the value of each of these settings, and makes a context with another one when it is called."""
    import jax

    found = getattr(jax.config, "_value_holders", {})
    return {
        name: holder
        for name, holder in found.items()
        if (name.startswith(_OF_KERNELS) or name in _OF_NUMBERS)
        and name not in _OF_TARGETS
        and callable(holder)
        and hasattr(holder, "value")
    }
