"""Command dispatch and exit status."""

from __future__ import annotations

import os

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
    rest = [word for index, word in enumerate(arguments) if index != command]
    match arguments[command]:
        case "rule":
            options = parser.parse_rule(rest)
            from pallas_lint.cli import rule

            return rule.run(options)
        case "config":
            options = parser.parse_config(rest)
            from pallas_lint.cli import config

            return config.run(options)
        case "probe":
            options = parser.parse_probe(rest)
            from pallas_lint.cli import probe

            return probe.run(options)
        case "server":
            options = parser.parse_server(rest)
            from pallas_lint.cli import server

            return server.run(options)
        case "completion":
            options = parser.parse_completion(rest)
            from pallas_lint.cli import completion

            return completion.run(options)
        case "clean":
            options = parser.parse_clean(rest)
            from pallas_lint.cli import clean

            return clean.run(options)
        case "support":
            options = parser.parse_support(rest)
            from pallas_lint.cli import support

            return support.run(
                options.query,
                output_format=options.output_format,
                target=options.target,
                jax_version=options.jax_version,
            )
        case "facts":
            options = parser.parse_facts(rest)
            from pallas_lint.cli import facts

            return facts.run(options)
        case "advisories":
            options = parser.parse_advisories(rest)
            from pallas_lint.cli import advisories

            return advisories.run(options)
        case "skill":
            parser.parse_skill(rest)
            from pallas_lint.cli import skill

            return skill.run()
        case "mcp":
            options = parser.parse_mcp(rest)
            from pallas_lint.cli import mcp

            return mcp.run(options)
    raise UsageError(f"the command `{arguments[command]}` is not available in this version")
