"""What probes found, kept beside the linter's cache: an editor shows it without running anything.

One file for each source file, in it a run for each function that was probed and for each launch that was captured. A
run names the statements that it rests on by their text: it holds as long as all of them are there, wherever they have
moved to.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from pallas_lint.cache import FOLDER, digest
from pallas_lint.finding import Finding, Span
from pallas_lint.probe.results import LaunchResult
from pallas_lint.project import project_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cattrs import Converter

    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.source import Source
    from pallas_lint.syntax.outline import Outline
    from pallas_lint.syntax.piece import Piece

_LAYOUT = 3
_MOST_RUNS = 50  # of one file; the oldest are forgotten


@frozen
class Statement:
    """A statement at the top of a file, by the digest of its text; it went from line `first` to line `last`."""

    digest: str
    first: int
    last: int


@frozen
class Run:
    """What one probe of one function found in one file. `function`: None for a launch that a program made.

    Findings in the file itself have an empty path.
    """

    function: str | None
    arguments: str
    launches: tuple[LaunchResult, ...]
    findings: tuple[Finding, ...]
    rests_on: tuple[Statement, ...]
    parts: dict[str, str | None]  # versions of jax and the compilers

    @property
    def key(self) -> tuple[str | None, ...]:
        """Equal for runs of which the later one takes the earlier one's place."""
        places = [f"{launch.kernel}:{(launch.place or {}).get('line')}" for launch in self.launches]
        return (self.function,) if self.function is not None else (None, *places)


# -- keeping -----------------------------------------------------------------------------------------------------------


def store(
    root: Path,
    cwd: Path,
    results: Iterable[ProbeResult],
    findings: Sequence[Finding],
    texts: Mapping[Path, Source] | None = None,
) -> None:
    """Keep the runs of each file under `root`. What cannot be written is not kept.

    `texts` are those of files whose text on disk is not the one that was probed.
    """
    by_file: dict[Path, list[Run]] = defaultdict(list)
    for result in results:
        for file, run in runs_of(result, cwd, findings, texts or {}):
            by_file[file].append(run)
    for file, runs in by_file.items():
        with contextlib.suppress(OSError):
            _write(_place(root, file), runs)


def runs_of(
    result: ProbeResult, cwd: Path, findings: Sequence[Finding], texts: Mapping[Path, Source]
) -> Iterator[tuple[Path, Run]]:
    """What a result says of each file that launches something in it."""
    by_file: dict[Path, list[LaunchResult]] = defaultdict(list)
    for launch in result.launches:
        if launch.place is not None:
            by_file[Path(launch.place["file"]).resolve()].append(launch)
    for file, launches in by_file.items():
        source = texts.get(file) or _read(file)
        if source is None:
            continue
        spec = result.spec
        groups = [launches] if spec is not None else [[launch] for launch in launches]
        for group in groups:
            mine = tuple(_own_paths(each, cwd, file) for each in findings if _concerns(each, group, cwd, file))
            function = spec.function if spec is not None else None
            lines = set(_lines(group, mine, file))
            rests = tuple(_statements(source, lines, (function or "").partition(".")[0]))
            arguments = spec.spelled if spec is not None else ""
            yield file, Run(function, arguments, tuple(group), mine, rests, dict(result.parts))


def _concerns(finding: Finding, launches: Sequence[LaunchResult], cwd: Path, file: Path) -> bool:
    if finding.kernel is not None:
        return any(finding.kernel == launch.kernel for launch in launches)
    return (cwd / finding.span.path).resolve() == file


def _own_paths(finding: Finding, cwd: Path, file: Path) -> Finding:
    """The finding with absolute paths, an empty one for the file itself."""

    def moved(span: Span) -> Span:
        path = (cwd / span.path).resolve()
        return evolve(span, path="" if path == file else str(path))

    related = tuple(evolve(each, span=moved(each.span)) for each in finding.related)
    return evolve(finding, span=moved(finding.span), related=related, fixes=())


def _lines(launches: Sequence[LaunchResult], findings: Sequence[Finding], file: Path) -> Iterator[int]:
    """The lines of the file that a run speaks of."""
    for launch in launches:
        for place in (launch.facts["place"], launch.facts["kernel_place"], *launch.facts.get("stack", ())):
            if place is not None and Path(place["file"]).resolve() == file:
                yield int(place["line"])
    for finding in findings:
        yield from (each.start.line for each in (finding.span, *(r.span for r in finding.related)) if not each.path)


