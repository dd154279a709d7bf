"""Links and settings that lead out of the project: nothing is written there, and the rest is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

NEW = ("--jax-version", "0.10.2")


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository, and beside it a folder that is none of its business."""
    folder, outside = tmp_path / "project", tmp_path / "outside"
    for place in (folder / ".git", folder / "real", outside):
        place.mkdir(parents=True)
    (outside / "target.py").write_text(attack.KERNEL)
    (outside / "settings.json").write_text("{}")
    (folder / "out.py").symlink_to(outside / "target.py")
    (folder / "outside").symlink_to(outside, target_is_directory=True)
    (folder / "real" / "k.txt").write_text(attack.KERNEL)
    (folder / "in.py").symlink_to("real/k.txt")
    (folder / "plain.py").write_text(attack.KERNEL)
    return folder


@pytest.mark.parametrize("way", ["command line", "hook"])
def test_fixes_stay_in_the_project(project: Path, way: str) -> None:
    outside = project.parent / "outside"
    before = everything(outside)
    named = ("in.py", "out.py", "outside/target.py", "plain.py")
    if way == "hook":
        ran = attack.hook("pallas-lint-fix", *named, cwd=project)
    else:
        ran = attack.run("--fix", *NEW, *named, cwd=project)
    assert ran.calm and ran.status == 2
    assert everything(outside) == before
    assert f"out.py: error: cannot write the fixed file: it leads out of the project, to {outside}/target.py" in ran.err
    assert (project / "plain.py").read_text() == attack.FIXED
    assert (project / "in.py").is_symlink() and (project / "real" / "k.txt").read_text() == attack.FIXED


def test_comments_and_baselines_stay_in_the_project(project: Path) -> None:
    outside = project.parent / "outside"
    before = everything(outside)
    ran = attack.run("--add-suppressions", *NEW, ".", cwd=project)
    assert ran.calm and ran.status == 2 and "out.py: error: cannot write" in ran.err
    assert "disable=PAL301" in (project / "plain.py").read_text()
    (project / "plain.py").write_text(attack.KERNEL)
    for reported in ("../outside/settings.json", "../new.json", "outside/settings.json", "outside/new.json"):
        (project / "pallas-lint.toml").write_text(f'baseline = "{reported}"\n')
        ran = attack.run("--write-baseline", *NEW, "plain.py", cwd=project)
        assert ran.calm and ran.status == 2
        assert "new.json" not in reported or "cannot write the baseline: it leads out of the project" in ran.err
    assert everything(outside) == before
    assert not (project.parent / "new.json").exists()


def test_what_the_user_names_is_written(project: Path) -> None:
    outside = project.parent / "outside"
    ran = attack.run("--write-baseline", "--baseline", "../known.json", *NEW, "plain.py", cwd=project)
    assert ran.calm and ran.status == 0 and (project.parent / "known.json").is_file()
    ran = attack.run("--fix", *NEW, outside / "target.py", cwd=project)
    assert ran.calm and ran.status == 0 and (outside / "target.py").read_text() == attack.FIXED


def test_nothing_goes_where_a_cache_could_be(project: Path) -> None:
    """Links where earlier versions kept theirs, and a user's cache that lies in the project."""
    outside = project.parent / "outside"
    before = everything(outside)
    (project / ".pallas-lint-cache").symlink_to(outside, target_is_directory=True)
    (project / "pallas-lint").symlink_to(outside, target_is_directory=True)
    ran = attack.run(*NEW, ".", cwd=project, env={"XDG_CACHE_HOME": str(project)})
    assert ran.calm and ran.status == 1
    assert everything(outside) == before


def test_without_a_home_nothing_is_kept(project: Path) -> None:
    nowhere = project.parent / "nowhere"
    ran = attack.run(*NEW, "plain.py", cwd=project, env={"HOME": str(nowhere)})
    assert ran.calm and ran.status == 1 and not nowhere.exists()
