"""`pallas-lint support QUESTION`: can I use this in a kernel, where, and since when?"""

from __future__ import annotations

import io
import json
import sys
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pallas_lint import compat
from pallas_lint.checker.backend_failures import SUBCORES
from pallas_lint.cli import terminal
from pallas_lint.cli.exit import TROUBLE
from pallas_lint.compat import query_results, question
from pallas_lint.compat.support import BACKENDS, LEGEND, PALLAS, nearest, short
from pallas_lint.report.wrapping import width_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from pallas_lint.compat.question import Question

_COLOURS = {"lowers": "green", "compiles": "green", "runs": "green", "some": "yellow", "no": "red", "no load": "red"}
_STATUS = {"supported": "yes", "unsupported": "no", "depends": "some", "unknown": "?"}
_PIPED = 140  # columns where the width is not known
_NO_REASON = "INTERNAL: Failed to compile Triton kernel"
_MAX_FAILING = 8  # forms that are named


def run(options: argparse.Namespace) -> int:
    """Answer the query of the command line; the exit status is 2 if nothing is known."""
    return answer(
        options.query,
        output_format=options.output_format,
        target=options.target,
        jax_version=options.jax_version,
    )


def answer(
    query: str,
    *,
    output_format: str = "full",
    target: str | Sequence[str] | None = None,
    jax_version: str | None = None,
) -> int:
    """Print what is known about `query`; the exit status is 2 if that is nothing."""
    try:
        versions = compat.versions_in(jax_version) if jax_version and jax_version != "auto" else ()
    except ValueError as error:
        return terminal.fail(str(error))
    try:
        parsed = question.read([query], query_results.is_name)
    except ValueError as error:
        return terminal.fail(f"support: {error}")
    if not parsed.names and not parsed.dtypes:
        return terminal.fail("support: name a function or a dtype, too, as in `jnp.cumsum tpu`")
    matches = query_results.look_up(parsed, _backends(target), versions)
    if not matches:
        name = parsed.names[0] if parsed.names else query
        close = nearest(name) if name.count(".") < 2 else []  # of `jnp.linalg.norm` nothing is like `jnp.norm`
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        terminal.print_message(
            f"nothing is known about `{name}`{hint or '; `pallas-lint probe` lowers and compiles your own kernel'}"
        )
        return TROUBLE
    if output_format == "json":
        terminal.write([json.dumps({"version": 1, "query": query, "matches": matches}, indent=2) + "\n"])
    elif output_format == "agent":
        terminal.write(f"{line}\n" for match, _ in _once(matches) for line in _briefly(match))
    else:
        terminal.write([_text(matches, parsed)])
    return 0


def _backends(target: str | Sequence[str] | None) -> tuple[str, ...]:
    if not target:
        return BACKENDS
    wanted = [target] if isinstance(target, str) else list(target)
    chosen = {text.partition(":")[0].replace("-", "_") for text in wanted}
    return tuple(backend for backend in BACKENDS if backend in chosen) or BACKENDS


def _text(matches: list[dict[str, Any]], parsed: Question) -> str:
    from rich.console import Console

    # A table is as wide as it is, or it is folded; all other lines are broken here.
    written, on_terminal = io.StringIO(), sys.stdout.isatty() or None  # None: the environment decides
    console = Console(file=written, force_terminal=on_terminal, highlight=False, soft_wrap=True, width=10_000)
    printer = _Printer(console, width_of(sys.stdout) or _PIPED)
    if not parsed.plain and parsed.names:
        printer.line(f"[dim]{printer.escape(_understood(parsed))}[/dim]")
    functions = 0
    for number, (match, also) in enumerate(_once(matches)):
        functions += match["kind"] == "function"
        # A bare name, such as `sort`, stands for the first function; the others are only named.
        if match["kind"] == "function" and functions > 1 and not any("." in name for name in parsed.names):
            printer.briefly(match)
            continue
        if number:
            console.print()
        if "note" in match and not number:
            printer.line(printer.escape(match["note"]))
        {
            "function": printer.function,
            "primitive": printer.primitive,
            "list": printer.members,
            "dtype": printer.dtype,
        }.get(match["kind"], printer.api)(match)
        if also:
            printer.line(f"[dim]the same holds for {printer.escape(', '.join(map(short, also)))}[/dim]")
    if any(match["kind"] == "function" for match in matches):
        printer.line(f"[dim]{printer.escape(compat.provenance())}[/dim]")
    return written.getvalue()


