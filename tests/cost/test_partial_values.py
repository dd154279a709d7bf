"""Operands of which some elements are known: what is known of them holds whatever the others are."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pallas_lint.probe.worker.stages.module import laid_out
from tests.probe.running import run
from tests.rules.interpreted import python

ROOT = Path(__file__).resolve().parents[2]

# Functions of an array that is not known, with the share of their result that is.
PROGRAM = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from pallas_lint.probe.worker.launches import known
from pallas_lint.probe.worker.launches.partial_values import PartialValue

at, ones = jnp.arange(12, dtype=jnp.int32), jnp.ones(12, jnp.int32)
FUNCTIONS = {
    "stacked": (lambda x: jnp.stack([x, at, ones]), 2 / 3),
    "padded and transposed": (lambda x: jnp.pad(jnp.stack([x, at], axis=1), [(0, 12), (0, 0)]).T, 3 / 4),
    "joined": (lambda x: jnp.concatenate([jnp.zeros(12, jnp.int32), x]).reshape(4, 6)[::-1], 1 / 2),
    "set": (lambda x: x.at[jnp.array([1, 3, 5])].set(7), 1 / 4),
    "updated": (lambda x: lax.dynamic_update_slice(jnp.zeros(24, jnp.int32), x, (6,)), 1 / 2),
    "chosen": (lambda x: jnp.where(at < 9, at, x), 3 / 4),
    "gathered": (lambda x: jnp.concatenate([x, at])[jnp.array([0, 12, 23, 13])], 3 / 4),
    "computed": (lambda x: (jnp.concatenate([x, at]) * 3 + 1) // 2 > 4, 1 / 2),
    "chosen by a part": (lambda x: jnp.where(jnp.concatenate([x, at]) < 9, 1, 2), 1 / 2),
    "compared": (lambda x: jnp.minimum(x, 0) == 0, 0),
    "summed": (lambda x: jnp.cumsum(jnp.concatenate([at, x])), 0),
    "at a place that is not known": (lambda x: lax.dynamic_slice(at, (x[0],), (4,)), 0),
    "of floats": (lambda x: jnp.stack([x, at]).astype(jnp.float32), 0),
}
random = np.random.default_rng(0)
found = {}
for name, (function, share) in FUNCTIONS.items():
    program = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((12,), jnp.int32))
    (value,) = known._KnownValues([]).closed(program, [None])
    right = True
    for _ in range(20):
        result = np.asarray(function(jnp.asarray(random.integers(-40, 40, 12), jnp.int32)))
        if isinstance(value, PartialValue):
            right &= bool((result == value.data)[~value.unknown].all())
    of = float(1 - value.unknown.mean()) if isinstance(value, PartialValue) else float(value is not None)
    found[name] = [right, of, share]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_known_elements_hold_whatever_the_others_are(tmp_path: Path) -> None:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [python(), "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert len(found) == 13
    assert {name: each for name, each in found.items() if not each[0] or each[1] != pytest.approx(each[2])} == {}


def test_the_words_of_a_part() -> None:
    numpy = pytest.importorskip("numpy")
    data = numpy.arange(6, dtype=numpy.int32).reshape(2, 3)
    words = laid_out(data, "s32[2,3]{1,0:T(2,128)}", data % 2 == 1)
    assert words is not None and [*words[:3], *words[128:131]] == [0, None, 2, None, 4, None]


KERNEL = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(slices_ref, new_ref, cache_in, cache_ref, sem):
    def copy(at, carry):
        size = slices_ref[2, at]
        here = new_ref.at[pl.ds(slices_ref[1, at], size)]
        done = pltpu.make_async_copy(here, cache_ref.at[pl.ds(slices_ref[0, at], size)], sem)
        done.start()
        done.wait()
        return carry

    jax.lax.fori_loop(0, slices_ref.shape[1], copy, 0)


def update(new, begins, cache):
    n = begins.shape[0]
    slices = jnp.stack([begins, jnp.arange(n, dtype=jnp.int32) * 8, jnp.full(n, LENGTH, jnp.int32)])
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    spec = pltpu.PrefetchScalarGridSpec(1, grid=(), in_specs=[hbm, hbm], out_specs=hbm,
                                        scratch_shapes=[pltpu.SemaphoreType.DMA])
    return pl.pallas_call(kernel, out_shape=cache, grid_spec=spec, input_output_aliases={2: 0})(slices, new, cache)
"""


@pytest.mark.slow
def test_a_kernel_of_slices_that_begin_anywhere_has_a_number(tmp_path: Path) -> None:
    """Its time depends on how long they are, which is known."""
    (tmp_path / "update.py").write_text(KERNEL.replace("LENGTH", "8"))
    words = ("update.py::update", "f32[256,8,128]", "i32[32]", "f32[4096,8,128]", "--target", "tpu:v6e")
    done = run(*words, "--stage", "cost", "--python", python(), "--output-format", "json", cwd=tmp_path)
    report = json.loads(done.stdout)
    (launch,) = report["launches"]
    assert launch["cost"][0]["microseconds"] > 0, launch
    (function,) = report["functions"]
    assert function["missing"] == [] and function["microseconds"] > 0
