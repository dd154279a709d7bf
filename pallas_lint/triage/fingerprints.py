"""Fingerprints that identify a finding across commits: its rule and the code it is about, not its line number."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pallas_lint.finding import Finding
    from pallas_lint.report.lines import SourceLine


def fingerprints(
    findings: Sequence[Finding], source_line: SourceLine, path_of: Callable[[str], str]
) -> Iterator[tuple[Finding, str]]:
    """Each finding with 32 hexadecimal digits that stay the same while code above it comes and goes.

    They are made of rule, file, kernel, backend and the flagged line without its indentation; of several findings alike
    in all of that, of their order too. `path_of` turns a finding's path into one that does not depend on where the
    run was started.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in findings:
        span = finding.span
        text = (source_line(span.path, span.start.line, span.cell) or "").strip()
        parts = (path_of(span.path), finding.code, finding.kernel or "", finding.backend or "", text)
        number = seen[parts]
        seen[parts] += 1
        data = "\0".join((*parts, str(number))).encode("utf-8", "surrogatepass")
        yield finding, digest(data)
