"""Files that are none to be read, wherever something is read: the rest of the folder is linted all the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = ("pallas-lint.toml", "pyproject.toml")  # without them a folder cannot be judged
REPORTED = ("uv.lock", "poetry.lock", "requirements.txt", "setup.cfg", ".gitignore")  # without them it can
SILENT = (".venv/pyvenv.cfg",)
ENDLESS = "/dev/zero"


def place(name: str) -> str:
    return f"with-{name.strip('.').replace('/', '-')}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each file that is read beside the code, with a device or a pipe in its place."""
    top = tmp_path_factory.mktemp("read") / "project"
    for number, name in enumerate((*SETTINGS, *REPORTED, *SILENT)):
        file = top / place(name) / name
        file.parent.mkdir(parents=True)
        (top / place(name) / "k.py").write_text(attack.KERNEL)
        if number % 2:
            os.mkfifo(file)
        else:
            file.symlink_to(ENDLESS)
    large = top / "large"
    large.mkdir()
    (large / "k.py").write_text("import huge, pipe, zero\n" + attack.KERNEL)
    os.mkfifo(large / "pipe.py")
    (large / "zero.py").symlink_to(ENDLESS)
    for name in ("huge.py", "requirements.txt"):
        with (large / name).open("wb") as stream:
            stream.write(b"import pallas\n")
            stream.truncate(3 << 30)
    many = top / "many"  # requirements, in one line and in many
    many.mkdir()
    (many / "k.py").write_text(attack.KERNEL)
    bounds = [f">=0.4.{number}" for number in range(40_000)]
    (many / "requirements.txt").write_text(f"jax{','.join(bounds)}\n" + "".join(f"jax{each}\n" for each in bounds))
    known = top / "known"
    known.mkdir()
    (known / "pallas-lint.toml").write_text('baseline = "known.json"\n')
    (known / "known.json").symlink_to(ENDLESS)
    (known / "k.py").write_text(attack.KERNEL)
    return top


def test_the_command_line(folder: Path) -> None:
    ran = attack.run("--output-format", "concise", ".", cwd=folder)
    assert ran.calm and ran.status == 2
    for name in SETTINGS:
        assert f"{place(name)}/{name}: error: cannot read the configuration: it is not a regular file" in ran.err
        assert f"{place(name)}/k.py" not in ran.out
    for name in REPORTED:
        assert f"{place(name)}/{name}: error: cannot read the file: it is not a regular file" in ran.err
    assert "large/requirements.txt: error: cannot read the file: it is larger than 64 MiB" in ran.err
    assert "large/huge.py: error: cannot read the file: it is larger than 64 MiB" in ran.err
    assert "known/known.json: error: cannot read the baseline: it is not a regular file" in ran.err
    for folder_name in (*map(place, (*REPORTED, *SILENT)), "large", "known", "many"):
        assert f"{folder_name}/k.py:" in ran.out, folder_name


def test_the_hook(folder: Path) -> None:
    names = [str(file.relative_to(folder)) for file in sorted(folder.rglob("k.py"))]
    ran = attack.hook("pallas-lint", *names, "large/pipe.py", cwd=folder)
    assert ran.calm and ran.status == 2
    assert all(f"{place(name)}/k.py:" in ran.out for name in REPORTED)
    assert "large/pipe.py: error: neither a file nor a folder" in ran.err


def test_the_server(folder: Path) -> None:
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        for file in sorted(folder.rglob("k.py")):
            wire.open(file.as_uri(), file.read_text())
            found = wire.codes(file.as_uri())
            assert ("PAL301" in found) is (file.parent.name not in map(place, SETTINGS)), file
        wire.until(lambda message: "uv.lock" in message.get("params", {}).get("message", ""))
        assert wire.end() == 0
