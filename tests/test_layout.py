"""Which folders of a project imports start from, as its files say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pallas_lint.config.layout import Layouts
from pallas_lint.run.project import Project
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pathlib import Path

KERN = "src/pkg/kern.py"


def put(folder: Path, path: str, text: str = "") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def found(folder: Path, dotted: str, importer: str = "tests/test_kern.py") -> str | None:
    """The file that a name means in another file."""
    project = Project(cwd=folder)
    return found_by(project, dotted, importer)


def found_by(project: Project, dotted: str, importer: str) -> str | None:
    graph = project.graph()
    importing = graph.add(Source(importer, ""), project.file(importer))
    module = graph.find(dotted, importing)
    return None if module is None or module.file is None else module.file.relative_to(project.cwd).as_posix()


@pytest.mark.parametrize(
    ("reported", "kern", "name"),
    [
        ("[project]\nname = 'pkg'", "src/pkg/kern.py", "pkg.kern"),
        ("[build-system]\nbuild-backend = 'flit_core.buildapi'\n[tool.flit.module]\nname = 'pkg'", KERN, "pkg.kern"),
        ("[tool.setuptools]\npackage-dir = {'' = 'lib'}", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.setuptools]\npackage-dir = {pkg = 'lib/code'}", "lib/code/kern.py", "pkg.kern"),
        ("[tool.setuptools.packages.find]\nwhere = ['one', 'lib']", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.hatch.build.targets.wheel]\npackages = ['lib/pkg']", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.hatch.build]\nsources = ['lib']", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.hatch.build.targets.wheel.sources]\n'lib/code' = 'pkg/inner'", "lib/code/kern.py", "pkg.inner.kern"),
        ("[tool.hatch.build]\ndev-mode-dirs = ['lib']", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.poetry]\npackages = [{include = 'pkg', from = 'lib'}]", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.pdm.build]\npackage-dir = 'lib'", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.uv.build-backend]\nmodule-root = 'lib'", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.uv.build-backend]\nmodule-name = 'pkg'", KERN, "pkg.kern"),
        ("[tool.maturin]\npython-source = 'python'", "python/pkg/kern.py", "pkg.kern"),
        ("[tool.scikit-build]\nwheel.packages = ['python/pkg']", "python/pkg/kern.py", "pkg.kern"),
        ("[tool.scikit-build.wheel.packages]\n'pkg' = 'python/code'", "python/code/kern.py", "pkg.kern"),
        ("[tool.pytest.ini_options]\npythonpath = ['lib']", "lib/pkg/kern.py", "pkg.kern"),
        ("[tool.pytest.ini_options]\npythonpath = '. lib'", "lib/kern.py", "kern"),
        ("[tool.pytest]\npythonpath = ['lib']", "lib/pkg/kern.py", "pkg.kern"),
    ],
)
def test_pyproject_has_the_folders_of_packages(tmp_path: Path, reported: str, kern: str, name: str) -> None:
    put(tmp_path, "pyproject.toml", reported)
    put(tmp_path, kern)
    assert found(tmp_path, name) == kern


@pytest.mark.parametrize(
    ("file", "reported"),
    [
        ("setup.py", "setup(name='pkg', package_dir={'': 'lib'}, packages=find_packages('lib'))"),
        ("setup.py", "setup(packages=setuptools.find_packages(where='lib'))"),
        ("setup.cfg", "[options]\npackage_dir =\n    = lib\n"),
        ("setup.cfg", "[options]\npackages = find:\n[options.packages.find]\nwhere = lib\n"),
        ("setup.cfg", "[tool:pytest]\npythonpath = lib\n"),
        ("pytest.ini", "[pytest]\npythonpath =\n    other\n    lib\n"),
    ],
)
def test_older_files_have_them_too(tmp_path: Path, file: str, reported: str) -> None:
    put(tmp_path, "setup.py")
    put(tmp_path, file, reported)
    put(tmp_path, "lib/pkg/kern.py")
    assert found(tmp_path, "pkg.kern") == "lib/pkg/kern.py"


@pytest.mark.parametrize(
    "reported",
    [
        "[tool.uv.workspace]\nmembers = ['packages/*']\nexclude = ['packages/old']",
        "[tool.uv.workspace]\nmembers = ['packages/a']",
        "[tool.uv.sources]\na = {path = 'packages/a'}",
        "[tool.poetry.dependencies]\na = {path = 'packages/a', develop = true}",
        "[project]\nname = 'whole'",  # no file says how they are installed; the only project of that name
    ],
)
def test_projects_of_one_repository_import_each_other(tmp_path: Path, reported: str) -> None:
    put(tmp_path, "pyproject.toml", reported)
    put(tmp_path, "packages/a/pyproject.toml", "[project]\nname = 'a'")
    put(tmp_path, "packages/a/src/pkg/kern.py")
    put(tmp_path, "packages/b/pyproject.toml", "[project]\nname = 'b'")
    assert found(tmp_path, "pkg.kern") == "packages/a/src/pkg/kern.py"
    beside = found(tmp_path, "pkg.kern", "packages/b/tests/test_b.py")
    assert beside == ("packages/a/src/pkg/kern.py" if "packages/*" in reported else None)
    (tmp_path / ".git").mkdir()
    assert found(tmp_path, "pkg.kern", "packages/b/tests/test_b.py") == "packages/a/src/pkg/kern.py"


def test_members_that_are_left_out_are_not_imported(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml", "[tool.uv.workspace]\nmembers = ['lib/*/*']\nexclude = ['lib/x/old']")
    put(tmp_path, "lib/x/old/src/kern.py")
    put(tmp_path, "lib/x/new/src/other.py")
    assert found(tmp_path, "kern") is None
    assert found(tmp_path, "other") == "lib/x/new/src/other.py"


def test_a_lone_module_of_another_project_is_not_meant(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml")
    put(tmp_path, "tools/pyproject.toml")
    put(tmp_path, "tools/helpers.py")
    put(tmp_path, "tools/pkg/helpers.py")
    assert found(tmp_path, "helpers") is None
    assert found(tmp_path, "pkg.helpers") == "tools/pkg/helpers.py"


def test_the_own_folders_go_first(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml")
    put(tmp_path, "src/pkg/kern.py")
    put(tmp_path, "tests/pkg/other.py")
    assert found(tmp_path, "pkg.kern") == "src/pkg/kern.py"  # a folder of that name is not all of the package
    put(tmp_path, "tests/pkg/kern.py")
    assert found(tmp_path, "pkg.kern") == "tests/pkg/kern.py"


def test_a_src_that_is_a_package_is_no_start(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml")
    put(tmp_path, "src/__init__.py")
    put(tmp_path, "src/pkg/kern.py")
    assert found(tmp_path, "pkg.kern") is None
    assert found(tmp_path, "src.pkg.kern") == "src/pkg/kern.py"


def test_declared_folders_go_before_usual_ones(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml", "[tool.setuptools]\npackage-dir = {'' = 'lib'}")
    put(tmp_path, "src/pkg/kern.py")
    put(tmp_path, "lib/pkg/other.py")
    assert found(tmp_path, "pkg.kern") is None


@pytest.mark.parametrize("name", ["random", "logging.config", "jax.numpy", "numpy"])
def test_what_python_and_jax_have_is_not_looked_for_among_what_is_installed(tmp_path: Path, name: str) -> None:
    put(tmp_path, "pyproject.toml")
    put(tmp_path, f"src/{name.replace('.', '/')}.py")
    assert found(tmp_path, name) is None


@pytest.mark.parametrize("place", ["../outside", "/etc", "link", "no\\u0000thing", "missing"])
def test_nothing_leads_out_of_the_repository(tmp_path: Path, place: str) -> None:
    repository = tmp_path / "repository"
    outside = put(tmp_path, "outside/pkg/kern.py").parents[1]
    put(repository, "pyproject.toml", f'[tool.setuptools]\npackage-dir = {{"" = "{place}"}}')
    (repository / ".git").mkdir()
    (repository / "link").symlink_to(outside)
    layout = Layouts().of(repository / "tests")
    assert [base.folder for base in layout.bases] == [repository]


@pytest.mark.parametrize(
    "text",
    [
        "[tool",
        "tool = 3",
        "[tool]\nsetuptools = 1\nuv = []\npytest = 'x'",
        "[tool.setuptools]\npackage-dir = ['lib']\n[tool.uv.workspace]\nmembers = ['**', '../*', '*/*/*', 3]",
        "[tool.poetry]\npackages = ['x', {include = 3}, {from = 3}]\n[tool.hatch.build]\nsources = {a = 3}",
        "a = " + "[" * 5000,
    ],
)
def test_broken_files_declare_nothing(tmp_path: Path, text: str) -> None:
    for name in ("pyproject.toml", "setup.cfg", "pytest.ini", "setup.py"):
        put(tmp_path, name, text)
    put(tmp_path, "src/pkg/kern.py")
    assert found(tmp_path, "pkg.kern") in (KERN, None)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "setup.cfg")
    put(tmp_path, "pyproject.toml")
    put(tmp_path, KERN)
    assert found(tmp_path, "pkg.kern") == KERN


def test_a_change_of_pyproject_is_noticed(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml", "[tool.setuptools]\npackage-dir = {'' = 'lib'}")
    put(tmp_path, KERN)
    put(tmp_path, "lib/other.py")
    project = Project(cwd=tmp_path)
    assert found_by(project, "pkg.kern", "tests/test_kern.py") is None
    put(tmp_path, "pyproject.toml", "[tool.setuptools]\npackage-dir = {'' = 'src'}")
    assert found_by(project, "pkg.kern", "tests/test_kern.py") is None
    project.forget_requirements()
    assert found_by(project, "pkg.kern", "tests/test_kern.py") == KERN


def test_declaring_files_are_dependencies(tmp_path: Path) -> None:
    reported = put(tmp_path, "pyproject.toml")
    put(tmp_path, KERN)
    project = Project(cwd=tmp_path)
    graph = project.graph()
    importer = graph.add(Source("tests/test_kern.py", ""), project.file("tests/test_kern.py"))
    graph.find("os.path", importer)
    assert reported not in graph.touched
    graph.find("torch", importer)
    assert reported in graph.touched
