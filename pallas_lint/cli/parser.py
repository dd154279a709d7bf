"""The options of every command."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, NoReturn

from pallas_lint import __version__
from pallas_lint.cli import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

HOOK = "--hook"
FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "junit")
SEVERITIES = ("error", "warning", "info")
PROBE_STAGES = ("trace", "grid", "interpret", "lower", "compile")

_DESCRIPTION = "Linter for JAX Pallas kernels: TPU Mosaic, GPU Triton and Mosaic GPU."
_COMMANDS = """\
commands:
  pallas-lint [PATH ...]     lint files and folders (what happens without a command)
  pallas-lint rule CODE      explain a rule
  pallas-lint support QUERY  say where a function can be used in a kernel
  pallas-lint probe WHAT     trace, run, lower and compile a kernel without its device
  pallas-lint server         the language server, for editors
  pallas-lint config         show the effective settings and where each came from
  pallas-lint completion SH  print the completion script of a shell: bash, zsh or fish

exit status: 0 nothing at or above --fail-on, 1 findings, 2 bad usage, bad settings, unreadable input
"""


class _Parser(argparse.ArgumentParser):
    """Raises UsageError with one line, where argparse would print the usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def command_in(arguments: list[str], commands: tuple[str, ...]) -> int | None:
    """The index of the first positional argument if it is one of `commands`."""
    index = _first_path(arguments)
    return index if index < len(arguments) and arguments[index] in commands else None


def for_hook(arguments: list[str]) -> list[str]:
    """`arguments` with the files that follow `--hook` behind a `--`, written so that none looks like an option.

    A hook's caller puts file names behind the options that a person wrote, with nothing in between: a tracked file
    `--probe` or `server` would be an option or a command. Behind `--hook` a word that begins with a dash and names a
    file is that file, and whatever follows the first file is one too.
    """
    if HOOK not in arguments[: _first_path(arguments)]:
        return arguments
    begin = arguments.index(HOOK) + 1
    words = arguments[begin:]
    end = _first_path(words, os.path.lexists)
    files = words[end + 1 :] if words[end : end + 1] == ["--"] else words[end:]
    return [*arguments[:begin], *words[:end], "--", *(f"./{file}" if file.startswith("-") else file for file in files)]


def _first_path(arguments: list[str], is_file: Callable[[str], bool] = lambda _: False) -> int:
    """The index of the first word that is neither an option of linting nor the value of one; `--` is such a word."""
    takes_value: dict[str, bool] | None = None
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if word in ("-", "--") or not word.startswith("-") or is_file(word):
            break
        if "=" not in word:
            if takes_value is None:
                takes_value = {
                    option: action.nargs != 0 for action in _lint_parser()._actions for option in action.option_strings
                }
            index += takes_value.get(word, False)
        index += 1
    return index


