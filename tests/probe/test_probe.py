"""The probe on a real jax: what it says of good and bad kernels, and that nothing a function does can hurt it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.finding import Severity
from pallas_lint.probe.report import launch_document
from tests.probe.running import KERNELS, WITHOUT_COMPILER, Probed, X, jax_version, line_of, probe, run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("function", "arguments", "codes"),
    [
        ("good", [X], set()),
        ("out_of_range", [X], {"PAL307"}),
        ("uncovered", [X], {"PAL308"}),
        ("parallel_sum", [X], {"PAL404"}),
        ("never_initialised", [X], {"PAL907"}),
        ("ragged", ["f32[30,128]"], {"PAL413"}),
        ("halved", ["i32[30,128]"], {"PAL413"}),
        ("halved", ["i32[32,128]"], set()),
        ("half_written", ["i32[32,128]"], {"PAL907"}),
        ("nan", [X], {"PAL906"}),
        ("gather", ["i32[4]=[3,1,0,2]", X], set()),
        ("gather", ["i32[4]=[3,1,0,9]", X], {"PAL307"}),
        ("gather", ["i32[4]", X], set()),
        ("matmul", ["f32[256,256]", "f32[256,256]", "bm=128"], set()),
    ],
)
def test_running_it(worker: Worker, function: str, arguments: list[str], codes: set[str]) -> None:
    probed = Probed(worker, function, *arguments, stage="interpret")
    assert set(probed.codes) == codes, probed.findings
    assert probed.launches and not probed.errors


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("argument", "severity"),
    [
        ("i4[2097152,128]", Severity.WARNING),  # 128 MiB, which XLA may keep in VMEM
        (X, Severity.WARNING),
        ("i8[2097152,128]", Severity.ERROR),
        ("i4[4194304,128]", Severity.ERROR),
    ],
)
def test_a_block_outside_of_an_input(worker: Worker, argument: str, severity: Severity) -> None:
    (finding,) = Probed(worker, "block_behind_the_last", argument, stage="grid").findings
    assert (finding.code, finding.severity) == ("PAL307", severity)


@pytest.mark.parametrize(
    ("function", "argument", "severity"),
    [("parallel_sum", X, Severity.ERROR), ("scratch_among_outputs", "f32[32,256]", Severity.WARNING)],
)
def test_writes_of_parallel_steps(worker: Worker, function: str, argument: str, severity: Severity) -> None:
    (finding,) = Probed(worker, function, argument, stage="interpret").findings
    assert (finding.code, finding.severity) == ("PAL404", severity)


@pytest.mark.parametrize(("function", "codes"), [("good", []), ("out_of_range", ["PAL307"])])
def test_the_command(function: str, codes: list[str]) -> None:
    report, done = probe(function, X, *WITHOUT_COMPILER)
    assert [finding["code"] for finding in report["findings"]] == codes
    assert all(finding["origin"] == "probe" for finding in report["findings"])
    assert done.returncode == bool(codes)


@pytest.mark.parametrize(
    ("function", "arguments", "failed"),
    [
        ("good", [X], {}),
        (
            "out_of_range",
            [X],
            {
                "grid": "a block of `x_ref` is outside of the array (PAL307)",
                "interpret": "an access leaves its buffer: reading [64:72, 0:128], of shape (32, 128)",
                "checks": "out-of-bounds indexing for array of shape (32, 128)",
            },
        ),
        (
            "uncovered",
            [X],
            {
                "grid": "2 of 4 blocks of output `o_ref` are never written (PAL308)",
                "interpret": "2048 of 4096 values of `o_ref` are NaN or infinite (PAL308 says why)",
            },
        ),
        (
            "revisited",
            [X],
            {
                "grid": "a block of `o_ref` is left and added to again (PAL403)",
                "interpret": "Revisited block [0:8, 0:128] of output 0",
            },
        ),
        ("never_initialised", [X], {"interpret": "4096 of 4096 values of `o_ref` are NaN or infinite"}),
        ("ragged", ["f32[30,128]"], {"interpret": "1024 of 4096 values of `o_ref` are NaN or infinite"}),
        ("nan", [X], {"interpret": "values of `o_ref` are NaN", "checks": "division by zero"}),
    ],
)
def test_no_stage_fails_without_a_reason(
    worker: Worker, function: str, arguments: list[str], failed: dict[str, str]
) -> None:
    [launch] = Probed(worker, function, *arguments, stage="interpret").launches
    reported = {each["stage"]: each["detail"] for each in launch_document(launch, KERNELS)["stages"] if not each["ok"]}
    assert reported.keys() == failed.keys(), reported
    assert all(reason in reported[stage] for stage, reason in failed.items()), reported


def test_operands_that_the_function_never_makes(worker: Worker) -> None:
    """What it makes of random arguments is in the kernel's domain."""
    probed = Probed(worker, "shares", X, stage="interpret")
    assert (probed.codes, probed.stages["interpret", None], probed.stages["checks", None]) == ([], True, True)


