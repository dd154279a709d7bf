"""Lowering and compiling for devices that are not there, on every jax from 0.4.35.

Import this module first: it sets the environment that jax and libtpu read when they start.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_TRACEBACK_FILTERING"] = "off"
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
# Without it a second process that loads libtpu dies on the lock file of the first.
os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")

import contextlib
import importlib
import warnings
from typing import Any

warnings.simplefilter("ignore")

import jax
from jax._src import mesh as _mesh
from jax.experimental import pallas as pl

VERSION = tuple(int(part) for part in jax.__version__.split(".")[:3])


def _import(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except Exception:
            continue
    return None


tpu = _import("jax.experimental.pallas.tpu")
triton = _import("jax.experimental.pallas.triton", "jax.experimental.pallas.gpu")
mosaic_gpu = _import("jax.experimental.pallas.mosaic_gpu")

# backend → (lowering platform, device kind, platform of the abstract device)
BACKENDS = {
    "triton": ("cuda", "NVIDIA H100 80GB HBM3", "gpu"),
    "triton_rocm": ("rocm", "gfx942", "gpu"),
    "tpu": ("tpu", "TPU v5 lite", "tpu"),
    "mosaic_gpu": ("cuda", "NVIDIA H100 80GB HBM3", "gpu"),
    "mosaic_gpu_lane": ("cuda", "NVIDIA H100 80GB HBM3", "gpu"),
}
# device → (topology, device kind)
TPU_DEVICES = {
    "v4": ("v4:2x2x1", "TPU v4"),
    "v5e": ("v5e:2x2", "TPU v5 lite"),
    "v5p": ("v5p:2x2x1", "TPU v5"),
    "v6e": ("v6e:2x2", "TPU v6 lite"),
    "tpu7x": ("tpu7x:2x2x1", "TPU7x"),
}


def _first(module: Any, *names: str) -> Any:
    for name in names:
        if module is not None and hasattr(module, name):
            return getattr(module, name)
    return None


_TritonParams = _first(triton, "CompilerParams", "TritonCompilerParams")
_MosaicGpuParams = _first(mosaic_gpu, "CompilerParams", "GPUCompilerParams")
_AbstractDevice = getattr(jax.sharding, "AbstractDevice", None) or getattr(_mesh, "AbstractDevice", None)


def device_context(kind: str, platform: str, cores: int | None = None) -> Any:
    """Context in which lowering takes `kind` for the target; a no-op where jax has none such (0.4–0.6)."""
    if _AbstractDevice is None:
        return contextlib.nullcontext()
    try:
        device = _AbstractDevice(device_kind=kind, num_cores=cores, platform=platform)
    except TypeError:  # 0.7–0.9: no platform field
        device = _AbstractDevice(device_kind=kind, num_cores=cores)
    try:
        mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
    except TypeError:
        return contextlib.nullcontext()
    return jax.sharding.use_abstract_mesh(mesh)


def _semantics(name: str) -> Any:
    core = _import("jax.experimental.mosaic.gpu.core", "jax.experimental.mosaic.gpu")
    for holder, attribute in (
        (mosaic_gpu, "LoweringSemantics"),
        (core, "LoweringSemantics"),
        (core, "ThreadSemantics"),
    ):
        if hasattr(holder, attribute):
            return getattr(getattr(holder, attribute), name, None)
    return None


def _mosaic_gpu_params(lane: bool) -> Any:
    """Named even where it is the default: that was Lane first, and is Warpgroup now."""
    semantics = _semantics("Lane" if lane else "Warpgroup")
    for keyword in ("lowering_semantics", "thread_semantics"):
        try:
            return _MosaicGpuParams(**{keyword: semantics})
        except TypeError:
            continue
    if lane:
        return _MosaicGpuParams()
    raise NotImplementedError("this jax has no warpgroup semantics")


def pallas_call(kernel: Any, outputs: Any, backend: str, **keywords: Any) -> Any:
    """`pl.pallas_call` for this backend, in the form that this jax has."""
    if backend.startswith("mosaic_gpu"):
        params = _mosaic_gpu_params(lane=backend == "mosaic_gpu_lane")
        if VERSION >= (0, 11, 0):
            # From 0.11.2 the public pallas_call is Triton only; jax keeps this one for its own tests.
            shim = importlib.import_module("jax._src.pallas.mosaic_gpu.pallas_call").pallas_call
            return shim(kernel, out_shape=tuple(outputs), compiler_params=params, **keywords)
        if VERSION < (0, 8, 0):
            jax.config.update("jax_pallas_use_mosaic_gpu", True)
        return pl.pallas_call(kernel, out_shape=outputs, compiler_params=params, **keywords)
    if backend.startswith("triton"):
        if VERSION < (0, 8, 0):
            jax.config.update("jax_pallas_use_mosaic_gpu", False)
        return pl.pallas_call(kernel, out_shape=outputs, compiler_params=_TritonParams(), **keywords)
    return pl.pallas_call(kernel, out_shape=outputs, **keywords)


def tpu_topology(device: str) -> Any:
    """First device of the smallest topology with this generation, for ahead-of-time compiling."""
    from jax.experimental import topologies

    return topologies.get_topology_desc(TPU_DEVICES[device][0], platform="tpu").devices[0]
