"""Predictions against times that others measured on the chips, and against libtpu's own. Nothing was fitted to them."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from pathlib import Path

import pytest

from tests.probe.running import run
from tests.rules.interpreted import python

# Nanoseconds of a product of (m, k) and (k, n) in bfloat16 on a v6e, the slope of a loop: "TPU Matmul Benchmark & Shape
# Analysis". Left out is what is alike: all 46 are within 3.1 %.
MEASURED = {
    (256, 32, 32): 133.46, (256, 32, 512): 206.11, (256, 64, 128): 145.6, (256, 128, 512): 203.66,
    (128, 256, 256): 165.95, (256, 512, 256): 222.34, (512, 256, 512): 295.79, (512, 512, 512): 445.07,
    (512, 64, 256): 218.7, (1024, 256, 256): 295.22, (4096, 256, 256): 734.63, (2048, 512, 512): 1323.83,
    (256, 257, 256): 221.1, (512, 512, 513): 590.64, (512, 513, 513): 785.32, (513, 513, 513): 829.7,
}  # fmt: skip
LOOP = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

Params = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams


def looped(x, w, turns=1000):
    def kernel(x_ref, w_ref, o_ref):
        def turn(_, total):
            return jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)

        shape = (x.shape[0], w.shape[1])
        o_ref[...] = jax.lax.fori_loop(0, turns, turn, jnp.zeros(shape, jnp.float32)).astype(x.dtype)

    out = jax.ShapeDtypeStruct((x.shape[0], w.shape[1]), x.dtype)
    params = Params(vmem_limit_bytes=96 << 20, disable_bounds_checks=True)
    return pl.pallas_call(kernel, out_shape=out, compiler_params=params)(x, w)
"""


@pytest.mark.nightly
def test_products_in_a_loop_on_a_v6e(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    predicted = {}
    for m, n, k in MEASURED:
        shapes = (f"bf16[{m},{k}]", f"bf16[{k},{n}]")
        words = ("loop.py::looped", *shapes, "--tune", "turns=1000,2000", "--target", "tpu:v6e", "--python", python())
        (target,) = json.loads(run(*words, "--output-format", "json", cwd=tmp_path).stdout)["tune"]
        took = {each["values"]["turns"]: each["microseconds"] for each in target["choices"]}
        predicted[m, n, k] = took["2000"] - took["1000"]  # of a thousand turns, in microseconds: of one, in ns
    apart = [abs(predicted[each] / MEASURED[each] - 1) for each in MEASURED]
    assert max(apart) < 0.04 and statistics.median(apart) < 0.015, (predicted, MEASURED)
    assert _ranks(predicted) == pytest.approx(_ranks(MEASURED), abs=1), "the ranks are right"


def _ranks(times: dict[tuple[int, int, int], float]) -> list[int]:
    order = sorted(times, key=lambda each: times[each])
    return [order.index(each) for each in MEASURED]


# Kernels that compute most of the time: of waiting, libtpu's estimate knows less than the published figures tell (it
# lets the memory of a v5e move 1150 GB/s).
COMPUTING = (
    "kernels.py::matmul bf16[2048,2048] bf16[2048,2048] bm=1024 bk=512 bn=1024",
    "pitfalls.py::product f32[1024,1024] f32[1024,1024]",
    "pitfalls.py::polynomial bf16[4096,1024]",
    "pitfalls.py::polynomial bf16[4096,1024] wide=True",
    "pitfalls.py::rows_in_a_loop f32[1024,512]",
    "pitfalls.py::scores bf16[2048,64] bf16[4096,64]",
)


@pytest.mark.nightly
@pytest.mark.parametrize("words", COMPUTING)
def test_libtpu_estimates_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """Of some kernels, at night of all."""
    for name in ("kernels.py", "pitfalls.py"):
        shutil.copy(Path(__file__).parent / name, tmp_path)
    dumped = tmp_path / "dumped"
    monkeypatch.setenv("LIBTPU_INIT_ARGS", f"--xla_jf_dump_static_llo_profile_to={dumped}")
    given = (*words.split(), "--perf", "--target", "tpu:v5e", "--python", python(), "--output-format", "json")
    (cost,) = json.loads(run(*given, cwd=tmp_path).stdout)["launches"][0]["cost"]
    [launch] = dumped.glob("call.1_*.textproto")  # compiled alone; in the whole function it has the kernel's name
    estimated = re.findall(r"estimated_cycles: (\d+)", launch.read_text())
    cycles = cost["cycles"]["issue"] + cost["cycles"]["stall"]
    assert cycles == pytest.approx(int(estimated[0]), rel=0.1)
