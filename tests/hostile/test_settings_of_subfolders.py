"""Settings files that cannot be used, each in a folder of its own: an error names each, and the rest is linted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

LONG = "a" * 5000
NUL = r"a\u0000b"
# Name of a folder, its pallas-lint.toml, the line at fault (None: unknown), and what is wrong.
BROKEN = (
    ("user", 'extend = "~nobodyxyz/a"', 1, "extend: there is no user of the name in ~nobodyxyz/a"),
    ("nul", f'preview = true\nextend = "{NUL}"', 2, "extend: no path has a NUL character in it"),
    ("long", f'extend = "{LONG}"', 1, "extend: it is longer than a path can be"),
    ("far", f'extend = "{"a/" * 3000}b"', 1, "extend: it is longer than a path can be"),
    ("gone", 'extend = "a\\nb"', 1, "extend: there is no file a"),
    ("circle", 'extend = "circle.toml"', 1, "extend: there is no file circle.toml"),
    ("extends-folder", 'extend = "inner"', 1, "extend: there is no file inner"),
    ("shapes", r'shapes = "\u0000"', 1, "shapes: no path has a NUL character in it"),
    ("shapes-long", f'shapes = "{LONG}"', 1, "shapes: it is longer than a path can be"),
    ("baseline", f'baseline = "{NUL}"', 1, "baseline: no path has a NUL character in it"),
    ("cache", f'cache-dir = "{NUL}"', 1, "cache-dir: no path has a NUL character in it"),
    ("cache-long", f'cache-dir = "{LONG}"', 1, "cache-dir: it is longer than a path can be"),
    ("python", f'[probe]\npython = "{NUL}"', 2, "probe.python: no path has a NUL character in it"),
    ("version", f'jax-version = "{"1" * 200_000}"', 1, "jax-version: 200,000 characters are too many: at most 1,000"),
    ("range", f'jax-version = ">={"1" * 900}"', 1, "jax-version: no known jax version is in"),
    ("digits", "[assume]\nn = " + "1" * 5000, None, "a number of too many digits"),
    ("hex", f"[assume]\nn = 0x{'f' * 20_000}", 2, "assume.n: a number of more than 64 bits"),
    ("memory", f"[probe]\nmemory-limit = 0x{'f' * 20_000}", 2, "probe.memory-limit: a number of more than 64 bits"),
    ("option", f"[rules.PAL101]\na = 0x{'f' * 20_000}", 1, "rules: a number of more than 64 bits"),
    ("deep", f"[rules.PAL101{'.a' * 40}]\n", 1, "rules: nested too deeply"),
    ("key", f"[rules.PAL101{'.a' * 400}]\n", 1, "invalid TOML: a key has more than 64 parts"),
    ("nested", f"exclude = {'[' * 5000}", None, "nested too deeply"),
    ("kind", "extend = 1", 1, "extend: expected a string"),
)
# What is wrong with a file that is no TOML at all, or none that can be read.
UNREADABLE = {
    "bytes": b"\xff\xfe",
    "bom": b'\xef\xbb\xbfselect = ["PAL1"]',
    "control": b"select = \0",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("settings") / "project"
    texts = {name: text.encode() for name, text, _, _ in BROKEN} | UNREADABLE
    for name in (*texts, "folder", "loop", "inner-bad/inner", "fine"):
        place = top / name
        place.mkdir(parents=True)
        (place / "k.py").write_text(attack.KERNEL)
        if name in texts:
            (place / "pallas-lint.toml").write_bytes(texts[name])
    (top / "folder" / "pallas-lint.toml").mkdir()
    (top / "loop" / "pallas-lint.toml").symlink_to("pallas-lint.toml")
    (top / "circle" / "circle.toml").symlink_to("circle.toml")
    (top / "extends-folder" / "inner").mkdir()
    (top / "inner-bad" / "pallas-lint.toml").write_text('extend = "~nobodyxyz/a"\n')
    (top / "inner-bad" / "inner" / "pallas-lint.toml").write_text("preview = true\n")
    (top / "fine" / "pallas-lint.toml").write_text("preview = true\n")
    (top / ".git").mkdir()
    (top / "z.py").write_text(attack.KERNEL)
    return top


def check(ran: attack.Ran) -> None:
    assert ran.calm and ran.status == 2
    assert [line.partition(":")[0] for line in ran.out.splitlines() if "PAL301" in line] == ["fine/k.py", "z.py"]
    lines = ran.err.splitlines()
    for name, _, line, message in BROKEN:
        place = f"{name}/pallas-lint.toml:{'' if line is None else f'{line}:'} error: "
        assert sum(each.startswith(place) and message in each for each in lines) == 1, (name, ran.err)
    for name in (*UNREADABLE, "folder", "loop", "inner-bad"):
        assert sum(each.startswith(f"{name}/pallas-lint.toml:") for each in lines) == 1, (name, ran.err)
    assert len(lines) == len(BROKEN) + len(UNREADABLE) + 3


def test_the_command_line(folder: Path) -> None:
    check(attack.run("--output-format", "concise", ".", cwd=folder))


def test_the_hook(folder: Path) -> None:
    files = [os.path.relpath(file, folder) for file in sorted(folder.rglob("*.py"))]
    check(attack.hook("pallas-lint", "--output-format", "concise", *files, cwd=folder))


def test_the_server(folder: Path) -> None:
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        for file in sorted(folder.rglob("*.py")):
            wire.open(file.as_uri(), file.read_text())
            found = wire.codes(file.as_uri())
            # A file that is opened counts with the settings nearest to it.
            assert ("PAL301" in found) is (file.parent.name in ("fine", "project")), file
        assert wire.end() == 0
        assert "internal error" not in wire.errors.decode() and "Traceback" not in wire.errors.decode()


# Name of a folder, the file that says which jax it uses, its content, and what is reported of it where something is.
EVIDENCE = (
    ("lock", "uv.lock", f'[[package]]\nname = "jax"\nversion = "{"1" * 200_000}"\n', "than 1000 characters"),
    ("lock-word", "uv.lock", '[[package]]\nname = "jax"\nversion = "zero"\n', "'zero' is not a jax version"),
    ("lock-nul", "uv.lock", '[[package]]\nname = "jax"\nversion = "0.9\0"\n', "is not a jax version"),
    ("lock-two", "uv.lock", '[[package]]\nname = "jax"\nversion = "x"\n[[package]]\nname = "jax"\nversion = "y"\n', ""),
    ("poetry-deep", "poetry.lock", f"[[package]]\nx = {'[' * 5000}\nname = 'jax'\n", None),
    ("pip", "requirements.txt", "jax==nonsense\n", None),
    ("pip-digits", "requirements.txt", f"jax=={'1' * 480}\n", None),
    ("caret", "pyproject.toml", f'[tool.poetry.dependencies]\njax = "^{"1" * 5000}"\n', None),
    ("nested", "pyproject.toml", f"[project]\njax = {'[' * 5000}", None),
    ("digits", "pyproject.toml", f"[project]\njax = {'1' * 5000}", None),
    ("layout", "pyproject.toml", f'[tool.setuptools.package-dir]\n"" = "{LONG}"\nb = "{NUL}"\n', None),
    ("cfg", "setup.cfg", f"[options]\npackage_dir =\n    ={LONG}\ninstall_requires =\n    jax>={'9' * 400}\n", None),
    ("cfg-broken", "setup.cfg", "[options\n x = \0\n", None),
    ("environment", ".venv/pyvenv.cfg", f"home = {LONG}\ninclude-system-site-packages = true\n", None),
    ("environment-nul", ".venv/pyvenv.cfg", "home = a\0b\ninclude-system-site-packages = true\n", None),
    ("installed", ".venv/lib/python3.12/site-packages/jax-0nonsense.dist-info/METADATA", "", "'0nonsense' is not a"),
)  # fmt: skip


def test_files_that_name_the_jax_version(tmp_path: Path) -> None:
    top = tmp_path / "project"
    for name, file, text, _ in EVIDENCE:
        place = top / name / file
        place.parent.mkdir(parents=True)
        place.write_text(text)
        (top / name / "k.py").write_text(attack.KERNEL)
        (top / name / ".git").mkdir()
    ran = attack.run("--output-format", "concise", ".", cwd=top)
    assert ran.calm and ran.status == 2
    found = {line.partition("/")[0] for line in ran.out.splitlines() if "PAL301" in line}
    assert found == {name for name, *_ in EVIDENCE}
    lines = ran.err.splitlines()
    for name, file, _, message in EVIDENCE:
        own = [line for line in lines if line.startswith(f"{name}/")]
        assert len(own) == (message is not None), (name, own)
        shown = f"{name}/{file.partition('/')[0]}"  # of an installed package, its environment
        assert all(line.startswith(f"{shown}: error: ") and (message or "") in line for line in own), own
