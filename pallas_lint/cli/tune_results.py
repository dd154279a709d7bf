"""`--tune-results`: files with what calls came to, which `--tune` and `--tune-table` go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pallas_lint.cli import report_files
from pallas_lint.config.flags import UsageError
from pallas_lint.probe.tuning.results_file import Results, ResultsError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from pallas_lint.probe.session import ProbeOptions
    from pallas_lint.probe.specs import Spec

_Kind = TypeVar("_Kind", bound=Results)


def read(kind: type[_Kind], options: argparse.Namespace, function: Spec, conditions: ProbeOptions, cwd: Path) -> _Kind:
    """The results of a function that the files have; the first of them need not be there. Raises UsageError."""
    try:
        found = kind.of(cwd / function.file, function.text, conditions.targets)
    except OSError as error:
        raise UsageError(f"{function.file}: cannot be read: {error.strerror or error}") from error
    for at, file in enumerate(options.tune_results):
        try:
            found.read(cwd / file)
        except FileNotFoundError as error:
            if at > 0:
                raise UsageError(f"--tune-results: {file}: no such file") from error
        except OSError as error:
            raise UsageError(f"--tune-results: {file}: cannot be read: {error.strerror or error}") from error
        except ResultsError as error:
            raise UsageError(f"--tune-results: {file}: {error}") from error
    return found


def write(results: Results, options: argparse.Namespace, cwd: Path) -> None:
    """Write them to the first of the files, if there is one."""
    if options.tune_results:
        report_files.write_text(cwd, results.text(), options.tune_results[0], "--tune-results")


def on_going_on(options: argparse.Namespace) -> str:
    """What a message about an interrupt ends with."""
    return "; the same command goes on from there" if options.tune_results else ""
