"""A git repository with what this one holds, for programs that install from one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from repository import git

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository."""
    folder = tmp_path_factory.mktemp("hook") / "pallas-lint"
    left_out = shutil.ignore_patterns(
        ".git", "node_modules", ".venv", "bundled", "build", "*.egg-info", "__pycache__", ".*_cache", "tests", "docs"
    )
    shutil.copytree(ROOT, folder, ignore=left_out)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "release")
    return folder
