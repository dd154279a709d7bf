"""Starting the language server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.cli import OK, UsageError

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves. Raises UsageError where the server's own requirements are missing."""
    try:
        from pallas_lint.server.app import create
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise UsageError("the server needs pygls: pip install 'pallas-lint[server]'") from error
    server = create()
    if options.tcp:
        server.start_tcp(*options.tcp)
    else:
        server.start_io()
    return OK
