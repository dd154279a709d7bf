"""The options of every command."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable

from pallas_lint import compat
from pallas_lint.config import flags
from pallas_lint.config.flags import (
    HOOK,
    SEVERITIES,
    Parser,
    UsageError,
    add_colour,
    add_settings,
    formatter,
    lint_parser,
    output_format,
    parse,
    report_file,
)
from pallas_lint.config.targets import TargetError, parse_target, whole_chip
from pallas_lint.report import agents

COMMANDS = (
    "rule",
    "support",
    "facts",
    "advisories",
    "probe",
    "skill",
    "mcp",
    "server",
    "config",
    "completion",
    "clean",
)
_EPILOG = """\
commands:
  pallas-lint [PATH ...]     lint files and folders
  pallas-lint rule CODE      explain a rule
  pallas-lint support QUERY  show where a function can be used in a kernel
  pallas-lint facts          print what holds for a target and a jax version
  pallas-lint advisories     list known defects of jax and libtpu versions
  pallas-lint probe WHAT     trace, run and compile a kernel without its device
  pallas-lint server         the language server, for editors
  pallas-lint mcp            the same as tools for coding agents (extra: mcp)
  pallas-lint skill          print a skill file for coding agents
  pallas-lint config         show the settings in force, each with its origin
  pallas-lint completion SH  print a script that completes: bash, zsh or fish
  pallas-lint clean          remove cached results

exit status: 0 nothing at or above --fail-on, 1 findings,
             2 bad usage, bad settings, unreadable input
