"""Detection of a coding agent as reader of the output, by the environment that agents set."""

from __future__ import annotations

import os
import sys

# Set by the agents themselves; AI_AGENT is the name that several agreed on.
VARIABLES = (
    "AI_AGENT",
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)
SWITCH = "PALLAS_LINT_AGENT"  # "0" turns it off, anything else on


def chosen(requested: str | None, otherwise: str = "full") -> str:
    """The requested format, else "agent" where an agent reads standard output, else `otherwise`."""
    if requested is not None:
        return requested
    return "agent" if is_reading() else otherwise


def is_reading() -> bool:
    """Whether standard output is read by an agent: no terminal, and one of `VARIABLES` is set and not empty."""
    if sys.stdout.isatty():
        return False
    switch = os.environ.get(SWITCH)
    if switch:
        return switch != "0"
    return any(os.environ.get(name) for name in VARIABLES)