def test_blocks_that_are_left_and_added_to_again(worker: Worker) -> None:
    assert "PAL403" in Probed(worker, "revisited", X, stage="interpret").codes


def test_tracing_fails_at_the_line(worker: Worker) -> None:
    assert Probed(worker, "python_if", X, stage="trace").places == [("PAL502", line_of("if x_ref[0, 0] > 0"))]


def test_lowering_fails_at_the_line(worker: Worker) -> None:
    probed = Probed(worker, "no_lowering", X, targets=("tpu",), stage="lower")
    (finding,) = probed.findings
    assert probed.places == [("PAL101", line_of("jnp.cumsum(x_ref"))]
    assert (finding.backend, finding.kernel) == ("tpu", "_cumsum")
    assert Probed(worker, "no_lowering", X, targets=("triton",), stage="lower").codes == []


@pytest.mark.parametrize(
    ("function", "shape", "stage", "code", "line"),
    [
        ("map_of_another_grid", X, "trace", "PAL302", "# map_of_another_grid"),
        ("past_the_end", X, "interpret", "PAL412", "# past_the_end"),
        ("read_too_early", "f32[8,128]", "interpret", "PAL905", "# read_too_early"),
        ("strided", X, "lower", "PAL208", "# strided"),
    ],
)
def test_one_cause_is_one_finding_at_its_line(
    worker: Worker, function: str, shape: str, stage: str, code: str, line: str
) -> None:
    if jax_version() < (0, 8):
        pytest.xfail("the interpreter of older releases sees less")
    assert Probed(worker, function, shape, stage=stage).places == [(code, line_of(line))]


@pytest.mark.parametrize(
    ("load_to", "store_to", "line"),
    [(150, 150, None), (149, 100, None), (151, 150, "# mask_of_a_load"), (150, 151, "# mask_of_a_store")],
)
def test_a_mask_lets_through_what_counts(worker: Worker, load_to: int, store_to: int, line: str | None) -> None:
    """An index array past the end, and a slice: right where the mask is false there."""
    if jax_version() < (0, 10):
        pytest.xfail("checkify sees no accesses of refs in older releases")
    reported = [f"load_to={load_to}", f"store_to={store_to}"]
    probed = Probed(worker, "copied_in_parts", "f32[150]", *reported, stage="interpret")
    assert probed.launches
    assert [each for each in probed.places if each[0] != "PAL907"] == ([("PAL412", line_of(line))] if line else [])


@pytest.mark.parametrize(
    ("function", "shape", "codes"),
    [
        ("pipeline_of_inputs", "f32[256,64]", []),
        ("rows_by_program_id", "f32[128,64]", []),
        ("read_before_it_arrives", "f32[64,64]", ["PAL905"]),
        ("two_copies_on_one_barrier", "f32[64,64]", ["PAL905", "PAL905", "PAL912"]),
    ],
)
def test_races_of_mosaic_gpu(worker: Worker, function: str, shape: str, codes: list[str]) -> None:
    if jax_version() < (0, 11):
        pytest.xfail("older releases have no interpreter of Mosaic GPU kernels that looks for races")
    probed = Probed(worker, f"mosaic_gpu.py::{function}", shape, stage="interpret")
    assert probed.stages["interpret", None] is (not codes)
    assert probed.codes == codes


def test_functions_that_query_the_gpu(worker: Worker) -> None:
    """They find one, with as many multiprocessors as it has, and what is asserted of it holds."""
    probed = Probed(worker, "mosaic_gpu.py::persistent", "f32[2048,64]", stage="interpret")
    # Releases before 0.11 have no interpreter of it.
    runs = True if jax_version() >= (0, 11) else None
    assert (probed.codes, probed.stages["interpret", None], len(probed.launches)) == ([], runs, 1)
    insists = Probed(worker, "mosaic_gpu.py::checks_for_cuda", "f32[2048,64]", stage="trace")
    assert (insists.codes, len(insists.launches)) == ([], 1)


