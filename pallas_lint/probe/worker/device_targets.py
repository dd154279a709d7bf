"""Device targets for lowering and compiling on a machine without the device."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import device_stand_ins, environment


class Missing(Exception):
    """A part that this stage needs is not there; the message is one sentence that names it."""


@dataclass(frozen=True)
class DeviceTarget:
    """One target as the command line names it, "tpu:v5e", with what jax calls it."""

    text: str
    backend: str
    device: str
    platform: str  # of lowering
    kind: str  # of the device
    topology: str | None = None


_TPU = {
    "v4": ("v4:2x2x1", "TPU v4"),
    "v5e": ("v5e:2x2", "TPU v5 lite"),
    "v5p": ("v5p:2x2x1", "TPU v5"),
    "v6e": ("v6e:2x2", "TPU v6 lite"),
    "tpu7x": ("tpu7x:2x2x1", "TPU7x"),
    "tpu8i": ("tpu8i:2x2x1", "TPU8i"),
    "tpu8t": ("tpu8t:2x2x1", "TPU8t"),
}
_SINCE = {"tpu8i": "0.10.2", "tpu8t": "0.11.1"}  # the first jax that lowers for it; of others, all do
TWO_CORES = ("v4", "v5p")  # of which one device has both, which share parallel axes of grids
_GPU = {"sm90": "NVIDIA H100 80GB HBM3", "sm100": "NVIDIA B200", "cuda": "NVIDIA H100 80GB HBM3", "rocm": "gfx942"}
_DEFAULT = {"tpu": "v5e", "triton": "cuda", "mosaic_gpu": "sm90"}

# What XLA needs of a GPU to compile for it, and kernels to make their grid, by compute capability.
# From NVIDIA's data sheets and tuning guides.
_GPU_FACTS = {
    (9, 0): {"cores": 132, "shared": 232448, "shared_core": 233472, "clock": 1.98, "memory": 84929347584,
             "bandwidth": 3352320000000, "l2": 52428800},
    (10, 0): {"cores": 148, "shared": 232448, "shared_core": 233472, "clock": 1.965, "memory": 191514476544,
              "bandwidth": 7672000000000, "l2": 132644864},
}  # fmt: skip


def check_known(target: DeviceTarget) -> None:
    """Raises Missing where this jax has no such device."""
    if target.device not in _SINCE:
        return
    for name in ("jax._src.tpu_info", "jax._src.pallas.mosaic.tpu_info"):
        with contextlib.suppress(ImportError):
            look = getattr(importlib.import_module(name), "chip_version_from_device_kind", None)
            if look is not None and look(target.kind) is not None:
                return
    numbers = ".".join(map(str, environment.version()))
    raise Missing(f"not judged: jax {numbers} has no {target.device}, which came with {_SINCE[target.device]}")


def parse(text: str) -> DeviceTarget:
    """The target that `text` ("tpu:v5e", "triton", "mosaic-gpu:sm90") names; a backend alone is its usual device."""
    name, _, device = text.partition(":")
    backend = name.replace("-", "_")
    device = device or _DEFAULT[backend]
    if backend == "tpu":
        topology, kind = _TPU[device]
        return DeviceTarget(text, backend, device, "tpu", kind, topology)
    return DeviceTarget(text, backend, device, "rocm" if device == "rocm" else "cuda", _GPU[device])


@contextlib.contextmanager
def imitated(
    target: DeviceTarget, seen: DeviceTarget | None = None, queried: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Context in which tracing and lowering take the target's device for the one that is there.

    The user's code finds that of `seen`, where one is given. `queried` is called when something reads its kind.

    The public way is an abstract mesh (from 0.7; before, lowering needs no device). It is not enough: equations are
    lowered in the context in which they were traced, which had no mesh, so the functions behind it are replaced.
    """
    import jax

    device_stand_ins.describe(jax.local_devices())
    answering = answered(seen or target, queried)
    with _abstract_mesh(target), _attributes(target), answering, contextlib.ExitStack() as stack:
        for module in map(sys.modules.get, PLATFORM_MODULES):
            if module is not None:
                stack.enter_context(_answering(module, target, queried))
        yield


def answered(
    target: DeviceTarget, queried: Callable[[], None] = lambda: None
) -> contextlib.AbstractContextManager[None]:
    """Context in which the user's code gets the target's devices from jax."""
    return device_stand_ins.of(
        device_stand_ins.Device("tpu" if target.backend == "tpu" else "gpu", target.kind, queried)
    )


# The modules with functions that give lowering its device, in one release or another.
PLATFORM_MODULES = (
    "jax._src.tpu_info",
    "jax._src.pallas.mosaic.tpu_info",
    "jax._src.pallas.mosaic.core",
    "jax._src.pallas.triton.gpu_info",
    "jax._src.pallas.mosaic.pipeline",
)
_ANSWERS = ("get_device_kind", "get_num_device_cores", "_get_tpu_generation")


@contextlib.contextmanager
def _answering(module: Any, target: DeviceTarget, queried: Callable[[], None]) -> Iterator[None]:
    def kind() -> str:
        queried()
        return target.kind

    kept = {name: vars(module)[name] for name in _ANSWERS if name in vars(module)}
    _forget(module)
    if "get_device_kind" in kept:
        module.get_device_kind = kind
    if "get_num_device_cores" in kept:
        module.get_num_device_cores = lambda: 1
    if "_get_tpu_generation" in kept and target.backend == "tpu":  # of emit_pipeline, to 0.6
        module._get_tpu_generation = lambda: int(target.kind.strip("TPU v")[0])
    try:
        yield
    finally:
        vars(module).update(kept)
        _forget(module)


