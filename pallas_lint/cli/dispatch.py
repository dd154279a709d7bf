"""Command dispatch and exit status."""

from __future__ import annotations

import os
from importlib import import_module

from pallas_lint.cli import terminal
from pallas_lint.cli.exit import INTERRUPTED, OK
from pallas_lint.config.flags import HelpRequested, UsageError


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit status."""
    terminal.prepare()
    try:
        status = _dispatch(arguments)
        return terminal.finish(status)
    except UsageError as error:
        return terminal.finish(terminal.fail(str(error)))
    except HelpRequested as request:
        terminal.write([request.text])
        return terminal.finish(OK)
    except KeyboardInterrupt:
        terminal.print_message("interrupted")
        return terminal.finish(INTERRUPTED)
    except BrokenPipeError:
        terminal.abandon()
        return OK
    except Exception as error:
        if isinstance(error, OSError) and _is_current_folder_gone():
            return terminal.finish(terminal.fail("the current folder does not exist any more"))
        # A bug of ours: one line, and the traceback with --verbose
        return terminal.finish(terminal.crash(error, verbose=bool({"-v", "--verbose"} & set(arguments))))


def _is_current_folder_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        return True
    return False


def _dispatch(arguments: list[str]) -> int:
    from pallas_lint.cli import parser

    arguments = parser.for_hook(arguments)
    command = parser.command_in(arguments)
    # Options before the command's own module: --help must not wait for its imports.
    if command is None:
        options = parser.parse_lint(arguments)
        if options.watch:
            from pallas_lint.cli import watch

            return watch.run(options)
        from pallas_lint.cli import lint

        return lint.run(options)
    name, rest = arguments[command], [*arguments[:command], *arguments[command + 1 :]]
    options = getattr(parser, f"parse_{name}")(rest)
    status: int = import_module(f"pallas_lint.cli.{name}").run(options)
    return status
