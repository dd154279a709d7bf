"""The interface for rules of other packages: everything that they are given and return.

    from pallas_lint.api import Context, Example, Finding, Launch, Rule, Severity

Other modules may be renamed in any release; what stands here keeps its name and its place. Classes may gain members.
Tests of rules use `pallas_lint.testing`.
"""

from __future__ import annotations

from pallas_lint.checker.backend_failures import Failure, failure
from pallas_lint.checker.context import Context
from pallas_lint.config.targets import JaxVersions, Target
from pallas_lint.finding import Applicability, Edit, Finding, Fix, Position, Related, Severity, Span
from pallas_lint.kernels.grid.blocks import Block, blocks_of
from pallas_lint.kernels.grid.index_maps import IndexMap
from pallas_lint.kernels.model.launch import BlockDim, BlockSpec, Launch
from pallas_lint.kernels.model.launch_forms import LaunchForm
from pallas_lint.kernels.model.trace import Access, Capture, Concretization, Event, Guard, KernelTrace, Op
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Class,
    Const,
    Dictionary,
    Dim,
    DType,
    External,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Shape,
    Slice,
    Sym,
    Unknown,
    Value,
    dim,
    options,
    shape_of,
)
from pallas_lint.ruleset.rule import Example, FixKind, Rule
from pallas_lint.syntax import Piece, Site, nodes
from pallas_lint.syntax.uses import Use

__all__ = [
    "ELLIPSIS",
    "NONE",
    "UNKNOWN",
    "Access",
    "Applicability",
    "Array",
    "Block",
    "BlockDim",
    "BlockSpec",
    "CallResult",
    "Capture",
    "Class",
    "Concretization",
    "Const",
    "Context",
    "DType",
    "Dictionary",
    "Dim",
    "Edit",
    "Event",
    "Example",
    "External",
    "Failure",
    "Finding",
    "Fix",
    "FixKind",
    "Func",
    "Guard",
    "IndexMap",
    "Instance",
    "JaxVersions",
    "KernelTrace",
    "Launch",
    "LaunchForm",
    "OneOf",
    "Op",
    "Piece",
    "Position",
    "Ref",
    "Related",
    "Rule",
    "Seq",
    "Severity",
    "Shape",
    "Site",
    "Slice",
    "Span",
    "Sym",
    "Target",
    "Unknown",
    "Use",
    "Value",
    "blocks_of",
    "dim",
    "failure",
    "nodes",
    "options",
    "shape_of",
]
