"""Backend and version support of a jax function, as Markdown."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from pallas_lint.server.views.markdown import Markdown, own

from pallas_lint import compat
from pallas_lint.checker.backend_failures import BACKENDS
from pallas_lint.compat import support

if TYPE_CHECKING:
    from pallas_lint.server.workspace.document_state import DocumentState

_DOCS = "https://docs.jax.dev/en/latest/_autosummary/"
_MARKS = {"supported": "✓", "lowers": "✓", "depends": "part", "unsupported": "✗", "unknown": "?"}


def support_text(name: str, state: DocumentState, backend: str | None = None) -> Markdown:
    """Where and since when a function works in kernels; `backend` is that of the kernel at hand.

    All of it comes from the measured data, the name too: there is nothing for a name that is not in them.
    """
    assert state.settings is not None
    parts: list[str] = []
    if compat.function(name) is not None:
        entry = support.describe("function", name, support.BACKENDS, ())
        version = compat.nearest(state.settings.jax.newest)
        parts.append(_support_table(entry, version, backend))
        for each, shown in entry["backends"].items():
            if shown["instead"] and shown["status"] in ("unsupported", "depends"):
                parts.append(f"instead, on {BACKENDS[each]}: {'; '.join(shown['instead'])}")
    elif compat.api(name) is not None or compat.replacement(name) is not None:
        parts.append(_history_text(support.describe("api", name, (), ())))
    if parts and name.startswith("jax."):
        parts.append(f"[documentation]({_DOCS}{name}.html)")
    return own("\n\n".join(part for part in parts if part))


def _support_table(entry: dict[str, Any], version: str, backend: str | None) -> str:
    """A row for each backend: the dtypes that work in this version, and all versions; a column for those alike."""
    versions = entry["versions"]
    at = versions.index(version) if version in versions else len(versions) - 1
    shown = entry["backends"]
    marks = [
        tuple(_over_dtypes([row[column] for row in each["dtypes"].values()]) for each in shown.values())
        for column in range(len(versions))
    ]
    alike = [list(group) for _, group in groupby(range(len(versions)), key=marks.__getitem__)]
    # As code: editors draw no lines between the heads of a table.
    ranges = [f"`{versions[group[0]]}" + (f" to {versions[group[-1]]}`" if group[1:] else "`") for group in alike]
    rows = [f"| | jax {versions[at]} | {' | '.join(ranges)} |", f"|---|---|{':-:|' * len(ranges)}"]
    for number, (name, each) in enumerate(shown.items()):
        mark = " (this kernel)" if name == backend else ""
        dtypes = {dtype: row[at] for dtype, row in each["dtypes"].items()}
        cells = [marks[group[0]][number] for group in alike]
        rows.append(f"| {BACKENDS[name]}{mark} | {_dtypes_text(dtypes)} | {' | '.join(cells)} |")
    gaps = [_between(versions[one[-1]], versions[next_[0]]) for one, next_ in pairwise(alike)]
    if any(gaps):
        rows.append(f"\nnot measured, between the columns: jax {', '.join(filter(None, gaps))}")
    return "\n".join(rows)


def _between(version: str, later: str) -> str:
    """ "0.4.36 to 0.6.1": the releases between two that were measured."""
    known = compat.known_versions()
    inside = known[known.index(version) + 1 : known.index(later)]
    return f"{inside[0]} to {inside[-1]}" if inside[1:] else "".join(inside)


def _over_dtypes(statuses: list[str]) -> str:
    """The mark for all dtypes together."""
    marks = {_MARKS[status] for status in statuses if status != "unknown"}
    return "?" if not marks else marks.pop() if len(marks) == 1 else "part"


def _dtypes_text(dtypes: dict[str, str]) -> str:
    """ "works for f32 bf16, not for i8"."""
    works = [dtype for dtype, status in dtypes.items() if status in ("supported", "lowers")]
    partly = [dtype for dtype, status in dtypes.items() if status == "depends"]
    fails = [dtype for dtype, status in dtypes.items() if status == "unsupported"]
    if not (works or partly or fails):
        return "not measured"
    if not fails and not partly:
        return "works"
    if not works and not partly:
        return "does not work"
    parts = [f"works for {' '.join(works)}"] if works else []
    parts += [f"in part for {' '.join(partly)}"] if partly else []
    parts += [f"not for {' '.join(fails)}"] if fails else []
    return ", ".join(parts)


def _history_text(entry: dict[str, Any]) -> str:
    words = []
    if entry.get("added"):
        words.append(f"since jax {entry['added']}")
    if entry.get("deprecated"):
        words.append(f"deprecated since {entry['deprecated']}")
    if entry.get("removed"):
        words.append(f"removed in {entry['removed']}")
    replacement = entry.get("replacement")
    if replacement is not None:
        new = f"`{support.short(replacement['new'])}`: " if replacement["new"] else ""
        words.append(f"instead: {new}{replacement['note']}")
    return "; ".join(words)
