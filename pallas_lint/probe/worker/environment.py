"""jax as the worker needs it: on the CPU, with tracebacks whole, and old enough or new enough to be understood."""

from __future__ import annotations

import importlib
import os
import re
import sys
import warnings
from typing import Any

OLDEST = (0, 4, 35)
_DEVICES = "--xla_force_host_platform_device_count"


class Unusable(Exception):
    """This interpreter cannot probe; the message is one sentence with the reason."""


def set_variables() -> None:
    """What jax and libtpu read when they start."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_TRACEBACK_FILTERING"] = "off"
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    # Without it a second process that loads libtpu dies on the lock file of the first.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    os.environ.setdefault("TPU_STDERR_LOG_LEVEL", "3")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    if _DEVICES not in os.environ.get("XLA_FLAGS", ""):
        set_devices(8)  # functions that spread over devices find some


def set_devices(count: int) -> None:
    """How many devices jax finds; before it looks for any."""
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(_DEVICES)]
    os.environ["XLA_FLAGS"] = " ".join([*flags, f"{_DEVICES}={count}"])


def import_jax() -> None:
    """Import jax and Pallas. Raises Unusable."""
    where = sys.executable
    warnings.filterwarnings("ignore", message=".*os.fork.*")
    try:
        import jax
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("jax", "jaxlib"):
            advice = "install it there (pip install 'jax[tpu]'), or choose an interpreter that has it with --python"
            raise Unusable(f"{where} has no jax: {advice}") from None
        raise Unusable(f"{where} cannot import jax: {error}") from None
    except Exception as error:
        raise Unusable(f"{where} cannot import jax: {type(error).__name__}: {error}") from None
    if version() < OLDEST:
        raise Unusable(f"{where} has jax {jax.__version__}: the probe needs {'.'.join(map(str, OLDEST))} or newer")
    try:
        import jax.experimental.pallas
    except Exception as error:
        raise Unusable(f"{where} cannot import jax.experimental.pallas: {type(error).__name__}: {error}") from None
    for name in ("tpu", "triton"):
        optional(f"jax.experimental.pallas.{name}")


def version() -> tuple[int, ...]:
    """jax's version as numbers: (0, 10, 2)."""
    import jax

    return tuple(int(part) for part in re.findall(r"\d+", jax.__version__)[:4])


def optional(*names: str) -> Any:
    """The first of these modules that can be imported; None where none can."""
    for name in names:
        try:
            return importlib.import_module(name)
        except Exception:
            continue
    return None


def found(module: Any, *names: str) -> Any:
    """The first of these attributes that the module has; None where it has none."""
    return next((getattr(module, name) for name in names if hasattr(module, name)), None)


def parts() -> dict[str, str | None]:
    """Which compilers are installed: {"jax": "0.10.2", "libtpu": "0.0.42", "cuda": None}."""
    from importlib import metadata

    import jax

    def installed(*names: str) -> str | None:
        for name in names:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return None

    return {
        "python": sys.executable,
        "jax": jax.__version__,
        "libtpu": installed("libtpu", "libtpu-nightly") or os.environ.get("TPU_LIBRARY_PATH") or None,
        "cuda": installed("jax-cuda13-plugin", "jax-cuda12-plugin"),
    }
