"""`pallas-lint skill`: the skill file for coding agents; `skills/pallas-lint/` has a copy, for skill managers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.cli import terminal
from pallas_lint.cli.exit import OK

if TYPE_CHECKING:
    import argparse


def run(_: argparse.Namespace) -> int:
    """Print it."""
    terminal.write([Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8")])
    return OK