"""


def command_in(arguments: list[str]) -> int | None:
    """The index of the first positional argument if it is a command."""
    index = _first_path(arguments)
    return index if index < len(arguments) and arguments[index] in COMMANDS else None


def for_hook(arguments: list[str]) -> list[str]:
    """`arguments` with the files that follow `--hook` behind a `--`, written so that none looks like an option.

    A hook's caller puts file names behind the options that a person wrote, with nothing in between: a tracked file
    `--probe` or `server` would be an option or a command. Behind `--hook` a word that begins with a dash and names a
    file is that file, and whatever follows the first file is one too.
    """
    if HOOK not in arguments or HOOK not in arguments[: _first_path(arguments)]:
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
                    option: action.nargs != 0
                    for action in lint_parser(_EPILOG)._actions
                    for option in action.option_strings
                }
            index += takes_value.get(word, False)
        index += 1
    return index


def parse_lint(arguments: list[str]) -> argparse.Namespace:
    """The options of linting. Raises UsageError."""
    options = flags.parse_lint(arguments, _EPILOG)
    for_people = options.output_file is not None or options.show_kernels or options.show_files or options.watch
    options.output_format = options.output_format or ("full" if for_people else agents.chosen(None))
    return options


def parse_config(arguments: list[str]) -> argparse.Namespace:
    """The options of `config`: those of linting that decide settings. Raises UsageError."""
    return parse(_config_parser(), arguments)


def _config_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint config",
        description="Show the effective settings and where each came from.",
        formatter_class=formatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="FOLDER", help="whose settings (default: .)")
    add_settings(parser)
    parser.add_argument("--output-format", choices=("text", "json"), default="text", metavar="F", help="text or json")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of the settings instead")
    return parser


def parse_rule(arguments: list[str]) -> argparse.Namespace:
    """The options of `rule`. Raises UsageError."""
    options = parse(_rule_parser(), arguments)
    options.rules = options.paths
    options.output_format = agents.chosen(options.output_format, "text")
    return options


def _rule_parser() -> argparse.ArgumentParser:
    parser = Parser("pallas-lint rule", description="Explain a rule; without one, list them.", allow_abbrev=False)
    parser.add_argument("paths", nargs="*", metavar="CODE|NAME", help="rule, or the beginning of codes (PAL1)")
    parser.add_argument("--all", action="store_true", help="every rule")
    parser.add_argument(
        "--output-format",
        choices=("text", "json", "markdown", "agent"),
        metavar="F",
        help="text, json, markdown or agent",
    )
    add_colour(parser)
    return parser


def parse_support(arguments: list[str]) -> argparse.Namespace:
    """The options of `support`. Raises UsageError."""
    options = parse(_support_parser(), arguments)
    if not options.paths:
        raise UsageError("support: name a function, a dtype or a primitive, as in `jnp.cumsum` or `argsort bf16 tpu`")
    options.query = " ".join(options.paths)
    options.output_format = agents.chosen(options.output_format, "text")
    try:
        options.target = [str(parse_target(target)) for target in options.target or ()] or None
    except TargetError as error:
        raise UsageError(f"--target: {error}") from error
    return options


def _support_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint support",
        description="Show where a function, name or primitive can be used in a kernel.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="QUERY", help='jnp.cumsum, "jnp.c*", jax.random, argsort bf16 tpu')
    parser.add_argument("--target", action="append", metavar="T", help="these targets only; repeatable")
    parser.add_argument("--jax-version", metavar="V", help="one version or range only")
    parser.add_argument("--output-format", choices=("text", "json", "agent"), metavar="F", help="text, json or agent")
    return parser


def parse_facts(arguments: list[str]) -> argparse.Namespace:
    """The options of `facts`. Raises UsageError."""
    options = parse(_facts_parser(), arguments)
    try:
        options.target = [str(parse_target(target)) for target in (*options.targets, *options.target)]
        if options.jax_version:
            compat.versions_in(options.jax_version)
    except (TargetError, ValueError) as error:
        raise UsageError(f"facts: {error}") from error
    return options


def _facts_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint facts",
        description="Print what holds for a target and a jax version: memories, tiles, dtypes, what\n"
        "does not lower and what to write instead, removed names. All measured.",
        formatter_class=formatter,
        allow_abbrev=False,
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="tpu:v6e, tpu:v6e/sc, triton, ... (default: tpu)")
    parser.add_argument("--target", action="append", default=[], metavar="T", help="the same; repeatable")
    parser.add_argument("--jax-version", metavar="V", help="default: the newest known")
    parser.add_argument("--output-format", choices=("agent",), metavar="F", help="agent: the only one")
    return parser


def parse_advisories(arguments: list[str]) -> argparse.Namespace:
    """The options of `advisories`: whose versions, and the format. Raises UsageError."""
    options = parse(_advisories_parser(), arguments)
    if len(options.paths) > 1:
        raise UsageError("advisories: give one folder")
    options.output_format = agents.chosen(options.output_format, "text")
    return options


def _advisories_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint advisories",
        description="List known defects of jax and libtpu versions: which code they concern,\n"
        "what happens, what to do, where it is reported. Those of a project's\nversions come first, marked.",
        formatter_class=formatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="FOLDER", help="whose versions (default: .)")
    add_settings(parser)
    parser.add_argument("--output-format", choices=("text", "json", "agent"), metavar="F", help="text, json or agent")
    add_colour(parser)
    return parser


def parse_skill(arguments: list[str]) -> argparse.Namespace:
    """The options of `skill`, which are none. Raises UsageError."""
    return parse(_skill_parser(), arguments)


def _skill_parser() -> argparse.ArgumentParser:
    return Parser(
        "pallas-lint skill",
        description="Print a skill file for coding agents: pallas-lint skill > .agents/skills/pallas-lint/SKILL.md",
        allow_abbrev=False,
    )


def parse_mcp(arguments: list[str]) -> argparse.Namespace:
    """The options of `mcp`. Raises UsageError."""
    return parse(_mcp_parser(), arguments)


def _mcp_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint mcp",
        description="Tools for coding agents, by the Model Context Protocol on standard input and output.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--allow-probe",
        action="store_true",
        help="offer tools that run the project's code, too: probe, predict and tune (nothing else allows it)",
    )
    return parser


def parse_probe(arguments: list[str]) -> argparse.Namespace:
    """The options of `probe`; `command` is what stands after `--`. Raises UsageError."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = parse(_probe_parser(), ours)
    options.command = arguments[len(ours) + 1 :]
    options.output_format = agents.chosen(options.output_format)
    if options.capture != bool(options.command) or (options.capture and options.paths):
        raise UsageError("probe: write `probe --capture -- COMMAND`")
    options.record = options.record or options.record_replace or options.record_values or options.record_stub
    if options.record and not options.capture:
        raise UsageError("probe: write `probe --capture --record -- COMMAND`")
    options.perf |= bool(options.tune or options.perf_baseline or options.write_perf_baseline or options.against)
    options.perf |= "cost" in (options.stage or ()) or options.tune_table is not None
    if options.perf and options.capture:
        raise UsageError("probe: costs are predicted of functions, not of what --capture runs")
    if options.perf and options.stage not in (None, ["compile"], ["cost"]):
        raise UsageError(
            "probe: costs are predicted of what was compiled: leave out --stage, or give `compile` or `cost` alone"
        )
    of_table = (options.tune_key, options.tune_value, options.shard, options.write_tune_table)
    if options.tune_table is None and any(of_table):
        raise UsageError("probe: --tune-key, --tune-value, --shard and --write-tune-table are for --tune-table")
    if options.tune_table is None and not options.tune and options.tune_results:
        raise UsageError("probe: --tune-results is for --tune and --tune-table")
    if options.tune_table is not None and (options.tune or not options.paths or "::" not in options.paths[0]):
        raise UsageError("probe: --tune-table is for one FILE::FUNCTION, without --tune")
    if not options.capture and not options.paths:
        raise UsageError("probe: name a function, as in `pallas-lint probe kernels.py::matmul 'f32[512,512]'`")
    try:
        options.target = [str(whole_chip(parse_target(target))) for target in options.target]
    except TargetError as error:
        raise UsageError(f"--target: {error}") from error
    return options


