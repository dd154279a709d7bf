"""Probe stages of a launch and their results, as text."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.report.style import visible
from pallas_lint.text.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pallas_lint.report.style import Style


def title(launch: Mapping[str, Any], style: Style) -> str:
    """ "src/a.py:13: kernel, 8 steps, VMEM 128 KiB of 16 MiB (v5e)"."""
    where = f"{visible(launch['path'])}:{launch['line']}: " if launch["path"] else ""
    line = f"{style.path(where)}{style.bold(visible(launch['kernel']))}"
    if launch["grid"] is not None:
        steps = math.prod(launch["grid"])
        line += f", {steps:,} {plural('step', steps)}"
    memory = launch.get("memory")
    if memory is not None:
        limit = f" of {format_bytes(memory['limit'])}" if memory.get("limit") else ""
        line += f", {memory['space'].upper()} {format_bytes(memory['bytes'])}{limit}"
        line += f" ({memory['device']})" if memory.get("device") else ""
    return line


def lines(launch: Mapping[str, Any], style: Style) -> Iterator[str]:
    """One line for the stages without a target, one for each target, and why those that were not tried were not."""
    stages = [stage for stage in launch["stages"] if stage["stage"] != "cost"]
    for target, group in groupby(stages, key=lambda stage: stage["target"]):
        those = list(group)
        summary = ", ".join(f"{stage['stage']} {_word(stage, style)}" for stage in those)
        yield f"  {target}: {summary}" if target else f"  {summary}"
        for stage in those:
            if stage["detail"] and (not stage["ok"] or stage["stage"] in ("compile", "run")):
                yield style.dim(f"    {stage['stage']}: {visible(stage['detail'])}")


def _word(stage: Mapping[str, Any], style: Style) -> str:
    if stage["ok"] is None:
        return style.place("not judged")
    return style.good("ok") if stage["ok"] else style.removed("failed")
