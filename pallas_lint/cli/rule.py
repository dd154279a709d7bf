"""`pallas-lint rule`: prints the documentation of rules."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pallas_lint.cli import terminal
from pallas_lint.cli.exit import OK
from pallas_lint.config.flags import UsageError
from pallas_lint.report.style import Style, use_colour
from pallas_lint.report.wrapping import columns_of, width_of, wrapped
from pallas_lint.ruleset.registry import PluginError

_MAX_COLUMNS = 100  # columns of a page: longer lines are hard to read

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from pallas_lint.ruleset.registry import RuleEntry


def run(options: argparse.Namespace) -> int:
    """Explain the named rules, or list all. Raises UsageError for an unknown rule."""
    from pallas_lint.ruleset.registry import all_rules, resolve

    rules = all_rules()
    codes: list[str] = []
    for selector in options.rules:
        try:
            codes += sorted(resolve(selector))
        except ValueError as error:
            raise UsageError(str(error)) from error
    if options.all:
        codes = sorted(rules)
    infos = list(_usable(rules[code] for code in dict.fromkeys(codes)))
    everything = infos or list(_usable(rules[code] for code in sorted(rules)))
    style = Style(use_colour(options.color, sys.stdout))
    match options.output_format:
        case "json":
            import json

            documents = [document(info) for info in everything]
            one = len(options.rules) == 1 and len(documents) == 1 and not options.all
            terminal.write([json.dumps(documents[0] if one else documents, indent=2) + "\n"])
        case "markdown":
            terminal.write("\n".join(map(markdown, everything)))
        case "agent":
            terminal.write(briefly(info) if infos else f"{_headline(info)}\n" for info in everything)
        case _ if infos:
            terminal.write(_explained(infos, style))
        case _:
            terminal.write(_listed(everything, style))
    return OK


def _usable(entries: Iterable[RuleEntry]) -> Iterator[RuleEntry]:
    """The rules that can be imported; a message names the others."""
    for entry in entries:
        try:
            entry.rule  # noqa: B018  imports it
        except PluginError as error:
            terminal.print_message(str(error))
        else:
            yield entry


def document(info: Any) -> dict[str, Any]:
    """All about a rule as plain data."""
    return {
        "code": info.code,
        "name": info.name,
        "severity": info.severity.value,
        "fix": info.fix,
        "since": info.rule.since,
        "preview": info.preview,
        "summary": info.summary,
        "url": info.url,
        "docs": info.docs(),
    }


def _facts(info: Any) -> str:
    fix = f"{info.fix} fix" if info.fix else "no fix"
    return f"{info.severity.value}, {fix}, since {info.rule.since}{', in preview' if info.preview else ''}"


def markdown(info: Any) -> str:
    """A rule's page."""
    docs = info.docs().strip()
    head = f"# {info.code} {info.name}\n\n*{_facts(info)}*\n\n"
    return f"{'' if docs.startswith('# ') else head}{docs}\n"


def _headline(info: Any) -> str:
    fix = f", {info.fix} fix" if info.fix else ""
    return f"{info.code} {info.name} {info.severity.value}{fix}: {info.summary}"


def briefly(info: Any) -> str:
    """A rule for a coding agent: what it is about, how to fix it, and the lines that differ between bad and good."""
    sections = dict(part.partition("\n")[::2] for part in info.docs().split("\n## ")[1:])
    how = " ".join(sections.get("How to fix", "").split())
    lines = [_headline(info), *([f"fix: {how}"] if how else [])]
    flagged = [
        line.removesuffix("#!").strip() for each in info.rule.invalid for line in each.code.splitlines() if "#!" in line
    ]
    lines += [f"bad: {line}" for line in dict.fromkeys(flagged)]
    for example in info.rule.invalid:
        before = set(example.code.splitlines())
        lines += [f"good: {line.strip()}" for line in (example.fixed or "").splitlines() if line and line not in before]
    return "".join(f"{line}\n" for line in lines)


def _explained(infos: Sequence[Any], style: Style) -> Iterator[str]:
    for number, info in enumerate(infos):
        if number:
            yield "\n"
        title = f"{style.severity(info.severity, info.code)} {style.bold(info.name)} [{_facts(info)}]"
        width = width_of(sys.stdout)
        yield from (f"{part}\n" for part in wrapped(title, width, 0, 2))
        if style.colour or width is not None:
            yield _formatted(info.docs(), width or _MAX_COLUMNS, colour=style.colour)
        else:
            yield f"\n{info.docs().strip()}\n"


def _formatted(text: str, width: int, *, colour: bool) -> str:
    """Markdown as a terminal shows it, with colours or without; only here is rich worth its import."""
    import io

    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=io.StringIO(), force_terminal=colour, no_color=not colour, width=min(width, _MAX_COLUMNS))
    console.print(Markdown(text))
    shown: str = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [line.rstrip() for line in shown.splitlines()]
    if not colour:  # around code there are blank lines of its background's colour
        lines = [line for before, line in pairwise(["", *lines]) if line or before]
    return "\n".join(lines) + "\n"


def _listed(infos: Sequence[Any], style: Style) -> Iterator[str]:
    longest, width = max((len(info.name) for info in infos), default=0), width_of(sys.stdout)
    narrow = width is not None and len(f"PAL000  {'':{longest}}  warning  fix?") > width
    for info in infos:
        code = style.severity(info.severity, info.code)
        fix = {"safe": "fix", "unsafe": "fix?"}.get(info.fix or "", "")
        head = f"{code}  {info.name:{longest}}  {info.severity.value:7}  {fix:4}"
        summary = f"{info.summary} (in preview)" if info.preview else info.summary
        line = f"{head}  {summary}".rstrip()
        if width is None or columns_of(line) <= width:
            yield f"{line}\n"
        else:  # what is left beside the columns is too little for a sentence
            head = " ".join(head.split()) if narrow else head.rstrip()
            yield from (f"{part}\n" for part in wrapped(head, width, 0, 8))
            yield from (f"        {part}\n" for part in wrapped(summary, width - 8))
    yield "\n"
    closing = "fix: safe, fix?: a person must look. `pallas-lint rule CODE` explains one."
    yield from (f"{part}\n" for part in wrapped(closing, width))
