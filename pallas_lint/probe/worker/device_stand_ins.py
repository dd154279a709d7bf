"""Stand-ins for jax's devices: code that looks them up gets those of the target, which is not there.

Functions that choose their kernel or their sizes by `jax.default_backend()`, `jax.devices()[0].platform` or
`device_kind`, or that assert them, are traced as on the device that is probed. jax's own code, which queries the same
functions, gets the truth.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

_MODULES = ("jax", "jax._src.xla_bridge", "jax.lib.xla_bridge", "jax.extend.backend")
_LISTS = ("devices", "local_devices", "device_count", "local_device_count")  # they take the name of a backend
_PLATFORMS = {"tpu": ("tpu",), "gpu": ("gpu", "cuda", "rocm")}  # by the name that a device of them has
# The libraries that programs look up by the versions of CUDA 13.
_LIBRARIES = {
    "cuda_runtime_get_version": 13000, "cuda_runtime_build_version": 13000, "cuda_driver_get_version": 13000,
    "cuda_device_count": 1, "cudnn_get_version": 91200, "cublas_get_version": 130000, "cusolver_get_version": 12000,
    "cusparse_get_version": 12600, "cufft_get_version": 12000, "cupti_get_version": 130000,
}  # fmt: skip


@dataclass(frozen=True)
class Device:
    """The device that the user's code finds. `platform` is "tpu" or "gpu"."""

    platform: str
    kind: str
    queried: Callable[[], None] = lambda: None  # called when the kind is read


_current: list[Device] = []  # the last one counts


@contextlib.contextmanager
def of(device: Device) -> Iterator[None]:
    """Context in which the user's code finds this device, if `install` was called."""
    _current.append(device)
    try:
        with _libraries() if device.platform == "gpu" else contextlib.nullcontext():
            yield
    finally:
        _current.pop()


def install() -> None:
    """Patch jax's functions to answer as `of` does, by whatever name the user's code has imported them."""
    originals = sys.modules["jax"]
    answers: dict[str, Any] = {name: _listed(getattr(originals, name)) for name in _LISTS}
    answers["default_backend"] = _backend(originals.default_backend)
    for module in filter(None, map(sys.modules.get, _MODULES)):
        for name, replacement in answers.items():
            if vars(module).get(name) is inspect.unwrap(replacement):
                setattr(module, name, replacement)


def _called_by_jax(depth: int) -> bool:
    """Whether the caller is jax's code; kernels in jax count as user code."""
    file = sys._getframe(depth).f_code.co_filename
    return file.startswith(_home()) and f"{os.sep}pallas{os.sep}ops{os.sep}" not in file


@cache
def _home() -> str:
    return os.path.dirname(os.path.abspath(sys.modules["jax"].__file__ or "")) + os.sep


def _backend(original: Callable[[], str]) -> Callable[[], str]:
    def default_backend() -> str:
        return original() if not _current or _called_by_jax(2) else _current[-1].platform

    vars(default_backend)["__wrapped__"] = original
    return default_backend


def _listed(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the devices that are there for those that its caller names."""
    signature = inspect.signature(original)

    def replacement(*given: Any, **named: Any) -> Any:
        if not _current or _called_by_jax(2):
            return original(*given, **named)
        bound = signature.bind(*given, **named)
        if bound.arguments.get("backend") in _PLATFORMS[_current[-1].platform]:
            bound.arguments["backend"] = None
        found = original(*bound.args, **bound.kwargs)
        if isinstance(found, list):
            describe(found)
        return found

    vars(replacement)["__wrapped__"] = original
    return replacement


def describe(devices: Iterable[Any]) -> None:
    """Give devices the attributes of `of`: also those that the user's code has of an array, or as jax's default."""
    for device in devices:
        _describe(device.__class__)
        _describe(device.client.__class__)


@cache
def _describe(owner: Any) -> None:
    """Patch the properties of a class of devices, or clients, with the values of `of`."""
    for name, attribute in (("platform", "platform"), ("device_kind", "kind")):
        real = getattr(owner, name, None)
        if real is not None:
            setattr(owner, name, property(_attribute(real, attribute)))


def _attribute(real: Any, name: str) -> Callable[[Any], str]:
    def read(device: Any) -> str:
        truth = not _current or _called_by_jax(2)
        if name == "kind" and not truth:
            _current[-1].queried()
        return str(real.__get__(device) if truth else getattr(_current[-1], name))

    return read


@contextlib.contextmanager
def _libraries() -> Iterator[None]:
    """Context in which modules that found no CUDA when they were imported find some, other than jax's own."""
    stand_in = SimpleNamespace(**{name: (lambda version=version: version) for name, version in _LIBRARIES.items()})
    modules = [
        module
        for name, module in list(sys.modules.items())
        if not name.startswith("jax._src") and "cuda_versions" in (getattr(module, "__dict__", None) or ())
        if vars(module)["cuda_versions"] is None
    ]
    for module in modules:
        vars(module)["cuda_versions"] = stand_in
    try:
        yield
    finally:
        for module in modules:
            vars(module)["cuda_versions"] = None
