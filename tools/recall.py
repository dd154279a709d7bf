"""How many of the problems in tests/problems are found, by class: `python tools/recall.py` prints a table."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.problems.cases import Case, all_cases
from tests.problems.undecided import UNDECIDED
from tests.rules.harness import lint

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


def main() -> None:
    lines, missed = table()
    print("\n".join(lines))
    if missed:
        print("\nMissed: " + ", ".join(missed))


if __name__ == "__main__":
    main()
