"""Results of earlier probes, kept in the user's own folder: an editor shows them without running anything.

One file for each source file, in it a run for each function that was probed and for each launch that was captured. A
run names the statements that it rests on by their text, those of other files too: it holds as long as all of them are
there, wherever they have moved to.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.finding import Finding, Span
from pallas_lint.probe import dependencies
from pallas_lint.probe.results import STAGES, LaunchResult, Stage
from pallas_lint.records import evolve, fields, frozen
from pallas_lint.report.json import finding_document
from pallas_lint.run.cache import decode
from pallas_lint.run.cache_folder import CacheFolder, modified, own_cache
from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pallas_lint.probe.cost.results import FunctionCost, LineCost
    from pallas_lint.probe.protocol import Place
    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.text.source import Source

_LAYOUT = 13
_KIND = "probe"
_OF_COST = "PAL8"
_MAX_RUNS = 50  # of one file; the oldest are forgotten


@frozen
class StoredRun:
    """What one probe of one function found in one file. `function`: None for a launch that a program made.

    Findings in the file itself have an empty path.
    """

    function: str | None
    arguments: str
    launches: tuple[LaunchResult, ...]
    findings: tuple[Finding, ...]
    rests_on: tuple[dependencies.Statement, ...]
    parts: dict[str, str | None]  # versions of jax and the compilers
    functions: tuple[FunctionCost, ...] = ()  # the cost of the whole function, by target

    @property
    def key(self) -> tuple[str | None, ...]:
        """Equal for runs of which the later one takes the earlier one's place."""
        places = [f"{launch.kernel}:{launch.place['line'] if launch.place else None}" for launch in self.launches]
        return (self.function,) if self.function is not None else (None, *places)


# -- keeping -----------------------------------------------------------------------------------------------------------


def store(
    cwd: Path,
    results: Iterable[ProbeResult],
    findings: Sequence[Finding],
    texts: Mapping[Path, Source] | None = None,
) -> None:
    """Keep the runs of each file. What cannot be written is not kept.

    `texts` are those of files whose text on disk is not the one that was probed.
    """
    by_file: dict[Path, list[StoredRun]] = defaultdict(list)
    for result in results:
        for file, run in runs_of(result, cwd, findings, texts or {}):
            by_file[file].append(run)
    for file, runs in by_file.items():
        cache = own_cache(file.parent)
        if cache is not None:
            _write(cache, file, runs)
            cache.remove_old()


def runs_of(
    result: ProbeResult, cwd: Path, findings: Sequence[Finding], texts: Mapping[Path, Source]
) -> Iterator[tuple[Path, StoredRun]]:
    """The parts of a result by file, for each file that launches something."""
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
            rests = dependencies.statements(
                source,
                (function or "").partition(".")[0],
                set(_lines(group, mine, file)),
                [loaded for name in result.files if (loaded := Path(name).resolve()) != file],
                lambda path: texts.get(path) or _read(path),
            )
            arguments = spec.spelled if spec is not None else ""
            costs = tuple(result.functions)
            yield file, StoredRun(function, arguments, tuple(group), mine, tuple(rests), dict(result.parts), costs)


def _concerns(finding: Finding, launches: Sequence[LaunchResult], cwd: Path, file: Path) -> bool:
    if finding.kernel is not None:
        return any(finding.kernel == launch.kernel for launch in launches)
    return (cwd / finding.span.path).resolve() == file


def _own_paths(finding: Finding, cwd: Path, file: Path) -> Finding:
    """The finding with absolute paths, an empty one for the file itself."""

    def moved(span: Span) -> Span:
        path = (cwd / span.path).resolve()
        return evolve(span, path="" if path == file else str(path))

    return evolve(finding.moved(moved), fixes=())


def _lines(launches: Sequence[LaunchResult], findings: Sequence[Finding], file: Path) -> Iterator[tuple[str, int]]:
    """The lines that a run refers to, with their files' paths: an empty one for `file` itself."""
    for launch in launches:
        for place in (launch.facts["place"], launch.facts["kernel_place"], *launch.facts.get("stack", ())):
            if place is not None:
                path = Path(place["file"]).resolve()
                yield "" if path == file else str(path), int(place["line"])
    for finding in findings:
        yield from ((each.path, each.start.line) for each in (finding.span, *(r.span for r in finding.related)))


def _read(file: Path) -> Source | None:
    from pallas_lint.text.source import Source, SourceError

    try:
        return Source.read(file, str(file))
    except SourceError:
        return None


def _write(cache: CacheFolder, file: Path, runs: Sequence[StoredRun]) -> None:
    before = {run.key: run for run in _load(cache, file)}
    runs = [_completed(run, before.pop(run.key, None)) for run in runs]
    kept = [*before.values(), *runs][-_MAX_RUNS:]
    entry = {"layout": _LAYOUT, "runs": [_document(run) for run in kept]}
    cache.write(_KIND, _name(file), json.dumps(entry).encode())


