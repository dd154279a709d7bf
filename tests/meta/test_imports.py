"""Imports point one way: syntax → kernels → rules → command line; nothing heavy at the start, jax never."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "pallas_lint": ROOT / "pallas_lint",
    "pallas_lint.rules": ROOT / "rules",
    "pallas_lint.server": ROOT / "server",
}
# Who must not import what, by the beginnings of dotted names.
ENGINE_BARS = (
    "pallas_lint.rules",
    "pallas_lint.server",
    "pallas_lint.cli",
    "pallas_lint.report",
    "jax",
    "rich",
    "pygls",
)
BARRED = {
    "pallas_lint.finding": ("pallas_lint",),
    "pallas_lint.source": ("pallas_lint.syntax", "pallas_lint.kernels", *ENGINE_BARS),
    "pallas_lint.syntax": ("pallas_lint.kernels", "pallas_lint.compat", "pallas_lint.settings", *ENGINE_BARS),
    "pallas_lint.compat": ("pallas_lint.syntax", "pallas_lint.kernels", "libcst", *ENGINE_BARS),
    "pallas_lint.kernels": ("pallas_lint.rule", "pallas_lint.lint", "pallas_lint.runner", *ENGINE_BARS),
    "pallas_lint.rules": (
        "pallas_lint.server",
        "pallas_lint.cli",
        "pallas_lint.report",
        "pallas_lint.runner",
        "jax",
    ),
    "pallas_lint.report": ("pallas_lint.rules", "pallas_lint.server", "pallas_lint.kernels", "libcst", "jax"),
    "pallas_lint": (
        "pallas_lint.server",
        "jax",
        "jaxlib",
        "numpy",
        "libcst.matchers",
        "libcst.codemod",
        "libcst.metadata",
    ),
}


# The probe's worker is no part of this process: it runs in the user's interpreter, where nothing of ours is installed.
WORKER = ROOT / "pallas_lint" / "probe" / "worker"


def modules() -> dict[str, Path]:
    """Dotted name to file, of everything that runs in this process."""
    found = {}
    for package, folder in FOLDERS.items():
        for file in folder.rglob("*.py"):
            if WORKER in file.parents:
                continue
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join((package, *(part for part in parts if part != "__init__")))
            found[name] = file
    return found


@cache
def imported(file: Path) -> set[str]:
    """Every module a file imports, in functions too; for `from a import b` both `a` and `a.b`."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: relative imports hide where a name comes from"
            module = node.module or ""
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


MODULES = modules()


@pytest.mark.parametrize("package", BARRED)
def test_imports_point_one_way(package: str) -> None:
    wrong = []
    for name, file in MODULES.items():
        if not below(name, package):
            continue
        for target in imported(file):
            for barred in BARRED[package]:
                inside = below(target, package) and package != "pallas_lint"
                starts = (name, barred) == ("pallas_lint.cli.server", "pallas_lint.server")
                if below(target, barred) and not inside and not below(name, barred) and not starts:
                    wrong.append(f"{name} imports {target}")
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_the_worker_needs_nothing_but_jax() -> None:
    allowed = {*sys.stdlib_module_names, "jax", "jaxlib", "numpy", "sitecustomize"}
    for file in WORKER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert name.partition(".")[0] in allowed, f"{file.name} imports {name}"


def loaded_by(*arguments: str) -> set[str]:
    code = "import sys; from pallas_lint.cli import main; main(sys.argv[1:]); print('\\n' + ' '.join(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()}


def test_the_version_needs_next_to_nothing() -> None:
    assert not loaded_by("--version") & {
        "libcst",
        "rich",
        "jax",
        "attrs",
        "cattrs",
        "argparse",
        "tree_sitter",
    }


def test_linting_imports_nothing_of_the_code_it_reads() -> None:
    loaded = loaded_by("--no-cache", "--isolated", "--jax-version", "0.10.2", str(ROOT / "examples"))
    assert not loaded & {"jax", "jaxlib", "numpy", "pygls", "rich"}
    assert "libcst" in loaded
