"""Settings that name files outside of the project: an error names the file, and quotes nothing that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "s3cr3t"
TABLE = "[tool.pallas-lint]\n"
# Name of the file outside, its text, and what is reported of it.
OUTSIDE = (
    ("target.toml", f'target = "{SECRET}"', "target: this setting cannot have that value"),
    ("version.toml", f'jax-version = "{SECRET}"', "jax-version: this setting cannot have that value"),
    ("key.toml", f'{SECRET} = "x"', "unknown key"),
    ("table.toml", f'[database]\npassword = "{SECRET}"', "unknown key"),
    ("pattern.toml", f'[per-file-ignores]\n"{SECRET}" = ["{SECRET}"]', "per-file-ignores: this setting cannot have"),
    ("assume.toml", f'[assume]\n"{SECRET} x" = 1', "assume: this setting cannot have that value"),
    ("rules.toml", f"[rules.{SECRET}]\na = 1", "rules: this setting cannot have that value"),
    ("probe.toml", f'[probe]\n{SECRET} = "a"', "probe: this setting cannot have that value"),
    ("severity.toml", f'[severity]\nPAL101 = "{SECRET}"', "severity: this setting cannot have that value"),
    ("broken.toml", f'x = "{SECRET}', "invalid TOML"),
    ("twice.toml", f"{SECRET} = 1\n{SECRET} = 2", "invalid TOML"),
    ("character.toml", "ab\u0107d", "invalid TOML"),
    ("pyproject.toml", f'{TABLE}ignore = ["{SECRET}"]', "ignore: this setting cannot have that value"),
    ("missing.toml", f'extend = "{SECRET}"', "extend: this setting cannot have that value"),
    ("user.toml", f'extend = "~{SECRET}/x"', "extend: this setting cannot have that value"),
    ("chain.toml", f'extend = "{SECRET}.toml"', "extend: "),
)
SHAPES = (
    f'version = "{SECRET}"',
    f"{SECRET} = 1",
    f'version = 1\n["{SECRET}"]\na = 1\n',
    f'version = 1\n["k.py::run"]\n{SECRET} = 1\n',
    f'version = 1\n["k.py::run"]\ncalls = [{{ args = {{ x = "{SECRET}" }} }}]\n',
    f'version = 1\n["{SECRET}.py::run"]\ncalls = []\n',
    f'version = "{SECRET}',
)
BASELINES = (f'{{"version": "{SECRET}"}}', f'"{SECRET}', f'{{"{SECRET}": 1}}', '{"version": 1, "findings": "' + SECRET)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose folders have settings that lead out of it, by name and by link."""
    top = tmp_path_factory.mktemp("outside") / "project"
    home = top.parent / "home"
    home.mkdir()
    (top / ".git").mkdir(parents=True)
    (home / f"{SECRET}.toml").write_text(f'target = "{SECRET}"')
    for name, text, _ in OUTSIDE:
        (home / name).write_text(text)
        for place in (f"by-{name}", f"link-{name}"):
            (top / place).mkdir()
            (top / place / "k.py").write_text(attack.KERNEL)
        (top / f"by-{name}" / "pallas-lint.toml").write_text(f'extend = "../../home/{name}"\n')
        own = "pyproject.toml" if name == "pyproject.toml" else "pallas-lint.toml"
        (top / f"link-{name}" / own).symlink_to(home / name)
    for kind, texts in (("shapes", SHAPES), ("baseline", BASELINES)):
        for number, text in enumerate(texts):
            file = home / f"{kind}-{number}"
            file.write_text(text)
            place = top / f"{kind}-{number}"
            place.mkdir()
            (place / "k.py").write_text(attack.KERNEL)
            (place / "pallas-lint.toml").write_text(f'{kind} = "../../home/{file.name}"\n')
    for number, text in enumerate(SHAPES):
        (top / f"found-{number}").mkdir()
        (top / f"found-{number}" / "k.py").write_text(attack.KERNEL)
        (home / f"found-{number}.toml").write_text(text)
        (top / f"found-{number}" / "pallas-lint-shapes.toml").symlink_to(home / f"found-{number}.toml")
    (top / "z.py").write_text(attack.KERNEL)
    return top


def check(text: str) -> None:
    """Whether errors of all files are reported, and none with what the file holds."""
    for name, _, message in OUTSIDE:
        lines = [line for line in text.splitlines() if name in line.partition(" error: ")[0]]
        assert len(lines) == 2 and all(message in line for line in lines), (name, lines)
    assert SECRET not in text and "\u0107" not in text


def test_the_command_line(folder: Path) -> None:
    for output_format in ("concise", "json"):
        ran = attack.run("--output-format", output_format, "-v", ".", cwd=folder)
        assert ran.calm and ran.status == 2
        assert "z.py" in ran.out and SECRET not in ran.out
        check(ran.err)
        assert sum("it leads out of the project" in line for line in ran.err.splitlines()) == 2 * len(SHAPES)
        assert sum("baseline" in line.partition(" error: ")[2] for line in ran.err.splitlines()) == len(BASELINES)


def test_the_server(folder: Path) -> None:
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        for file in sorted(folder.rglob("k.py")):
            wire.open(file.as_uri(), file.read_text())
            assert SECRET not in str(wire.diagnostics(file.as_uri()))
        wire.open((folder / "z.py").as_uri(), attack.KERNEL)
        assert "PAL301" in wire.codes((folder / "z.py").as_uri())
        # What stands at the file itself is shown to its reader only.
        phrase = [each for each in wire.notifications if each["method"] != "textDocument/publishDiagnostics"]
        assert SECRET not in str(phrase)
        assert SECRET not in wire.errors.decode()
        assert wire.end() == 0


def test_files_of_the_project_and_of_the_user_are_quoted(folder: Path) -> None:
    (folder / "inside.toml").write_text(f'target = "{SECRET}"\n')
    (folder / "sub").mkdir()
    (folder / "sub" / "pallas-lint.toml").write_text('extend = "../inside.toml"\n')
    (folder / "sub" / "k.py").write_text(attack.KERNEL)
    ran = attack.run("sub", cwd=folder)
    assert ran.status == 2 and f"inside.toml:1: error: target: unknown target '{SECRET}'" in ran.err
    ran = attack.run("--config", "../home/target.toml", "z.py", cwd=folder)
    assert ran.status == 2 and f"unknown target '{SECRET}'" in ran.err
    ran = attack.run("--shapes", "../home/shapes-2", "z.py", cwd=folder)
    assert ran.status == 2 and f'"{SECRET}" names no function' in ran.err
