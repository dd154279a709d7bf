"""Functions that the probe refuses by their text, before anything is imported."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pallas_lint.cli.signatures import mismatch, missing_references, undefined_everywhere
from pallas_lint.probe.specs import comments_in, parse_target

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
import functools, jax
from elsewhere import taken

class Layer:
    def apply(self, x): return x
    @staticmethod
    def plain(x): return x
    def both(self, x=1): return x

class Other(taken): pass

layer = Layer()
async def later(x): return x
def one_by_one(x):
    yield x
def run(x):
    def inner():
        yield 1
    return x
@functools.partial(jax.jit, static_argnames="bm")
def tiled(x, y, *, bm=128): return x
@taken
def decorated(x): return x
def any_of(*arrays, **sizes): return arrays
if taken:
    def either(x): return x
else:
    def either(x, y): return x
def sets():
    global made_later
    made_later = run
"""
X = "f32[8,128]"


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("rum", [X], "there is no `rum` in it (did you mean `run`?)"),
        ("zzz", [X], "there is no `zzz` in it"),
        ("run", [], "missing a required argument: 'x'; it takes (x); for example `pallas-lint probe k.py::run"),
        ("run", [X, X], "too many positional arguments; it takes (x)"),
        ("tiled", [X, X, "bn=3"], "unexpected keyword argument 'bn' (did you mean `bm`?); it takes (x, y, *, bm=128)"),
        ("later", [X], "`later` is async"),
        ("one_by_one", [X], "`one_by_one` is a generator"),
        ("Layer.apply", [X], "`Layer.apply` is a method: have the file make an instance of it"),
        ("Layer.appli", [X], "`Layer` has no `appli` (did you mean `apply`?)"),
    ],
)
def test_refused(function: str, arguments: list[str], words: str) -> None:
    reported = mismatch(parse_target(f"k.py::{function}", arguments), TEXT)
    assert reported is not None and words in reported and "\n" not in reported


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("run", [X]), ("run", ["x=f32[8,128]"]), ("tiled", [X, "y=f32[8]", "bm=8"]), ("any_of", [X, X, "n=3"]),
        ("taken", []), ("layer.apply", [X]), ("layer.nothing", []), ("decorated", []), ("either", [X, X]),
        ("made_later", [X]),
        ("Layer.plain", [X]), ("Layer.apply", ["1", X]), ("Other.inherited", [X]), ("Layer", []),
    ],
)  # fmt: skip
def test_not_refused(function: str, arguments: list[str]) -> None:
    assert mismatch(parse_target(f"k.py::{function}", arguments), TEXT) is None


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("plain", None),
        ("plian", "k.py:3: reference(plian): there is no `plian` in it (did you mean `plain`?)"),
        ("other.py::run", None),
        ("other.py::rum", "k.py:3: reference(other.py::rum): there is no `rum` in it (did you mean `run`?)"),
        ("gone.py::run", "k.py:3: reference(gone.py::run): gone.py: no such file"),
    ],
)
def test_a_reference_that_is_not_there(tmp_path: Path, named: str, words: str | None) -> None:
    text = f"def plain(x): ...\n# pallas-lint: probe({X})\n# pallas-lint: reference({named})\ndef fast(x): ...\n"
    (tmp_path / "k.py").write_text(text)
    (tmp_path / "other.py").write_text("def run(x): ...\n")
    found = missing_references(list(comments_in(text, "k.py")), tmp_path)
    assert [f"{error.path}:{error.line}: {error.message}" for error in found.values()] == ([words] if words else [])
    assert set(found) <= {(str(tmp_path / "k.py"), "fast")}


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (None, None),
        ("plain", None),
        ("plian", "k.py: there is no `plian` in it (did you mean `plain`?)"),
        ("run", None),  # in one of the files
        ("jnp.exq", None),  # only jax has the answer
        ("other.py::rum", "other.py: there is no `rum` in it (did you mean `run`?)"),
        ("gone.py::run", None),
    ],
)
def test_a_function_to_compare_with_that_no_file_has(tmp_path: Path, named: str | None, words: str | None) -> None:
    (tmp_path / "k.py").write_text("def plain(x): ...\ndef fast(x): ...\n")
    (tmp_path / "other.py").write_text("def run(x): ...\n")
    wanted = [parse_target(f"{file}::fast", [X]) for file in ("k.py", "other.py")]
    assert undefined_everywhere(named, wanted, tmp_path) == words


@pytest.mark.parametrize(
    "text", ["from k import *", "def __getattr__(name): return 1", "globals()['g'] = 1", "def (", "import gone"]
)
def test_names_that_the_text_does_not_have_may_come(text: str) -> None:
    assert mismatch(parse_target("k.py::g", []), text) is None
    if "gone" not in text:
        assert mismatch(parse_target("k.py::g", []), f"{text}\ndef run(x): return x\n") is None


def test_the_command_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("open('imported', 'w')\ndef run(x): return x\n")
    (tmp_path / "n.ipynb").write_text("{}")
    for what, words in (("k.py::rum", "did you mean `run`?"), ("n.ipynb::run", "notebooks are not probed"),
                        ("n.ipynb", "notebooks are not probed")):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "pallas_lint", "probe", what],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "") and words in done.stderr
        assert len(done.stderr.splitlines()) == 1 and not (tmp_path / "imported").exists()


@pytest.mark.parametrize(("tried", "words"), [("bq=8,16", "missing"), ("bm=8,16", "no-python")])
def test_choices_of_tune_are_arguments(tmp_path: Path, tried: str, words: str) -> None:
    (tmp_path / "k.py").write_text("def tiled(x, *, bm): return x\n")
    command = ("k.py::tiled", "f32[8]", "--tune", tried, "--python", "no-python")
    done = subprocess.run(
        [sys.executable, "-m", "pallas_lint", "probe", *command],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and words in done.stderr, done.stderr
