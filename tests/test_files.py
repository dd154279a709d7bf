"""Files as they are written and read, and where what is found is kept."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from pallas_lint.run import user_cache
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


def test_links_are_followed_inside_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "deep", outside):
        folder.mkdir(parents=True)
    (inside / "near").symlink_to("deep/file")
    (inside / "far").symlink_to(outside / "file")
    (inside / "folder").symlink_to(outside)
    files.write(inside / "near", b"x", inside)
    assert (inside / "near").is_symlink() and (inside / "deep" / "file").read_bytes() == b"x"
    for path in (inside / "far", inside / "folder" / "file", inside / ".." / "outside" / "file"):
        with pytest.raises(files.Refused, match="leads out of the project"):
            files.write(path, b"x", inside)
    assert list(outside.iterdir()) == []


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
    with pytest.raises(files.Refused, match="larger than 1 MiB"):
        file.write_bytes(b"x" * ((1 << 20) + 1))
        files.read(file, 1 << 20)


def test_where_results_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr("sys.platform", "linux")
    place = home / ".cache" / "pallas-lint"
    assert user_cache.folder(project) == place
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    place = tmp_path / "caches" / "pallas-lint"
    assert user_cache.folder(project) == place
    user_cache.keep(place / "lint" / "ab" / "entry", b"x")
    assert {stat.S_IMODE(each.stat().st_mode) for each in (place, place / "lint", place.parent)} == {0o700}
    assert user_cache.folder(place / "lint") is not None, "a folder below it is no project around it"
    place.chmod(0o777)
    assert user_cache.folder(project) is None, "others can write there"
    place.chmod(0o700)
    (tmp_path / "caches" / ".git").mkdir()
    assert user_cache.folder(tmp_path / "caches") is None, "it lies in the project"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "linked"))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "pallas-lint").symlink_to(place, target_is_directory=True)
    assert user_cache.folder(project) is None, "a link"


def test_old_entries_are_forgotten_once_a_day(tmp_path: Path) -> None:
    def entry(name: str, age: float) -> Path:
        file = tmp_path / "ab" / name
        user_cache.keep(file, b"x")
        os.utime(file, (file.stat().st_mtime - age,) * 2)
        return file

    old, new = entry("old", 100 * 86_400), entry("new", 10 * 86_400)
    user_cache.forget_old(tmp_path)
    assert not old.exists() and new.exists()
    old = entry("old", 100 * 86_400)
    user_cache.forget_old(tmp_path)
    assert old.exists()
