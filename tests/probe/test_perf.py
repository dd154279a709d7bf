"""`probe --perf`: what launches cost, as the command line tells it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.probe.running import run
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow
KERNELS = (Path(__file__).parents[1] / "cost" / "kernels.py").read_text()
X = ("bf16[2048,2048]",) * 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def told(folder: Path, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    done = run(*words, "--perf", "--output-format", "json", "--python", python(), cwd=folder)
    report = json.loads(done.stdout)
    assert not report["errors"], report["errors"]
    return report, report["launches"][0]["cost"]


def test_large_blocks_are_near_the_limit(folder: Path) -> None:
    report, costs = told(
        folder, "kernels.py::matmul", *X, "bm=512", "bk=1024", "bn=1024", "--target", "tpu:v5e", "--target", "tpu:v5p"
    )
    assert [(cost["target"], cost["bound"], cost["doubts"]) for cost in costs] == [
        ("tpu:v5e", "compute", []), ("tpu:v5p", "compute", [])
    ]  # fmt: skip
    one, two = costs
    floor = 2 * 2048**3 / 197e12 * 1e6
    assert floor < one["low"] <= one["microseconds"] <= one["high"] < 1.5 * floor
    assert 0.6 < one["units"]["mxu"] <= 1 and one["compiler"].startswith("libtpu ")
    assert one["steps"] == 16 and one["bytes"]["ideal"] == 3 * 2048 * 2048 * 2 < one["bytes"]["read"]
    assert (one["cores"], two["cores"]) == (1, 2)
    dearest = KERNELS.splitlines()[one["lines"][0]["line"] - 1]
    assert one["lines"][0]["path"] == "kernels.py" and "jnp.dot" in dearest and one["lines"][0]["unit"] == "mxu"
    assert not [each for each in report["findings"] if each["code"].startswith("PAL8")]
    stages = {stage["stage"] for stage in report["launches"][0]["stages"]}
    assert stages == {"trace", "grid", "lower", "compile"}, "nothing is run, and what it costs is no verdict"


def test_small_blocks_are_told(folder: Path) -> None:
    done = run("kernels.py::rows", "f32[2048,2048]", "--perf", "--target", "tpu:v5p", "--python", python(), cwd=folder)
    assert re.search(
        r"PAL801 latency-bound \[info\]\n  most of the predicted [\d.]+ ms is the cost of 4096", done.stdout
    )
    assert "PAL810 idle-core [info]\n  one of the two cores of v5p is idle" in done.stdout
    assert re.search(r"\n  tpu:v5p +[\d.]+ ms +\S+ .s to \S+ ms +latency +\d%  +33.6 MB  33.6 MB", done.stdout)
    assert "the loop over the grid, its copies and waits" in done.stdout
    assert done.returncode == 0, "infos fail nothing"


def test_a_kernel_for_a_gpu_has_no_cost(folder: Path) -> None:
    done = run("kernels.py::rows", "f32[512,512]", "--perf", "--target", "triton", "--python", python(), cwd=folder)
    assert "--perf: no launch is for a TPU" in done.stderr


def test_what_cannot_be_told_says_why(folder: Path) -> None:
    words = ("kernels.py::chosen_rows", "i32[8]", "f32[2048,128]", "--target", "tpu:v5e")
    _, (unknown,) = told(folder, *words)
    assert unknown["microseconds"] is None and "nobody told" in unknown["doubts"][0]
    _, (known,) = told(folder, words[0], "i32[8]=[0,1,2,3,4,5,6,7]", *words[2:])
    assert known["microseconds"] > 0 and not known["doubts"]
    _, (large,) = told(folder, "kernels.py::rows", "f32[65536,16384]", "bm=65536", "bn=128", "--target", "tpu:v5e")
    assert large["doubts"] == ["it does not compile"]


def test_a_record_of_costs(folder: Path) -> None:
    words = ("probe", "kernels.py::rows", "f32[512,512]", "--python", python(), "-q")
    record = folder / "perf.json"
    assert run(*words[1:], "--write-perf-baseline", "perf.json", cwd=folder).returncode == 0
    ((name, entry),) = json.loads(record.read_text())["launches"].items()
    assert name == "kernels.py::rows kernel(f32[512,512], f32[512,512]) tpu:v5e"
    assert "PAL830" not in run(*words[1:], "--perf-baseline", "perf.json", cwd=folder).stdout
    record.write_text(record.read_text().replace(str(entry["microseconds"]), str(entry["microseconds"] * 0.9)))
    slower = run(*words[1:], "--perf-baseline", "perf.json", cwd=folder)
    assert "PAL830 slower-than-baseline [warning]\n  11% slower than on record" in slower.stdout
    assert slower.returncode == 1
    assert "PAL830" not in run(*words[1:], "--perf-baseline", "perf.json", "--perf-fail-over", "20%", cwd=folder).stdout
    record.write_text("[")
    broken = run(*words[1:], "--perf-baseline", "perf.json", cwd=folder)
    assert "perf.json: error: it is no record of costs" in broken.stderr and broken.returncode == 2


def test_block_sizes_are_compared(folder: Path) -> None:
    words = ("kernels.py::matmul", *(("bf16[1024,1024]",) * 2), "bn=512", "--python", python(), "--target", "tpu:v5e")
    tried = ("--tune", "bm=128,512", "--tune", "bk=512,2048", "--tune", "bn=512,8192")
    done = run(*words, *tried, cwd=folder)
    assert "2 of 8 choices have a number" in done.stdout, done.stdout + done.stderr
    assert re.search(r"µs  best     bm=512 bk=512 bn=512\n.*µs  \+\d+% +bm=128 bk=512 bn=512\n", done.stdout)
    assert "no number for bm=128 bk=2048 bn=512: its grid has no step" in done.stdout
    found = json.loads(run(*words, *tried[:2], "--tune", "bk=512", "--output-format", "json", cwd=folder).stdout)
    (target,) = found["tune"]
    assert [each["values"]["bm"] for each in target["choices"]] == ["512", "128"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("kernels.py::rows", "--tune", "bm"), "--tune: 'bm' is not as in bm=128,256,512"),
        (("kernels.py::rows", "--tune", "bm=1,x y"), "cannot read the argument"),
        (("kernels.py::rows", "--perf", "--stage", "lower"), "--perf is for functions"),
        (("kernels.py::rows", "--perf-fail-over", "much"), "'much' is no percentage"),
    ],
)
def test_options_that_make_no_sense(folder: Path, words: tuple[str, ...], told: str) -> None:
    done = run(*words, cwd=folder)
    assert done.returncode == 2 and told in done.stderr
