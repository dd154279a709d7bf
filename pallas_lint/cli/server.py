"""Starting the language server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.cli import terminal
from pallas_lint.config.flags import UsageError

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves. Raises UsageError where the server lacks what it needs."""
    if options.tcp is None and terminal.is_closed("stdin", "stdout"):
        raise UsageError("the server talks over standard input and output, and one of them is closed (or use --tcp)")
    try:
        from pallas_lint.server import serving
        from pallas_lint.server.registration import create
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise UsageError("the server needs pygls: pip install 'pallas-lint[server]'") from error
    try:
        serving.keep_log(options.log_level, options.log_file)
    except OSError as error:
        raise UsageError(f"--log-file: {options.log_file}: {error.strerror or error}") from error
    server = create(allow_probe=options.allow_probe, allow_run=options.allow_run, trusted=not options.untrusted)
    if options.tcp is None:
        serving.leave(serving.on_standard_streams(server))
    try:
        status = serving.on_port(server, *options.tcp)
    except OSError as error:
        raise UsageError(f"--tcp: {error.strerror or error}") from error
    serving.leave(status)
