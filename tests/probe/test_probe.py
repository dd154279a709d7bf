"""The probe on a real jax: what it says of good and bad kernels, and that nothing a function does can hurt it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.rules.interpreted import python

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
KERNELS = HERE / "kernels.py"
X = "f32[32,128]"
# What a run looks like where neither libtpu nor jax's version plays a part.
WITHOUT_COMPILER = ("--stage", "interpret")


def run(*arguments: str, cwd: Path = HERE, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pallas_lint", "probe", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **(env or {})},
        check=False,
    )


def probe(function: str, *arguments: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    done = run(f"kernels.py::{function}", *arguments, "--python", python(), "--output-format", "json")
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout), done


@cache
def jax_version() -> tuple[int, ...]:
    told = subprocess.run(
        [python(), "-c", "from importlib.metadata import version as v; print(v('jax'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(int(part) for part in told.stdout.strip().split(".")[:3])


def line_of(text: str) -> int:
    return next(at for at, line in enumerate(KERNELS.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("function", "arguments", "codes"),
    [
        ("good", [X], set()),
        ("out_of_range", [X], {"PAL307"}),
        ("uncovered", [X], {"PAL308"}),
        ("parallel_sum", [X], {"PAL404"}),
        ("never_initialised", [X], {"PAL907"}),
        ("ragged", ["f32[30,128]"], {"PAL413"}),
        ("nan", [X], {"PAL906"}),
        ("gather", ["i32[4]=[3,1,0,2]", X], set()),
        ("gather", ["i32[4]=[3,1,0,9]", X], {"PAL307"}),
        ("gather", ["i32[4]", X], set()),
        ("matmul", ["f32[256,256]", "f32[256,256]", "bm=128"], set()),
    ],
)
def test_running_it(function: str, arguments: list[str], codes: set[str]) -> None:
    report, done = probe(function, *arguments, *WITHOUT_COMPILER)
    assert {finding["code"] for finding in report["findings"]} == codes, report["findings"]
    assert done.returncode == bool(codes)
    assert all(finding["origin"] == "probe" for finding in report["findings"])


def test_blocks_that_are_left_and_added_to_again() -> None:
    report, _ = probe("revisited", X, *WITHOUT_COMPILER)
    assert "PAL403" in {finding["code"] for finding in report["findings"]}


def test_tracing_fails_at_the_line() -> None:
    report, _ = probe("python_if", X, "--stage", "trace")
    (finding,) = report["findings"]
    assert (finding["code"], finding["start"]["line"]) == ("PAL502", line_of("if x_ref[0, 0] > 0"))


def test_lowering_fails_at_the_line() -> None:
    report, _ = probe("no_lowering", X, "--target", "tpu", "--stage", "lower")
    (finding,) = report["findings"]
    assert (finding["code"], finding["start"]["line"]) == ("PAL101", line_of("jnp.cumsum(x_ref"))
    assert (finding["backend"], finding["kernel"]) == ("tpu", "_cumsum")
    assert probe("no_lowering", X, "--target", "triton", "--stage", "lower")[1].returncode == 0


@pytest.mark.parametrize(
    ("function", "arguments", "code", "line"),
    [
        ("map_of_another_grid", [X, "--stage", "trace"], "PAL302", "# map_of_another_grid"),
        ("past_the_end", [X, "--stage", "interpret"], "PAL412", "# past_the_end"),
        ("read_too_early", ["f32[8,128]", "--stage", "interpret"], "PAL905", "# read_too_early"),
        ("strided", [X, "--stage", "lower"], "PAL208", "# strided"),
    ],
)
def test_one_cause_is_one_finding_at_its_line(function: str, arguments: list[str], code: str, line: str) -> None:
    if jax_version() < (0, 8):
        pytest.xfail("the interpreter of older releases sees less")
    report, _ = probe(function, *arguments)
    found = [(finding["code"], finding["start"]["line"]) for finding in report["findings"]]
    assert found == [(code, line_of(line))]


def test_launches_are_described() -> None:
    report, _ = probe("matmul", "f32[512,256]", "f32[256,512]", "bm=128", "--stage", "grid")
    (launch,) = report["launches"]
    assert (launch["kernel"], launch["grid"], launch["backend"]) == ("matmul_kernel", [4, 4, 2], "tpu")
    first = launch["operands"][0]
    assert (first["role"], first["shape"], first["block"]) == ("in", [512, 256], [128, 128])
    assert (first["blocks_visited"], first["blocks_total"]) == (8, 8)
    assert launch["memory"]["bytes"] == 3 * 2 * 128 * 128 * 4
    assert launch["line"] > line_of("def matmul(")


def test_memory_is_judged_before_the_compiler_is_asked() -> None:
    report, done = probe("too_large", "f32[4096,4096]", "--target", "tpu:v5e", "--stage", "compile")
    assert "PAL213" in {finding["code"] for finding in report["findings"]}
    assert done.returncode == 1


def test_the_real_compiler() -> None:
    """With the same bytes of VMEM as our rule has; it needs libtpu in the environment."""
    report, done = probe("matmul", "f32[256,256]", "f32[256,256]", "bm=128", "--target", "tpu:v5e")
    stage = next(stage for stage in report["launches"][0]["stages"] if stage["stage"] == "compile")
    assert stage["ok"], stage
    assert stage["figures"]["vmem_bytes"] == report["launches"][0]["memory"]["bytes"]
    assert done.returncode == 0


def test_a_compiler_that_crashes_costs_one_verdict() -> None:
    if jax_version() < (0, 12):
        pytest.xfail("another libtpu crashes on other operations")
    report, _ = probe("crash", "bf16[8,128]", "--target", "tpu:v5e", "--target", "triton", "--stage", "compile")
    (finding,) = [finding for finding in report["findings"] if finding["code"] == "PAL904"]
    assert finding["start"]["line"] == line_of("jnp.argmax(x_ref")
    stages = {(stage["stage"], stage["target"]): stage["ok"] for stage in report["launches"][0]["stages"]}
    assert stages["lower", "triton"] is True, "the other target goes on"


def test_a_reference() -> None:
    arguments = ["f32[256,256]", "f32[256,256]", "bm=128", "--stage", "trace"]
    assert probe("matmul", *arguments, "--reference", "product")[1].returncode == 0
    report, _ = probe("matmul", *arguments, "--reference", "shifted")
    assert [finding["code"] for finding in report["findings"]] == ["PAL908"]


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("forever", [X, "--timeout", "8"], "stopped after 8 s"),
        ("leaves", [X], "ended itself with status 7"),
        ("eats", [X, "--memory-limit", "700M"], "more memory than --memory-limit allows"),
        ("good", [], "cannot be called so"),
        ("good", [X, X], "cannot be called so"),
        ("missing", [X], "missing"),
        ("Params", ["f32[4]"], "cannot be called so"),
    ],
)
def test_bad_functions_get_one_sentence(function: str, arguments: list[str], words: str) -> None:
    done = run(f"kernels.py::{function}", *arguments, "--python", python())
    assert done.returncode == 2, done.stdout
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


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
        "script": [python(), "program.py", "told"],
        "module": [python(), "-m", "program", "told"],
        "shell": ["sh", "-c", f"{python()} program.py told"],
    }[form]
    done = run("--capture", "--stage", "lower", "--output-format", "json", "--", *command, cwd=tmp_path)
    report = json.loads(done.stdout)
    assert sorted(launch["kernel"] for launch in report["launches"]) == ["copy", "matmul_kernel"]
    assert "result 256.0 told" in done.stderr
    assert done.returncode == 0


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


@pytest.mark.parametrize(
    ("settings", "comment", "told"),
    [
        ('[severity]\nPAL404 = "info"\n', "", True),
        ('[per-file-ignores]\n"kernels.py" = ["PAL404"]\n', "", False),
        ("", "# pallas-lint: disable-file=PAL404\n", False),
    ],
)
def test_settings_and_comments_hold_for_the_pytest_plugin(
    tmp_path: Path, settings: str, comment: str, told: bool
) -> None:
    (tmp_path / "pallas-lint.toml").write_text(settings)
    done = run_tests(tmp_path, comment + KERNELS.read_text())
    assert "2 launches of 2 kernels examined" in done.stdout, done.stdout + done.stderr
    assert ("PAL404" in done.stdout) is told
    assert done.returncode == 0


def test_the_pytest_plugin(tmp_path: Path) -> None:
    done = run_tests(tmp_path, KERNELS.read_text())
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "2 launches of 2 kernels examined" in done.stdout
    assert "PAL404" in done.stdout
    assert done.returncode == 1, "findings fail a run whose tests pass"


# -- linting with --probe ----------------------------------------------------------------------------------------------

COMMENTED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[-1]

# pallas-lint: probe(f32[4,8,128])
def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)
"""


