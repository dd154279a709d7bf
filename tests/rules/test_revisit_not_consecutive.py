"""PAL403: blocks that are left and returned to, as the TPU interpreter sees them."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint
from tests.rules.grid_cases import module, run

SUM = "o_ref[...] += x_ref[...]"


def start(condition: str) -> str:
    return f"@pl.when({condition})\ndef _():\n    clear(o_ref)\n"


FIRST = start("pl.program_id(0) == 0") + SUM
# (kernel body, output's index map over grid (2, 3, 4), severity or None)
CASES: dict[str, tuple[str, str, str | None]] = {
    "first axis ignored": (FIRST, "lambda i, j, k: (j * 4 + k, 0)", "error"),
    "middle axis ignored": (start("pl.program_id(1) == 0") + SUM, "lambda i, j, k: (i * 4 + k, 0)", "error"),
    "last axis ignored": (start("pl.program_id(2) == 0") + SUM, "lambda i, j, k: (i * 3 + j, 0)", None),
    "first and last ignored": (
        start("(pl.program_id(0) == 0) & (pl.program_id(2) == 0)") + SUM,
        "lambda i, j, k: (j, 0)",
        "error",
    ),
    "last two ignored": (
        start("(pl.program_id(1) == 0) & (pl.program_id(2) == 0)") + SUM,
        "lambda i, j, k: (i, 0)",
        None,
    ),
    "remainder of an index": (
        start("pl.program_id(2) < 2") + SUM,
        "lambda i, j, k: ((i * 3 + j) * 2 + k % 2, 0)",
        "error",
    ),
    "quotient of an index": (
        start("pl.program_id(2) % 2 == 0") + SUM,
        "lambda i, j, k: ((i * 3 + j) * 2 + k // 2, 0)",
        None,
    ),
    "written at the first visit only": (
        "@pl.when(pl.program_id(0) == 0)\ndef _():\n    o_ref[...] = x_ref[...]",
        "lambda i, j, k: (j * 4 + k, 0)",
        "error",
    ),
    "written at the last visit only": (
        "@pl.when(pl.program_id(0) == 1)\ndef _():\n    o_ref[...] = x_ref[...]",
        "lambda i, j, k: (j * 4 + k, 0)",
        "info",
    ),
    "scratch, first axis ignored": (
        "@pl.when(pl.program_id(0) == 0)\ndef _():\n    clear(acc_ref)\n"
        "acc_ref[...] += x_ref[...]\n"
        "@pl.when(pl.program_id(0) == 1)\ndef _():\n    o_ref[...] = acc_ref[...]",
        "lambda i, j, k: (j * 4 + k, 0)",
        "error",
    ),
    "scratch, last axis ignored": (
        "@pl.when(pl.program_id(2) == 0)\ndef _():\n    clear(acc_ref)\n"
        "acc_ref[...] += x_ref[...]\n"
        "@pl.when(pl.program_id(2) == 3)\ndef _():\n    o_ref[...] = acc_ref[...]",
        "lambda i, j, k: (i * 3 + j, 0)",
        None,
    ),
    "two passes": (
        "@pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0) & (pl.program_id(2) == 0))\n"
        "def _():\n    clear(acc_ref)\n"
        "@pl.when(pl.program_id(0) == 0)\ndef _():\n    acc_ref[...] += x_ref[...]\n"
        "@pl.when(pl.program_id(0) == 1)\ndef _():\n    o_ref[...] = x_ref[...] - acc_ref[...]",
        "lambda i, j, k: (j * 4 + k, 0)",
        "info",
    ),
    "written anew": ("o_ref[...] = x_ref[...]", "lambda i, j, k: (j * 4 + k, 0)", "info"),
}


@pytest.mark.parametrize("name", CASES)
def test_flagged(name: str) -> None:
    body, out_map, severity = CASES[name]
    found = lint(module(body, (2, 3, 4), out_map), target="tpu", select="PAL403")
    assert [finding.severity.value for finding in found] == ([] if severity is None else [severity]), found


def test_an_axis_of_one_step() -> None:
    code = module(FIRST, (2, 1, 1), "lambda i, j, k: (j * 4 + k, 0)")
    assert lint(code, target="tpu", select="PAL403") == []


def test_sizes_that_are_not_in_the_text() -> None:
    code = module(FIRST, (2, 3, 4), "lambda i, j, k: (j * 4 + k, 0)", size="(a, b, c)").replace(
        "def f(x, a=2, b=3, c=4)", "def f(x, a, b, c)"
    )
    assert [finding.severity.value for finding in lint(code, target="tpu", select="PAL403")] == ["warning"]


def test_where_it_is_silent() -> None:
    wrong = module(FIRST, (2, 3, 4), "lambda i, j, k: (j * 4 + k, 0)")
    assert lint(wrong, target="tpu", select="PAL403")
    assert not lint(wrong, target="triton", select="PAL403")
    revisit = wrong.replace(
        "(j * 4 + k, 0))", "(j * 4 + k, 0), pipeline_mode=pl.Buffered(1, revisit=pl.RevisitMode.ANY))"
    )
    assert revisit != wrong and not lint(revisit, target="tpu", select="PAL403")
    anywhere = wrong.replace("(j * 4 + k, 0))", "(j * 4 + k, 0), memory_space=pltpu.ANY)")
    assert anywhere != wrong and not lint(anywhere, target="tpu", select="PAL403")
    handed_on = wrong.replace("    o_ref[...] += x_ref[...]", "    o_ref[...] += x_ref[...]\n    unknown(o_ref)")
    assert handed_on != wrong and not lint(handed_on, target="tpu", select="PAL403")


@pytest.mark.nightly
def test_as_in_the_tpu_interpreter() -> None:
    """Of some cases, at night of all."""
    launches = [(module(body, (2, 3, 4), out_map), (2, 3, 4), out_map) for body, out_map, _ in CASES.values()]
    _, verdicts = run(launches, plain=True)
    got = dict(zip(CASES, verdicts, strict=True))
    for name, (body, _, severity) in CASES.items():
        assert got[name][1] == ("right" if severity is None else "Revisited"), (name, got[name])
        if SUM in body and "acc_ref" not in body:
            assert got[name][0] == "right", (name, got[name])  # the plain interpreter hides it
