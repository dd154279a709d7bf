"""`pallas-lint skill`: the skill file for coding agents; `skills/pallas-lint/` has a copy, for skill managers."""

from __future__ import annotations

from pathlib import Path

from pallas_lint.cli import terminal
from pallas_lint.cli.exit import OK


def run() -> int:
    """Print it."""
    terminal.write([Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8")])
    return OK