def lint(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pallas_lint", "--isolated", "--no-cache", "--python", python(), *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def test_fixes_are_compared_with_the_original(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(COMMENTED)
    done = lint(tmp_path, "--probe", "--fix", "k.py")
    assert "x_ref[x_ref.shape[0] - 1]" in (tmp_path / "k.py").read_text(), done.stderr


def test_the_report_after_fixing_is_about_the_fixed_code(tmp_path: Path) -> None:
    """Also where the probe alone has something to say of it, and where what is fixed is in a helper's file."""
    helper = "import jax\n\ndef last(x_ref):\n    return x_ref[-1]\n"
    code = COMMENTED.replace("o_ref[...] = x_ref[-1]", "o_ref[...] = last(x_ref)").replace(
        "import jax\n", "import jax\nfrom helper import last\n", 1
    )
    for name, files in {"own": {"k.py": COMMENTED}, "helper": {"k.py": code, "helper.py": helper}}.items():
        folder = tmp_path / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text)
        before = json.loads(lint(folder, "--probe", "--output-format", "json", *files).stdout)
        assert "PAL210" in {each["code"] for each in before["findings"]}
        done = lint(folder, "--probe", "--fix", "--output-format", "json", *files)
        after = json.loads(done.stdout)
        assert "shape[0] - 1" in "".join((folder / file).read_text() for file in files), done.stderr
        assert "PAL210" not in {each["code"] for each in after["findings"]}
        again = json.loads(lint(folder, "--probe", "--output-format", "json", *files).stdout)
        assert after["findings"] == again["findings"]
        stages = [[(stage["stage"], stage["ok"]) for stage in each["stages"]] for each in after["launches"]]
        assert stages == [[(stage["stage"], stage["ok"]) for stage in each["stages"]] for each in again["launches"]]
        assert stages