def test_values_reach_kernels_of_mosaic_gpu(worker: Worker) -> None:
    for start, guessed in (("i32[1]=[64]", False), ("i32[1]", True)):
        [launch] = Probed(worker, "mosaic_gpu.py::rows_from", start, "f32[256,64]", stage="grid").launches
        assert bool(launch.facts["guessed"]) is guessed


def test_layouts_that_cannot_be_inferred(worker: Worker) -> None:
    """jax says only that there are none, and of no line; lane semantics say where."""
    if jax_version() < (0, 10):
        pytest.xfail("older releases refuse it for other reasons")
    probed = Probed(worker, "mosaic_gpu.py::no_layouts", "f32[64,128]", stage="lower")
    [(code, line)] = probed.places
    text = (Path(__file__).parent / "mosaic_gpu.py").read_text().splitlines()
    assert code == "PAL902"
    assert "x_gmem[...]" in text[line - 1] or "rows + strides" in text[line - 1]
    [finding] = probed.findings
    assert "no layouts fit its arrays; with lane semantics it fails here: " in finding.message


def test_compiler_options_belong_to_the_outermost_jit(worker: Worker) -> None:
    for function, codes in {"with_compiler_options": [], "with_options_within": ["PAL901"]}.items():
        if codes and jax_version() < (0, 8):
            continue  # jax takes them anywhere
        probed = Probed(worker, function, X, stage="trace")
        assert probed.codes == codes
        assert bool(probed.launches) is not bool(codes)


@pytest.mark.nightly
def test_launches_are_described() -> None:
    report, _ = probe("matmul", "f32[512,256]", "f32[256,512]", "bm=128", "--stage", "grid")
    (launch,) = report["launches"]
    assert (launch["kernel"], launch["grid"], launch["backend"]) == ("matmul_kernel", [4, 4, 2], "tpu")
    first = launch["operands"][0]
    assert (first["role"], first["shape"], first["block"]) == ("in", [512, 256], [128, 128])
    assert (first["blocks_visited"], first["blocks_total"]) == (8, 8)
    assert launch["memory"]["bytes"] == 3 * 2 * 128 * 128 * 4
    assert launch["line"] > line_of("def matmul(")


def test_launches_in_other_memories_are_others(worker: Worker) -> None:
    probed = Probed(worker, "in_two_memories", X, stage="trace")
    assert [launch.facts["operands"][0]["memory_space"] for launch in probed.launches] == ["vmem", "smem"]
    assert [launch.facts["times"] for launch in probed.launches] == [1, 1]


def test_shared_memory_is_reported(worker: Worker) -> None:
    """Two blocks of 16 KiB for as many steps, one of scratch, and a barrier for each step."""
    probed = Probed(worker, "mosaic_gpu.py::pipeline_of_inputs", "f32[256,64]", stage="trace")
    (launch,) = probed.launches
    memory = launch.facts["memory"]
    assert memory is not None
    reported = (memory["space"], memory["bytes"], memory["limit"], memory["device"])
    assert reported == ("smem", 3 * 64 * 64 * 4 + 2 * 8, 232448, "sm90")


@pytest.mark.nightly
def test_memory_is_checked_before_compiling(worker: Worker) -> None:
    assert "PAL213" in Probed(worker, "too_large", "f32[4096,4096]", targets=("tpu:v5e",), stage="compile").codes


def test_the_real_compiler() -> None:
    """With the same bytes of VMEM as our rule has; it needs libtpu in the environment."""
    report, done = probe("matmul", "f32[256,256]", "f32[256,256]", "bm=128", "--target", "tpu:v5e")
    stage = next(stage for stage in report["launches"][0]["stages"] if stage["stage"] == "compile")
    assert stage["ok"], stage
    assert stage["figures"]["vmem_bytes"] == report["launches"][0]["memory"]["bytes"]
    assert done.returncode == 0


def test_a_compiler_that_crashes_costs_one_verdict(worker: Worker) -> None:
    if jax_version() < (0, 12):
        pytest.xfail("another libtpu crashes on other operations")
    probed = Probed(worker, "crash", "bf16[8,128]", targets=("tpu:v5e", "triton"), stage="compile")
    assert [each for each in probed.places if each[0] == "PAL904"] == [("PAL904", line_of("jnp.argmax(x_ref"))]
    assert probed.stages["lower", "triton"] is True, "the other target goes on"


def test_a_reference(worker: Worker) -> None:
    arguments = ["f32[256,256]", "f32[256,256]", "bm=128"]
    assert Probed(worker, "matmul", *arguments, stage="trace", reference="product").codes == []
    assert Probed(worker, "matmul", *arguments, stage="trace", reference="shifted").codes == ["PAL908"]


