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
HINT = 'which are not known (give those of the arguments: "i32[4]=[3,1,0,2]")'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def reported(folder: Path, *words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    done = run(*words, "--perf", "--output-format", "json", "--python", python(), cwd=folder)
    report = json.loads(done.stdout)
    assert not report["errors"], report["errors"]
    return report, report["launches"][0]["cost"]


@pytest.mark.nightly
def test_large_blocks_are_near_the_limit(folder: Path) -> None:
    report, costs = reported(
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


@pytest.mark.nightly
def test_small_blocks_are_reported(folder: Path) -> None:
    done = run("kernels.py::rows", "f32[2048,2048]", "--perf", "--target", "tpu:v5p", "--python", python(), cwd=folder)
    assert re.search(
        r"PAL801 latency-bound \[info\]\n  \d\d% of the [\d.]+ ms predicted for v5p are the cost of 4096", done.stdout
    )
    assert "PAL810 idle-core [info]\n  one of the two cores of v5p is idle" in done.stdout
    assert re.search(r"\n  tpu:v5p +[\d.]+ ms +\S+ .s to \S+ ms +latency +\d%  +32 MiB  32 MiB", done.stdout)
    assert "the loop over the grid, its copies and waits" in done.stdout
    assert done.returncode == 0, "infos fail nothing"


def test_a_kernel_for_a_gpu_has_no_cost(folder: Path) -> None:
    done = run("kernels.py::rows", "f32[512,512]", "--perf", "--target", "triton", "--python", python(), cwd=folder)
    assert "--perf: no launch is for a TPU" in done.stderr


@pytest.mark.nightly
def test_an_unknown_cost_has_a_reason(folder: Path) -> None:
    words = ("kernels.py::chosen_rows", "i32[8]", "f32[2048,128]", "--target", "tpu:v5e")
    _, (unknown,) = reported(folder, *words)
    assert unknown["microseconds"] is None and unknown["doubts"] == [f"it depends on the values of picked_ref, {HINT}"]
    _, (known,) = reported(folder, words[0], "i32[8]=[0,1,2,3,4,5,6,7]", *words[2:])
    assert known["microseconds"] > 0 and not known["doubts"]
    _, (large,) = reported(folder, "kernels.py::rows", "f32[65536,16384]", "bm=65536", "bn=128", "--target", "tpu:v5e")
    assert large["doubts"] == ["it needs more memory than there is"]


@pytest.mark.nightly
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
    assert "error: perf.json: it is not a record of costs" in broken.stderr and broken.returncode == 2


@pytest.mark.nightly
def test_block_sizes_are_compared(folder: Path) -> None:
    words = ("kernels.py::matmul", *(("bf16[1024,1024]",) * 2), "bn=512", "--python", python(), "--target", "tpu:v5e")
    tried = ("--tune", "bm=128,512", "--tune", "bk=512,2048", "--tune", "bn=512,8192")
    done = run(*words, *tried, cwd=folder)
    assert "3 of 9 choices have a number" in done.stdout, done.stdout + done.stderr
    assert re.search(r"µs  best     bm=512 bk=512 bn=512\n.*µs  \+\d+% +bm=128 bk=512 bn=512\n", done.stdout)
    assert "no number for bm=128 bk=2048 bn=512: its grid has no step" in done.stdout
    narrow = run(*words, "--tune", "bk=2048", cwd=folder, env={"COLUMNS": "50"}).stdout.splitlines()
    assert any(line.startswith("  no number for bk=2048: ") for line in narrow)
    assert max(map(len, narrow)) <= 50
    with_files = ("--report", "json=tune.json", "--report", "full=tune.txt", "--output-format", "json")
    done = run(*words, *tried[:2], "--tune", "bk=512", *with_files, cwd=folder)
    assert (folder / "tune.json").read_text() == done.stdout
    assert "best     bm=512" in (folder / "tune.txt").read_text()
    (target,) = json.loads(done.stdout)["tune"]
    assert [each["values"]["bm"] for each in target["choices"]] == ["512", "128", "128"]
    assert all(each["low"] < each["microseconds"] < each["high"] for each in target["choices"])


@pytest.mark.nightly
def test_a_report_in_a_file_has_no_colours(folder: Path) -> None:
    words = ("kernels.py::matmul", *(("bf16[1024,1024]",) * 2), "--stage", "lower", "--target", "tpu:v5e")
    done = run(*words, "--color", "always", "--report", "full=report.txt", "--python", python(), cwd=folder)
    assert "\x1b[" in done.stdout and "\x1b[" not in (folder / "report.txt").read_text()


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("kernels.py::rows", "--tune", "bm"), "--tune: 'bm' is not as in bm=128,256,512"),
        (("kernels.py::rows", "--tune", "bm=1,x y"), "cannot read the argument"),
        (("kernels.py::rows", "--against", "rows", "--stage", "lower"), "leave out --stage, or give"),
        (("--perf", "--capture", "--", "true"), "not of what --capture runs"),
        (("kernels.py::rows", "--perf-fail-over", "much"), "'much' is not a percentage"),
    ],
)
def test_options_that_make_no_sense(folder: Path, words: tuple[str, ...], reported: str) -> None:
    done = run(*words, cwd=folder)
    assert done.returncode == 2 and reported in done.stderr


