"""Linting many files: the cache first, then in this process or in several, with results in one order."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pallas_lint.config.bounds import project_root
from pallas_lint.finding import FileResult, Finding, LintError
from pallas_lint.identity import ById
from pallas_lint.known_calls.choice import MAX_CALLS, choose
from pallas_lint.launch_summary import LaunchSummary, in_order
from pallas_lint.records import evolve, field, frozen
from pallas_lint.run import call_index_cache
from pallas_lint.run.cache import Cache
from pallas_lint.run.project import InputFile, Project, concerns_pallas, is_in_project
from pallas_lint.start import tune_gc
from pallas_lint.text.files import read
from pallas_lint.triage.pipeline import of_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.config.settings import Settings
    from pallas_lint.run.cache_folder import CacheFolder
    from pallas_lint.text.source import Source

# A process costs a quarter of a second before it judges its first line (its imports, mostly); a hundred
# kilobytes of kernels take about as long.
_BYTES_THAT_PAY = 400_000
_BYTES_PER_PROCESS = 150_000
_FILES_PER_TASK = 8


@frozen
class RunResult:
    """The verdicts on all files, put together."""

    verdicts: tuple[FileResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    errors: tuple[LintError, ...] = ()
    kernels: int = 0
    files: int = 0
    tracebacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # of files that were not judged
    launches: tuple[LaunchSummary, ...] = ()  # each place that launches a kernel once, sorted
    left_out: Mapping[str, int] = field(factory=dict)  # by file: known calls that were too many to look at


@frozen
class _FileTask:
    """A file that has to be judged; settings by index, since they travel to a process once."""

    path: Path
    shown: str
    settings: int
    key: str | None
    size: int  # bytes


@frozen(eq=False)
class _WorkerInputs:
    """What judging needs, sent to each process once."""

    cwd: Path
    settings: tuple[Settings, ...]
    cache_folder: CacheFolder | None
    project: Project


def run(
    files: Sequence[InputFile],
    *,
    cwd: Path,
    jobs: int | None = None,
    cache_folder: CacheFolder | None = None,
    afresh: bool = False,
) -> RunResult:
    """Lint `files`.

    `jobs` None chooses; `cache_folder` None means no cache; `afresh`: whatever finds something is judged now. The
    result never depends on `jobs`.
    """
    project = Project(cwd, known_callers=None if cache_folder is None else partial(call_index_cache.read, cache_folder))
    cache = Cache(cache_folder, cwd, project) if cache_folder is not None else None
    settings = list({ById(file.settings): file.settings for file in files}.values())
    index = {ById(item): number for number, item in enumerate(settings)}
    fingerprints = [item.fingerprint() for item in settings] if cache else []
    root = project_root(cwd)
    verdicts: dict[str, FileResult] = {}
    tasks: list[_FileTask] = []
    left_out: dict[str, int] = {}
    tune_gc()
    for file in files:
        try:
            data = read(file.path)
        except OSError as error:
            verdicts[file.shown] = _failed(file.shown, f"cannot read the file: {error.strerror or error}")
            continue
        if not concerns_pallas(data):
            verdicts[file.shown] = FileResult(file.shown)
            continue
        number = index[ById(file.settings)]
        # A file of no project is a temporary copy that some tool made: its name does not come again.
        keeping = cache is not None and is_in_project(file.path, root)
        known_calls = project.known_calls(file.path, file.settings)
        if len(known_calls) > MAX_CALLS and (more := choose(known_calls)[1]):
            left_out[file.shown] = more
        key = cache.key(file.shown, data, fingerprints[number], known_calls) if cache and keeping else None
        known = cache.get(file.shown, key) if cache and key else None
        if known is not None and not (afresh and known.findings):
            verdicts[file.shown] = known
            continue
        tasks.append(_FileTask(file.path, file.shown, number, key, len(data)))
    inputs = _WorkerInputs(cwd, tuple(settings), cache_folder, project)
    verdicts.update((verdict.path, verdict) for verdict in _check(inputs, tasks, jobs))
    if cache_folder is not None:
        for versions, callers in project.calls.found_callers:
            call_index_cache.keep(cache_folder, callers, versions)
        cache_folder.remove_old()
    result = combine([verdicts[file.shown] for file in files])
    return _with_known_calls(evolve(result, left_out=left_out), project, files)


def combine(verdicts: Sequence[FileResult]) -> RunResult:
    """The verdicts as one result: findings without repetitions, sorted."""
    used = {place for verdict in verdicts for place in verdict.used_suppressions}
    errors = {error: None for verdict in verdicts for error in verdict.errors}
    return RunResult(
        tuple(verdicts),
        of_run([finding for verdict in verdicts for finding in verdict.findings], used),
        tuple(sorted(errors, key=lambda error: (error.path, error.line or 0, error.message))),
        sum(verdict.kernels for verdict in verdicts),
        len(verdicts),
        tuple(verdict.traceback for verdict in verdicts if verdict.traceback),
        tuple(note for verdict in verdicts for note in verdict.notes),
        tuple(in_order(launch for verdict in verdicts for launch in verdict.launches)),
    )


def _with_known_calls(result: RunResult, project: Project, files: Sequence[InputFile]) -> RunResult:
    """The result with what went wrong with calls elsewhere and on record, and the records of files that are gone."""
    errors = [problem for shapes in project.calls.shapes_read for problem in shapes.problems] + list(
        project.calls.crashes
    )
    gone = [(shapes, function) for shapes in project.calls.shapes_read for function in shapes.gone]
    if not errors and not gone:
        return result
    findings = list(result.findings)
    if any("PAL003" in file.settings.enabled for file in files):
        from pallas_lint.known_calls.call_messages import stale_finding

        for shapes, function in gone:
            path, _, name = function.rpartition("::")
            message = f"there is no {path}: the calls of `{name}` on record are not used"
            findings.append(stale_finding(shapes.shown, shapes.lines[function], message))
    findings.sort(key=lambda finding: finding.sort_key)
    tracebacks = (*result.tracebacks, *project.calls.crashes.values())
    return evolve(result, findings=tuple(findings), errors=(*result.errors, *errors), tracebacks=tracebacks)


def check_source(source: Source, settings: Settings, project: Project) -> FileResult:
    """The verdict on one text; a crash becomes an error of that file."""
    if source.note is not None:
        return FileResult(source.path, notes=(source.note,))
    try:
        from pallas_lint.lint import lint_source

        return lint_source(source, settings, project)
    except Exception as error:
        return _crashed(source.path, error)


def _check(inputs: _WorkerInputs, tasks: list[_FileTask], jobs: int | None) -> list[FileResult]:
    """The verdicts on `tasks`, made here or in as many processes as pay."""
    processes = _processes(jobs, tasks)
    if processes > 1 and _can_start_safely():
        with _started_safely():
            return _check_in_processes(inputs, tasks, processes)
    return _check_files(inputs, tasks) if tasks else []


def _check_files(inputs: _WorkerInputs, tasks: Iterable[_FileTask]) -> list[FileResult]:
    """The verdicts on `tasks`, made in this process."""
    from pallas_lint.notebooks import reading
    from pallas_lint.text.source import SourceError

    cache = Cache(inputs.cache_folder, inputs.cwd, inputs.project) if inputs.cache_folder is not None else None
    verdicts: list[FileResult] = []
    tune_gc()
    for task in tasks:
        try:
            source = reading.read(task.path, task.shown)
        except SourceError as error:
            verdicts.append(_failed(task.shown, error.message, error.line))
            continue
        except Exception as error:
            verdicts.append(_crashed(task.shown, error))
            continue
        verdict = check_source(source, inputs.settings[task.settings], inputs.project)
        if cache and task.key:
            cache.put(verdict, task.key)
        verdicts.append(verdict)
    return verdicts


def _failed(shown: str, message: str, line: int | None = None) -> FileResult:
    return FileResult(shown, errors=(LintError(shown, message, line),))


def _crashed(shown: str, error: Exception) -> FileResult:
    import traceback

    detail = str(error).strip().splitlines()
    message = f"internal error: {type(error).__name__}{': ' + detail[0] if detail else ''} (-v shows where)"
    return FileResult(shown, errors=(LintError(shown, message),), traceback=f"{shown}\n{traceback.format_exc()}")


def _processes(jobs: int | None, tasks: list[_FileTask]) -> int:
    """How many processes to use."""
    if jobs is not None:
        return min(jobs, len(tasks))
    size = sum(task.size for task in tasks)
    if size < _BYTES_THAT_PAY:
        return 1
    return max(1, min(usable_cores(), size // _BYTES_PER_PROCESS, len(tasks)))


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_inputs: _WorkerInputs | None = None  # of a worker process


def _start_worker(inputs: _WorkerInputs) -> None:
    import signal

    global _inputs
    _inputs = inputs
    # Ctrl-C reaches every process of the terminal; the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(tasks: list[_FileTask]) -> list[FileResult]:
    assert _inputs is not None
    return _check_files(_inputs, tasks)


def _can_start_safely() -> bool:
    """Before Python 3.11 only a fork starts without the current folder, the project, on its import path."""
    if sys.version_info >= (3, 11):
        return True
    import multiprocessing

    return multiprocessing.get_start_method() == "fork"


@contextmanager
def _started_safely() -> Iterator[None]:
    """Processes started meanwhile leave the current folder out: `multiprocessing` starts some by `python -c`."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _import_for_all(settings: Iterable[Settings]) -> None:
    """Import what judging needs before processes start, where that spares each of them the same imports."""
    import multiprocessing

    method = multiprocessing.get_start_method()
    if method == "forkserver":
        multiprocessing.set_forkserver_preload(["pallas_lint.lint"])
    if method != "fork":
        return
    import pallas_lint.lint  # noqa: F401  the engine
    from pallas_lint.ruleset.registry import all_rules

    enabled = frozenset[str]().union(*(each.enabled for each in settings))
    for code, entry in all_rules().items():
        if code in enabled and entry.package is None:  # what others offer is imported where its failing is reported
            _ = entry.rule
    gc.freeze()  # what is shared stays shared: collections in the processes do not touch it


def _check_in_processes(inputs: _WorkerInputs, tasks: list[_FileTask], processes: int) -> list[FileResult]:
    """The verdicts on `tasks`; files whose process dies are tried again alone before they are given up."""
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    count = max(1, min(_FILES_PER_TASK, -(-len(tasks) // (processes * 4))))
    portions = [tasks[start : start + count] for start in range(0, len(tasks), count)]
    verdicts: list[FileResult] = []
    left: list[_FileTask] = []
    _import_for_all(inputs.settings)
    pool = ProcessPoolExecutor(processes, initializer=_start_worker, initargs=(inputs,))
    try:
        futures: list[tuple[list[_FileTask], Future[list[FileResult]]]] = [(p, pool.submit(_work, p)) for p in portions]
        for portion, future in futures:
            try:
                verdicts += future.result()
            except BrokenProcessPool:
                left += portion
    except KeyboardInterrupt:
        import multiprocessing

        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    pool.shutdown()
    for task in left:
        with ProcessPoolExecutor(1, initializer=_start_worker, initargs=(inputs,)) as alone:
            try:
                verdicts += alone.submit(_work, [task]).result()
            except BrokenProcessPool:
                verdicts.append(_failed(task.shown, "internal error: the process that checked it died"))
    return verdicts