@pytest.mark.nightly
def test_a_reference_in_another_file(tmp_path: Path) -> None:
    """As after a fix: the same function of the text that was there before."""
    words = ("kernels.py::matmul", "f32[256,256]", "f32[256,256]", "bm=128", "--stage", "trace", "--python", python())
    before = tmp_path / "before.py"
    before.write_text((Path(__file__).parent / "kernels.py").read_text())
    same = run(*words, "--reference", f"{before}::matmul")
    assert (same.returncode, "PAL908" in same.stdout) == (0, False), same.stdout + same.stderr
    differs = run(*words, "--reference", f"{before}::shifted")
    assert (differs.returncode, "PAL908" in differs.stdout) == (1, True), differs.stdout + differs.stderr
    missing = run(*words, "--reference", f"{tmp_path / 'none.py'}::matmul")
    assert missing.returncode == 2 and "none.py" in missing.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("function", "arguments", "conditions", "words"),
    [
        ("forever", [X], {"timeout": 8.0}, "stopped after 8 s"),
        ("leaves", [X], {}, "ended itself with status 7"),
        ("good", [X, X], {}, "cannot be called so"),
        ("missing", [X], {}, "missing"),
        ("Params", ["f32[4]"], {}, "cannot be called so"),
    ],
)
def test_bad_functions_get_one_sentence(
    worker: Worker, function: str, arguments: list[str], conditions: dict[str, Any], words: str
) -> None:
    probed = Probed(worker, function, *arguments, **conditions)
    (error,) = probed.errors
    assert words in error.message and "\n" not in error.message


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("eats", [X, "--memory-limit", "700M"], "more memory than --memory-limit allows"),
        ("good", [], 'it takes (x); for example `pallas-lint probe kernels.py::good "f32[8,128]"`'),
        (
            "matmul",
            [X, "bn=3"],
            'for example `pallas-lint probe kernels.py::matmul "f32[8,128]" "f32[8,128]" bm=128`',
        ),
        ("good", [f"'{X}'"], f"'{X}' is a string: arrays are written without quotes"),
    ],
)
def test_the_command_prints_one_sentence_for_bad_functions(function: str, arguments: list[str], words: str) -> None:
    done = run(f"kernels.py::{function}", *arguments, "--python", python())
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize(("targets", "steps"), [((), 4), (("tpu:v6e",), 2), (("triton",), 1)])
def test_functions_get_the_kind_of_device(worker: Worker, targets: tuple[str, ...], steps: int) -> None:
    probed = Probed(worker, "tuned", X, targets=targets, stage="grid")
    assert not probed.findings and not probed.errors
    assert [launch.facts["grid"] for launch in probed.launches] == [[steps]]