# Code, the words that show it, those that mend it, and the chips on which it matters.
PITFALLS = {
    "PAL803": ("scaled f32[4096,2048] f32[4096,128]", "fetched_again=False", {"v5e", "v6e"}),
    "PAL806": ("scores bf16[8192,64] bf16[4096,64]", "", {"v5e", "v6e", "tpu7x"}),
    "PAL807": ("product f32[2048,2048] f32[2048,2048]", "exact=False", {"v5e", "v6e", "tpu7x"}),
    "PAL808": ("polynomial bf16[4096,2048]", "wide=True", {"v5e"}),
    "PAL809": ("rows_in_a_loop f32[4096,512]", "whole=True", {"v5e", "v6e", "tpu7x"}),
}


@pytest.mark.nightly
@pytest.mark.parametrize("code", PITFALLS)
def test_causes_of_slowness_are_reported_at_their_lines(tmp_path: Path, code: str) -> None:
    text = (Path(__file__).parents[1] / "cost" / "pitfalls.py").read_text()
    (tmp_path / "pitfalls.py").write_text(text)
    words, mended, chips = PITFALLS[code]
    targets = [word for chip in ("v5e", "v6e", "tpu7x") for word in ("--target", f"tpu:{chip}")]
    report, costs = reported(tmp_path, *f"pitfalls.py::{words}".split(), *targets)
    found = [each for each in report["findings"] if each["code"] == code]
    assert {chip for each in found for chip in each["device"].split(", ")} == chips
    if not mended:
        words = words.replace("64]", "256]")
    better, after = reported(tmp_path, *f"pitfalls.py::{words} {mended}".split(), *targets)
    assert code not in {each["code"] for each in better["findings"]}
    slower = {
        cost["target"][4:]: cost["microseconds"] / new["microseconds"] for cost, new in zip(costs, after, strict=True)
    }
    if mended:
        assert all(slower[chip] > 1.15 for chip in chips), slower
    else:  # four times the work
        assert all(slower[chip] > 0.3 for chip in chips), slower


READS = '''
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(flags_ref, x_ref, o_ref, buffer_ref, sem):
    i = pl.program_id(0)
    at = {64: (i * 7,), 200: (i >> 1, i * 25), 32: (i >> 1, i, i * 3), 300: (i * 5, i * 40)}

    @pl.when(flags_ref[at[flags_ref.shape[-1]]].astype(jnp.int32) == 1)
    def _():
        copy = pltpu.make_async_copy(x_ref.at[pl.ds(i * 8, 8)], buffer_ref, sem)
        copy.start()
        copy.wait()
    o_ref[...] = buffer_ref[...]


def flagged(flags, x):
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(8,),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((8, 128), lambda i, flags: (i, 0)),
            scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
        ),
        out_shape=x,
    )(flags, x)


@jax.jit
def spread(counts, x):
    """Flags are made of counts, where they begin and end; how many steps there are too."""
    ends = jnp.cumsum(counts)
    flags = jnp.zeros(64, jnp.int32).at[ends * 7].set(1, mode="drop")

    def only(flags_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * flags_ref[0]

    return flagged(flags, x), pl.pallas_call(
        only,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(ends[-1],),
            in_specs=[pl.BlockSpec((8, 128), lambda i, flags: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, flags: (i, 0)),
        ),
        out_shape=x,
    )(flags, x)
'''
NOISY = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(key_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...] + jax.random.uniform(key_ref[...], x_ref.shape)


