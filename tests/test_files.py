"""Reading and writing files."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from pallas_lint.text import files

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_replaced_whole_with_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "file"
    files.write(file, b"new", tmp_path)
    (tmp_path / "other").touch()
    assert (tmp_path / "other").stat().st_mode == file.stat().st_mode, "as any new file's"
    file.chmod(0o751)
    drafted = files.draft(file, b"newer", tmp_path)
    assert file.read_bytes() == b"new"
    drafted.drop()
    files.write(file, b"newer", tmp_path)
    assert file.read_bytes() == b"newer" and stat.S_IMODE(file.stat().st_mode) == 0o751
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "other"]


@pytest.fixture
def linked(tmp_path: Path) -> tuple[Path, Path]:
    """A project with links of all kinds, and a folder beside it."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "deep", outside):
        folder.mkdir(parents=True)
    (inside / "deep" / "file").write_bytes(b"old")
    (outside / "file").write_bytes(b"theirs")
    (inside / "near").symlink_to("deep/file")
    (inside / "near-folder").symlink_to("deep")
    (inside / "far").symlink_to(outside / "file")
    (inside / "new").symlink_to(outside / "new")
    (inside / "folder").symlink_to(outside)
    return inside, outside


def test_a_path_of_the_project_has_no_link_on_its_way(linked: tuple[Path, Path]) -> None:
    inside, outside = linked
    for path in ("near", "near-folder/file"):
        with pytest.raises(files.RefusedFile, match="is a link"):
            files.write(inside / path, b"x", inside)
    for path in ("far", "new", "folder/file", "folder/new", "../outside/file", "../inside.txt", str(outside / "new")):
        with pytest.raises(files.RefusedFile, match="leads out of the project"):
            files.write(inside / path, b"x", inside)
    assert [each.name for each in outside.iterdir()] == ["file"] and (outside / "file").read_bytes() == b"theirs"
    assert (inside / "deep" / "file").read_bytes() == b"old"
    files.write(inside / "deep" / ".." / "deep" / "file", b"x", inside)
    assert (inside / "deep" / "file").read_bytes() == b"x"


def test_a_path_that_the_user_names_is_no_link_at_its_end(linked: tuple[Path, Path]) -> None:
    inside, outside = linked
    for path in ("far", "new", "near"):
        with pytest.raises(files.RefusedFile, match="is a link"):
            files.write(inside / path, b"x", None)
    assert [each.name for each in outside.iterdir()] == ["file"] and (outside / "file").read_bytes() == b"theirs"
    files.write(inside / "folder" / "file", b"x", None)
    assert (outside / "file").read_bytes() == b"x"


def test_a_linked_source_file(linked: tuple[Path, Path]) -> None:
    inside, _ = linked
    assert files.linked_file(inside / "near", inside) == inside / "deep" / "file"
    for path in ("far", "folder/file"):
        with pytest.raises(files.RefusedFile, match="leads out of the project"):
            files.linked_file(inside / path, inside)


@pytest.mark.parametrize("unnamed", [True, False])
def test_what_a_killed_run_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
    """Nothing where files can be without a name, else what the next run removes; nothing that only looks like it."""
    if not unnamed:
        monkeypatch.setattr("pallas_lint.text.folders._HAS_HANDLE_FILES", False)
    file = tmp_path / "file"
    killed = files.draft(file, b"new", tmp_path)
    left = list(tmp_path.iterdir())
    assert len(left) == (not unnamed)
    (tmp_path / ".pallas-lint-notes").touch()
    (tmp_path / ".pallas-lint-0123456789abcdef").symlink_to("notes")
    for each in (*left, tmp_path / ".pallas-lint-notes"):
        os.utime(each, (0, 0))
    (tmp_path / ".pallas-lint-fedcba9876543210").touch()  # of a run that is still at it
    files.write(file, b"newer", tmp_path)
    names = {".pallas-lint-0123456789abcdef", ".pallas-lint-fedcba9876543210", ".pallas-lint-notes", "file"}
    assert {each.name for each in tmp_path.iterdir()} == names
    killed.drop()


@pytest.mark.parametrize("what", ["read-only", "pipe", "folder"])
def test_what_is_not_replaced(tmp_path: Path, what: str) -> None:
    file = tmp_path / "file"
    if what == "pipe":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    else:
        file.touch()
        file.chmod(0o444)
    with pytest.raises(OSError, match=r"read-only|not a regular file"):
        files.write(file, b"x", tmp_path)
    assert list(tmp_path.iterdir()) == [file]


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (1 << 20))
    assert files.read(file, 1 << 20) == b"x" * (1 << 20)
    with pytest.raises(files.RefusedFile, match="larger than 1 MiB"):
        file.write_bytes(b"x" * ((1 << 20) + 1))
        files.read(file, 1 << 20)
