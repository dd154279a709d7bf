"""Worktrees and submodules, whose `.git` is a file that names a folder anywhere: it ends a project, and is not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

NEW = ("--jax-version", "0.10.2")


@pytest.mark.parametrize("text", ["gitdir: {outside}\n", "gitdir: /dev/zero\n", "gitdir: ..\n", "\0" * 4096, ""])
def test_a_git_file_is_the_end_of_a_project_and_leads_nowhere(tmp_path: Path, text: str) -> None:
    """What lies around it counts for nothing; what it names is neither read nor written."""
    outer = tmp_path / "outer"
    project, outside = outer / "project", tmp_path / "outside"
    for place in (outer / ".git", project / "module", outside):
        place.mkdir(parents=True)
    (project / ".git").write_text(text.format(outside=outside))
    (project / "module" / ".git").write_text("gitdir: ../../.git/modules/module\n")
    (outer / ".gitignore").write_text("*.py\n")
    (outside / "pallas-lint.toml").write_text('select = ["PAL701"]\n')
    (outside / "kernel.py").write_text(attack.KERNEL)
    for place in (project, project / "module"):
        (place / "kernel.py").write_text(attack.KERNEL)
    (project / "out.py").symlink_to(outside / "kernel.py")
    (project / "module" / "up.py").symlink_to(project / "kernel.py")
    (project / "pallas-lint.toml").write_text('baseline = "../known.json"\n')
    ran = attack.run("--write-baseline", *NEW, ".", cwd=project)
    assert ran.calm and ran.status == 2 and not (outer / "known.json").exists()
    (project / "pallas-lint.toml").unlink()
    ran = attack.run("--fix", "--no-cache", *NEW, ".", cwd=project)
    assert ran.calm and ran.status == 2, ran.err
    assert f"out.py: error: cannot write the fixed file: it leads out of the project, to {outside}" in ran.err
    assert (outside / "kernel.py").read_text() == attack.KERNEL
    assert (project / "kernel.py").read_text() == attack.FIXED == (project / "module" / "kernel.py").read_text()
    # From within the submodule, the project around it is another one.
    (project / "kernel.py").write_text(attack.KERNEL)
    ran = attack.run("--fix", "--no-cache", *NEW, ".", cwd=project / "module")
    assert ran.calm and ran.status == 2 and "up.py: error: cannot write" in ran.err
    assert (project / "kernel.py").read_text() == attack.KERNEL