def _completed(run: StoredRun, before: StoredRun | None) -> StoredRun:
    """A run, completed with results of the one before it on the same code: costs, or interpretation."""
    if before is None or (run.arguments, len(run.launches)) != (before.arguments, len(before.launches)):
        return run
    if {each.digest for each in run.rests_on} != {each.digest for each in before.rests_on}:
        return run
    has_costs = any(launch.costs for launch in run.launches)
    launches = []
    for launch, older in zip(run.launches, before.launches, strict=True):
        if launch.facts["operands"] != older.facts["operands"]:
            return run
        judged, targets = (
            {(each.stage, each.target) for each in launch.stages},
            {each["target"] for each in launch.costs},
        )
        stages = [*(each for each in older.stages if (each.stage, each.target) not in judged), *launch.stages]
        costs = [*launch.costs, *(each for each in older.costs if each["target"] not in targets)]
        stages.sort(key=lambda stage: STAGES.index(stage.stage) if stage.stage in STAGES else len(STAGES))
        launches.append(LaunchResult(launch.facts, stages, costs))
    kept = [
        each for each in before.findings if each.code.startswith(_OF_COST) != has_costs and each not in run.findings
    ]
    functions = run.functions or before.functions
    return evolve(run, launches=tuple(launches), findings=(*run.findings, *kept), functions=functions)


# -- showing -----------------------------------------------------------------------------------------------------------


def load(file: Path) -> tuple[StoredRun, ...]:
    """The stored runs of a file, whatever its text is by now."""
    cache = own_cache(file.parent)
    return tuple(_load(cache, file)) if cache is not None else ()


def stamp(file: Path) -> int:
    """A number that changes with the stored runs of a file; 0 where there are none."""
    return modified(_KIND, _name(file))


def _load(cache: CacheFolder, file: Path) -> list[StoredRun]:
    content = cache.read(_KIND, _name(file))
    if content is None:
        return []
    try:
        entry: dict[str, Any] = json.loads(content)
        return [_run(document) for document in entry["runs"]] if entry["layout"] == _LAYOUT else []
    except Exception:  # of another version: what is not as we write it is as good as nothing
        return []


def _name(file: Path) -> str:
    return digest(os.fsencode(file.resolve()))


def _document(run: StoredRun) -> dict[str, Any]:
    """A run as JSON."""
    launches = [
        {"facts": launch.facts, "stages": list(map(_plain, launch.stages)), "costs": launch.costs}
        for launch in run.launches
    ]
    findings = [{**finding_document(each), "launches": each.launches} for each in run.findings]
    return {**_plain(run), "launches": launches, "findings": findings, "rests_on": list(map(_plain, run.rests_on))}


def _plain(record: StoredRun | Stage | dependencies.Statement) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(type(record))}


def _run(document: dict[str, Any]) -> StoredRun:
    """The run that `_document` wrote. Raises TypeError, KeyError or ValueError for anything else."""
    launches = (
        LaunchResult(each["facts"], [Stage(**stage) for stage in each["stages"]], each["costs"])
        for each in document["launches"]
    )
    return StoredRun(
        document["function"],
        document["arguments"],
        tuple(launches),
        tuple(evolve(decode(each), launches=tuple(each["launches"])) for each in document["findings"]),
        tuple(dependencies.Statement(**each) for each in document["rests_on"]),
        document["parts"],
        tuple(document["functions"]),
    )


def fitting(
    runs: Iterable[StoredRun], path: str, places_in: Callable[[str], Mapping[str, int]]
) -> tuple[StoredRun, ...]:
    """The runs that hold, with their lines as they are now in the file, whose path is `path`, and in others.

    `places_in` returns where the statements of a file are (`dependencies.places`).
    """
    runs = tuple(runs)
    rested_on = {"", *(statement.file for run in runs for statement in run.rests_on)}
    where = {file: places_in(file or path) for file in rested_on} if runs else {}
    return tuple(
        _moved(run, path, where) for run in runs if all(each.digest in where[each.file] for each in run.rests_on)
    )


def _moved(run: StoredRun, path: str, where: Mapping[str, Mapping[str, int]]) -> StoredRun:
    own = frozenset(Path(launch.place["file"]) for launch in run.launches if launch.place is not None)
    now = _Relocation(run, path, own, where)
    launches = tuple(
        LaunchResult(
            {
                **launch.facts,
                "place": now.place(launch.facts["place"]),
                "kernel_place": now.place(launch.facts["kernel_place"]),
            },
            launch.stages,
            [{**cost, "lines": list(map(now.cost_line, cost["lines"]))} for cost in launch.costs],
        )
        for launch in run.launches
    )
    return evolve(run, launches=launches, findings=tuple(finding.moved(now.span) for finding in run.findings))


@frozen
class _Relocation:
    """The lines of a stored run as they are now: of its own file, which had the paths `own`, and of others."""

    run: StoredRun
    path: str
    own: frozenset[Path]
    where: Mapping[str, Mapping[str, int]]

    def line(self, file: str, number: int) -> int:
        for statement in self.run.rests_on:
            if statement.file == file and statement.first <= number <= statement.last:
                return number - statement.first + self.where[file][statement.digest]
        return number

    def place(self, known: Place | None) -> Place | None:
        if known is None:
            return None
        own = Path(known["file"]) in self.own
        file = "" if own else known["file"]
        moved = known.copy()
        moved["file"], moved["line"] = self.path if own else file, self.line(file, known["line"])
        end = known.get("end_line")
        if end:
            moved["end_line"] = self.line(file, end)
        return moved

    def cost_line(self, known: LineCost) -> LineCost:
        path = known["path"]
        if path is None:
            return known
        own = Path(path) in self.own
        line = self.line("" if own else path, known["line"])
        return {**known, "path": self.path if own else path, "line": line}

    def span(self, known: Span) -> Span:
        start, end = (each._replace(line=self.line(known.path, each.line)) for each in (known.start, known.end))
        return Span(known.path or self.path, start, end)
