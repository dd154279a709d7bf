"""Pictures of a launch as SVG: which grid point touches which block, and how the memory is filled."""

from __future__ import annotations

from collections import Counter, defaultdict
from html import escape
from typing import TYPE_CHECKING

from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from pallas_lint.probe.protocol import Memory, OperandFacts

CELL, GAP = 14, 1.5  # pixels
LARGE = 2  # times as large where there are few blocks
MAX_ASPECT = 2  # times as high as wide, or as wide as high
MAX_CELLS = 48  # blocks along one side; of more, neighbours share a cell
MAX_PANELS = 12  # slices over the leading dimensions


@frozen
class _Cell:
    row: int
    column: int


@frozen
class _View:
    """How the blocks of one operand are laid on paper: two dimensions are rows and columns, of the others slices."""

    operand: OperandFacts
    grid: list[int]
    visits: list[list[int]]  # the block of each grid point
    outside: str  # the look of blocks that are not in the array
    counts: list[int]  # blocks of each dimension
    rows_axis: int | None
    columns_axis: int | None
    others: list[int]  # the dimensions that slices are taken of

    @property
    def rows(self) -> int:
        return 1 if self.rows_axis is None else self.counts[self.rows_axis]

    @property
    def columns(self) -> int:
        return 1 if self.columns_axis is None else self.counts[self.columns_axis]

    @property
    def size(self) -> str:
        """ "4 by 8 blocks", or "8 blocks" along one dimension."""
        return f"{self.columns} blocks" if self.rows_axis is None else f"{self.rows} by {self.columns} blocks"

    @property
    def step(self) -> _Cell:
        """How many blocks share a cell, down and across."""
        return _Cell(-(-self.rows // MAX_CELLS), -(-self.columns // MAX_CELLS))

    @property
    def height(self) -> float:
        """The height of a cell in pixels: in the proportions of a block, as long as blocks can be distinguished."""
        block = self.operand["block"]
        if block is None or self.rows_axis is None or self.columns_axis is None:
            return CELL
        apart = block[self.rows_axis] / max(block[self.columns_axis], 1)
        return round(CELL * min(max(apart, 1 / MAX_ASPECT), MAX_ASPECT), 1)

    def cell(self, visit: list[int]) -> _Cell:
        row, column = (0 if axis is None else visit[axis] for axis in (self.rows_axis, self.columns_axis))
        return _Cell(row // self.step.row, column // self.step.column)

    def most(self, points: list[int]) -> int:
        """How often the block is visited that these points visit most often: several may share a cell."""
        return max(Counter(tuple(self.visits[point]) for point in points).values(), default=0)

    def name(self, key: tuple[int, ...], cell: _Cell) -> str:
        """ "block (1, 2)", or "blocks (4 to 5, 0 to 1)" where several share a cell."""
        indices = ["0"] * len(self.counts)
        for axis, at in zip(self.others, key, strict=True):
            indices[axis] = str(at)
        for along, at, step in (
            (self.rows_axis, cell.row, self.step.row),
            (self.columns_axis, cell.column, self.step.column),
        ):
            if along is not None:
                first, last = at * step, min((at + 1) * step, max(self.counts[along], at * step + 1)) - 1
                indices[along] = str(first) if first == last else f"{first} to {last}"
        several = any(" to " in index for index in indices)
        return f"block{'s' if several else ''} ({', '.join(indices)})"


def blocks(operand: OperandFacts, visits: list[list[int]], grid: list[int], *, certain: bool = True) -> str:
    """The blocks of one operand. A cell is a block: paler where it is visited once, deeper where often.

    `visits` are the block indices at each grid point, in the order in which the grid runs. `certain`: whether those
    outside the array are an error.
    """
    counts = [-(-whole // max(block, 1)) for whole, block in zip(operand["shape"], operand["block"] or (), strict=True)]
    rank = len(counts)
    wide = [axis for axis in range(rank) if counts[axis] > 1 or any(visit[axis] != 0 for visit in visits)]
    drawn_axes = wide or list(range(rank))[-1:]
    if len(drawn_axes) == 1 and drawn_axes[0] < rank - 1:
        drawn_axes.append(rank - 1)  # rows of blocks are drawn as rows
    view = _View(
        operand,
        grid,
        visits,
        "outside" if certain else "doubtful",
        counts,
        rows_axis=drawn_axes[-2] if len(drawn_axes) > 1 else None,
        columns_axis=drawn_axes[-1] if drawn_axes else None,
        others=drawn_axes[:-2],
    )
    panels: dict[tuple[int, ...], dict[_Cell, list[int]]] = defaultdict(lambda: defaultdict(list))
    for point, visit in enumerate(visits):
        panels[tuple(visit[axis] for axis in view.others)][view.cell(visit)].append(point)
    every = _every(tuple(counts[axis] for axis in view.others))
    shown = [key for key in every if key in panels or operand["role"] == "out"][:MAX_PANELS]
    shown += [key for key in sorted(panels) if key not in every][: max(MAX_PANELS - len(shown), 0)]
    drawn = [_panel(view, key, panels.get(key, {})) for key in shown]
    more = len(set(every) | set(panels)) - len(shown)
    note = f'<p class="quiet">and {more} more slices</p>' if more > 0 else ""
    return "".join(drawn) + note


def _every(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    keys: list[tuple[int, ...]] = [()]
    for count in counts:
        keys = [(*key, at) for key in keys for at in range(count)][: MAX_PANELS + 1]
    return keys


def _panel(view: _View, key: tuple[int, ...], cells: dict[_Cell, list[int]]) -> str:
    height, width = -(-view.rows // view.step.row), -(-view.columns // view.step.column)
    outside = {cell for cell in cells if not (0 <= cell.row < height and 0 <= cell.column < width)}
    far = 3  # cells outside are drawn next to the array, however far away they are
    left = -far if any(cell.column < 0 for cell in outside) else 0
    top = -far if any(cell.row < 0 for cell in outside) else 0
    right = width + (far if any(cell.column >= width for cell in outside) else 0)
    bottom = height + (far if any(cell.row >= height for cell in outside) else 0)
    out = view.operand["role"] == "out"
    parts = []
    for row in range(height):
        for column in range(width):
            cell = _Cell(row, column)
            points = cells.get(cell, [])
            title = f"{view.name(key, cell)}: {_visits(points, view.grid)}"
            parts.append(_square(column - left, row - top, view.height, _look(view.most(points), out), title, points))
    drawn: dict[_Cell, list[_Cell]] = defaultdict(list)
    for cell in sorted(outside, key=lambda cell: (cell.row, cell.column)):
        row = -2 if cell.row < 0 else height + 1 if cell.row >= height else cell.row
        column = -2 if cell.column < 0 else width + 1 if cell.column >= width else cell.column
        drawn[_Cell(row, column)].append(cell)
    for cell, members in drawn.items():
        points = sorted(point for each in members for point in cells[each])
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        title = f"{view.name(key, members[0])}{more}, outside the array: {_visits(points, view.grid)}"
        parts.append(_square(cell.column - left, cell.row - top, view.height, view.outside, title, points))
    w, h = (right - left) * CELL, round((bottom - top) * view.height, 1)
    frame = (
        f'<rect class="frame" x="{-left * CELL}" y="{-top * view.height:g}" width="{width * CELL - GAP + 1}" '
        f'height="{height * view.height - GAP + 1:g}"/>'
    )
    shown = min((w + 2) * (LARGE if w <= 8 * CELL else 1), 720)
    label = ", ".join(f"dimension {axis}: block {at}" for axis, at in zip(view.others, key, strict=True))
    title = f"{view.operand['name']}: {view.size}" + (f" ({label})" if label else "")
    return (
        f'<figure class="panel"><svg class="blocks" viewBox="-1 -1 {w + 2} {h + 2:g}" width="{shown}" role="img" '
        f'aria-label="{escape(title)}"><g aria-hidden="true">{"".join(parts)}{frame}</g></svg>'
        + (f"<figcaption>{escape(label)}</figcaption>" if label else "")
        + "</figure>"
    )


def _look(visits: int, out: bool) -> str:
    if not visits:
        return "never" if out else "unread"
    return "once" if visits == 1 else "few" if visits <= 4 else "often"


def _visits(points: list[int], grid: list[int]) -> str:
    """ "3 visits, at grid points (0, 0), (0, 1), (0, 2)"; the first four of many."""
    if not points:
        return "no visit"
    if len(points) == 1:
        return f"1 visit, at grid point {_point(points[0], grid)}"
    named = ", ".join(_point(point, grid) for point in points[:4])
    more = f" and {len(points) - 4} more" if len(points) > 4 else ""
    return f"{len(points)} visits, at grid points {named}{more}"


def _square(column: int, row: int, height: float, look: str, title: str, points: list[int]) -> str:
    # The points are for the stepper, which is an extra: everything is shown without it.
    data = f' data-p="{" ".join(map(str, points[:64]))}"' if points else ""
    return (
        f'<rect class="{look}" x="{column * CELL}" y="{row * height:g}" width="{CELL - GAP}" '
        f'height="{height - GAP:g}" rx="2"{data}><title>{title}</title></rect>'
    )


def _point(at: int, grid: list[int]) -> str:
    indices: list[int] = []
    for axis in reversed(grid):
        at, index = divmod(at, max(axis, 1))
        indices.insert(0, index)
    return f"({', '.join(map(str, indices))})"


def memory(facts: Memory) -> str:
    """A bar of what the launch needs of on-chip memory against what it may use."""
    need, limit = facts["bytes"], facts["limit"]
    scale = 600 / max(need, limit, 1)
    parts, x = [], 0.0
    for at, part in enumerate(facts["parts"]):
        width = part["bytes"] * part["buffers"] * scale
        title = f"{part['name']}: {part['buffers']} of {format_bytes(part['bytes'])}"
        parts.append(
            f'<rect class="part{at % 6}" x="{x:.1f}" y="2" width="{max(width - 1, 0.5):.1f}" height="20">'
            f"<title>{escape(title)}</title></rect>"
        )
        x += width
    mark = limit * scale
    look = "over" if need > limit else "within"
    return (
        '<svg class="memory" viewBox="0 0 602 26" width="602" role="img" '
        f'aria-label="{format_bytes(need)} of {format_bytes(limit)}">'
        f'<rect class="track" x="0" y="2" width="{mark:.1f}" height="20"/>{"".join(parts)}'
        f'<line class="limit {look}" x1="{mark:.1f}" x2="{mark:.1f}" y1="0" y2="26"/></svg>'
    )