RAGGED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], keepdims=True)

# pallas-lint: probe(f32[30,128])
def run(x):
    return pl.pallas_call(
        kernel,
        grid=(pl.cdiv(30, 8),),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, 1), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((4, 1), x.dtype),
        interpret=True,
    )(x)
"""


def test_settings_and_comments_hold_for_the_probe(tmp_path: Path) -> None:
    """Whether it is a part of linting or runs by itself."""
    silenced = RAGGED.partition("# pallas-lint: probe")[2].replace("run(", "silenced(")
    code = f"{RAGGED}\n# pallas-lint: probe{silenced}".replace(
        "    return pl", "    # pallas-lint: disable=PAL413\n    return pl"
    ).replace("    # pallas-lint: disable=PAL413\n", "", 1)
    line = code[: code.index("    return pl")].count("\n") + 1
    (tmp_path / "k.py").write_text(code)
    (tmp_path / "pallas-lint.toml").write_text('target = ["triton"]\n[severity]\nPAL413 = "info"\n')
    told = ("k.py", "--python", python(), "--output-format", "json")
    linted = subprocess.run(
        [sys.executable, "-m", "pallas_lint", "--no-cache", "--probe", *told],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    for done in (linted, run(*told, *WITHOUT_COMPILER, cwd=tmp_path)):
        found = [each for each in json.loads(done.stdout)["findings"] if each["code"] in ("PAL413", "PAL002")]
        assert [(each["severity"], each["start"]["line"]) for each in found] == [("info", line)], done.stdout


def test_a_fix_that_changes_the_result_is_dropped(tmp_path: Path) -> None:
    """Zeros are no start for a running maximum of negative numbers, which the unsafe fix cannot know."""
    from pallas_lint.finding import Edit, Finding, Fix, Position, Severity, Span
    from pallas_lint.fixer import fix
    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.session import Conditions, Session
    from pallas_lint.probe.specs import comments_in
    from pallas_lint.source import Source

    (tmp_path / "k.py").write_text(COMMENTED)
    source = Source("k.py", COMMENTED)
    line = COMMENTED.splitlines().index("    o_ref[...] = x_ref[-1]") + 1
    span = Span("k.py", Position(line, 18), Position(line, 27))
    wrong = Finding(
        "PAL210", "negative-ref-index", Severity.ERROR, "m", span,
        fixes=(Fix("take the first", "safe", (Edit(span, "x_ref[0]"),)),),
    )  # fmt: skip
    (spec,) = comments_in(COMMENTED, "k.py")
    with Worker(python(), tmp_path) as worker:
        session = Session(worker, tmp_path, Conditions(stage="trace"))

        def difference(before: Source, after: Source) -> str | None:
            return next(iter(session.differences(spec, after.text)), None)

        outcome = fix({"k.py": source}, [wrong], lambda sources, changed: [wrong], difference=difference)
    assert not outcome.changed
    assert "differ" in outcome.problems[0].message


def test_facts_hold_while_what_they_rest_on_is_there(tmp_path: Path) -> None:
    from pallas_lint.probe import facts, footing
    from pallas_lint.source import Source
    from pallas_lint.syntax.outline import outline

    def fitting(text: str) -> tuple[facts.Run, ...]:
        return facts.fitting(facts.load(file), "shown.py", lambda _: footing.places(outline(Source("shown.py", text))))

    code = COMMENTED.replace("x_ref[-1]", "jax.numpy.sort(x_ref[0])")
    file = tmp_path / "k.py"
    (tmp_path / "pyproject.toml").write_text("")
    file.write_text(code)
    lint(tmp_path, "--probe", "k.py")
    (run,) = fitting(code)
    assert (run.function, run.arguments) == ("run", "f32[4,8,128]")
    assert run.launches[0].kernel == "kernel" and run.launches[0].place is not None
    (moved,) = fitting(code.replace("def kernel", "\nOTHER = 1\n\ndef kernel"))
    assert moved.launches[0].place is not None
    assert moved.launches[0].place["line"] == run.launches[0].place["line"] + 3
    assert {finding.span.path for finding in moved.findings} == {"shown.py"}
    assert [finding.span.start.line for finding in moved.findings] == [
        finding.span.start.line + 3 for finding in run.findings
    ]
    assert run.findings
    assert fitting(code.replace("x_ref[0]", "x_ref[1]")) == ()
    assert fitting(code.replace("import jax\n", "import jax \n", 1)), "white space at the end"


IMPORTING = """
import jax
import pkg.sizes as sizes
from jax.experimental import pallas as pl
from pkg import double


