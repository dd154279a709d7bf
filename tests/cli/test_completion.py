"""Completion scripts: bash runs its own; the others are read by their shells where CI has them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocation import Ran

    Lint = Callable[..., Ran]


def completed(script: str, *words: str) -> set[str]:
    """What bash offers for the last of `words`."""
    quoted = " ".join(f"'{word}'" for word in ("pallas-lint", *words))
    program = (
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _pallas_lint\n" + 'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return set(ran.stdout.split())


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("ru",), {"rule"}),
        (("--output-f",), {"--output-format"}),
        (("--output-format", "s"), {"sarif"}),
        (("--fail-on", ""), {"error", "warning", "info"}),
        (("--target", "mos"), {"mosaic-gpu", "mosaic-gpu:sm90", "mosaic-gpu:sm100"}),
        (("rule", "PAL30"), {"PAL301", "PAL302"}),
        (("rule", "--a"), {"--all"}),
        (("probe", "--stage", "co"), {"compile"}),
        (("-q", "config", "--sch"), {"--schema"}),
        (("completion", "f"), {"fish"}),
        (("--select", "index-map-e"), {"index-map-element-offset"}),
        (("ker",), {"kernel.py"}),
        (("--config", "ker"), {"kernel.py"}),
    ],
)
def test_bash(lint: Lint, folder: Path, words: tuple[str, ...], some: set[str]) -> None:
    (folder / "kernel.py").touch()
    assert some <= completed(lint("completion", "bash").out, *words)


@pytest.mark.parametrize("words", [("rule", "--fix"), ("--jobs", "2x"), ("server", "--sel")])
def test_bash_offers_nothing(lint: Lint, folder: Path, words: tuple[str, ...]) -> None:
    assert completed(lint("completion", "bash").out, *words) == set()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_of_every_command_is_offered(lint: Lint, shell: str) -> None:
    from pallas_lint.cli.parser import parsers

    script = lint("completion", shell).out
    for parser in parsers().values():
        for action in parser._actions:
            for spelling in action.option_strings:
                dashes = {"-l ": spelling[2:], "-s ": spelling[1:]}["-l " if spelling.startswith("--") else "-s "]
                assert (dashes if shell == "fish" else spelling) in script


@pytest.mark.slow
@pytest.mark.parametrize(("shell", "command"), [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_the_shell_reads_it(lint: Lint, folder: Path, shell: str, command: list[str]) -> None:
    (folder / "script").write_text(lint("completion", shell).out)
    subprocess.run([*command, "script"], check=True)
