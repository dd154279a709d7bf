"""`pallas-lint support QUERY`: can I use this in a kernel, where, and since when?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from pallas_lint import compat
from pallas_lint.cli import terminal
from pallas_lint.cli.exit import TROUBLE
from pallas_lint.compat.support import BACKENDS, candidates, describe, nearest, short

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = {"supported": "yes", "unsupported": "no", "depends": "some", "lowers": "lowers", "unknown": "?"}


def run(
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
    names = candidates(query)
    if not names:
        close = nearest(query)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        terminal.say(f"nothing is known about `{query}`{hint}")
        return TROUBLE
    backends = _backends(target)
    matches = [describe(kind, name, backends, versions) for kind, name in names]
    if output_format == "json":
        print(json.dumps({"version": 1, "query": query, "matches": matches}, indent=2))
    else:
        _print(matches)
    return 0


def _backends(target: str | Sequence[str] | None) -> tuple[str, ...]:
    if not target:
        return BACKENDS
    wanted = [target] if isinstance(target, str) else list(target)
    chosen = {text.partition(":")[0].replace("-", "_") for text in wanted}
    return tuple(backend for backend in BACKENDS if backend in chosen) or BACKENDS


def _print(matches: list[dict[str, Any]]) -> None:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, soft_wrap=not terminal, width=None if terminal else 140)
    for number, match in enumerate(matches):
        if number:
            console.print()
        if match["kind"] == "function":
            _print_function(console, match)
        elif match["kind"] == "primitive":
            _print_primitive(console, match)
        else:
            _print_api(console, match)


def _print_function(console: Any, match: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.print(f"[bold]{escape(short(match['name']))}[/bold]  {escape(match['name'])}")
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("backend")
    table.add_column("dtype")
    for version in match["versions"]:
        table.add_column(version, justify="center", no_wrap=True)
    for backend, shown in match["backends"].items():
        groups: dict[tuple[str, ...], list[str]] = {}
        for dtype, row in shown["dtypes"].items():
            groups.setdefault(tuple(row), []).append(dtype)
        for number, (row, dtypes) in enumerate(groups.items()):
            if all(status == "unknown" for status in row) and len(groups) > 1:
                continue
            cells = [_cell(status) for status in row]
            table.add_row("" if number else _dashed(backend), " ".join(dtypes), *cells)
    console.print(table)
    for backend, shown in match["backends"].items():
        console.print(f"[bold]{_dashed(backend)}[/bold]: {escape(_sentence(shown, match['versions'][-1]))}")
        if shown["fails_for"]:
            listed = "; ".join(shown["fails_for"][:8])
            more = "; …" if len(shown["fails_for"]) > 8 else ""
            console.print(f"  fails for: {escape(listed)}{more}")
        if shown["status"] in ("unsupported", "depends"):
            for instead in shown["instead"]:
                console.print(f"  instead: {escape(instead)}")
    if match["primitives"]:
        console.print(f"[dim]primitives: {' '.join(match['primitives'])}[/dim]")
    console.print(f"[dim]{escape(match['source'])}[/dim]")
    if match["api"] is not None:
        _print_api(console, match["api"])


def _cell(status: str) -> str:
    colour = {"supported": "green", "unsupported": "red", "depends": "yellow"}.get(status, "dim")
    return f"[{colour}]{_WORDS[status]}[/{colour}]"


def _dashed(backend: str) -> str:
    return backend.replace("_", "-")


def _sentence(shown: dict[str, Any], version: str) -> str:
    """One line about one backend."""
    since = shown["since"]
    if shown["status"] == "unknown":
        return "not measured"
    if shown["status"] == "supported":
        return f"works in jax {version}" + (f", since {since}" if since != compat.oldest() else "")
    reason = shown["message"] or shown["outcome"]
    if shown["status"] == "depends":
        return f"works in jax {version} for some dtypes and shapes; else it {shown['outcome']}: {reason}"
    return f"{shown['outcome']} in jax {version}: {reason}"


def _print_primitive(console: Any, match: dict[str, Any]) -> None:
    from rich.markup import escape

    console.print(f"[bold]{escape(match['name'])}[/bold]  primitive")
    for registry in match["registries"]:
        where = _dashed(registry["backend"]) + (f" {registry['core']}" if registry["core"] else "")
        spans = ", ".join(_span(first, end) for first, end in registry["spans"]) or "never"
        console.print(f"  {where:<26} {spans}")
    console.print("[dim]a lowering rule that is there may still refuse dtypes and shapes[/dim]")


def _span(first: str, end: str | None) -> str:
    since = "always" if first == compat.oldest() else f"since {first}"
    return since if end is None else f"{first} until before {end}"


def _print_api(console: Any, match: dict[str, Any]) -> None:
    from rich.markup import escape

    console.print(f"[bold]{escape(short(match['name']))}[/bold]  {escape(match['name'])}")
    if "spans" in match:
        came = f"since {match['added']}" if match["added"] else f"there in {compat.oldest()}, the oldest version known"
        parts = [came]
        if match["deprecated"]:
            parts.append(f"deprecated since {match['deprecated']}")
        if match["removed"]:
            parts.append(f"removed in {match['removed']}")
        if len(match["spans"]) > 1:
            gaps = ", ".join(_span(first, end) for first, end in match["spans"])
            parts.append(f"it came and went: {gaps}")
        console.print("  " + escape("; ".join(parts)))
        for version, status in match["status"].items():
            console.print(f"  jax {version}: {status}")
        if match["message"]:
            console.print(f"  jax says: {escape(match['message'])}")
    replacement = match.get("replacement")
    if replacement is not None:
        new = f"{short(replacement['new'])}: " if replacement["new"] else ""
        console.print(f"  [green]instead[/green]: {escape(new + replacement['note'])}")
        console.print(f"  [dim]{escape(replacement['source'])}[/dim]")
    for number, change in enumerate(match.get("parameters", [])):
        if number == 0:
            console.print(f"  parameters in {change['since']}: {escape(', '.join(change['names']))}")
            continue
        what = [*(f"+{n}" for n in change["added"]), *(f"-{n}" for n in change["gone"])]
        console.print(f"  {change['since']}: {escape(' '.join(what) or 'order changed')}")