def kernel(x_ref, o_ref):
    o_ref[...] = double(x_ref[...])


# pallas-lint: probe(f32[16,128])
def run(x):
    spec = pl.BlockSpec((sizes.ROWS, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        grid=(x.shape[0] // sizes.ROWS,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
"""
IMPORTED = {
    "pkg/__init__.py": "from .maths import double\n",
    "pkg/maths.py": "from .factors import *\ndef half(x):\n    return x / TWO\n\ndef double(x):\n    return x * TWO\n",
    "pkg/factors.py": "TWO = 2.0\nTHREE = 3.0\n",
    "pkg/sizes.py": "ROWS = 8\nOTHER = 16\n",
    "pkg/unused.py": "TWO = 3.0\n",
}


def test_facts_rest_on_other_files_too(tmp_path: Path) -> None:
    from pallas_lint.probe import facts, footing
    from pallas_lint.source import Source
    from pallas_lint.syntax.outline import outline

    def fitting() -> tuple[facts.Run, ...]:
        def places(path: str) -> dict[str, int]:
            return footing.places(outline(Source.read(Path(path), path)))

        return facts.fitting(facts.load(file), str(file), places)

    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "pkg").mkdir()
    for name, text in IMPORTED.items():
        (tmp_path / name).write_text(text)
    file = tmp_path / "k.py"
    file.write_text(IMPORTING)
    lint(tmp_path, "--probe", "k.py", "--no-cache")
    (run,) = fitting()
    assert {Path(each.file).name for each in run.rests_on} == {"", "__init__.py", "maths.py", "factors.py", "sizes.py"}
    for name, old, new, holds in (
        ("pkg/maths.py", "x * TWO", "x * TWO + 1", False),
        ("pkg/maths.py", "x / TWO", "x / 2", True),
        ("pkg/maths.py", "def double", "# moved\n\n\ndef double", True),
        ("pkg/factors.py", "TWO = 2.0", "TWO = 4.0", False),
        ("pkg/factors.py", "THREE = 3.0", "THREE = 4.0", True),
        ("pkg/sizes.py", "ROWS = 8", "ROWS = 16", False),
        ("pkg/sizes.py", "OTHER = 16", "OTHER = 8", True),
        ("pkg/__init__.py", "double", "half as double", False),
        ("pkg/unused.py", "3.0", "4.0", True),
    ):
        (tmp_path / name).write_text(IMPORTED[name].replace(old, new))
        assert bool(fitting()) is holds, (name, new)
        (tmp_path / name).write_text(IMPORTED[name])
    assert fitting() == (run,)


def test_facts_of_two_functions_and_of_nonsense(tmp_path: Path) -> None:
    from pallas_lint.probe import facts

    file = tmp_path / "k.py"
    (tmp_path / "pyproject.toml").write_text("")
    file.write_text(COMMENTED + "\n# pallas-lint: probe(f32[8,8,128])\ndef other(x):\n    return run(x)\n")
    for function in ("run", "other", "run"):
        run_it = [sys.executable, "-m", "pallas_lint", "probe", f"k.py::{function}", "f32[4,8,128]", "--stage", "grid"]
        subprocess.run([*run_it, "--python", python()], cwd=tmp_path, capture_output=True, check=False)
    assert [run.function for run in facts.load(file)] == ["other", "run"], "the later one in place of the earlier"
    place, changed = facts.stamp(file)
    assert changed
    for text in ("", "[]", "{}", '{"layout": 2, "runs": [{"function": 1}]}', '{"layout": 2, "runs": 3}'):
        place.write_text(text)
        assert facts.load(file) == ()


def test_the_text_of_an_editor_is_what_is_probed(tmp_path: Path) -> None:
    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.session import Conditions, Session
    from pallas_lint.probe.specs import parse_arguments

    package = tmp_path / "pack"
    package.mkdir()
    for name in ("__init__.py", "sizes.py", "k.py"):
        (package / name).write_text("raise RuntimeError('the text on disk')\n" if name != "__init__.py" else "")
    kernel = COMMENTED.replace("import jax\n", "import jax\nfrom pack.sizes import ROWS\n", 1).replace(
        "(8, 128)", "(ROWS, 128)"
    )
    texts = {str(package / "sizes.py"): "ROWS = 8\n", str(package / "k.py"): kernel}
    alone = {str(tmp_path / "alone.py"): COMMENTED}
    (tmp_path / "alone.py").write_text("raise RuntimeError('the text on disk')\n")
    with Worker(python(), tmp_path) as worker:
        for file, given in (("pack/k.py", texts), ("alone.py", alone)):
            session = Session(worker, tmp_path, Conditions(stage="grid"), texts=given)
            result = session.probe(parse_arguments("f32[4,8,128]", file, "run"))
            assert not result.errors and not result.trouble, result
            (launch,) = result.launches
            assert launch.place is not None and launch.place["file"] == str(tmp_path / file)
