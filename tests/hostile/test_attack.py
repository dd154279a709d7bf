"""The runner of the attacks: all three ways in work for the harmless, and its limits hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path


def test_a_harmless_folder_is_linted_by_all_three(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "k.py").write_text(attack.KERNEL)
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        wire.open((folder / "k.py").as_uri(), attack.KERNEL)
        assert "PAL301" in wire.codes((folder / "k.py").as_uri())
        assert wire.end() == 0
    linted = attack.run(".", cwd=folder)
    assert linted.status == 1 and linted.calm and "PAL301" in linted.out
    fixed = attack.hook("pallas-lint-fix", "k.py", cwd=folder)
    assert fixed.status == 0 and fixed.calm
    assert (folder / "k.py").read_text() == attack.FIXED


def test_memory_is_limited(tmp_path: Path) -> None:
    ran = attack.run("--version", cwd=tmp_path, home=tmp_path, memory=1 << 20)
    assert not ran.calm
