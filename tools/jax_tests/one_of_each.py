"""A plugin of pytest for jax's own tests on a machine without their devices: sets the device, keeps one of each group.

`run.py` loads it. `JAX_TESTS_DEVICE` is the device that tests see (`tpu`, `tpu:v6e` or `gpu`; else what is there),
`JAX_TESTS_EACH` how many tests of a parametrised one run, `JAX_TESTS_CHECKOUT` where modules are found that jax's
tests import and its wheel has not. Where no interpreter runs the kernels, which then return zeros, `JAX_TESTS_ZEROS` is
set, and numbers are not compared, so that a test goes on to its next launch.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from jax._src import test_util

_HELPERS = ("jax._src.pallas.pallas_test_util", "jax._src.hypothesis_test_util")
_TPUS = {"v5e": (5, "e"), "v5p": (5, "p"), "v6e": (6, "e"), "tpu7x": (7, "x")}  # version and variant
_GPU = (9, 0)  # a Hopper


def _set_device(device: str) -> None:
    """Have jax's test helpers answer for a device that is not there."""
    device, _, chip = device.partition(":")
    tags = {"tpu": {"tpu"}, "gpu": {"gpu", "cuda"}}[device]
    tpu, letter = _TPUS[chip or "v5e"]

    def is_tpu(version: int | None = None, variant: str = "") -> bool:
        return device == "tpu" and version in (None, tpu) and variant in ("", letter)

    def is_capable(capability: str) -> bool:
        return device == "gpu" and tuple(map(int, capability.split("."))) <= _GPU

    test_util._get_device_tags = lambda: tags
    test_util.device_under_test = lambda: device
    test_util.get_tpu_version = lambda: tpu
    test_util.is_device_tpu = is_tpu
    test_util.is_device_cuda = lambda: device == "gpu"
    test_util.is_cuda_compute_capability_at_least = is_capable
    test_util.is_cuda_compute_capability_equal = lambda capability: capability == "9.0"


def _load_helpers(checkout: Path) -> None:
    """Import what jax's wheel leaves out from the checkout."""
    for name in _HELPERS:
        file = checkout / f"{name.replace('.', '/')}.py"
        if importlib.util.find_spec(name) is None and file.exists():
            spec = importlib.util.spec_from_file_location(name, file)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
            spec.loader.exec_module(module)


def _compare_nothing() -> None:
    def compare(*_: object, **__: object) -> None:
        return None

    for name in ("assert_array_equal", "assert_allclose", "assert_array_almost_equal"):
        setattr(np.testing, name, compare)
    test_util.JaxTestCase.assertAllClose = compare
    test_util.JaxTestCase.assertArraysEqual = compare


def pytest_configure() -> None:
    device = os.environ.get("JAX_TESTS_DEVICE")
    if device:
        _set_device(device)
    if os.environ.get("JAX_TESTS_ZEROS"):
        _compare_nothing()
    _load_helpers(Path(os.environ["JAX_TESTS_CHECKOUT"]))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the first tests of each group: of those that one function was made into, for each class."""
    most = int(os.environ["JAX_TESTS_EACH"])
    seen: Counter[tuple[object, object]] = Counter()
    kept = []
    for item in items:
        function = inspect.unwrap(getattr(item, "function", item))
        group = (getattr(item, "cls", None), getattr(function, "__code__", item))
        seen[group] += 1
        if seen[group] <= most:
            kept.append(item)
    items[:] = kept
