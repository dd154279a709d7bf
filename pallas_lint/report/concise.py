"""The concise format: one line a finding, as editors and grep like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.report import footer, statistics
from pallas_lint.report.style import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.report import Report


def render(report: Report) -> Iterator[str]:
    """`path:line:col: PAL103 [error] message [kernel, triton, jax 0.4.35]` for each finding, then the footer."""
    style = report.style
    if report.statistics:
        yield from statistics.render(report)
    for finding in () if report.statistics else report.findings:
        span = finding.span
        where = f"{style.path(footer.file_of(span))}:{span.start.line}:{span.start.column}:"
        code = style.page(style.severity(finding.severity, finding.code), finding.page)
        context = circumstances(finding)
        tail = style.dim(f" [{', '.join(context)}]") if context else ""
        yield f"{where} {code} [{finding.severity.value}] {visible(finding.message)}{tail}\n"
    yield from footer.render(report)


def circumstances(finding: Finding) -> list[str]:
    """What a finding holds for: kernel, backend with device, jax version, dtype, as far as known."""
    backend = (finding.backend or "").replace("_", "-")
    if finding.device:
        backend = f"{backend}:{finding.device}" if backend else finding.device
    if finding.core == "sparse":
        backend += "/sc"
    jax = f"jax {finding.jax}" if finding.jax else ""
    return [visible(part) for part in (finding.kernel or "", backend, jax, finding.dtype or "") if part]
