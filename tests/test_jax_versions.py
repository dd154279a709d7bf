"""What kernels are judged for: targets, and the jax version that a setting or a project comes to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint import compat
from pallas_lint.config import environment, targets
from pallas_lint.config.settings import Overrides, SettingsError, SettingsFinder
from pallas_lint.config.targets import JaxVersions, Target, parse_target, resolve_jax_version

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("tpu", Target("tpu")),
        ("tpu:v5e", Target("tpu", "v5e")),
        ("Triton:ROCm", Target("triton", "rocm")),
        ("mosaic-gpu:sm90", Target("mosaic_gpu", "sm90")),
        ("mosaic_gpu", Target("mosaic_gpu")),
    ],
)
def test_targets(text: str, target: Target) -> None:
    assert parse_target(text) == target


def test_targets_read_back() -> None:
    for text in targets.all_targets():
        assert str(parse_target(text)) == text


def install(folder: Path, name: str = "jax", version: str = "0.10.2", python: str = "python3.12") -> None:
    """Make `folder` look like an environment with a package."""
    (folder / "lib" / python / "site-packages" / f"{name}-{version}.dist-info").mkdir(parents=True)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "python").touch()


def auto(folder: Path, python: str | None = None, **options: Any) -> JaxVersions:
    return resolve_jax_version("auto", folder, python, **options)


def test_no_version_is_known(root: Path) -> None:
    assert auto(root) == JaxVersions(
        (compat.newest(),), exact=True, assumed=True, source="newest known", text=compat.newest()
    )


def test_the_environment_goes_before_the_lock_file_before_the_requirements(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "pyproject.toml").write_text('[project]\ndependencies = ["jax>=0.6,<0.8"]\n')
    ranged = auto(root / "src" / "deep")
    assert ranged.versions == tuple(compat.versions_in(">=0.6,<0.8"))
    assert (ranged.exact, ranged.source) == (False, "from the requirements in pyproject.toml")
    (root / "uv.lock").write_text('version = 1\n\n[[package]]\nname = "jax"\nversion = "0.7.1"\n')
    assert (auto(root).text, auto(root).source) == ("0.7.1", "from uv.lock")
    install(root / ".venv", version="0.9.0")
    assert (auto(root).text, auto(root).source) == ("0.9.0", "from .venv")
    install(root / "active", version="0.7.2")
    monkeypatch.setenv("VIRTUAL_ENV", str(root / "active"))
    assert auto(root).text == "0.7.2"
    install(root / "chosen", version="0.4.35")
    assert auto(root, str(root / "chosen" / "bin" / "python")).text == "0.4.35"
    assert auto(root, str(root / "chosen")).text == "0.4.35"
    assert auto(root, isolated=True).assumed
    assert auto(root, str(root / "chosen"), isolated=True).text == "0.4.35"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "uv.lock",
            '[[package]]\nname = "jax"\nversion = "0.11.0"\n\n[[package]]\nname = "libtpu"\nversion = "0.0.44"\n',
        ),
        (
            "poetry.lock",
            "[[package]]\nversion = '0.11.0'\nname = 'jax'\n[[package]]\nversion = '0.0.44'\nname = 'libtpu'\n",
        ),
        (
            "pdm.lock",
            '[[package]]\nname = "libtpu"\nversion = "0.0.44"\n[[package]]\nname = "jax"\nversion = "0.11.0"\n',
        ),
        (
            "pylock.toml",
            '[[packages]]\nname = "jax"\nversion = "0.11.0"\n[[packages]]\nname = "libtpu"\nversion = "0.0.44"\n',
        ),
        ("requirements-tpu.txt", "jax[tpu]==0.11.0\nlibtpu==0.0.44  # for TPUs\n"),
        ("pyproject.toml", '[project]\ndependencies = ["jax>=0.11,<0.12", "libtpu==0.0.44"]\n'),
    ],
)
def test_the_source_of_jax_is_the_source_of_libtpu(root: Path, file: str, text: str) -> None:
    (root / file).write_text(text)
    assert auto(root).versions[0] == "0.11.0"
    assert auto(root).libtpu == "0.0.44"
    install(root / ".venv", version="0.10.2")  # one without libtpu
    assert (auto(root).text, auto(root).libtpu) == ("0.10.2", None)
    install(root / ".venv", name="libtpu", version="0.0.42.1")
    assert auto(root).libtpu == "0.0.42.1"
    assert resolve_jax_version("0.11.0", root).libtpu is None


@pytest.mark.parametrize(
    "text",
    [
        "jax==0.11.0\nlibtpu>=0.0.43\n",
        "jax==0.11.0\nlibtpu-nightly==0.0.44\n",
        "jax==0.11.0\n",
    ],
)
def test_libtpu_is_not_guessed(root: Path, text: str) -> None:
    (root / "requirements.txt").write_text(text)
    assert (auto(root).text, auto(root).libtpu) == ("0.11.0", None)


def test_several_versions_of_libtpu_are_none(root: Path) -> None:
    package = '[[package]]\nname = "{}"\nversion = "{}"\n\n'
    versions = [("jax", "0.11.0"), ("libtpu", "0.0.44"), ("libtpu", "0.0.48")]
    (root / "uv.lock").write_text("".join(package.format(*each) for each in versions))
    assert (auto(root).text, auto(root).libtpu) == ("0.11.0", None)


@pytest.mark.parametrize(
    ("locked", "required", "text", "source"),
    [
        ("0.4.35", ">=0.4.36", ">=0.4.36", "pyproject.toml"),
        ("0.4.35", "==0.6.2", "0.6.2", "pyproject.toml"),
        ("0.6.2", ">=0.4.36", "0.6.2", "uv.lock"),
        ("0.8.1", "", "0.8.1", "uv.lock"),
        ("0.9.0rc1", ">=0.8", "0.9.0rc1", "uv.lock"),
    ],
)
def test_a_stale_lock_file_gives_way(root: Path, locked: str, required: str, text: str, source: str) -> None:
    (root / "uv.lock").write_text(f'[[package]]\nname = "jax"\nversion = "{locked}"\n')
    (root / "pyproject.toml").write_text(f'[project]\ndependencies = ["jax{required}"]\n')
    found = auto(root)
    assert found.text == text
    assert source in found.source
    contradicted = source == "pyproject.toml"
    assert bool(found.note and "uv.lock" in found.note and locked in found.note) is contradicted


def test_an_interpreter_that_is_not_there(root: Path) -> None:
    with pytest.raises(environment.InterpreterError):
        auto(root, str(root / "none"))
    with pytest.raises(SettingsError, match="--python: no interpreter"):
        SettingsFinder(Overrides(python="no-such-python"), root).for_folder(root)


def test_the_nearest_project_of_a_monorepo(root: Path) -> None:
    for name, version in (("a", "0.8.1"), ("b", "0.10.2")):
        (root / name / "src").mkdir(parents=True)
        (root / name / "uv.lock").write_text(f'[[package]]\nname = "jax"\nversion = "{version}"\n')
    finder = SettingsFinder(cwd=root)
    assert finder.for_folder(root / "a" / "src").jax.text == "0.8.1"
    assert finder.for_folder(root / "b" / "src").jax.text == "0.10.2"
    assert finder.for_folder(root).jax.assumed


def test_the_search_ends_at_the_repository(root: Path) -> None:
    (root / "uv.lock").write_text('[[package]]\nname = "jax"\nversion = "0.8.1"\n')
    (root / "sub" / ".git").mkdir(parents=True)
    assert auto(root / "sub").assumed
    assert SettingsFinder(cwd=root).for_folder(root / "sub").jax.assumed


def test_the_search_ends_at_a_worktree(root: Path) -> None:
    install(root / ".venv", version="0.8.1")
    (root / "tree").mkdir()
    (root / "tree" / ".git").write_text("gitdir: ../.git/worktrees/tree\n")
    assert auto(root / "tree").assumed


@pytest.mark.parametrize("file", ["pyproject.toml", "setup.py", "uv.lock", "requirements.txt"])
def test_without_a_repository_the_search_ends_at_the_project(root: Path, file: str) -> None:
    (root / ".git").rmdir()
    install(root / "venv", version="0.8.1")
    project, deep = root / "work" / "project", root / "work" / "project" / "src" / "deep"
    deep.mkdir(parents=True)
    assert (auto(deep).text, auto(deep).source) == ("0.8.1", f"from {root / 'venv'}")  # as far as anybody can tell
    assert SettingsFinder(cwd=root).for_folder(deep).jax.text == "0.8.1"
    (project / file).touch()
    assert auto(deep).assumed
    assert SettingsFinder(cwd=root).for_folder(deep).jax.assumed
    assert environment.find_python(deep) == sys.executable
    install(project / ".venv", version="0.9.0")
    assert auto(deep).text == "0.9.0"


def test_requirements_of_the_documentation_are_no_project(root: Path) -> None:
    (root / ".git").rmdir()
    install(root / ".venv", version="0.8.1")
    (root / "pyproject.toml").touch()
    (root / "docs").mkdir()
    (root / "docs" / "requirements.txt").write_text("sphinx\n")
    assert auto(root / "docs").text == "0.8.1"


def test_odd_environments(root: Path) -> None:
    install(root / ".venv", "jaxlib", "0.8.1")
    assert auto(root).text == "0.8.1"
    (root / ".venv/lib/python3.12/site-packages/jax_md-0.2.8.dist-info").mkdir()
    (root / ".venv/lib/python3.12/site-packages/jax-0.9.0.dist-info").mkdir()
    assert auto(root).text == "0.9.0"
    install(root / "base", version="0.7.2", python="python3.11")
    (root / "venv").mkdir()
    (root / "venv" / "pyvenv.cfg").write_text(f"home = {root / 'base' / 'bin'}\ninclude-system-site-packages = true\n")
    assert auto(root, str(root / "venv")).text == "0.7.2"
    (root / "win" / "Lib" / "site-packages" / "jax-0.6.2.dist-info").mkdir(parents=True)
    assert auto(root, str(root / "win")).text == "0.6.2"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("poetry.lock", '[[package]]\nname = "jax"\nversion = "0.8.1"\ndescription = ""\n', "0.8.1"),
        ("pdm.lock", '[[package]]\nname = "jaxlib"\nversion = "0.8.1"\n', "0.8.1"),
        ("pylock.toml", '[[packages]]\nname = "jax"\nversion = "0.8.1"\n', "0.8.1"),
        ("pylock.toml", "[[packages]]\nversion = '0.8.1'\nmarker = 'x'\nname = 'jax'\n", "0.8.1"),
        ("pylock.toml", "[[packages]]\nname = 'jax'\nversion = 3\n[[packages]\n", None),
        ("pylock.toml", "packages = 3\n[tool]\nname = 'jax'\n", None),
        (
            "uv.lock",
            '[[package]]\nname = "jax"\nversion = "0.7.2"\n[[package]]\nname = "jax"\nversion = "0.8.1"\n',
            "==0.7.2 or ==0.8.1",
        ),
        ("requirements.txt", "numpy\njax[cuda12]==0.8.1 ; python_version > '3'  # pinned\n", "0.8.1"),
        ("requirements-dev.txt", "jax==0.8.1 \\\n    --hash=sha256:0\n", "0.8.1"),
        ("requirements.txt", "jax>=0.7,<0.9\n", "<0.9,>=0.7"),
        ("requirements.txt", "jax\njaxlib>=0.7\n", None),
        ("requirements.txt", "jax-md==0.2.8\njaxtyping>=0.2\n", None),
        ("requirements.txt", "jax @ git+https://example.com/jax\n", None),
        ("setup.cfg", "[options]\ninstall_requires =\n    jax>=0.7\n    numpy\n", ">=0.7"),
        ("pyproject.toml", '[project]\noptional-dependencies = {gpu = ["jax[cuda12]>=0.8"]}\n', ">=0.8"),
        ("pyproject.toml", '[dependency-groups]\ndev = ["jax==0.8.1", {include-group = "x"}]\n', "0.8.1"),
        ("pyproject.toml", '[tool.poetry.dependencies]\njax = "^0.8.1"\n', "<0.9,>=0.8.1"),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\njax = {version = "~0.8", extras = ["cpu"]}\n',
            "<0.9,>=0.8",
        ),
        ("pyproject.toml", '[tool.poetry.group.dev.dependencies]\njaxlib = "*"\n', None),
        ("pyproject.toml", "[project\ndependencies = ['jax>=0.8']\n", None),
        ("pyproject.toml", '[project]\ndependencies = "jax>=0.8"\n', None),
    ],
)
def test_lock_files_and_requirements(root: Path, name: str, text: str, expected: str | None) -> None:
    (root / name).write_text(text)
    found = auto(root)
    assert (None if found.assumed else found.text) == expected


def test_versions_that_are_not_known(root: Path) -> None:
    oldest, newest = compat.known_versions()[0], compat.newest()
    above = resolve_jax_version("99.1", root)
    assert above.versions == (newest,)
    assert above.note == f"jax 99.1 is not known; judged as {newest}, the nearest below"
    install(root / ".venv", version="0.2.1")
    below = auto(root)
    assert below.versions == (oldest,)
    assert "older than" in (below.note or "")
    (root / "p").mkdir()
    (root / "p" / ".git").mkdir()
    (root / "p" / "requirements.txt").write_text("jax>=99\n")
    beyond = auto(root / "p")
    assert (beyond.versions, beyond.exact) == ((newest,), False)
    assert beyond.note is not None


def test_a_range_names_all_its_versions(root: Path) -> None:
    found = resolve_jax_version(">=0.8,<0.11", root)
    assert found.versions == tuple(compat.versions_in(">=0.8,<0.11"))
    assert (found.exact, found.assumed, found.source, found.text) == (
        False,
        False,
        "--jax-version",
        ">=0.8,<0.11",
    )
    assert found.oldest == found.versions[0]
    with pytest.raises(targets.JaxVersionError):
        resolve_jax_version(">=0.8,nonsense", root)
