"""Pictures of a launch as SVG: which grid point touches which block, and how the memory is filled."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import Any

from attrs import frozen

CELL, GAP = 14, 1.5  # pixels
LARGE = 2  # times as large where there are few blocks
MOST_CELLS = 48  # blocks along one side; of more, neighbours share a cell
MOST_PANELS = 12  # slices over the leading dimensions


@frozen
class _Cell:
    row: int
    column: int


def blocks(operand: dict[str, Any], visits: list[list[int]], grid: list[int]) -> str:
    """The blocks of one operand. A cell is a block: paler where it is visited once, deeper where often.

    `visits` are the block indices at each grid point, in the order in which the grid runs.
    """
    counts = [-(-size // max(block, 1)) for size, block in zip(operand["shape"], operand["block"], strict=True)]
    rank = len(counts)
    wide = [axis for axis in range(rank) if counts[axis] > 1 or any(visit[axis] not in (0,) for visit in visits)]
    columns_axis = wide[-1] if wide else rank - 1
    rows_axis = wide[-2] if len(wide) > 1 else None
    others = wide[:-2]
    panels: dict[tuple[int, ...], dict[_Cell, list[int]]] = defaultdict(lambda: defaultdict(list))
    for point, visit in enumerate(visits):
        key = tuple(visit[axis] for axis in others)
        row = visit[rows_axis] if rows_axis is not None else 0
        panels[key][_Cell(row, visit[columns_axis])].append(point)
    rows = counts[rows_axis] if rows_axis is not None else 1
    columns = counts[columns_axis] if rank else 1
    every = _every(tuple(counts[axis] for axis in others))
    shown = [key for key in every if key in panels or operand["role"] == "out"][:MOST_PANELS]
    shown += [key for key in sorted(panels) if key not in every][: max(MOST_PANELS - len(shown), 0)]
    drawn = [_panel(panels.get(key, {}), rows, columns, operand, grid, key, others) for key in shown]
    more = len(set(every) | set(panels)) - len(shown)
    note = f'<p class="quiet">and {more} more slices</p>' if more > 0 else ""
    return "".join(drawn) + note


def _every(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    keys: list[tuple[int, ...]] = [()]
    for count in counts:
        keys = [(*key, at) for key in keys for at in range(count)][: MOST_PANELS + 1]
    return keys


def _panel(
    cells: dict[_Cell, list[int]],
    rows: int,
    columns: int,
    operand: dict[str, Any],
    grid: list[int],
    key: tuple[int, ...],
    axes: list[int],
) -> str:
    step_row, step_column = -(-rows // MOST_CELLS), -(-columns // MOST_CELLS)
    merged: dict[_Cell, list[int]] = defaultdict(list)
    for cell, points in cells.items():
        merged[_Cell(cell.row // step_row, cell.column // step_column)] += points
    height, width = -(-rows // step_row), -(-columns // step_column)
    outside = {cell for cell in merged if not (0 <= cell.row < height and 0 <= cell.column < width)}
    far = 3  # cells outside are drawn next to the array, however far away they are
    left = -far if any(cell.column < 0 for cell in outside) else 0
    top = -far if any(cell.row < 0 for cell in outside) else 0
    right = width + (far if any(cell.column >= width for cell in outside) else 0)
    bottom = height + (far if any(cell.row >= height for cell in outside) else 0)
    out = operand["role"] == "out"
    parts = []
    for row in range(height):
        for column in range(width):
            points = merged.get(_Cell(row, column), [])
            parts.append(_square(column - left, row - top, points, _look(points, out), grid))
    drawn: dict[_Cell, list[int]] = defaultdict(list)
    for cell in outside:
        row = -2 if cell.row < 0 else height + 1 if cell.row >= height else cell.row
        column = -2 if cell.column < 0 else width + 1 if cell.column >= width else cell.column
        drawn[_Cell(row, column)] += merged[cell]
    parts += [_square(cell.column - left, cell.row - top, points, "outside", grid) for cell, points in drawn.items()]
    w, h = (right - left) * CELL, (bottom - top) * CELL
    frame = (
        f'<rect class="frame" x="{-left * CELL}" y="{-top * CELL}" width="{width * CELL - GAP + 1}" '
        f'height="{height * CELL - GAP + 1}"/>'
    )
    shown = min((w + 2) * (LARGE if w <= 8 * CELL else 1), 720)
    label = ", ".join(f"dimension {axis}: block {at}" for axis, at in zip(axes, key, strict=True))
    title = f"{operand['name']}: {height} by {width} blocks" + (f" ({label})" if label else "")
    return (
        f'<figure class="panel"><svg viewBox="-1 -1 {w + 2} {h + 2}" width="{shown}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}{frame}</svg>'
        + (f"<figcaption>{escape(label)}</figcaption>" if label else "")
        + "</figure>"
    )


def _look(points: list[int], out: bool) -> str:
    if not points:
        return "never" if out else "unread"
    return "once" if len(points) == 1 else "few" if len(points) <= 4 else "often"


def _square(column: int, row: int, points: list[int], look: str, grid: list[int]) -> str:
    if points:
        named = ", ".join(_point(point, grid) for point in points[:4])
        text = f"grid point {named}" + (f" and {len(points) - 4} more" if len(points) > 4 else "")
    else:
        text = "no grid point"
    # The points are for the stepper, which is an extra: everything is told without it.
    data = f' data-p="{" ".join(map(str, points[:64]))}"' if points else ""
    size = CELL - GAP
    return (
        f'<rect class="{look}" x="{column * CELL}" y="{row * CELL}" width="{size}" height="{size}" rx="2"{data}>'
        f"<title>{text}</title></rect>"
    )


def _point(at: int, grid: list[int]) -> str:
    indices: list[int] = []
    for size in reversed(grid):
        at, index = divmod(at, max(size, 1))
        indices.insert(0, index)
    return f"({', '.join(map(str, indices))})"


def memory(facts: dict[str, Any]) -> str:
    """A bar of what the launch needs of on-chip memory against what it may use."""
    need, limit = facts["bytes"], facts["limit"]
    scale = 600 / max(need, limit, 1)
    parts, x = [], 0.0
    for at, part in enumerate(facts["parts"]):
        width = part["bytes"] * part["buffers"] * scale
        title = f"{part['name']}: {part['buffers']} of {part['bytes']:,} bytes"
        parts.append(
            f'<rect class="part{at % 6}" x="{x:.1f}" y="2" width="{max(width - 1, 0.5):.1f}" height="20">'
            f"<title>{escape(title)}</title></rect>"
        )
        x += width
    mark = limit * scale
    look = "over" if need > limit else "within"
    return (
        f'<svg class="memory" viewBox="0 0 602 26" width="602" role="img" aria-label="{need:,} of {limit:,} bytes">'
        f'<rect class="track" x="0" y="2" width="{mark:.1f}" height="20"/>{"".join(parts)}'
        f'<line class="limit {look}" x1="{mark:.1f}" x2="{mark:.1f}" y1="0" y2="26"/></svg>'
    )
