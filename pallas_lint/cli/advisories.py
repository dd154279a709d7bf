"""`pallas-lint advisories`: known defects of jax and libtpu versions, those of a project's versions first."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint import __version__
from pallas_lint.cli import terminal
from pallas_lint.cli.config import settings_of
from pallas_lint.cli.exit import OK
from pallas_lint.compat.advisories import Advisory, advisories
from pallas_lint.report.style import Style, use_colour, visible
from pallas_lint.report.wrapping import width_of, wrapped

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pallas_lint.config.targets import JaxVersions


def run(options: argparse.Namespace) -> int:
    """Print the advisories for the project of a folder. Raises UsageError."""
    jax = settings_of(options, Path.cwd()).jax
    listed = sorted(advisories(), key=lambda each: not _affected(each, jax))  # stable: those of the project first
    match options.output_format:
        case "json":
            terminal.write([json.dumps(document(listed, jax), indent=2) + "\n"])
        case "agent":
            terminal.write(_briefly(listed, jax))
        case _:
            terminal.write(_lines(listed, jax, Style(use_colour(options.color, sys.stdout))))
    return OK


def _affected(advisory: Advisory, jax: JaxVersions) -> tuple[str, ...] | None:
    """The checked versions that have the defect; None where the package's version is not known."""
    if advisory.package == "libtpu":
        return None if jax.libtpu is None else advisory.affected((jax.libtpu,))
    return None if jax.assumed else advisory.affected(jax.versions)


def document(listed: list[Advisory], jax: JaxVersions) -> dict[str, Any]:
    """The advisories as plain data; `affected` is null where the project's version is not known."""
    rows = []
    for each in listed:
        affected = _affected(each, jax)
        rows.append(
            {
                "id": each.id,
                "package": each.package,
                "versions": each.versions,
                "affected": None if affected is None else bool(affected),
                "affected_versions": [*(affected or ())],
                "code": each.code,
                "effect": each.effect,
                "remedy": each.remedy,
                "reports": [*each.reports],
                "reproduced": each.reproduced,
                "rule": each.rule,
            }
        )
    return {
        "version": 1,
        "tool": __version__,
        "jax": None if jax.assumed else jax.text,
        "libtpu": jax.libtpu,
        "advisories": rows,
    }


def _mark(advisory: Advisory, jax: JaxVersions) -> str:
    """ "affects jax 0.11.2 of this project", "not this project", "libtpu version unknown"."""
    affected = _affected(advisory, jax)
    if affected is None:
        return f"{advisory.package} version unknown"
    if not affected:
        return "not this project"
    spelled = affected[0] if len(affected) == 1 else f"{affected[0]} to {affected[-1]}"
    return f"affects {advisory.package} {spelled} of this project"


def _project(jax: JaxVersions) -> str:
    """The versions of the project, and their source."""
    known = "jax version unknown" if jax.assumed else f"jax {jax.text}, {jax.source}"
    return visible(f"{known}; libtpu {jax.libtpu or 'version unknown'}")


def _briefly(listed: list[Advisory], jax: JaxVersions) -> Iterator[str]:
    for each in listed:
        rule = f" {each.rule}" if each.rule else ""
        head = f"{each.id}{rule} {each.package} {each.versions} [{_mark(each, jax)}]"
        yield visible(f"{head}: {each.effect}. code: {each.code}. do: {each.remedy}") + "\n"
    yield f"{_project(jax)}\n"


def _lines(listed: list[Advisory], jax: JaxVersions, style: Style) -> Iterator[str]:
    width = width_of(sys.stdout)
    yield from (f"{part}\n" for part in wrapped(_project(jax), width))
    for each in listed:
        head = f"{style.bold(each.id)}  {each.package} {each.versions}  ({visible(_mark(each, jax))})"
        yield "\n"
        yield from (f"{part}\n" for part in wrapped(head, width, 0, 2))
        rows = [("code", each.code), ("effect", each.effect), ("do", each.remedy), ("tried", each.reproduced)]
        rows += [("found by", each.rule)] if each.rule else []
        rows += [("report", url) for url in each.reports]
        for title, text in rows:
            yield from (f"{part}\n" for part in wrapped(f"  {title}: {text}", width, 0, 6))
