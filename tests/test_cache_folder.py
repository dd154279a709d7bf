"""The cache folder: where it is, which one is ours, and what is believed and removed."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path

import pytest

from pallas_lint.run.cache_folder import CacheFolder, ForeignFolder, byte_code_folder, cache_folder, modified

NAME, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for caches, still to be made."""
    place = tmp_path / "caches"
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


def made(project: Path, named: Path | None = None) -> CacheFolder:
    """A cache that can be had."""
    cache = cache_folder(project, named)
    assert cache is not None
    return cache


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_where_it_is(project: Path, caches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert made(project).path == home / ".cache" / "pallas-lint" / "results"
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    cache, place = made(project), caches / "pallas-lint"
    assert cache.path == place / "results" and not caches.exists(), "nothing is made before it is needed"
    cache.write("lint", NAME, b"x")
    assert {stat.S_IMODE(each.stat().st_mode) for each in (caches, place, cache.path)} == {0o700}
    assert stat.S_IMODE((place / "key").stat().st_mode) == 0o600
    assert cache_folder(cache.path) is not None, "a folder below it is no project around it"
    place.chmod(0o777)
    assert cache_folder(project) is None, "others can write there"
    place.chmod(0o700)
    (caches / ".git").mkdir()
    assert cache_folder(caches) is None, "it lies in the project"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "linked"))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "pallas-lint").symlink_to(place, target_is_directory=True)
    assert cache_folder(project) is None, "a link"


@pytest.mark.usefixtures("caches")
def test_entries(project: Path) -> None:
    cache = made(project)
    assert cache.read("lint", NAME) is None and modified("lint", NAME) == 0
    cache.write("lint", NAME, b"first")
    cache.write("lint", NAME, b"a\nb")
    for each in (cache, made(project), pickle.loads(pickle.dumps(cache))):
        assert each.read("lint", NAME) == b"a\nb" and modified("lint", NAME)
        assert each.read("lint", OTHER) is None and each.read("probe", NAME) is None
    assert cache.clear() == 1 and cache.clear() == 0 and cache.read("lint", NAME) is None


@pytest.mark.usefixtures("caches")
def test_an_entry_that_is_not_as_it_was_written(project: Path) -> None:
    cache = made(project)
    cache.write("lint", NAME, b'{"findings": []}')
    entry = cache.path / "lint" / NAME[:2] / NAME[2:]
    whole = entry.read_bytes()
    for at in range(len(whole)):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.read("lint", NAME) is None
        entry.write_bytes(whole[:at])
        assert cache.read("lint", NAME) is None
    moved = cache.path / "lint" / OTHER[:2] / OTHER[2:]
    moved.parent.mkdir()
    moved.write_bytes(whole)
    assert cache.read("lint", OTHER) is None
    entry.unlink()
    entry.symlink_to(moved)
    assert cache.read("lint", NAME) is None


def test_a_folder_that_is_not_ours(project: Path, caches: Path, tmp_path: Path) -> None:
    ours = made(project, tmp_path / "named")
    ours.write("lint", NAME, b"x")
    taken = project / "taken"
    taken.mkdir()
    assert made(project, taken).path == taken, "an empty one can be had"
    (taken / "CACHEDIR.TAG").write_bytes((ours.path / "CACHEDIR.TAG").read_bytes().replace(b"format 1", b"format 2"))
    linked = project / "linked"
    linked.symlink_to(ours.path)
    for place in (taken, linked, Path(__file__)):
        with pytest.raises(ForeignFolder, match=str(place)):
            cache_folder(project, place)
    (caches / "pallas-lint" / "key").write_bytes(b"k" * 32)
    with pytest.raises(ForeignFolder, match="not made by pallas-lint for this user"):
        cache_folder(project, ours.path)
    assert (ours.path / "lint").exists()


@pytest.mark.usefixtures("caches")
def test_links_lead_nowhere(project: Path, tmp_path: Path) -> None:
    """Whatever is put into a cache folder that is ours."""
    outside = tmp_path / "outside"
    outside.mkdir()
    precious = outside / NAME[2:]
    precious.write_text("precious")
    os.utime(precious, (0, 0))
    cache = made(project)
    cache.write("lint", OTHER, b"x")
    for link in (cache.path / "calls", cache.path / "probe", cache.path / "lint" / NAME[:2]):
        link.symlink_to(outside)
    (cache.path / "lint" / OTHER[:2] / NAME[2:]).symlink_to(precious)
    cache = made(project)
    cache.remove_old()
    for kind in ("lint", "calls", "probe"):
        cache.write(kind, NAME, b"planted")
        assert cache.read(kind, NAME) is None
    assert cache.clear() == 1
    assert [each.name for each in outside.iterdir()] == [precious.name] and precious.read_text() == "precious"


def test_byte_code_lies_beside_the_key_and_goes_with_the_rest(project: Path, caches: Path, tmp_path: Path) -> None:
    folder = byte_code_folder(project)
    assert folder == caches / "pallas-lint" / "byte-code"
    assert {stat.S_IMODE(each.stat().st_mode) for each in (caches, folder.parent, folder)} == {0o700}
    compiled = folder / "lib" / "jax" / "core.pyc"
    compiled.parent.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious.pyc").write_bytes(b"")
    (folder / "link").symlink_to(tmp_path / "outside")
    compiled.write_bytes(b"")
    (folder / "lib" / "other").write_bytes(b"")
    assert made(project).clear() == 1
    assert not compiled.exists() and (folder / "lib" / "other").exists()
    assert (tmp_path / "outside" / "precious.pyc").exists()
    folder.parent.chmod(0o777)
    assert byte_code_folder(project) is None, "others can write there"


@pytest.mark.usefixtures("caches")
def test_old_entries_are_removed_once_a_day(project: Path) -> None:
    cache = made(project)

    def entry(name: str, days: float) -> Path:
        cache.write("lint", name, b"x")
        file = cache.path / "lint" / name[:2] / name[2:]
        os.utime(file, (file.stat().st_mtime - days * 86_400,) * 2)
        return file

    old, new = entry(NAME, 100), entry(OTHER, 10)
    cache.remove_old()
    assert not old.exists() and new.exists()
    old = entry(NAME, 100)
    cache.remove_old()
    assert old.exists()
