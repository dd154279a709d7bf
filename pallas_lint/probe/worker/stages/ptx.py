"""Instructions of a compiled kernel's PTX, by the unit of a multiprocessor that they keep busy."""

from __future__ import annotations

import re

from ...protocol import WarpWork

# For one warp. Clocks of tensor cores at their full rate: a wgmma is one of four warps, m64nNk16 takes N / 2; an
# m16n8k16 of mma.sync 2. Shared memory gives 128 bytes a clock; a wgmma reads 64 rows and N columns of 32 bytes there.
_WGMMA = re.compile(r"wgmma\.mma_async\..*m64n(\d+)k")
_MMA = re.compile(r"mma\.sync\.aligned\.m16n8k(\d+)\.")
_MATRIX = re.compile(r"(?:ld|st)matrix\..*\.x([124])\b")
_SHARED = re.compile(r"(?:ld|st)\.shared(?:\.v(\d))?\.b(\d+)")
_SPECIAL = re.compile(r"(?:ex2|lg2|rsqrt|rcp|sqrt|sin|cos|tanh|div\.full)\.")
_COPY = re.compile(r"cp\.async\.c[ag]\.")
# No instruction of its own, or one that only waits.
_FREE = ("mov.", "ld.param", "cvta", "ret", "bra", "griddepcontrol", "fence", "wgmma.", "cp.async")
_LABEL = re.compile(r"(\$\w+):")
_BRANCH = re.compile(r"(?:@!?%\w+\s+)?bra(?:\.uni)?\s+(\$\w+);")
_INSTRUCTION = re.compile(r"(?:@!?%\w+\s+)?([a-z][\w.:]*)")
_ENTRY = re.compile(r"\.entry\b")


def counted(text: str) -> tuple[WarpWork, WarpWork] | None:
    """What a warp does once, and in one turn of the loop; None where there are several loops, or kernels."""
    lines = [line.strip() for line in text.splitlines()]
    if len(_ENTRY.findall(text)) != 1:
        return None
    labels = {label[1]: at for at, line in enumerate(lines) if (label := _LABEL.match(line))}
    loops = [
        (labels[branch[1]], at)
        for at, line in enumerate(lines)
        if (branch := _BRANCH.match(line)) and labels.get(branch[1], at) < at
    ]
    if len(loops) > 1:
        return None
    once, turn = _nothing(), _nothing()
    first, last = loops[0] if loops else (0, -1)
    for at, line in enumerate(lines):
        instruction = _INSTRUCTION.match(line)
        if instruction is not None:
            _count(instruction[1], turn if first <= at <= last else once)
    return once, turn


def _nothing() -> WarpWork:
    return {
        "wgmma": 0, "mma": 0, "shared": 0, "special": 0, "shuffles": 0, "barriers": 0, "copies": 0, "issued": 0
    }  # fmt: skip


def _count(name: str, work: WarpWork) -> None:
    if found := _WGMMA.match(name):
        work["wgmma"] += int(found[1]) / 8
        work["shared"] += (64 + int(found[1])) / 16
        return
    if found := _MMA.match(name):
        work["mma"] += int(found[1]) / 8
        return
    if name.startswith("bar.sync"):
        work["barriers"] += 1
        return
    if _COPY.match(name):
        work["copies"] += 1
    elif name.startswith(_FREE):
        return
    elif found := _MATRIX.match(name):
        work["shared"] += int(found[1])
    elif found := _SHARED.match(name):
        work["shared"] += max(int(found[1] or 1) * int(found[2]) / 32, 1)
    elif _SPECIAL.match(name):
        work["special"] += 1
    elif name.startswith("shfl"):
        work["shuffles"] += 1
    work["issued"] += 1
