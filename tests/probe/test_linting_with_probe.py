"""Linting and probing together, on a real jax: settings, fixes, facts that are kept, an editor's text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.probe.running import WITHOUT_COMPILER, run
from tests.rules.interpreted import python

pytestmark = pytest.mark.slow

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


@pytest.mark.nightly
def test_fixes_are_compared_with_the_original(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(COMMENTED)
    done = lint(tmp_path, "--probe", "--fix", "k.py")
    assert "x_ref[x_ref.shape[0] - 1]" in (tmp_path / "k.py").read_text(), done.stderr


HELPER = "import jax\n\ndef last(x_ref):\n    return x_ref[-1]\n"
HELPED = COMMENTED.replace("o_ref[...] = x_ref[-1]", "o_ref[...] = last(x_ref)").replace(
    "import jax\n", "import jax\nfrom helper import last\n", 1
)


@pytest.mark.nightly
@pytest.mark.parametrize("files", [{"k.py": HELPED, "helper.py": HELPER}, {"k.py": COMMENTED}])
def test_the_report_after_fixing_is_about_the_fixed_code(tmp_path: Path, files: dict[str, str]) -> None:
    """Also where the probe alone has something to say of it, and where what is fixed is in a helper's file."""
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    before = json.loads(lint(tmp_path, "--probe", "--output-format", "json", *files).stdout)
    assert "PAL210" in {each["code"] for each in before["findings"]}
    done = lint(tmp_path, "--probe", "--fix", "--output-format", "json", *files)
    after = json.loads(done.stdout)
    assert "shape[0] - 1" in "".join((tmp_path / file).read_text() for file in files), done.stderr
    assert "PAL210" not in {each["code"] for each in after["findings"]}
    again = json.loads(lint(tmp_path, "--probe", "--output-format", "json", *files).stdout)
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


@pytest.mark.nightly
def test_settings_and_comments_hold_for_the_probe(tmp_path: Path) -> None:
    """Whether it is a part of linting or runs by itself."""
    silenced = RAGGED.partition("# pallas-lint: probe")[2].replace("run(", "silenced(")
    code = f"{RAGGED}\n# pallas-lint: probe{silenced}".replace(
        "    return pl", "    # pallas-lint: disable=PAL413\n    return pl"
    ).replace("    # pallas-lint: disable=PAL413\n", "", 1)
    launched, read = (code[: code.index(text)].count("\n") + 1 for text in ("    return pl", "jnp.sum"))
    (tmp_path / "k.py").write_text(code)
    (tmp_path / "pallas-lint.toml").write_text('target = ["triton"]\n[severity]\nPAL413 = "info"\n')
    reported = ("k.py", "--python", python(), "--output-format", "json")
    linted = subprocess.run(
        [sys.executable, "-m", "pallas_lint", "--no-cache", "--probe", *reported],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    # The rule knows the call of the comment, and the line that reads the padding; the probe alone only the launch.
    for done, line in ((linted, read), (run(*reported, *WITHOUT_COMPILER, cwd=tmp_path), launched)):
        found = [each for each in json.loads(done.stdout)["findings"] if each["code"] in ("PAL413", "PAL002")]
        assert [(each["severity"], each["start"]["line"]) for each in found] == [("info", line)], done.stdout


def test_a_fix_that_changes_the_result_is_dropped(tmp_path: Path) -> None:
    """Zeros are no start for a running maximum of negative numbers, which the unsafe fix cannot know."""
    from pallas_lint.finding import Edit, Finding, Fix, Position, Severity, Span
    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.session import ProbeOptions, Session
    from pallas_lint.probe.specs import comments_in
    from pallas_lint.run.fixer import fix
    from pallas_lint.text.source import Source

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
        session = Session(worker, tmp_path, ProbeOptions(stage="trace"))

        def difference(before: Source, after: Source) -> str | None:
            return next(iter(session.differences(spec, after.text)), None)

        outcome = fix({"k.py": source}, [wrong], lambda sources, changed: [wrong], difference=difference)
    assert not outcome.changed
    assert "differ" in outcome.problems[0].message


def test_facts_hold_while_what_they_rest_on_is_there(tmp_path: Path) -> None:
    from pallas_lint.probe import dependencies, stored_runs
    from pallas_lint.syntax.outline import outline
    from pallas_lint.text.source import Source

    def fitting(text: str) -> tuple[stored_runs.StoredRun, ...]:
        return stored_runs.fitting(
            stored_runs.load(file), "shown.py", lambda _: dependencies.places(outline(Source("shown.py", text)))
        )

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


@pytest.mark.nightly
def test_facts_rest_on_other_files_too(tmp_path: Path) -> None:
    from pallas_lint.probe import dependencies, stored_runs
    from pallas_lint.syntax.outline import outline
    from pallas_lint.text.source import Source

    def fitting() -> tuple[stored_runs.StoredRun, ...]:
        def places(path: str) -> dict[str, int]:
            return dependencies.places(outline(Source.read(Path(path), path)))

        return stored_runs.fitting(stored_runs.load(file), str(file), places)

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
    from pallas_lint.probe import stored_runs
    from pallas_lint.run.cache_folder import cache_folder

    file = tmp_path / "k.py"
    (tmp_path / "pyproject.toml").write_text("")
    file.write_text(COMMENTED + "\n# pallas-lint: probe(f32[8,8,128])\ndef other(x):\n    return run(x)\n")
    for function in ("run", "other", "run"):
        run_it = [sys.executable, "-m", "pallas_lint", "probe", f"k.py::{function}", "f32[4,8,128]", "--stage", "grid"]
        subprocess.run([*run_it, "--python", python()], cwd=tmp_path, capture_output=True, check=False)
    assert [run.function for run in stored_runs.load(file)] == ["other", "run"], "the later one in place of the earlier"
    cache = cache_folder(tmp_path)
    assert cache is not None and stored_runs.stamp(file)
    known = f'"layout": {stored_runs._LAYOUT}, "runs"'
    for text in ("", "[]", "{}", f'{{{known}: [{{"function": 1}}]}}', f"{{{known}: 3}}"):
        cache.write("probe", stored_runs._name(file), text.encode())
        assert stored_runs.load(file) == ()


def test_the_text_of_an_editor_is_what_is_probed(tmp_path: Path) -> None:
    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.session import ProbeOptions, Session
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
            session = Session(worker, tmp_path, ProbeOptions(stage="grid"), texts=given)
            result = session.probe(parse_arguments("f32[4,8,128]", file, "run"))
            assert not result.errors and not result.trouble, result
            (launch,) = result.launches
            assert launch.place is not None and launch.place["file"] == str(tmp_path / file)
