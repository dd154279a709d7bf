"""The flags of linting: those of the command line, and those that an editor's `args` may have."""

from __future__ import annotations

import argparse
import os
from functools import cache
from typing import NoReturn

from pallas_lint import __version__

HOOK = "--hook"
FORMATS = ("full", "concise", "agent", "json", "sarif", "github", "gitlab", "junit")
SEVERITIES = ("error", "warning", "info")
_DESCRIPTION = "Linter for JAX Pallas kernels: TPU Mosaic, GPU Triton and Mosaic GPU."


class UsageError(Exception):
    """The command line is not valid; the message is one line with the reason."""


class HelpRequested(Exception):
    """The command line requests a text, which is to be printed instead of doing anything."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Parser(argparse.ArgumentParser):
    """Raises UsageError with one line, or HelpRequested, where argparse would print by itself and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)

    def print_help(self, file: object = None) -> NoReturn:
        raise HelpRequested(self.format_help())


class _Version(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        raise HelpRequested(f"pallas-lint {__version__}\n")


def parse_lint(arguments: list[str], epilog: str | None = None) -> argparse.Namespace:
    """The options of linting; what stands behind `--` is never one. Raises UsageError."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = parse(lint_parser(epilog), ours)
    options.paths += arguments[len(ours) + 1 :]
    return options


def parse(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """The parsed arguments; flags may be between others. Raises UsageError."""
    options, rest = parser.parse_known_intermixed_args(arguments)
    for word in rest:
        if word != "--":
            raise UsageError(f"unknown option {word}{_nearest(word, parser)}")
    return options


def _nearest(word: str, parser: argparse.ArgumentParser) -> str:
    import difflib

    known = [option for action in parser._actions for option in action.option_strings]
    near = difflib.get_close_matches(word.partition("=")[0], known, n=1)
    return f", did you mean {near[0]}?" if near else " (--help lists them)"


@cache  # the command line is looked through before it is parsed
def lint_parser(epilog: str | None) -> argparse.ArgumentParser:
    """The flags of linting; `epilog` ends what `--help` prints."""
    parser = Parser(
        "pallas-lint",
        usage="pallas-lint [OPTIONS] [PATH ...]",
        description=_DESCRIPTION,
        epilog=epilog,
        formatter_class=formatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help='files and folders (default: .); "-" is standard input'
    )
    add_settings(parser)
    fixing = parser.add_argument_group("fixing")
    fixing.add_argument("--fix", action="store_true", help="apply safe fixes")
    fixing.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also those a person must look at"
    )
    fixing.add_argument("--diff", action="store_true", help="show what --fix would change, write nothing")
    output = parser.add_argument_group("output")
    output.add_argument("--output-format", type=output_format, metavar="F", help=", ".join(FORMATS))
    output.add_argument("--output-file", metavar="FILE", help="write the report there instead of printing it")
    output.add_argument(
        "--report",
        action="append",
        default=[],
        type=report_file,
        metavar="F=FILE",
        help="also write the findings there in this format; repeatable",
    )
    output.add_argument("--statistics", action="store_true", help="count findings by rule")
    output.add_argument(
        "--show-kernels", action="store_true", help="print a summary of each launch instead of findings"
    )
    output.add_argument("--show-files", action="store_true", help="print which files would be linted, and lint none")
    output.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found (errors are still 2)")
    output.add_argument("-q", "--quiet", action="store_true", help="findings only")
    output.add_argument("-v", "--verbose", action="store_true", help="list what was read, and show tracebacks")
    add_colour(output)
    adopting = parser.add_argument_group("adopting")
    adopting.add_argument("--baseline", metavar="FILE", help="report only findings that are not in it")
    adopting.add_argument(
        "--write-baseline", action="store_true", help="write all findings into the baseline, report none"
    )
    adopting.add_argument(
        "--add-suppressions", action="store_true", help="write a comment behind each finding at or above --fail-on"
    )
    running = parser.add_argument_group("running")
    running.add_argument(
        "--probe", action="store_true", help="also probe functions with a probe comment; this runs their code"
    )
    running.add_argument(
        "--exclude",
        action="append",
        type=_words,
        default=[],
        metavar="P,…",
        help="leave out files and folders, as in .gitignore",
    )
    running.add_argument(
        "--force-exclude", action="store_true", help="leave out excluded files even where they are named"
    )
    running.add_argument(HOOK, action="store_true", help="for hooks, last before files: a path is not an option")
    running.add_argument("--watch", action="store_true", help="lint again whenever a file changes")
    running.add_argument("--jobs", type=_jobs, metavar="N", help="processes (default: as many as pay)")
    running.add_argument("--no-cache", action="store_true", help="neither read nor write cached results")
    running.add_argument(
        "--cache-dir", metavar="DIR", help="keep cached results there (default: the user's own folder)"
    )
    running.add_argument("--stdin-filename", metavar="FILE", help='the name of what "-" reads')
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="show program's version number and exit")
    return parser


def formatter(prog: str) -> argparse.HelpFormatter:
    """A formatter with a given width: argparse would import shutil for it, which costs more than parsing."""
    columns = os.environ.get("COLUMNS", "")
    try:
        width = max(int(columns), 40) if columns.isdecimal() else os.get_terminal_size().columns
    except (OSError, ValueError):
        width = 100
    return argparse.RawDescriptionHelpFormatter(prog, width=min(width, 110) - 2)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the flags that override settings."""
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="T",
        help="tpu[:v5e], triton[:rocm], mosaic-gpu[:sm90]; repeatable (default: each kernel's own)",
    )
    group.add_argument("--jax-version", metavar="V", help="auto, a version (0.10.2) or a range (>=0.8,<0.11)")
    group.add_argument("--python", metavar="FILE", help="interpreter or environment whose jax counts; it is not run")
    for name, text in (
        ("select", "rules to use"),
        ("extend-select", "rules to add"),
        ("ignore", "rules to leave out"),
    ):
        group.add_argument(
            f"--{name}", action="append", type=_words, metavar="C,…", help=f"{text}: codes, prefixes, names"
        )
    group.add_argument(
        "--preview",
        action=argparse.BooleanOptionalAction,
        help="also use rules that may still change or go",
    )
    group.add_argument("--fail-on", choices=SEVERITIES, metavar="S", help="error, warning (default) or info")
    group.add_argument("--config", metavar="FILE", help="read settings from this file only")
    group.add_argument(
        "--shapes", metavar="FILE", help="file of recorded calls (default: the project's, if it has one)"
    )
    group.add_argument(
        "--no-shapes", action="store_const", const="", dest="shapes", help="leave recorded calls out of account"
    )
    group.add_argument("--isolated", action="store_true", help="read no settings and look at no environment")


def add_colour(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="auto, always or never",
    )


def output_format(text: str) -> str:
    if text not in FORMATS:
        raise argparse.ArgumentTypeError(f"unknown format '{text}': one of {', '.join(FORMATS)}")
    return text


def report_file(text: str) -> tuple[str, str]:
    """Format and file of `F=FILE`. Raises ArgumentTypeError."""
    name, has_value, file = text.partition("=")
    if not has_value or not file:
        raise argparse.ArgumentTypeError(f"'{text}' is not a format and file, such as sarif=findings.sarif")
    return output_format(name), file


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of processes")
    return int(text)