def _forget(module: Any) -> None:
    """What `get_tpu_info` remembers goes by the context of tracing, in which our answers do not show."""
    for name in ("get_tpu_info", "get_gpu_info"):
        clear = getattr(getattr(module, name, None), "cache_clear", None)
        if clear is not None:
            clear()


def _abstract_mesh(target: DeviceTarget) -> Any:
    import jax
    from jax._src import mesh

    make = getattr(jax.sharding, "AbstractDevice", None) or getattr(mesh, "AbstractDevice", None)
    if make is None:
        return contextlib.nullcontext()
    platform = "tpu" if target.backend == "tpu" else "gpu"
    cores = 1 if target.backend == "tpu" else _facts(target)["cores"]
    try:
        device = make(device_kind=target.kind, num_cores=cores, platform=platform)
    except TypeError:  # 0.7 to 0.9 have no platform
        device = make(device_kind=target.kind, num_cores=cores)
    try:
        abstract = jax.sharding.AbstractMesh((), (), abstract_device=device)
    except TypeError:
        return contextlib.nullcontext()
    return jax.sharding.use_abstract_mesh(abstract)


@contextlib.contextmanager
def _attributes(target: DeviceTarget) -> Iterator[None]:
    """Kernels read the number of multiprocessors of `jax.devices()[0]`, which CPUs do not have."""
    import jax

    first = jax.devices()[0]
    kind: Any = type(first)
    if target.platform != "cuda" or hasattr(first, "core_count"):
        yield
        return
    kind.core_count = property(lambda _: _facts(target)["cores"])
    kind.compute_capability = property(lambda _: ".".join(map(str, _capability(target))))
    try:
        yield
    finally:
        del kind.core_count, kind.compute_capability


def device(target: DeviceTarget) -> Any:
    """A device to compile for. Raises Missing where the compiler is not installed."""
    from jax.experimental import topologies

    if target.backend == "tpu":
        assert target.topology is not None
        return _tpus(target, target.topology)[0]
    if target.device == "rocm":
        raise Missing("compiling for AMD GPUs without one is not possible with what jax installs")
    if environment.parts()["cuda"] is None or importlib.util.find_spec("jax_plugins") is None:
        raise Missing(
            "compiling for CUDA needs jax's CUDA plugin in that environment "
            "(pip install --no-deps jax-cuda12-plugin jax-cuda12-pjrt, or cuda13, of jax's own version)"
        )
    try:
        return topologies.get_topology_desc(
            "", platform="cuda", topology="1x1x1", target_config=_gpu_description(target)
        ).devices[0]
    except Exception as error:
        raise Missing(f"jax's CUDA plugin describes no {target.device}: {_first_line(error)}") from error


def several(target: DeviceTarget, count: int) -> list[Any]:
    """So many devices of one slice to compile for. Raises Missing."""
    if target.backend != "tpu" or target.topology is None:
        raise Missing("compiling for several devices is for TPUs")
    for shape in _SLICES[target.topology.partition(":")[2].count("x") + 1]:
        if math.prod(map(int, shape.split("x"))) >= count:
            return _tpus(target, f"{target.device}:{shape}")[:count]
    raise Missing(f"no slice of {target.device} with {count} devices is described")


_SLICES = {
    2: ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"),
    3: ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8"),
}


def _tpus(target: DeviceTarget, topology: str) -> list[Any]:
    from jax.experimental import topologies

    if environment.parts()["libtpu"] is None:
        raise Missing("compiling for TPU needs libtpu in that environment (pip install libtpu)")
    try:
        return list(topologies.get_topology_desc(topology, platform="tpu").devices)
    except Exception as error:
        if not _loads():
            raise Missing(f"libtpu is installed, but does not load: {_first_line(error)}") from error
        if target.device in _SINCE and topology.endswith("x1"):  # slices of it may have two dimensions
            with contextlib.suppress(Exception):
                return list(topologies.get_topology_desc(topology.removesuffix("x1"), platform="tpu").devices)
        raise Missing(f"the installed libtpu has no {topology}: {_first_line(error)}") from error


def _loads() -> bool:
    """Whether libtpu describes the chips that every release has."""
    from jax.experimental import topologies

    try:
        topologies.get_topology_desc("v4:2x2x1", platform="tpu")
    except Exception:
        return False
    return True


def _capability(target: DeviceTarget) -> tuple[int, int]:
    return (10, 0) if target.device == "sm100" else (9, 0)


def _facts(target: DeviceTarget) -> dict[str, Any]:
    return _GPU_FACTS[_capability(target)]


def _gpu_description(target: DeviceTarget) -> str:
    major, minor = _capability(target)
    facts = _facts(target)
    # 0.4 has no field for the version of the CUDA runtime.
    runtime = "runtime_version { major: 12 minor: 8 patch: 0 }" if environment.version() >= (0, 5) else ""
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {facts["shared_core"]}
  shared_memory_per_block_optin: {facts["shared"]}
  threads_per_core_limit: 2048
  core_count: {facts["cores"]}
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {facts["bandwidth"]}
  l2_cache_size: {facts["l2"]}
  clock_rate_ghz: {facts["clock"]}
  device_memory_size: {facts["memory"]}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability {{ major: {major} minor: {minor} }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 }}
{runtime}
device_description_str: "{target.kind}"
"""


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0][:200]