def noisy(x):
    key = pltpu.to_pallas_key(jax.random.key(0, impl="rbg"))
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec((8, 128), lambda: (0, 0))],
        out_shape=x,
    )(key, x)
"""
BLOCK = 8 * 128 * 4
WAYS = {
    "i8[64]": lambda i: i * 7, "i32[4,200]": lambda i: (i >> 1) * 200 + i * 25,
    "i8[4,8,32]": lambda i: (i >> 1) * 256 + i * 32 + i * 3, "i16[40,300]": lambda i: i * 5 * 300 + i * 40,
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("flags", WAYS)
def test_values_decide_as_they_lie_in_scalar_memory(tmp_path: Path, flags: str) -> None:
    (tmp_path / "reads.py").write_text(READS)
    size = 1
    for each in re.findall(r"\d+", flags.partition("[")[2]):
        size *= int(each)
    reads = []
    for steps in ((), (1, 2, 5), range(8)):
        values = [0] * size
        for step in steps:
            values[WAYS[flags](step)] = 1
        given = f"{flags}={json.dumps(values, separators=(',', ':'))}"
        _, (cost,) = reported(tmp_path, "reads.py::flagged", given, "f32[64,128]", "--target", "tpu:v5e")
        assert cost["microseconds"] is not None, cost["doubts"]
        reads.append(cost["bytes"]["read"])
    assert [read - reads[0] for read in reads] == [0, 3 * BLOCK, 8 * BLOCK]
    _, (unknown,) = reported(tmp_path, "reads.py::flagged", flags, "f32[64,128]", "--target", "tpu:v5e")
    assert unknown["doubts"] == [f"it depends on the values of flags_ref, {HINT}"]


@pytest.mark.nightly
def test_a_key_of_random_numbers_is_no_array(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    _, (cost,) = reported(tmp_path, "noisy.py::noisy", "f32[8,128]", "--target", "tpu:v5e")
    assert cost["microseconds"] is not None, cost["doubts"]


@pytest.mark.nightly
def test_values_that_a_program_makes_of_others_are_known(tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(READS)
    words = ("f32[64,128]", "--perf", "--output-format", "json", "--target", "tpu:v5e", "--python", python())
    known = json.loads(run("reads.py::spread", "i32[4]=[1,1,3,2]", *words, cwd=tmp_path).stdout)
    copied, looped = (launch["cost"][0] for launch in known["launches"])
    assert looped["steps"] == 7 and looped["bytes"]["written"] == 7 * BLOCK
    assert copied["bytes"]["written"] == 8 * BLOCK and 4 * BLOCK <= copied["bytes"]["read"] < 5 * BLOCK
    unknown = json.loads(run("reads.py::spread", "i32[4]", *words, cwd=tmp_path).stdout)
    assert [launch["cost"][0]["microseconds"] for launch in unknown["launches"]] == [None, None]
    assert f"it depends on the values of the grid, {HINT}" in unknown["launches"][1]["cost"][0]["doubts"]


@pytest.mark.nightly
def test_better_blocks_are_reported(folder: Path) -> None:
    words = ("kernels.py::matmul", *(("bf16[1024,1024]",) * 2), "--python", python(), "--target", "tpu:v5e")
    tried = ("--tune", "bm=256,512", "--tune", "bk=512", "--tune", "bn=512")
    done = run(*words, *tried, cwd=folder)
    line = next(at for at, text in enumerate(KERNELS.splitlines(), 1) if "def matmul" in text)
    assert re.match(
        rf"kernels.py:{line}:24 PAL811 better-block \[info\]\n  bm=512 bk=512 bn=512 is predicted to be [\d.]+ times "
        rf"as fast as bm=128 bk=128 bn=128: [\d.]+ µs instead of [\d.]+ µs\n",
        done.stdout,
    ), done.stdout
    assert "3 of 3 choices have a number" in done.stdout, "what it has is tried once"
    reported = json.loads(
        run(*words, "bm=512", "bk=512", "bn=512", *tried, "--output-format", "json", cwd=folder).stdout
    )
    assert reported["findings"] == [] and len(reported["tune"][0]["choices"]) == 2
