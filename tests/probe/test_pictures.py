"""What the pictures of blocks say: every cell has words, for those who point at it and those who do not see it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from pallas_lint.probe.page.pictures import MAX_CELLS, MAX_PANELS, blocks

TITLE = re.compile(r"<rect class=\"(\w+)\"[^>]*><title>([^<]*)</title>")


def operand(shape: list[int], block: list[int], role: str = "in") -> dict[str, Any]:
    return {"name": "x_ref", "role": role, "shape": shape, "block": block}


def cells(drawn: str) -> list[tuple[str, str]]:
    return [(look, unescape(title)) for look, title in TITLE.findall(drawn)]


def test_each_block_has_its_index_and_its_visits() -> None:
    drawn = blocks(operand([4, 4], [2, 2]), [[0, 0], [0, 1], [0, 1]], [3])
    assert cells(drawn) == [
        ("once", "block (0, 0): 1 visit, at grid point (0)"),
        ("few", "block (0, 1): 2 visits, at grid points (1), (2)"),
        ("unread", "block (1, 0): no visit"),
        ("unread", "block (1, 1): no visit"),
    ]


def test_of_many_visits_the_first_are_named() -> None:
    (cell,) = cells(blocks(operand([8], [8], "out"), [[0]] * 6, [2, 3]))
    assert cell == ("often", "block (0): 6 visits, at grid points (0, 0), (0, 1), (0, 2), (1, 0) and 2 more")


def test_neighbours_that_share_a_cell_are_named_together() -> None:
    drawn = blocks(operand([2 * MAX_CELLS + 1], [1]), [[0], [1], [96], [96]], [4])
    shown = cells(drawn)
    assert shown[0] == ("once", "blocks (0 to 2): 2 visits, at grid points (0), (1)"), "one of each"
    assert shown[-1] == ("few", "block (96): 2 visits, at grid points (2), (3)")
    assert len(shown) <= MAX_CELLS


def test_blocks_outside_keep_their_index() -> None:
    shown = cells(blocks(operand([4, 4], [2, 2]), [[5, 0], [6, 0], [0, -1]], [3]))
    assert ("outside", "block (5, 0) and 1 more, outside the array: 2 visits, at grid points (0), (1)") in shown
    assert ("outside", "block (0, -1), outside the array: 1 visit, at grid point (2)") in shown
    doubtful = cells(blocks(operand([4, 4], [2, 2]), [[0, -1]], [1], certain=False))
    assert ("doubtful", "block (0, -1), outside the array: 1 visit, at grid point (0)") in doubtful


def test_slices_over_leading_dimensions_are_counted() -> None:
    drawn = blocks(operand([20, 4, 4], [1, 2, 2]), [[at, 0, 0] for at in range(20)], [20])
    assert drawn.count("<figure") == MAX_PANELS
    assert f"and {20 - MAX_PANELS} more slices" in drawn
    assert "block (11, 0, 0): 1 visit, at grid point (11)" in drawn


def test_a_scalar_has_one_block() -> None:
    assert cells(blocks(operand([], []), [[], []], [2])) == [("few", "block (): 2 visits, at grid points (0), (1)")]


def test_rows_of_blocks_are_drawn_as_rows_in_their_proportions() -> None:
    drawn = blocks(operand([1024, 512], [256, 512]), [[0, 0], [1, 0], [2, 0], [3, 0]], [4])
    assert 'aria-label="x_ref: 4 by 1 blocks"' in drawn
    places = re.findall(r'<rect class="once" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', drawn)
    assert [(x, y) for x, y, _, _ in places] == [("0", "0"), ("0", "7"), ("0", "14"), ("0", "21")]
    assert {(width, height) for _, _, width, height in places} == {("12.5", "5.5")}
    # Not flatter than one can point at.
    assert 'height="5.5"' in blocks(operand([16, 8192], [8, 4096]), [[0, 0], [1, 1]], [2])
