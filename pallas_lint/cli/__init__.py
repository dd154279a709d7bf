"""The command line: options in, exit status out.

Everything heavy is imported by the command that needs it.
"""

from __future__ import annotations

import sys

from pallas_lint import __version__


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own) and return the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        from pallas_lint.cli import terminal

        terminal.prepare()
        terminal.write([f"pallas-lint {__version__}\n"])
        return terminal.finish(0)
    from pallas_lint.start import skip_gc_at_exit, tune_gc

    tune_gc()
    skip_gc_at_exit()
    from pallas_lint.cli import dispatch

    return dispatch.run(arguments)