def _probe_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint probe",
        usage="pallas-lint probe [OPTIONS] FILE::FUNCTION [ARGUMENT ...]\n"
        "       pallas-lint probe [OPTIONS] FILE ...\n"
        "       pallas-lint probe [OPTIONS] --capture -- COMMAND ...",
        description="Trace, run, lower and compile kernels without their device, in the project's\n"
        "own environment. This runs the code that it is given.",
        epilog="arguments: f32[8,128], i32[4]=[3,1,0,2], lists, tuples and dicts of them,\n"
        "           bm=128, Python literals",
        formatter_class=formatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="WHAT", help="file.py::function and its arguments, or files")
    parser.add_argument("--capture", action="store_true", help="examine every launch that the command after -- makes")
    parser.add_argument(
        "--record",
        action="store_true",
        help="have the shapes file hold the argument types of the calls that lead to launches; "
        "launches are examined only where --stage is given",
    )
    parser.add_argument("--record-replace", action="store_true", help="... and nothing that it had before")
    parser.add_argument("--record-values", action="store_true", help="... and floats and any short strings")
    parser.add_argument(
        "--record-stub", action="store_true", help="... of a program whose launches are not run: they return zeros"
    )
    parser.add_argument(
        "--target", action="append", default=[], metavar="T", help="tpu[:v5e], triton, mosaic-gpu; repeatable"
    )
    parser.add_argument("--all-targets", action="store_true", help="all that can be tried")
    parser.add_argument("--python", metavar="FILE", help="interpreter to run it with (default: the project's)")
    parser.add_argument(
        "--stage", type=_stages, metavar="S,S", action="extend",
        help="these stages and no others; one alone: all up to it",
    )  # fmt: skip
    parser.add_argument(
        "--skip", type=_stages, default=[], metavar="S,S", action="extend", help="without these stages; repeatable"
    )
    parser.add_argument("--strict", action="store_true", help="exit status 2 if a requested stage could not be judged")
    parser.add_argument("--perf", action="store_true", help="predict what launches cost on TPUs, without one")
    parser.add_argument(
        "--tune", action="append", default=[], metavar="NAME=V,V", help="what they cost with these values; repeatable"
    )
    parser.add_argument(
        "--against",
        metavar="FUNCTION",
        help="predict the cost of this function, too (--reference, or the one that a comment names)",
    )
    parser.add_argument(
        "--tune-table", metavar="FILE[::NAME]", help="check each row of a table of block sizes; arguments have {fields}"
    )
    parser.add_argument(
        "--tune-key", type=_names, metavar="N,N", help="the fields of its keys; N=V: only rows with that value"
    )
    parser.add_argument(
        "--tune-value", type=_names, metavar="N,N", help="the fields of its values; of named ones, those to change"
    )
    parser.add_argument(
        "--tune-results", action="append", default=[], metavar="FILE",
        help="JSON file with what was tried, which later runs continue; more of them are read too",
    )  # fmt: skip
    parser.add_argument(
        "--write-tune-table", metavar="FILE", help="go on from each row to its fastest values, and write them as JSON"
    )
    parser.add_argument("--shard", type=_shard, metavar="K/N", help="each Nth row of the table, from the Kth on")
    parser.add_argument("--perf-baseline", metavar="FILE", help="compare what launches cost with a record")
    parser.add_argument("--write-perf-baseline", metavar="FILE", help="write that record")
    parser.add_argument(
        "--perf-fail-over", type=_share, default=0.05, metavar="P", help="slower than on record by so much: 5%%"
    )
    parser.add_argument("--run", action="store_true", help="also run kernels on the local GPU or TPU")
    parser.add_argument("--devices", type=_count, metavar="N", help="how many devices the function sees (8)")
    parser.add_argument("--promela", metavar="DIR", help="write models of kernels on several devices, for spin")
    parser.add_argument(
        "--reference", metavar="FUNCTION", help="compare results with this function, of the same file or FILE::FUNCTION"
    )
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="seconds for each function (120)")
    parser.add_argument("--memory-limit", type=_memory, metavar="N", help="bytes it may take, as in 4G (8G)")
    parser.add_argument("--html", metavar="FILE", help="write a report with pictures")
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write cached results")
    parser.add_argument("--output-format", type=output_format, metavar="F", help="full, concise, agent or json")
    parser.add_argument(
        "--report", type=report_file, action="append", default=[], metavar="F=FILE",
        help="also write the report there in this format; repeatable",
    )  # fmt: skip
    parser.add_argument("--fail-on", choices=SEVERITIES, default="warning", metavar="S", help="as in linting")
    parser.add_argument("-q", "--quiet", action="store_true", help="findings only")
    parser.add_argument("-v", "--verbose", action="store_true", help="show tracebacks")
    add_colour(parser)
    return parser