def _briefly(match: dict[str, Any]) -> Iterator[str]:
    """A match for a coding agent: a line for each backend of a function, one for anything else."""
    if match["kind"] == "function":
        version = match["versions"][-1]
        dtypes = match.get("query", {"dtypes": []})["dtypes"]
        for backend, shown in match["backends"].items():
            on = _on(shown.get("device"))
            instead = f"; instead: {'; or '.join(shown['instead'])}" if shown["status"] != "supported" else ""
            yield f"{short(match['name'])} {_dashed(backend)}{on}: {_support_text(shown, dtypes, version)}{instead}"
    elif match["kind"] == "primitive":
        lowered = [_dashed(each["backend"]) for each in match["registries"] if each["spans"]]
        yield f"{match['name']} (primitive): {', '.join(dict.fromkeys(lowered)) or 'nowhere'}"
    elif match["kind"] == "list":
        for member in match["members"]:
            yield f"{short(member['name'])}: {_statuses(member['status'])}"
    elif match["kind"] == "dtype":
        for backend, counts in match["backends"].items():
            yield f"{match['name']} {_dashed(backend)}: {'can' if counts['loads'] else 'cannot'} be loaded and stored"
    else:
        states = ", ".join(f"jax {version}: {status}" for version, status in match.get("status", {}).items())
        replacement = match.get("replacement")
        instead = f"; instead: {replacement['note']}" if replacement is not None else ""
        yield f"{short(match['name'])}: {states or 'no name of jax that is known'}{instead}"


