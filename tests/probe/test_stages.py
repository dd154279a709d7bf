"""Which stages run, in which order, how long each may take, and what is reported of those that were not reached."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

import pytest

from pallas_lint.probe.results import LaunchResult, RequestedStages, Stage, complete
from pallas_lint.probe.session import STAGES, stages_of
from pallas_lint.probe.worker.budget import TimeBudget, TooLong, shares
from pallas_lint.probe.worker.processes import Process
from pallas_lint.probe.worker.server import Clock
from tests.probe.running import run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pathlib import Path

BIG = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(jax.lax.fori_loop(0, 20_000, lambda i, v: v * 0.5 + 1.0, x_ref[...]), axis=1)

def big(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=spec, out_shape=x)(x)
"""
CAPTURED = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl

def slow(x_ref, o_ref):
    o_ref[...] = jax.lax.fori_loop(0, 2_000_000_000, lambda i, v: v * 0.5 + 1.0, x_ref[...])

def adds_to_nothing(x_ref, o_ref):
    o_ref[...] += x_ref[...]

small = jax.ShapeDtypeStruct((8, 128), jnp.float32)
jax.jit(lambda x: pl.pallas_call(slow, out_shape=small)(x)).lower(small)
jax.jit(lambda x: pl.pallas_call(adds_to_nothing, out_shape=small)(x)).lower(small)
"""


@pytest.mark.parametrize(
    ("named", "skipped", "wanted"),
    [
        ([], [], list(STAGES)),
        ([], ["interpret", "checks"], ["trace", "grid", "lower", "compile", "verify"]),
        (["grid"], [], ["trace", "grid"]),
        (["interpret"], [], ["trace", "grid", "verify", "interpret", "checks"]),
        (["lower"], ["checks"], ["trace", "grid", "lower", "verify", "interpret"]),
        (["lower", "compile"], [], ["trace", "lower", "compile"]),
        (["trace", "verify"], [], ["trace", "verify"]),
        (["cost"], [], ["trace", "grid", "lower", "compile"]),
    ],
)
def test_sets_of_stages(named: list[str], skipped: list[str], wanted: list[str]) -> None:
    assert stages_of(named, skipped) == wanted


def test_each_stage_leaves_time_for_those_after_it() -> None:
    parts = shares(["lower", *["compile"] * 7, "verify", "interpret", "checks"])
    left = 1.0
    for part in parts:
        left -= left * part
        assert left > 0.005 or part is parts[-1]
    assert parts[-1] == 1.0 and max(parts[:-1]) <= 0.8


def test_what_takes_too_long_is_not_begun() -> None:
    budget = TimeBudget(100.0, 120.0)
    budget.share = 0.5
    budget.check(1000, 0.01)
    with pytest.raises(TooLong, match=r"^about 12,500 steps of 8 ms; `--timeout 310` or smaller shapes$"):
        budget.check(12_500, 0.008)


def test_a_loaded_machine_takes_no_time_from_a_process_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("pallas_lint.probe.worker.server.time.monotonic", lambda: now)
    clock = Clock()
    for cpu in (0.0, 0.3, 0.3, 3.3):  # a third of the time, none, more than one CPU
        now += 1.0
        clock.advance([Process(1, 0, 0, 0, cpu, False)])
    assert (clock.seconds, clock.waited) == (pytest.approx(1.0 + 0.3 + 1.0 + 1.0), 2.0)


def test_stages_that_were_not_reached() -> None:
    plan = [("lower", "tpu"), ("compile", "tpu"), ("lower", "triton"), ("interpret", None)]
    facts: Any = {"kernel": "k", "stages": plan}
    launch = LaunchResult(cast("Any", facts), [Stage("lower", "tpu", False), Stage("grid", None, True)])
    complete([launch], "stopped")
    reported = [(each.stage, each.target, each.ok, each.detail) for each in launch.stages]
    assert reported == [
        ("grid", None, True, None), ("lower", "tpu", False, None), ("compile", "tpu", None, "it does not lower"),
        ("lower", "triton", None, "stopped"), ("interpret", None, None, "stopped"),
    ]  # fmt: skip
    assert list(RequestedStages().unjudged([launch])) == [
        "lower for triton of `k`: stopped",
        "interpret of `k`: stopped",
    ]
    launch.add(Stage("compile", "tpu:v5e", None, detail="needs libtpu"))
    assert "compile for tpu:v5e of `k`: needs libtpu" in list(RequestedStages(targets=["tpu:v5e"]).unjudged([launch]))


def test_unknown_stages(tmp_path: Path) -> None:
    done = run("k.py::f", "--skip", "lower,fly", cwd=tmp_path)
    assert done.returncode == 2 and "'fly' is not a stage: trace, grid, lower" in done.stderr


@pytest.mark.nightly
def test_a_long_grid_does_not_hide_what_does_not_lower(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(BIG)
    common = ("k.py::big", "--target", "tpu:v5e", "--python", python())
    done = run(common[0], "f32[100000,128]", *common[1:], "--timeout", "60", "--output-format", "json", cwd=tmp_path)
    report = json.loads(done.stdout)
    stages = {each["stage"]: (each["ok"], each["detail"]) for each in report["launches"][0]["stages"]}
    assert [each["code"] for each in report["findings"]] == ["PAL101"] and stages["lower"][0] is False
    assert stages["interpret"][0] is None and "not judged: about 12,500 steps" in stages["interpret"][1]
    done = run(common[0], "f32[64,128]", *common[1:], "--stage", "trace,grid", "--strict", cwd=tmp_path)
    assert done.returncode == 0 and "lower" not in done.stdout
    strict = run(common[0], "f32[100000,128]", *common[1:], "--timeout", "60", "--strict", cwd=tmp_path)
    assert strict.returncode == 2 and "1 stage not judged: interpret of `kernel`" in strict.stdout.splitlines()[-1]


@pytest.mark.nightly
@pytest.mark.slow
def test_one_slow_launch_of_a_program_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CAPTURED)
    done = run(
        "--capture", "--stage", "interpret", "--output-format", "json", "--", python(), "program.py",
        cwd=tmp_path, env={**os.environ},
    )  # fmt: skip
    assert [each["code"] for each in json.loads(done.stdout)["findings"]] == ["PAL907"], done.stdout