def parse_lint(arguments: list[str]) -> argparse.Namespace:
    """The options of linting; what stands behind `--` is never one. Raises UsageError."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = _parse(_lint_parser(), ours)
    options.paths += arguments[len(ours) + 1 :]
    return options


def parse_config(arguments: list[str]) -> argparse.Namespace:
    """The options of `config`: those of linting that decide settings. Raises UsageError."""
    return _parse(_config_parser(), arguments)


def _config_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "pallas-lint config",
        description="Show the effective settings and where each came from.",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="FOLDER", help="whose settings (default: .)")
    _add_settings(parser)
    parser.add_argument("--output-format", choices=("text", "json"), default="text", metavar="F", help="text or json")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of the settings instead")
    return parser


def parse_rule(arguments: list[str]) -> argparse.Namespace:
    """The options of `rule`. Raises UsageError."""
    options = _parse(_rule_parser(), arguments)
    options.rules = options.paths
    return options


def _rule_parser() -> argparse.ArgumentParser:
    parser = _Parser("pallas-lint rule", description="Explain a rule; without one, list them.", allow_abbrev=False)
    parser.add_argument("paths", nargs="*", metavar="CODE|NAME", help="rule, or the beginning of codes (PAL1)")
    parser.add_argument("--all", action="store_true", help="every rule")
    parser.add_argument(
        "--output-format",
        choices=("text", "json", "markdown"),
        default="text",
        metavar="F",
        help="text, json or markdown",
    )
    _add_colour(parser)
    return parser


def parse_support(arguments: list[str]) -> argparse.Namespace:
    """The options of `support`. Raises UsageError."""
    options = _parse(_support_parser(), arguments)
    if len(options.paths) != 1:
        raise UsageError("support: give one function, name or primitive, such as `jnp.cumsum`")
    options.query = options.paths[0]
    from pallas_lint.config.targets import TargetError, parse_target

    try:
        options.target = [str(parse_target(target)) for target in options.target or ()] or None
    except TargetError as error:
        raise UsageError(f"--target: {error}") from error
    return options


def _support_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "pallas-lint support",
        description="Say where a function, name or primitive can be used in a kernel.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="QUERY", help='"jnp.cumsum", "pl.load", "is_finite"')
    parser.add_argument("--target", action="append", metavar="T", help="these targets only; repeatable")
    parser.add_argument("--jax-version", metavar="V", help="one version or range only")
    parser.add_argument("--output-format", choices=("text", "json"), default="text", metavar="F", help="text or json")
    return parser


def parse_probe(arguments: list[str]) -> argparse.Namespace:
    """The options of `probe`; `command` is what stands after `--`. Raises UsageError."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = _parse(_probe_parser(), ours)
    options.command = arguments[len(ours) + 1 :]
    if options.capture != bool(options.command) or (options.capture and options.paths):
        raise UsageError("probe: write `probe --capture -- COMMAND`")
    if not options.capture and not options.paths:
        raise UsageError("probe: name a function, as in `pallas-lint probe kernels.py::matmul 'f32[512,512]'`")
    from pallas_lint.config.targets import TargetError, parse_target

    try:
        options.target = [str(parse_target(target)) for target in options.target]
    except TargetError as error:
        raise UsageError(f"--target: {error}") from error
    return options


def _probe_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "pallas-lint probe",
        usage="pallas-lint probe [OPTIONS] FILE::FUNCTION [ARGUMENT ...]\n"
        "       pallas-lint probe [OPTIONS] FILE ...\n"
        "       pallas-lint probe [OPTIONS] --capture -- COMMAND ...",
        description="Trace, run, lower and compile kernels without their device, in the project's own environment. "
        "This runs the code that it is given.",
        epilog="arguments: f32[8,128], i32[4]=[3,1,0,2], lists, tuples and dicts of them, bm=128, Python literals",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="WHAT", help="file.py::function and its arguments, or files")
    parser.add_argument("--capture", action="store_true", help="examine every launch that the command after -- makes")
    parser.add_argument(
        "--target", action="append", default=[], metavar="T", help="tpu[:v5e], triton, mosaic-gpu; repeatable"
    )
    parser.add_argument("--all-targets", action="store_true", help="all that can be tried")
    parser.add_argument("--python", metavar="FILE", help="interpreter to run it with (default: the project's)")
    parser.add_argument("--stage", choices=PROBE_STAGES, metavar="S", help=f"last stage: {', '.join(PROBE_STAGES)}")
    parser.add_argument("--reference", metavar="FUNCTION", help="compare results with this function of the same file")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="seconds for each function (120)")
    parser.add_argument("--memory-limit", type=memory_bytes, metavar="N", help="bytes it may take, as in 4G (8G)")
    parser.add_argument("--html", metavar="FILE", help="write a report with pictures")
    parser.add_argument("--output-format", type=_format, default="full", metavar="F", help="full, concise or json")
    parser.add_argument("--fail-on", choices=SEVERITIES, default="warning", metavar="S", help="as in linting")
    parser.add_argument("-q", "--quiet", action="store_true", help="findings only")
    parser.add_argument("-v", "--verbose", action="store_true", help="show tracebacks")
    _add_colour(parser)
    return parser


def parse_server(arguments: list[str]) -> argparse.Namespace:
    """The options of `server`. Raises UsageError."""
    options = _parse(_server_parser(), arguments)
    if options.tcp and options.allow_probe:
        # Whoever can run a program on this machine, or make a browser on it post a form, can connect.
        raise UsageError("--allow-probe: not with --tcp, which is open to everyone on this machine")
    if options.untrusted and options.allow_probe:
        raise UsageError("--allow-probe: not with --untrusted, which says that the project's code must not run")
    return options


