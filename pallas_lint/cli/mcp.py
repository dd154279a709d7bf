"""`pallas-lint mcp`: tools for coding agents, by the Model Context Protocol on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.cli.exit import OK
from pallas_lint.config.flags import UsageError

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Serve until standard input ends. Raises UsageError where the extra is not installed."""
    try:
        from pallas_lint.cli import mcp_tools
    except ImportError as error:
        raise UsageError('mcp: needs an extra, pip install "pallas-lint[mcp]"') from error
    mcp_tools.server(allow_probe=options.allow_probe).run("stdio")
    return OK
