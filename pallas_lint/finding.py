"""Results of a lint run: findings, their fixes and the errors of the run itself.

Every producer (static rules, suppressions, the probe) makes these, and every consumer (reports, fixer, server)
reads nothing else. Lines and columns count from 1, columns in Unicode code points, ends are exclusive.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal, NamedTuple

from pallas_lint.records import evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.launch_summary import LaunchSummary

Applicability = Literal["safe", "unsafe"]
DOCS_URL = "https://pallas-lint.readthedocs.io/en/stable/rules/"


class Severity(enum.Enum):
    """How sure and how bad: see the table at the top of the rule catalogue."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """2 for error, 1 for warning, 0 for info."""
        return {"error": 2, "warning": 1, "info": 0}[self.value]

    def lowered(self) -> Severity:
        """One step down; info stays info."""
        return Severity.WARNING if self is Severity.ERROR else Severity.INFO


class Position(NamedTuple):
    line: int
    column: int


@frozen(order=True)
class Span:
    """A range of one file. `path` is as the user will read it: relative to the working directory.

    In a notebook, lines are those of all code cells together (`pallas_lint.notebooks`), until a report names `cell`.
    """

    path: str
    start: Position
    end: Position
    cell: int | None = None  # from 1, among all cells: lines are of that cell

    def contains(self, other: Span) -> bool:
        """Whether another range lies in this one, or is the same."""
        return self.path == other.path and self.start <= other.start and other.end <= self.end


@frozen
class Edit:
    """Replace what `span` covers by `text`; an empty span inserts."""

    span: Span
    text: str


@frozen
class Fix:
    """Edits that belong together: all are applied or none."""

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...]


ELSEWHERE = "and here"  # the label of further places of a finding that stands for several


@frozen
class Related:
    span: Span
    message: str


@frozen
class Finding:
    """One verdict at one place."""

    code: str
    name: str
    severity: Severity
    message: str
    span: Span
    help: str = ""
    kernel: str | None = None
    backend: str | None = None  # "tpu" | "triton" | "mosaic_gpu" | None: holds on any
    device: str | None = None  # device generations, where the verdict hangs on them: "v5e", "sm90", "tpu7x, v4"
    jax: str | None = None  # the jax version (or range) for which it holds; None: any
    dtype: str | None = None  # as jax prints it in avals: "bf16", "f32", "i8"
    origin: Literal["static", "probe"] = "static"
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
    known_call: KnownCall | None = None  # the call for which it holds; None: it holds for any

    @property
    def cell(self) -> int | None:
        return self.span.cell

    page: str | None = None  # the address of the rule's page where the rule is of another package
    core: str | None = None  # of a TPU: "tensor" or "sparse"; None: no TPU, or it holds on both
    # Of the probe: what distinguishes its launches from others at their line; empty where that is not known.
    launches: tuple[str, ...] = field(default=(), eq=False)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices for which it holds; empty where it holds for any."""
        return tuple(self.device.split(", ")) if self.device else ()

    def with_devices(self, other: Finding) -> Finding:
        """This finding for the devices of both, where both hold for certain devices."""
        if not self.device or not other.device or self.device == other.device:
            return self
        return evolve(self, device=", ".join(sorted({*self.devices, *other.devices})))

    @property
    def url(self) -> str:
        return f"{DOCS_URL}{self.code}/" if self.page is None else self.page

    def moved(self, place: Callable[[Span], Span]) -> Finding:
        """A copy with every span, related ones and those of edits too, replaced by `place`."""
        return evolve(
            self,
            span=place(self.span),
            related=tuple(evolve(each, span=place(each.span)) for each in self.related),
            fixes=tuple(
                evolve(fix, edits=tuple(evolve(edit, span=place(edit.span)) for edit in fix.edits))
                for fix in self.fixes
            ),
        )

    @property
    def sort_key(self) -> tuple[object, ...]:
        start = self.span.start
        return self.span.path, self.cell or 0, start.line, start.column, self.code, self.backend or "", self.message


@frozen
class LintError:
    """Something that kept a file, a rule or the run from being judged; makes the exit status 2."""

    path: str
    message: str
    line: int | None = None


@frozen
class FileResult:
    """The verdict on one file."""

    path: str
    findings: tuple[Finding, ...] = ()
    errors: tuple[LintError, ...] = ()
    kernels: int = 0
    dependencies: tuple[str, ...] = ()  # files of other modules that the verdict rests on, there or missing
    used_suppressions: tuple[tuple[str, int], ...] = ()  # (path, line) of comments elsewhere that silenced something
    traceback: str | None = None  # of an internal error
    launches: tuple[LaunchSummary, ...] = ()  # the places in it that launch kernels
    notes: tuple[str, ...] = ()  # why it was not judged
