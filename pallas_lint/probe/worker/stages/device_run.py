"""Runs a launch on the local device, and compares it with an interpreter."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...cost.results import Cost
from ...protocol import Difference, Problem, StageResult
from .. import device_targets, environment
from ..launches.launch import Launch
from . import gpu_interpreter, interpret

PLATFORMS = ("tpu", "cuda", "rocm")
_RUNS, _WARM = 20, 3
_broken: list[str] = []  # kernels after which nothing runs any more
_FLUSH = 256 << 20  # bytes that are written between runs: more than any L2 cache has


def look_for_devices() -> None:
    """Have jax find what this machine has beside the CPU, which stays what everything else runs on.

    Before jax has looked for devices; memory is not taken in advance.
    """
    import jax

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    for platform in PLATFORMS:
        jax.config.update("jax_platforms", f"cpu,{platform}")
        try:
            jax.devices(platform)
            return
        except Exception:
            _forget()
    jax.config.update("jax_platforms", "cpu")


def _forget() -> None:
    """jax remembers which backends it could not have."""
    from jax._src import xla_bridge

    clear = environment.found(xla_bridge, "_clear_backends")
    if clear is not None:
        clear()


def device_for(launch: Launch) -> Any:
    """The device that the launch is for. Raises Missing where there is none."""
    wanted = PLATFORMS if launch.backend is None else ("tpu",) if launch.backend == "tpu" else ("cuda", "rocm")
    for device in _devices(wanted):
        return device
    raise device_targets.Missing(f"jax finds no {'TPU' if wanted == ('tpu',) else 'GPU'} here")


def _devices(platforms: Iterable[str]) -> Iterator[Any]:
    """The first device of each platform that is here."""
    import jax

    for platform in platforms:
        with contextlib.suppress(RuntimeError):
            yield jax.devices(platform)[0]


def examine(launch: Launch, predicted: Iterable[Cost] = ()) -> StageResult:
    """Whether results are those of an interpreter, and how long a run takes. Raises what the device raises.

    A cost that was predicted for this very device is reported with the time.
    """
    import jax

    if launch.record.axes:
        raise device_targets.Missing("kernels on several devices are not run on real ones")
    if launch.record.kind == "core_map":
        raise device_targets.Missing("this jax's core_map can only be run with the function around it")
    if _broken:
        raise device_targets.Missing(f"not run: {_broken[0]} left the device unusable")
    device = device_for(launch)
    values = interpret.operands(launch)
    try:
        with jax.default_device(device):  # which lowering queries
            results, seconds = _ran(launch, values, device)
    except Exception as error:
        if type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError"):
            _broken.append(launch.kernel)  # what fails on a GPU takes its context along
        elif launch.backend is None:
            raise device_targets.Missing(f"it is for another device: {interpret.sentence(error)}") from error
        raise
    name = getattr(device, "device_kind", str(device))
    detail = f"{name}: {_microseconds(seconds)}, median of {_RUNS} runs after {_WARM}, L2 flushed"
    detail += _beside(name, predicted)
    try:
        expected = _interpreted(launch, values)
    except Exception as error:
        return {"detail": f"{detail}; not compared: {interpret.sentence(error)}", "figures": _figures(seconds)}
    found: list[Difference] = [*interpret.differences(results, expected, lenient=True)]
    return {"ok": not found, "problems": [*found], "detail": detail, "figures": _figures(seconds)}


def _beside(name: str, predicted: Iterable[Cost]) -> str:
    for cost in predicted:
        if device_targets.parse(cost["target"]).kind == name and cost["microseconds"] is not None:
            low, high = cost["low"], cost["high"]
            between = "" if low is None or high is None else f" ({low:.3g} to {high:.3g})"
            return f"; predicted {cost['microseconds']:.3g} \u00b5s{between}"
    return ""


def compare(work: Callable[[], Any], wanted: Any) -> list[Problem]:
    """The differences between a function's results on the device and the expected ones.

    Raises Missing where there is no device, and what the device raises.
    """
    import jax

    if _broken:
        raise device_targets.Missing(f"not run: {_broken[0]} left the device unusable")
    device = next(_devices(PLATFORMS), None)
    if device is None:
        raise device_targets.Missing("jax finds no GPU or TPU here")
    with jax.default_device(device):
        results = jax.block_until_ready(work())
    name = getattr(device, "device_kind", str(device))
    found = interpret.differences(jax.device_get(results), jax.device_get(wanted))
    return [{"kind": "mismatch", "message": each["message"], "device": name} for each in found]


def once(launch: Launch) -> None:
    """Run it; what watches this process sees the rest."""
    import jax

    device = device_for(launch)
    values = jax.device_put(interpret.operands(launch), device)
    with jax.default_device(device):
        jax.block_until_ready(jax.jit(lambda *given: launch.record.bind(*given, interpret=False))(*values))


def _figures(seconds: float) -> dict[str, int]:
    return {"run_nanoseconds": round(seconds * 1e9)}


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} \u00b5s"


def _interpreted(launch: Launch, values: list[Any]) -> list[Any]:
    if launch.scatters:
        raise device_targets.Missing("where values of an atomic operation meet, jax's interpreters keep only one")
    if launch.backend == "mosaic_gpu":
        params = gpu_interpreter.parameters(races=False)
        if params is None:
            raise device_targets.Missing("this jax has no interpreter of Mosaic GPU kernels")
        return interpret.run(launch, values, params, **gpu_interpreter.by_axis_index(launch))
    # Unwritten memory is NaN there, and may be anything on the device.
    params = interpret.tpu_interpreter(cores=launch.cores) if launch.backend == "tpu" else None
    return interpret.run(launch, values, params or True)


def _ran(launch: Launch, values: list[Any], device: Any) -> tuple[list[Any], float]:
    """Results, and the median time of a run in seconds."""
    import jax
    import numpy as np

    def call(*given: Any) -> Any:
        return launch.record.bind(*given, interpret=False)

    given = jax.device_put(values, device)
    flushed = jax.device_put(np.zeros(_FLUSH // 4, np.float32), device)
    run, flush = jax.jit(call), jax.jit(lambda array: array + 1)
    results = jax.block_until_ready(run(*given))
    measure = _profiler()
    taken: list[float] = []
    for number in range(_WARM + _RUNS):
        flushed = jax.block_until_ready(flush(flushed))
        seconds = measure(run, given) if measure is not None else _by_the_clock(run, given)
        if number >= _WARM:
            taken.append(seconds)
    return [np.asarray(result) for result in jax.tree_util.tree_leaves(results)], statistics.median(taken)


def _by_the_clock(run: Any, given: Any) -> float:
    """Seconds of a run with what it takes to start it."""
    import jax

    begun = time.perf_counter()
    jax.block_until_ready(run(*given))
    return time.perf_counter() - begun


def _profiler() -> Any:
    """A profiler of the time that kernels take on a GPU, without that of starting them; None where jax has none."""
    profiler = environment.optional("jax.experimental.mosaic.gpu.profiler")
    measure = environment.found(profiler, "measure")
    if measure is None:
        return None

    def seconds(run: Any, given: Any) -> float:
        _, milliseconds = measure(run)(*given)
        return float(milliseconds) / 1e3

    return seconds
