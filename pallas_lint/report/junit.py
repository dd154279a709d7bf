"""JUnit's XML, for the test tabs of CI systems: one suite a file, one case a finding."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from pallas_lint.finding import Severity
from pallas_lint.report.concise import circumstances
from pallas_lint.report.style import visible_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from pallas_lint.finding import Finding, LintError
    from pallas_lint.report import Report

# What XML 1.0 cannot hold, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> Iterator[str]:
    """Findings are failures, those of severity info passed cases with a remark; errors of the run are errors."""
    root = ElementTree.Element("testsuites", name="pallas-lint")
    for path, findings in groupby(report.findings, key=lambda finding: finding.span.path):
        suite = ElementTree.SubElement(root, "testsuite", name=visible_file(path), package="pallas-lint")
        for finding in findings:
            _case(suite, finding)
    if report.errors:
        suite = ElementTree.SubElement(root, "testsuite", name="errors of the run", package="pallas-lint")
        for error in report.errors:
            _error(suite, error)
    if not len(root):
        suite = ElementTree.SubElement(root, "testsuite", name="pallas-lint", package="pallas-lint")
        ElementTree.SubElement(suite, "testcase", name="no findings", classname="pallas-lint")
    for element in (*root, root):
        element.set("tests", str(len(list(element.iter("testcase")))))
        element.set("failures", str(len(list(element.iter("failure")))))
        element.set("errors", str(len(list(element.iter("error")))))
    ElementTree.indent(root)
    # ASCII with character references: right whatever the encoding of the stream.
    yield ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True).decode() + "\n"


def _case(suite: Element, finding: Finding) -> None:
    span = finding.span
    cell = f" of cell {finding.cell}" if finding.cell is not None else ""
    place = f"line {span.start.line}{cell}, column {span.start.column}"
    case = ElementTree.SubElement(
        suite, "testcase", name=f"{finding.code} {finding.name}, {place}", classname=visible_file(span.path),
        file=visible_file(span.path), line=str(span.start.line),
    )  # fmt: skip
    details = _text(
        "\n".join(part for part in (finding.message, finding.help, ", ".join(circumstances(finding))) if part)
    )
    if finding.severity is Severity.INFO:
        ElementTree.SubElement(case, "system-out").text = details
    else:
        failure = ElementTree.SubElement(case, "failure", message=_text(finding.message), type=finding.severity.value)
        failure.text = f"{visible_file(span.path)}: {place}\n{details}\n{finding.url}"


def _error(suite: Element, error: LintError) -> None:
    name = f"{visible_file(error.path)}:{error.line}" if error.line else visible_file(error.path) or "pallas-lint"
    case = ElementTree.SubElement(suite, "testcase", name=_text(name), classname="pallas-lint")
    ElementTree.SubElement(case, "error", message=_text(error.message), type="error")


def _text(text: str) -> str:
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