def _once(matches: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Each match with the names of further functions that came to the same; what people call goes first."""
    order = {"api": 1, "primitive": 2}
    left = sorted(matches, key=lambda match: order.get(match["kind"], 0))
    while left:
        first, *left = left
        alike = [each for each in left if "backends" in first and each.get("backends") == first["backends"]]
        left = [each for each in left if each not in alike]
        yield first, [each["name"] for each in alike]


def _support_text(shown: dict[str, Any], dtypes: Sequence[str], version: str) -> str:
    """The answer for a backend: the dtypes of the query first."""
    own = ", ".join(f"{dtype} {shown['states'][dtype][-1]}" for dtype in dtypes)
    sentence = _sentence(shown, version)
    note = shown["note"]
    if own:
        return f"{own}; {note}; in general: {sentence}" if note else f"{own}; in general: {sentence}"
    return sentence if not note else note if shown["status"] == "unknown" else f"{sentence}; {note}"


def _understood(parsed: Question) -> str:
    parts = [
        ", ".join(parsed.names),
        f"of {', '.join(parsed.dtypes)}" if parsed.dtypes else "",
        f"on {', '.join(_dashed(each) for each in (parsed.devices or parsed.backends))}" if parsed.backends else "",
        f"in jax {', '.join(parsed.versions)}" if parsed.versions else "",
        f"({' '.join(parsed.forms)})" if parsed.forms else "",
    ]
    return f"query: {' '.join(part for part in parts if part)}"


def _cell(state: str) -> str:
    return f"[{_COLOURS.get(state, 'dim')}]{state}[/{_COLOURS.get(state, 'dim')}]"


def _dashed(backend: str) -> str:
    return backend.replace("_", "-")


def _statuses(by_backend: Mapping[str, str]) -> str:
    """ "tpu yes, triton no"."""
    return ", ".join(f"{_dashed(backend)} {_STATUS[status]}" for backend, status in by_backend.items())


def _sentence(shown: dict[str, Any], version: str) -> str:
    """One line about one backend."""
    since = shown["since"]
    if shown["status"] == "unknown":
        return "not measured"
    if shown["status"] == "supported":
        return f"works in jax {version}" + (f", since {since}" if since != compat.oldest() else "")
    reason = shown["message"] or shown["outcome"]
    if reason.startswith(_NO_REASON):
        reason = "its compiler gives no reason"
    if shown["status"] == "depends":
        lost = shown["unloadable"]
        if lost and all("no load" in shown["states"][each] for each in lost) and not _fails_otherwise(shown):
            return f"works in jax {version} for every dtype whose blocks can be loaded there (not {', '.join(lost)})"
        return f"works in jax {version} for some dtypes and shapes; else it {shown['outcome']}: {reason}"
    return f"{shown['outcome']} in jax {version}: {reason}"


def _fails_otherwise(shown: dict[str, Any]) -> bool:
    """Whether it fails for a dtype that can be loaded."""
    return any(row[-1] in ("no", "some") for row in shown["states"].values())


def _history(states: Sequence[str], versions: Sequence[str]) -> str:
    """ "runs since 0.11.2 (lowers before)"; "no in every release"."""
    pairs = groupby(zip(versions, states, strict=True), key=lambda each: each[1])
    runs: list[tuple[str, list[str]]] = [(state, [version for version, _ in those]) for state, those in pairs]
    runs = [("not measured" if state == "?" else state, those) for state, those in runs]
    newest, since = runs[-1]
    if len(runs) == 1:
        return newest + ("" if len(versions) == 1 else " in every release")
    return f"{newest} since {since[0]} ({runs[-2][0]} before)"


class _Printer:
    """Prints matches in so many columns."""

    def __init__(self, console: Any, width: int) -> None:
        from rich.markup import escape

        self.console = console
        self.width = width
        self.escape = escape

    def line(self, text: str, indent: int = 2) -> None:
        """One paragraph with markup, in lines that fit."""
        from rich.text import Text

        styled = Text.from_markup(text)
        for number, part in enumerate(
            styled.wrap(self.console, self.width - indent) if styled.cell_len > self.width else [styled]
        ):
            part.rstrip()
            self.console.print(Text(" " * indent if number else "") + part)

    def function(self, match: dict[str, Any]) -> None:
        versions, parsed = match["versions"], match.get("query", {"dtypes": [], "unmeasured": [], "forms": {}})
        name = short(match["name"])
        full = f"  {self.escape(match['name'])}" if ":" not in match["name"] else ""
        self.line(f"[bold]{self.escape(name)}[/bold]{full}")
        rows = [*_rows(match, parsed["dtypes"])]
        if not self._table(rows, versions):
            for label, dtypes, states in rows:
                self.line(f"{label} {dtypes}: {_history(states, versions)}")
        words = {state for _, _, states in rows for state in states}
        self.line(f"[dim]{'; '.join(f'{word}: {text}' for word, text in LEGEND.items() if word in words)}[/dim]")
        for dtype in parsed["unmeasured"]:
            self.line(f"{dtype} was not measured: `pallas-lint probe` lowers and compiles your own kernel")
        for form, by_backend in parsed["forms"].items():
            self.line(f"{self.escape(form)}: {_statuses(by_backend)}")
        speaking = {shown["measured_at"] for shown in match["backends"].values()} - {versions[-1]}
        if speaking and compat.unmeasured(versions[-1]):
            self.line(f"jax {versions[-1]} was not measured: {', '.join(sorted(speaking))} is used for it")
        for backend, shown in match["backends"].items():
            self._backend(backend, shown, versions[-1], parsed["dtypes"])
        if match["primitives"]:
            self.line(f"[dim]primitives: {' '.join(match['primitives'])}[/dim]")
        if match["api"] is not None:
            self.api(match["api"])

    def briefly(self, match: dict[str, Any]) -> None:
        """One line on a function that is one of several of its name."""
        statuses = _statuses({backend: shown["status"] for backend, shown in match["backends"].items()})
        self.line(f"also [bold]{self.escape(short(match['name']))}[/bold]: {statuses}")

    def _table(self, rows: list[tuple[str, str, list[str]]], versions: Sequence[str]) -> bool:
        """Whether a table fits, which is printed then."""
        from rich.table import Table

        columns = [max(len(row[at]) for row in rows) for at in (0, 1)] if rows else [0, 0]
        cells = [max(len(version), *(len(row[2][at]) for row in rows)) for at, version in enumerate(versions)]
        if not rows or sum(columns) + sum(cells) + 2 * (1 + len(versions)) > self.width:
            return False
        table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
        table.add_column("backend", no_wrap=True)
        table.add_column("dtype", no_wrap=True)
        for version in versions:
            table.add_column(version, justify="center", no_wrap=True)
        before = ""
        for label, dtypes, states in rows:
            table.add_row("" if label == before else label, dtypes, *map(_cell, states))
            before = label
        self.console.print(table)
        return True

    def _backend(self, backend: str, shown: dict[str, Any], version: str, dtypes: Sequence[str]) -> None:
        on = _on(shown.get("device"))
        self.line(f"[bold]{_dashed(backend)}{on}[/bold]: {self.escape(_support_text(shown, dtypes, version))}")
        if shown["fails_for"]:
            listed = "; ".join(shown["fails_for"][:_MAX_FAILING])
            more = "; …" if len(shown["fails_for"]) > _MAX_FAILING else ""
            self.line(f"  fails: {self.escape(listed)}{more}", 4)
        if shown["status"] in ("unsupported", "depends"):
            for instead in shown["instead"]:
                self.line(f"  instead: {self.escape(instead)}", 4)

    def members(self, match: dict[str, Any]) -> None:
        """Names, each with a word for every backend."""
        self.line(
            f"[bold]{self.escape(match['name'])}[/bold]: {len(match['members'])} names, in jax {match['version']}"
        )
        for member in match["members"]:
            statuses = _statuses(member["status"])
            name = short(member["name"])
            self.line(f"  {self.escape(name)}{f': {statuses}' if statuses else ''}", 4)
        self.line("[dim]yes: in every form that was tried; some: in some; `pallas-lint support NAME` has more[/dim]")

    def dtype(self, match: dict[str, Any]) -> None:
        name = self.escape(match["name"])
        self.line(f"[bold]{name}[/bold]  dtype, in jax {match['version']}")
        if not match["measured"]:
            self.line(f"no operand of {name} was measured; `pallas-lint probe` lowers and compiles your own kernel")
            for cast in match["casts"]:
                self.line(f"a cast to it: {_dashed(cast['backend'])} {_STATUS[cast['status']]}")
            return
        for backend, counts in match["backends"].items():
            load = "can be loaded and stored" if counts["loads"] else "cannot be loaded"
            numbers = f"{counts['supported']} functions take it, {counts['unsupported']} do not"
            self.line(f"[bold]{_dashed(backend)}[/bold]: blocks of {name} {load}; {numbers}")

    def primitive(self, match: dict[str, Any]) -> None:
        self.line(f"[bold]{self.escape(match['name'])}[/bold]  primitive")
        for registry in match["registries"]:
            where = _dashed(registry["backend"]) + (f" {registry['core']}" if registry["core"] else "")
            spans = ", ".join(_span(first, end) for first, end in registry["spans"]) or "never"
            self.line(f"  {where:<26} {spans}", 4)
        self.line("[dim]a lowering rule that is there may still refuse dtypes and shapes[/dim]")

    def api(self, match: dict[str, Any]) -> None:
        self.line(f"[bold]{self.escape(short(match['name']))}[/bold]  {self.escape(match['name'])}")
        if "spans" in match:
            came = (
                f"since {match['added']}" if match["added"] else f"there in {compat.oldest()}, the oldest version known"
            )
            parts = [came]
            if match["deprecated"]:
                parts.append(f"deprecated since {match['deprecated']}")
            if match["removed"]:
                parts.append(f"removed in {match['removed']}")
            if len(match["spans"]) > 1:
                gaps = ", ".join(_span(first, end) for first, end in match["spans"])
                parts.append(f"it came and went: {gaps}")
            self.line("  " + self.escape("; ".join(parts)), 4)
            for version, status in match["status"].items():
                self.line(f"  jax {version}: {status}", 4)
            if not match["name"].startswith(PALLAS):
                self.line("  whether a kernel can call it was not measured: check your own with `pallas-lint probe`", 4)
            if match["message"]:
                self.line(f"  message of jax: {self.escape(match['message'])}", 4)
        replacement = match.get("replacement")
        if replacement is not None:
            new = f"{short(replacement['new'])}: " if replacement["new"] else ""
            self.line(f"  [green]instead[/green]: {self.escape(new + replacement['note'])}", 4)
            self.line(f"  [dim]{self.escape(replacement['source'])}[/dim]", 4)
        for number, change in enumerate(match.get("parameters", [])):
            if number == 0:
                self.line(f"  parameters in {change['since']}: {self.escape(', '.join(change['names']))}", 4)
                continue
            what = [*(f"+{n}" for n in change["added"]), *(f"-{n}" for n in change["gone"])]
            self.line(f"  {change['since']}: {self.escape(' '.join(what) or 'order changed')}", 4)


def _rows(match: dict[str, Any], dtypes: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Backend, dtypes that come to the same, and their states by version."""
    for backend, shown in match["backends"].items():
        groups: dict[tuple[str, ...], list[str]] = {}
        for dtype, row in shown["states"].items():
            if not dtypes or dtype in dtypes:
                groups.setdefault(tuple(row), []).append(dtype)
        for row, those in groups.items():
            if all(state == "?" for state in row) and len(groups) > 1:
                continue
            yield _dashed(backend), " ".join(those), list(row)


def _on(device: str | None) -> str:
    """ " (v6e)", " (vector subcore of a SparseCore)"."""
    return f" ({SUBCORES.get(device, device)})" if device else ""


def _span(first: str, end: str | None) -> str:
    since = "always" if first == compat.oldest() else f"since {first}"
    return since if end is None else f"{first} until before {end}"