def _stages(text: str) -> list[str]:
    from pallas_lint.probe.session import COST, STAGES

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in (*STAGES, COST):
            raise argparse.ArgumentTypeError(f"'{name}' is not a stage: {', '.join((*STAGES, COST))}")
    return names


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of devices")
    return int(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and len(text) < 19 and 0 < int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a part of a table, as in 1/8")
    return int(number), int(count)


def _share(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?%?", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage, as in 5%")
    return float(text.removesuffix("%")) / 100


def parse_server(arguments: list[str]) -> argparse.Namespace:
    """The options of `server`. Raises UsageError."""
    options = parse(_server_parser(), arguments)
    if options.tcp and options.allow_probe:
        # Any program on this machine, and any browser on it that posts a form, can connect.
        raise UsageError("--allow-probe: not with --tcp, which is open to everyone on this machine")
    if options.untrusted and options.allow_probe:
        raise UsageError("--allow-probe: not with --untrusted, which forbids running the project's code")
    if options.allow_run and not options.allow_probe:
        raise UsageError("--allow-run: only with --allow-probe")
    return options


def _server_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint server", description="Language server on standard input and output.", allow_abbrev=False
    )
    parser.add_argument("--tcp", type=_address, metavar="HOST:PORT", help="listen there instead (loopback only)")
    parser.add_argument(
        "--allow-probe",
        action="store_true",
        help="let the user probe functions from the editor; this runs the project's code (nothing else allows it)",
    )
    parser.add_argument(
        "--allow-run",
        action="store_true",
        help="with --allow-probe: kernels that are probed run on the GPU or TPU of this machine, too",
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
    return parse(_completion_parser(), arguments)


def _completion_parser() -> argparse.ArgumentParser:
    parser = Parser(
        "pallas-lint completion",
        description="Print a script with which a shell completes commands, options and rules.",
        epilog='bash, zsh: eval "$(pallas-lint completion bash)"\n     fish: pallas-lint completion fish | source',
        formatter_class=formatter,
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")
    return parser


def parse_clean(arguments: list[str]) -> argparse.Namespace:
    """The options of `clean`. Raises UsageError."""
    return parse(_clean_parser(), arguments)


def _clean_parser() -> argparse.ArgumentParser:
    parser = Parser("pallas-lint clean", description="Remove cached results.", allow_abbrev=False)
    parser.add_argument("--cache-dir", metavar="DIR", help="where they were kept (default: the user's own folder)")
    return parser


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command; that of linting under the empty name."""
    return {
        "": lint_parser(_EPILOG),
        "rule": _rule_parser(),
        "support": _support_parser(),
        "facts": _facts_parser(),
        "skill": _skill_parser(),
        "mcp": _mcp_parser(),
        "advisories": _advisories_parser(),
        "probe": _probe_parser(),
        "server": _server_parser(),
        "config": _config_parser(),
        "completion": _completion_parser(),
        "clean": _clean_parser(),
    }


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host not in ("localhost", "127.0.0.1", "::1", "[::1]") or not port.isdigit() or not 0 <= int(port) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is not an address on this machine: write 127.0.0.1:2087")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> float:
    from pallas_lint.config.options import MAX_SECONDS

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return value


def _memory(text: str) -> int:
    from pallas_lint.config.options import OptionError, memory_bytes

    try:
        return memory_bytes(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