def _server_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "pallas-lint server", description="Language server on standard input and output.", allow_abbrev=False
    )
    parser.add_argument("--tcp", type=_address, metavar="HOST:PORT", help="listen there instead (loopback only)")
    parser.add_argument(
        "--allow-probe",
        action="store_true",
        help="let the user probe functions from the editor; this runs the project's code (nothing else allows it)",
    )
    parser.add_argument(
        "--untrusted", action="store_true", help="the workspace is not trusted: show nothing that probes found of it"
    )
    parser.add_argument(
        "--log-level",
        choices=("error", "warning", "info", "debug"),
        default="warning",
        metavar="L",
        help="error, warning (the default), info or debug, which logs every message",
    )
    parser.add_argument("--log-file", metavar="FILE", help="log there instead of standard error")
    return parser


def parse_completion(arguments: list[str]) -> argparse.Namespace:
    """The options of `completion`. Raises UsageError."""
    return _parse(_completion_parser(), arguments)


def _completion_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "pallas-lint completion",
        description="Print a script with which a shell completes commands, options and rules.",
        epilog='bash, zsh: eval "$(pallas-lint completion bash)"    fish: pallas-lint completion fish | source',
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")
    return parser


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command; that of linting under the empty name."""
    return {
        "": _lint_parser(),
        "rule": _rule_parser(),
        "support": _support_parser(),
        "probe": _probe_parser(),
        "server": _server_parser(),
        "config": _config_parser(),
        "completion": _completion_parser(),
    }


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host not in ("localhost", "127.0.0.1", "::1", "[::1]") or not port.isdigit() or not 0 <= int(port) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is no address on this machine: write 127.0.0.1:2087")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> float:
    from pallas_lint.config.options import MOST_SECONDS

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds")
    return value


def memory_bytes(text: str) -> int:
    """Bytes that "4G" or "512MiB" stands for. Raises ArgumentTypeError."""
    from pallas_lint.config.options import LEAST_MEMORY, memory_in

    value = memory_in(text)
    if value < LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"'{text}' is no amount of memory: write 4G or 500M")
    return value


def _parse(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
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


def _lint_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "pallas-lint",
        usage="pallas-lint [OPTIONS] [PATH ...]",
        description=_DESCRIPTION,
        epilog=_COMMANDS,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help='files and folders (default: .); "-" is standard input'
    )
    _add_settings(parser)
    fixing = parser.add_argument_group("fixing")
    fixing.add_argument("--fix", action="store_true", help="apply safe fixes")
    fixing.add_argument(
        "--unsafe-fixes", action="store_true", help="with --fix or --diff: also those a person must look at"
    )
    fixing.add_argument("--diff", action="store_true", help="show what --fix would change, write nothing")
    output = parser.add_argument_group("output")
    output.add_argument("--output-format", type=_format, default="full", metavar="F", help=", ".join(FORMATS))
    output.add_argument("--statistics", action="store_true", help="count findings by rule")
    output.add_argument("-q", "--quiet", action="store_true", help="findings only")
    output.add_argument("-v", "--verbose", action="store_true", help="say what was read, and show tracebacks")
    _add_colour(output)
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
    running.add_argument(HOOK, action="store_true", help="for hooks, last before files: what names a file is no option")
    running.add_argument("--watch", action="store_true", help="lint again whenever a file changes")
    running.add_argument("--jobs", type=_jobs, metavar="N", help="processes (default: as many as pay)")
    running.add_argument("--no-cache", action="store_true", help="neither read nor write cached results")
    running.add_argument("--stdin-filename", metavar="FILE", help='the name of what "-" reads')
    parser.add_argument("-V", "--version", action="version", version=f"pallas-lint {__version__}")
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    """A formatter that is told the width: argparse would ask shutil, whose import costs more than parsing."""
    try:
        width = os.get_terminal_size().columns
    except (OSError, ValueError):
        width = 100
    return argparse.RawDescriptionHelpFormatter(prog, width=min(width, 110) - 2)


def _add_settings(parser: argparse.ArgumentParser) -> None:
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
    group.add_argument("--fail-on", choices=SEVERITIES, metavar="S", help="error, warning (default) or info")
    group.add_argument("--config", metavar="FILE", help="read settings from this file only")
    group.add_argument("--isolated", action="store_true", help="read no settings and look at no environment")


def _add_colour(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="auto, always or never",
    )


def _format(text: str) -> str:
    if text not in FORMATS:
        raise argparse.ArgumentTypeError(f"unknown format '{text}': one of {', '.join(FORMATS)}")
    return text


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of processes")
    return int(text)