def _statements(source: Source, lines: set[int], name: str) -> Iterator[Statement]:
    """The statements on these lines or binding `name`, and those that bind what they speak of."""
    from pallas_lint.syntax.outline import outline

    pieces = outline(source).pieces
    binders: dict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        # What an `if` or a `try` binds is not known without parsing it: any of its words may be.
        for bound in piece.words if piece.kind == "block" else piece.names:
            binders[bound].append(piece)
    waiting = [piece for piece in pieces if name in piece.names or any(piece.first <= n <= piece.last for n in lines)]
    reached: dict[int, Piece] = {}
    while waiting:
        piece = waiting.pop()
        if piece.first not in reached:
            reached[piece.first] = piece
            waiting += [binder for word in piece.words for binder in binders.get(word, ())]
    for _, piece in sorted(reached.items()):
        yield Statement(_digest(piece.text), piece.first, piece.last)


def _digest(text: str) -> str:
    return digest(text.rstrip().replace("\r\n", "\n").encode("utf-8", "surrogatepass"))


def _read(file: Path) -> Source | None:
    from pallas_lint.source import Source, SourceError

    try:
        return Source.read(file, str(file))
    except SourceError:
        return None


def _write(place: Path, runs: Sequence[Run]) -> None:
    new = {run.key for run in runs}
    kept = [*(run for run in _load(place) if run.key not in new), *runs][-_MOST_RUNS:]
    place.parent.mkdir(parents=True, exist_ok=True)
    ignore = place.parent.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        written = json.dumps([_converter().unstructure(run) for run in kept])
        entry = {"layout": _LAYOUT, "digest": digest(written.encode()), "runs": written}
        draft.write_text(json.dumps(entry), encoding="utf-8")
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


# -- showing -----------------------------------------------------------------------------------------------------------


def load(file: Path, root: Path | None = None) -> tuple[Run, ...]:
    """The runs that are known of a file, whatever its text is by now. `root`: where they are kept, its project's."""
    return tuple(_load(_place(root or project_root(file.parent), file)))


def stamp(file: Path) -> tuple[Path, int]:
    """Where the runs of a file are kept, and a number that changes with them; 0 where there are none."""
    place = _place(project_root(file.parent), file)
    try:
        return place, place.stat().st_mtime_ns
    except OSError:
        return place, 0


def _load(place: Path) -> list[Run]:
    try:
        entry: dict[str, Any] = json.loads(place.read_bytes())
        if entry["layout"] != _LAYOUT or digest(entry["runs"].encode()) != entry["digest"]:
            return []
        return [_converter().structure(run, Run) for run in json.loads(entry["runs"])]
    # Anybody may have written into that folder: what is not as we wrote it is as good as nothing.
    except Exception:
        return []


def _place(root: Path, file: Path) -> Path:
    return root / FOLDER / "probe" / f"{digest(os.fsencode(file.resolve()))}.json"


def _converter() -> Converter:
    from cattrs import Converter

    return Converter()


def fitting(runs: Iterable[Run], pieces: Outline, path: str) -> tuple[Run, ...]:
    """The runs that hold for a text with this outline, with their lines as they are in it; `path` is the file's."""
    runs = tuple(runs)
    if not runs:
        return ()
    where: dict[str, int] = {}
    for piece in pieces.pieces:
        where.setdefault(_digest(piece.text), piece.first)
    return tuple(
        _moved(run, where, path) for run in runs if all(statement.digest in where for statement in run.rests_on)
    )


def _moved(run: Run, where: Mapping[str, int], path: str) -> Run:
    def line(number: int) -> int:
        for statement in run.rests_on:
            if statement.first <= number <= statement.last:
                return number - statement.first + where[statement.digest]
        return number

    def place(known: dict[str, Any] | None) -> dict[str, Any] | None:
        if known is None or Path(known["file"]) not in files:
            return known
        end = {"end_line": line(known["end_line"])} if known.get("end_line") else {}
        return {**known, "file": path, "line": line(known["line"]), **end}

    def span(known: Span) -> Span:
        if known.path:
            return known
        start, end = evolve(known.start, line=line(known.start.line)), evolve(known.end, line=line(known.end.line))
        return Span(path, start, end)

    files = {Path(launch.place["file"]) for launch in run.launches if launch.place is not None}
    launches = tuple(
        LaunchResult(
            {
                **launch.facts,
                "place": place(launch.facts["place"]),
                "kernel_place": place(launch.facts["kernel_place"]),
            },
            launch.stages,
        )
        for launch in run.launches
    )
    findings = tuple(
        evolve(
            finding,
            span=span(finding.span),
            related=tuple(evolve(each, span=span(each.span)) for each in finding.related),
        )
        for finding in run.findings
    )
    return evolve(run, launches=launches, findings=findings)
