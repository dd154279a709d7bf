"""Which files are linted, the cache, and the processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.finding import Edit, FileResult, Finding, Fix, LintError, Position, Related, Severity, Span
from pallas_lint.lint import lint_source
from pallas_lint.run import cache
from pallas_lint.run.cache import Cache
from pallas_lint.run.cache_folder import CacheFolder, cache_folder
from pallas_lint.run.project import Project, concerns_pallas, discover
from pallas_lint.run.runner import combine, run
from pallas_lint.text.digests import digest
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = Path(os.path.realpath(tmp_path))
    monkeypatch.chdir(place)
    return place


def make(root: Path, *names: str, **contents: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("pallas\n")
    for name, text in contents.items():
        (root / name.replace("__", ".")).write_text(text)


def found(root: Path, *paths: str, exclude: Sequence[str] = (), isolated: bool = False) -> list[str]:
    finder = SettingsFinder(Overrides({"jax-version": "0.10.2"}, isolated=isolated), root)
    result = discover(paths or ["."], finder, cwd=root, exclude=exclude)
    assert result.errors == []
    return [file.shown for file in result.files]


def test_folders_are_searched_for_python_files_and_notebooks(root: Path) -> None:
    make(root, "b.py", "a.py", "sub/c.py", "sub/deep/d.py", "x.pyi", "notes.txt", "sub/e.ipynb", "dir.py/f.py")
    assert found(root) == ["a.py", "b.py", "dir.py/f.py", "sub/c.py", "sub/deep/d.py", "sub/e.ipynb"]
    assert found(root, "sub") == ["sub/c.py", "sub/deep/d.py", "sub/e.ipynb"]


def test_default_excludes(root: Path) -> None:
    make(root, "a.py", *(f"{name}/x.py" for name in (".git", ".venv", "venv", "node_modules", "build", "dist")))
    make(root, "lib/python3.12/site-packages/x.py", "__pycache__/x.py", ".eggs/x.py", "sub/build/x.py")
    assert found(root) == ["a.py"]


def test_a_file_that_is_named_is_linted_wherever_it_is(root: Path) -> None:
    make(root, "build/x.py", "script", "a.py")
    assert found(root, "build/x.py", "script", ".", "a.py", "./a.py") == ["a.py", "build/x.py", "script"]
    assert found(root, "build") == ["build/x.py"]


def test_excludes_of_the_settings(root: Path) -> None:
    make(root, "a.py", "old/x.py", "src/old/x.py", "src/gen_1.py", "build/y.py")
    make(root, pyproject__toml='[tool.pallas-lint]\nextend-exclude = ["/old", "gen_*.py"]\n')
    assert found(root) == ["a.py", "src/old/x.py"]
    make(root, pyproject__toml='[tool.pallas-lint]\nexclude = ["src"]\n')
    assert found(root) == ["a.py", "build/y.py", "old/x.py"]
    assert found(root, exclude=["a*"]) == ["build/y.py", "old/x.py"]
    assert found(root, exclude=["./old"]) == ["a.py", "build/y.py"]
    assert found(root, exclude=[str(root / "old")]) == ["a.py", "build/y.py"]


def test_gitignore_files_count_and_nest(root: Path) -> None:
    (root / ".git").mkdir()
    make(root, "a.py", "gen/x.py", "gen/keep.py", "sub/gen/y.py", "sub/z.py", "sub/t.py", "only/gen/w.py")
    make(root, __gitignore="gen/*\n!keep.py\n/z.py\n# note\n!\n")
    (root / "sub" / ".gitignore").write_text("t.py\n!gen/\n")
    assert found(root) == ["a.py", "gen/keep.py", "only/gen/w.py", "sub/gen/y.py", "sub/z.py"]
    assert found(root, "sub") == ["sub/gen/y.py", "sub/z.py"]
    make(root, pallas_lint__toml="")
    (root / "pallas-lint.toml").write_text("respect-gitignore = false\n")
    assert "gen/x.py" in found(root)


def test_an_ignored_folder_that_is_named_is_searched(root: Path) -> None:
    (root / ".git").mkdir()
    make(root, "gen/x.py", __gitignore="gen/\n")
    assert found(root) == []
    assert found(root, "gen") == ["gen/x.py"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links(root: Path) -> None:
    make(root, "a.py", "sub/b.py")
    (root / "loop").symlink_to(root)
    (root / "sub" / "up").symlink_to("..")
    (root / "same.py").symlink_to("a.py")
    (root / "dead.py").symlink_to("nowhere.py")
    assert found(root) == ["a.py", "sub/b.py"]
    os.mkfifo(root / "pipe.py")
    assert found(root) == ["a.py", "sub/b.py"]


def test_folders_have_their_own_settings(root: Path) -> None:
    make(root, "a.py", "p/b.py", "p/q/c.py", "r/d.py")
    (root / "pallas-lint.toml").write_text('fail-on = "error"\n')
    (root / "p" / "pyproject.toml").write_text('[tool.pallas-lint]\nfail-on = "info"\n')
    (root / "r" / "pyproject.toml").write_text("[project]\n")
    result = discover(["."], SettingsFinder(cwd=root), cwd=root)
    assert {file.shown: file.settings.fail_on.value for file in result.files} == {
        "a.py": "error",
        "p/b.py": "info",
        "p/q/c.py": "info",
        "r/d.py": "error",
    }


def test_paths_outside_are_shown_relative(root: Path) -> None:
    make(root, "one/a.py", "two/b.py")
    os.chdir(root / "one")
    finder = SettingsFinder(Overrides(isolated=True), root / "one")
    shown = [file.shown for file in discover(["../two", str(root / "one")], finder, cwd=root / "one").files]
    assert shown == ["../two/b.py", "a.py"]


def test_the_prefilter() -> None:
    assert concerns_pallas(b"from jax.experimental import pallas")
    assert not concerns_pallas(b"import jax")


SPAN = Span("k.py", Position(1, 1), Position(2, 3), 3)
FULL = Finding(
    "PAL103", "n", Severity.INFO, "é", SPAN, "help", "kernel", "tpu", "v5e", "0.10.2", "bf16", "probe",
    (Related(SPAN, "here"),), (Fix("t", "unsafe", (Edit(SPAN, "new\n"),)),),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> CacheFolder:
    """A cache folder, still to be made."""
    folder = cache_folder(tmp_path, tmp_path / "cache")
    assert folder is not None
    return folder


def entry_of(folder: CacheFolder, path: Path) -> str:
    """The name of the only entry, which is for the file at a path."""
    (entry,) = folder.path.glob("lint/??/*")
    assert entry.parent.name + entry.name == digest(os.fsencode(path))
    return digest(os.fsencode(path))


def test_the_cache_gives_back_what_was_put(tmp_path: Path, folder: CacheFolder) -> None:
    cache = Cache(folder, tmp_path, Project(tmp_path))
    (tmp_path / "dep.py").write_text("1")
    verdict = FileResult(
        "k.py", (FULL,), kernels=2, dependencies=("dep.py", "gone.py"), used_suppressions=(("m.py", 3),)
    )
    key = cache.key("k.py", b"data", "settings")
    assert cache.get("k.py", key) is None
    cache.put(verdict, key)
    assert cache.get("k.py", key) == verdict
    assert cache.get("k.py", cache.key("k.py", b"other", "settings")) is None
    assert cache.get("k.py", cache.key("k.py", b"data", "others")) is None
    assert cache.get("other.py", key) is None
    (tmp_path / "dep.py").write_text("2")
    assert Cache(folder, tmp_path, Project(tmp_path)).get("k.py", key) is None
    (tmp_path / "dep.py").write_text("1")
    (tmp_path / "gone.py").write_text("here now")
    assert Cache(folder, tmp_path, Project(tmp_path)).get("k.py", key) is None


@pytest.mark.parametrize(
    "junk",
    [b"", b"{", b"[]", b"null", b'{"key": "KEY"}', b'{"key": "KEY", "dependencies": {}, "findings": [{}]}'],
)
def test_a_spoilt_entry_is_no_entry(tmp_path: Path, folder: CacheFolder, junk: bytes) -> None:
    cache = Cache(folder, tmp_path, Project(tmp_path))
    key = cache.key("k.py", b"data", "settings")
    cache.put(FileResult("k.py", (FULL,)), key)
    folder.write("lint", entry_of(folder, tmp_path / "k.py"), junk.replace(b"KEY", key.encode()))
    assert cache.get("k.py", key) is None


def test_failures_are_not_kept_and_a_place_that_cannot_be_written_is_no_error(
    tmp_path: Path, folder: CacheFolder
) -> None:
    cache = Cache(folder, tmp_path, Project(tmp_path))
    key = cache.key("k.py", b"data", "settings")
    cache.put(FileResult("k.py", errors=(LintError("k.py", "crash"),)), key)
    assert cache.get("k.py", key) is None
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "in" / "it"):
        Cache(CacheFolder(place, folder.own), tmp_path, Project(tmp_path)).put(FileResult("k.py"), key)


@pytest.mark.parametrize("rules", ["tool/rules", "rules"])  # of an installed copy, of a checkout
def test_a_tool_of_which_any_file_has_changed_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str
) -> None:
    files = [tmp_path / name for name in ("tool/run/cache.py", "tool/compat/data/apis.json.gz", f"{rules}/a/rule.py")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.setattr(cache, "__file__", str(files[0]))
    monkeypatch.setattr(cache, "_folder_of", lambda _: tmp_path / rules)
    known = []
    for number, file in enumerate([None, *files]):
        if file is not None:
            os.utime(file, ns=(0, 2_000_000_000_000_000_000 + number))
        monkeypatch.setattr(cache, "_tool", None)
        known.append(cache.tool_fingerprint())
    assert len({*known}) == len(known)


def test_cached_entries_are_json_only(tmp_path: Path, folder: CacheFolder) -> None:
    cache = Cache(folder, tmp_path, Project(tmp_path))
    cache.put(FileResult("k.py", (FULL,)), cache.key("k.py", b"data", "s"))
    content = folder.read("lint", entry_of(folder, tmp_path / "k.py"))
    assert content is not None and json.loads(content)["findings"][0]["code"] == "PAL103"


def test_one_finding_seen_from_two_files_is_one() -> None:
    result = combine([FileResult("a.py", (FULL,), kernels=1), FileResult("b.py", (FULL,), kernels=2)])
    assert result.findings == (FULL,)
    assert (result.kernels, result.files) == (3, 2)


def test_a_comment_used_from_another_file_is_not_unused() -> None:
    unused = Finding("PAL002", "unused-suppression", Severity.WARNING, "m", SPAN)
    assert combine([FileResult("k.py", (unused,))]).findings == (unused,)
    assert combine([FileResult("k.py", (unused,)), FileResult("b.py", used_suppressions=(("k.py", 1),))]).findings == ()


def test_a_process_that_dies_takes_only_its_file_down(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import multiprocessing

    import pallas_lint.lint

    if multiprocessing.get_start_method() != "fork":
        pytest.skip("the replaced function reaches only forked processes")
    make(root, "a.py", "b.py", "c.py")
    parent = os.getpid()

    def dying(source: object, *rest: object) -> object:
        if getattr(source, "path", "") == "b.py":
            assert os.getpid() != parent
            os._exit(9)
        return FileResult(getattr(source, "path", ""), kernels=1)

    monkeypatch.setattr(pallas_lint.lint, "lint_source", dying)
    files = discover(["."], SettingsFinder(Overrides(isolated=True), root), cwd=root).files
    result = run(files, cwd=root, jobs=2)
    assert [(error.path, error.message) for error in result.errors] == [
        ("b.py", "internal error: the process that checked it died")
    ]
    assert result.kernels == 2


def test_processes_share_the_engine_where_they_are_forked(root: Path) -> None:
    """It takes longer to import than a small file to judge; and nothing is forked beside running threads."""
    make(root, "a.py", "b.py")
    program = (
        "import multiprocessing, sys\n"
        "from pathlib import Path\n"
        "from pallas_lint.config.settings import Overrides, SettingsFinder\n"
        "from pallas_lint.run.project import discover\n"
        "from pallas_lint.run.runner import run\n"
        "multiprocessing.set_start_method('fork')\n"
        "cwd = Path.cwd()\n"
        "files = discover(['.'], SettingsFinder(Overrides(isolated=True), cwd), cwd=cwd).files\n"
        "assert 'pallas_lint.lint' not in sys.modules\n"
        "assert run(files, cwd=cwd, jobs=2).files == 2\n"
        "assert {'pallas_lint.lint', 'pallas_lint.rules.lowering.unsupported_function'} <= {*sys.modules}\n"
    )
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("processes are not forked here")
    command = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_cached_results_need_no_engine(root: Path) -> None:
    make(root, "a.py")
    program = (
        "import sys\n"
        "from pallas_lint.cli.dispatch import run\n"
        "run(['a.py', '-q'])\n"
        "print(sorted({'libcst', 'tree_sitter', 'pallas_lint.text.source', 'pallas_lint.lint'} & {*sys.modules}))\n"
    )
    (root / "pallas-lint.toml").touch()  # what belongs to no project is not kept
    command = [sys.executable, "-c", program]
    reported = [subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert [each.splitlines()[-1] == "[]" for each in reported] == [False, True]


def test_a_module_outside_is_named_alike_however_it_is_met(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "specs.py").write_text("import jax.numpy as jnp\ndef order(v):\n    return jnp.cumsum(v, axis=-1)\n")
    (there / "kernels.py").write_text(
        "import jax\nfrom jax.experimental import pallas as pl\nfrom jax.experimental.pallas import tpu as pltpu\n"
        "from specs import order\n\n\ndef kernel(x_ref, o_ref):\n    o_ref[...] = order(x_ref[...])\n\n\n"
        "def run(x):\n    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), 'float32'),\n"
        "                          compiler_params=pltpu.CompilerParams())(x)\n"
    )
    finder = SettingsFinder(Overrides({"select": ["ALL"], "jax-version": "0.10.2"}, isolated=True), here)
    project = Project(here)
    source = Source("../there/kernels.py", (there / "kernels.py").read_text())
    found = lint_source(source, finder.for_folder(there), project).findings
    assert [(finding.code, finding.span.path) for finding in found] == [("PAL101", "../there/specs.py")]