def test_kernels_of_jax_itself_have_places(worker: Worker) -> None:
    code = "from jax.experimental.pallas.ops.gpu import rms_norm; print(rms_norm.__file__)"
    file = subprocess.run([python(), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    probed = Probed(worker, f"{file}::rms_norm", "f32[2,8,128]", "f32[128]", "f32[128]", stage="grid")
    assert not probed.findings and not probed.errors
    assert {launch.place["file"] for launch in probed.launches if launch.place} == {file}
    [finding] = Probed(worker, f"{file}::rms_norm", "f32[]", "f32[128]", "f32[128]", stage="grid").findings
    assert finding.span.start.line > 20 and finding.message.startswith("`rms_norm` does not trace: ")


@pytest.mark.parametrize("function", ["chatters", "forks"])
def test_what_a_function_does_stays_its_own(function: str) -> None:
    report, done = probe(function, X, *WITHOUT_COMPILER)
    assert report["launches"] and not report["findings"]
    assert "xxxx" not in done.stdout + done.stderr


def test_an_interpreter_without_jax(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    done = run("kernels.py::good", X, "--python", str(tmp_path / "env"))
    assert done.returncode == 2
    assert "has no jax" in done.stderr and "--python" in done.stderr


def test_a_module_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found\n")
    done = run("broken.py::f", X, "--python", python(), cwd=tmp_path)
    assert done.returncode == 2
    assert "broken.py:1: error: it cannot be imported: ModuleNotFoundError" in done.stderr


@pytest.mark.nightly
def test_a_file_below_a_namespace_in_a_package(tmp_path: Path) -> None:
    """Folders of a package without `__init__.py`: absolute and relative imports go beyond them, and beside the file."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'named'\n")
    inner = tmp_path / "outer" / "gap" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("")
    (tmp_path / "outer" / "sizes.py").write_text("ROWS = 32\n")
    (inner / "beside.py").write_text("COLUMNS = 128\n")
    text = "from outer.sizes import ROWS\nfrom .. import other\nimport beside\n"
    (tmp_path / "outer" / "gap" / "other.py").write_text("")
    (inner / "k.py").write_text(text + KERNELS.read_text())
    done = run("outer/gap/inner/k.py::good", X, "--python", python(), "--stage", "grid", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "outer" / "__init__.py").write_text("import nowhere_to_be_found\n")
    (inner / "k.py").write_text(KERNELS.read_text())
    done = run("outer/gap/inner/k.py::good", X, "--python", python(), "--stage", "grid", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_planted_module_does_not_run(tmp_path: Path) -> None:
    """Files beside the probed one are importable to it, but none takes the place of the worker's own."""
    for name in ("grid", "server", "recorder", "launches", "sitecustomize", "json"):
        (tmp_path / f"{name}.py").write_text("import os; os._exit(3)\n")
    (tmp_path / "k.py").write_text(KERNELS.read_text())
    script = Path(sys.executable).with_name("pallas-lint")  # `python -m` would look into the folder itself
    done = subprocess.run(
        [script, "probe", "k.py::good", X, "--python", python(), "--stage", "grid"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# -- whole programs ----------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import jax.numpy as jnp
from kernels import good, matmul
print("result", matmul(jnp.ones((256, 256)), jnp.ones((256, 256)), bm=128)[0, 0], *sys.argv[1:])
for _ in range(3):
    good(jnp.ones((32, 128)))
"""


@pytest.mark.parametrize("form", ["script", "module", "shell"])
def test_capture_of_a_program(form: str, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS.read_text())
    (tmp_path / "program.py").write_text(PROGRAM)
    command = {
        "script": [python(), "program.py", "argument"],
        "module": [python(), "-m", "program", "argument"],
        "shell": ["sh", "-c", f"{python()} program.py argument"],
    }[form]
    done = run("--capture", "--stage", "lower", "--output-format", "json", "--", *command, cwd=tmp_path)
    report = json.loads(done.stdout)
    assert sorted(launch["kernel"] for launch in report["launches"]) == ["copy", "matmul_kernel"]
    assert "result 256.0 argument" in done.stderr
    assert done.returncode == 0


ON_SUBCORES = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu, tpu_sc as plsc

def counted(x, subcores):
    def kernel(x_hbm, o_hbm, buffer):
        pltpu.sync_copy(x_hbm, buffer)
        {body}
        pltpu.sync_copy(buffer, o_hbm)
    cores = dict(core_axis_name="core", subcore_axis_name="subcore", num_cores=1, num_subcores=subcores)
    mesh = plsc.VectorSubcoreMesh(**cores)
    return pl.kernel(kernel, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), mesh=mesh,
                     scratch_types=[pltpu.VMEM(x.shape, x.dtype)])(x)

first = jax.jit(counted, static_argnums=1)(jnp.ones(16, jnp.int32), {subcores})
print("sum", int(first.sum()), plsc.get_sparse_core_info().num_lanes)
with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((1,), ("x",))):
    print("cores", plsc.get_sparse_core_info().num_cores)
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("subcores", "body", "total"),
    [
        (1, "buffer[...] = buffer[...] * 2", 32),
        (16, "buffer[...] = buffer[...] * 2", 0),  # fifteen do not run
        (1, "buffer[...] = plsc.all_reduce_population_count(buffer[...] > 0)", 0),  # no interpreter has it
    ],
)
def test_programs_go_on_after_a_launch_on_sparse_cores(subcores: int, body: str, total: int, tmp_path: Path) -> None:
    if jax_version() < (0, 10, 1):
        pytest.skip("pl.kernel takes subcores from 0.10.1 on")
    (tmp_path / "program.py").write_text(ON_SUBCORES.format(subcores=subcores, body=body))
    done = run("--capture", "--stage", "lower", "--target", "tpu:tpu7x", "--", python(), "program.py", cwd=tmp_path)
    assert f"sum {total} 16" in done.stderr and "cores 2" in done.stderr, done.stderr
    assert done.returncode == 0 and "1 kernel judged" in done.stdout, done.stdout


VMAPPED = """
import sys, jax, jax.numpy as jnp
from jax.experimental import pallas as pl

def gather(at, x):
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + at_ref[0]
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(at, x)

at, x = jnp.arange(6 * 5).reshape(6, 5, 1), jnp.ones((6, 5, 8, 128))
seen = []
jax.debug.callback(seen.append, 1)
jax.vmap(lambda one: jax.debug.callback(seen.append, one))(jnp.arange(3))  # the program's own stay as they are
program = jax.jit(jax.vmap(jax.vmap(gather)))
callbacks = str(jax.make_jaxpr(program)(at, x)).count("debug_callback[")
total = jax.block_until_ready(program(at, x)).sum()
if "alone" in sys.argv:
    jax.block_until_ready(jax.jit(gather)(at[0, 0], x[0, 0]))
jax.effects_barrier()
print("callbacks", callbacks, "seen", len(seen), "total", int(total))
"""


@pytest.mark.nightly
@pytest.mark.parametrize(("words", "launches"), [([], 1), (["alone"], 2)])
def test_capture_under_vmap_examines_what_ran(words: list[str], launches: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(VMAPPED)
    command = (python(), "program.py", *words)
    done = run("--capture", "--stage", "grid", "--output-format", "json", "--", *command, cwd=tmp_path)
    report = json.loads(done.stdout)
    grids = sorted(launch["grid"] for launch in report["launches"])
    assert grids[-1] == [6, 5] and len(grids) == launches
    assert f"callbacks 1 seen 4 total {30 * 8 * 128 + 1024 * sum(range(30))}" in done.stderr


TESTS = """
import jax.numpy as jnp
from kernels import good, parallel_sum

def test_good():
    assert good(jnp.ones((32, 128)))[0, 0] == 1

def test_sum():
    parallel_sum(jnp.ones((32, 128)))
"""


def run_tests(folder: Path, kernels: str) -> subprocess.CompletedProcess[str]:
    (folder / "kernels.py").write_text(kernels)
    (folder / "test_kernels.py").write_text(TESTS)
    return subprocess.run(
        [python(), "-m", "pytest", "-q", "--pallas-lint"],  # the installed package's entry point
        cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("settings", "comment", "reported"),
    [
        ('[severity]\nPAL404 = "info"\n', "", True),
        ('[per-file-ignores]\n"kernels.py" = ["PAL404"]\n', "", False),
        ("", "# pallas-lint: disable-file=PAL404\n", False),
    ],
)
def test_settings_and_comments_hold_for_the_pytest_plugin(
    tmp_path: Path, settings: str, comment: str, reported: bool
) -> None:
    (tmp_path / "pallas-lint.toml").write_text(f'[probe]\nstage = "grid"\n{settings}')
    done = run_tests(tmp_path, comment + KERNELS.read_text())
    assert "2 launches of 2 kernels examined" in done.stdout, done.stdout + done.stderr
    assert ("PAL404" in done.stdout) is reported
    assert done.returncode == 0


COUNTING = """
import sys

def pytest_sessionstart(session):
    capture = sys.modules["_pallas_lint_probe.worker.capture"]
    examine = capture.examine

    def counted(records, *arguments, **named):
        print("examined now:", len(records))
        examine(records, *arguments, **named)

    capture.examine = counted
"""


@pytest.mark.nightly
def test_the_pytest_plugin(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(COUNTING)
    for launches in (2, 0):
        done = run_tests(tmp_path, KERNELS.read_text())
        assert "2 passed" in done.stdout, done.stdout + done.stderr
        assert f"examined now: {launches}" in done.stdout, "a second time nothing has changed"
        assert "2 launches of 2 kernels examined" in done.stdout
        assert "PAL404" in done.stdout
        assert done.returncode == 1, "findings fail a run whose tests pass"


# -- linting with --probe ----------------------------------------------------------------------------------------------


def test_one_comment_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    text = KERNELS.read_text(encoding="utf-8")
    comments = (
        "# pallas-lint: probe(f32[8,128)\ndef unreadable(x): ...\n\n\n# pallas-lint: probe(f32[32,128])\nother = good\n"
    )
    (tmp_path / "kernels.py").write_text(f"{text}\n{comments}", encoding="utf-8")
    done = run("kernels.py", "--stage", "trace", "--python", python(), "--output-format", "json", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert len(report["launches"]) == 1
    [error] = report["errors"]
    assert "cannot read the arguments" in error["message"]
    assert (error["path"], error["line"]) == ("kernels.py", len(text.splitlines()) + 2)
    assert done.returncode == 2
