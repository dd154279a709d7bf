"""What a lint run produces: findings, their fixes and the errors of the run itself.

Every producer (static rules, suppressions, the probe) makes these, and every consumer (reports, fixer, server)
reads nothing else. Lines and columns count from 1, columns in Unicode code points, ends are exclusive.
"""

from __future__ import annotations

import enum
from typing import Literal

from attrs import frozen

Applicability = Literal["safe", "unsafe"]
DOCS_URL = "https://pallas-lint.readthedocs.io/rules/"


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


@frozen(order=True)
class Position:
    line: int
    column: int


@frozen(order=True)
class Span:
    """A range of one file. `path` is as the user will read it: relative to the working directory."""

    path: str
    start: Position
    end: Position


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
    device: str | None = None  # a device generation, where the verdict hangs on it: "v5e", "sm90", "rocm"
    jax: str | None = None  # the jax version (or range) for which it holds; None: any
    dtype: str | None = None  # as jax prints it in avals: "bf16", "f32", "i8"
    origin: Literal["static", "probe"] = "static"
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
    cell: int | None = None

    @property
    def url(self) -> str:
        return f"{DOCS_URL}{self.code}/"

    @property
    def sort_key(self) -> tuple[object, ...]:
        return (self.span.path, self.cell or 0, self.span.start, self.code, self.backend or "", self.message)


@frozen
class LintError:
    """Something that kept a file, a rule or the run from being judged; makes the exit status 2."""

    path: str
    message: str
    line: int | None = None
