"""How many of the problems in tests/problems are found, by class: `python tools/recall.py` prints a table.

With a folder of environments, one for each jax version under its number, the probe is run too.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pallas_lint.testing import lint
from tests.problems.cases import Case, all_cases
from tests.problems.undecided import UNDECIDED

COLUMNS = ("yes", "partly")


def found(case: Case) -> bool:
    """Whether the mistake is flagged on a marked line, and the repaired code is not."""

    def flagged(code: str) -> set[tuple[str, int]]:
        return {(finding.code, finding.span.start.line) for finding in lint(code, case.jax, case.target)}

    return bool(flagged(case.code) & case.marked) and not any(code == case.expect for code, _ in flagged(case.repaired))


def table() -> tuple[list[str], list[str]]:
    """The lines of the table, and the names of what is missed."""
    hits: dict[tuple[str, str], int] = defaultdict(int)
    totals: dict[tuple[str, str], int] = defaultdict(int)
    undecided: dict[str, int] = defaultdict(int)
    missed = []
    for case in all_cases():
        key = (case.problem, case.static)
        totals[key] += 1
        if found(case):
            hits[key] += 1
        else:
            missed.append(f"{case.name} ({case.expect})")
    for name, (static, _) in UNDECIDED.items():
        totals[name.partition("/")[0], static] += 1
        undecided[name.partition("/")[0]] += 1

    def cells(problems: list[str]) -> str:
        parts = []
        for column in COLUMNS:
            total = sum(totals[problem, column] for problem in problems)
            parts.append(f"{sum(hits[problem, column] for problem in problems)}/{total}" if total else "")
        return " | ".join([*parts, str(sum(undecided[problem] for problem in problems) or "")])

    problems = sorted({problem for problem, _ in totals})
    lines = ["| class | yes | partly | of them not for a rule |", "| --- | --- | --- | --- |"]
    lines += [f"| {problem} | {cells([problem])} |" for problem in problems]
    lines.append(f"| **all** | {cells(problems)} |")
    return lines, missed


def probed(case: Case, environments: Path) -> tuple[set[str], set[str]] | None:
    """The probe's findings in the case and in its repaired twin: codes of errors and warnings.

    None where it cannot be called, or where no environment has its jax.
    """
    from pallas_lint.finding import Severity
    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.findings import findings_of
    from pallas_lint.probe.session import ProbeOptions, Session
    from pallas_lint.probe.specs import comments_in

    python = environments / case.jax / "bin" / "python"
    if case.call is None or not python.exists():
        return None
    function, _, arguments = case.call.partition("(")
    arguments = re.sub(r"\b((?:bf|[fiu])\d+|bool)\(([\d, ]*?),?\)", r"\1[\2]", arguments)
    sides: list[set[str]] = []
    with tempfile.TemporaryDirectory() as folder, Worker(str(python), Path(folder)) as worker:
        session = Session(worker, Path(folder), ProbeOptions((case.target,) if case.target else (), timeout=90.0))
        for name, code in (("broken", case.code), ("repaired", case.repaired)):
            (Path(folder) / f"{name}.py").write_text(code, encoding="utf-8")
            (spec,) = comments_in(f"# pallas-lint: probe({arguments}\n{function} = 0\n", f"{name}.py")
            findings, errors = findings_of(session.probe(spec), Path(folder), lambda path, number: None)
            codes = {each.code for each in findings if each.severity is not Severity.INFO}
            sides.append(codes | {f"error: {error.message}" for error in errors})
    return sides[0], sides[1]


def probe_table(environments: Path) -> None:
    """Recall of rules and probe together, case by case as it goes."""
    hits = {column: [0, 0, 0] for column in COLUMNS}  # cases, found by rules, found by rules or probe
    for case in all_cases():
        by_rules = found(case)
        probe_result = probed(case, environments)
        by_probe = probe_result is not None and bool(probe_result[0])
        hits[case.static][0] += 1
        hits[case.static][1] += by_rules
        hits[case.static][2] += by_rules or by_probe
        if probe_result is not None:
            print(
                f"{case.name}: rules {by_rules}, probe {sorted(probe_result[0])}; repaired {sorted(probe_result[1])}",
                flush=True,
            )
    print("| | cases | rules | rules and probe |\n| --- | --- | --- | --- |")
    for column, (count, rules, both) in hits.items():
        print(f"| {column} | {count} | {rules} | {both} |")


def main() -> None:
    if len(sys.argv) > 1:  # a folder with an environment for each jax version, by its number
        probe_table(Path(sys.argv[1]))
        return
    lines, missed = table()
    print("\n".join(lines))
    if missed:
        print("\nMissed: " + ", ".join(missed))


if __name__ == "__main__":
    main()
