"""What probes found, kept beside the linter's cache: an editor shows it without running anything.

One file for each source file, with the digest of the text that was probed: facts of another text are not shown.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.cache import FOLDER, digest
from pallas_lint.probe.report import launch_document
from pallas_lint.report.json import finding_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.finding import Finding
    from pallas_lint.probe.results import LaunchResult

_LAYOUT = 1


def store(root: Path, cwd: Path, launches: Sequence[LaunchResult], findings: Sequence[Finding]) -> None:
    """Keep the launches of each file, and the findings about it. What cannot be written is not kept."""
    by_file: dict[str, list[LaunchResult]] = {}
    for launch in launches:
        if launch.place is not None:
            by_file.setdefault(str(launch.place["file"]), []).append(launch)
    for file, mine in by_file.items():
        with contextlib.suppress(OSError):
            _write(root, Path(file), cwd, mine, findings)


def load(root: Path, file: Path, text: str) -> dict[str, Any] | None:
    """What is known of a file with this text: {"launches": …, "findings": …}; None where nothing is."""
    try:
        entry: dict[str, Any] = json.loads(_place(root, file).read_bytes())
        fresh = entry["layout"] == _LAYOUT and entry["text"] == _text_digest(text)
        return {"launches": entry["launches"], "findings": entry["findings"]} if fresh else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(root: Path, file: Path, cwd: Path, launches: list[LaunchResult], findings: Sequence[Finding]) -> None:
    from pallas_lint.source import Source, SourceError

    try:
        text = Source.read(file, str(file)).text
    except SourceError:
        return
    entry = {
        "layout": _LAYOUT,
        "text": _text_digest(text),
        "launches": [launch_document(launch, cwd) for launch in launches],
        "findings": [finding_document(each) for each in findings if (cwd / each.span.path).resolve() == file],
    }
    place = _place(root, file)
    place.parent.mkdir(parents=True, exist_ok=True)
    ignore = root / FOLDER / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(entry), encoding="utf-8")
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def _place(root: Path, file: Path) -> Path:
    return root / FOLDER / "probe" / f"{digest(os.fsencode(file.resolve()))}.json"


def _text_digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))
