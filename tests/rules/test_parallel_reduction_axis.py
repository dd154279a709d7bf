"""PAL404: axes marked parallel along which something is carried, as the TPU interpreter with two cores sees them."""

from __future__ import annotations

import pytest

from pallas_lint.testing import fixed, lines, lint
from tests.rules.grid_cases import module, run

I_J_K = "lambda i, j, k: (i * 3 + j, 0)"
LAST = "pl.program_id(2) == pl.num_programs(2) - 1"


def when(condition: str, body: str) -> str:
    return f"@pl.when({condition})\ndef _():\n    {body}\n"


OUTPUT = when("pl.program_id(2) == 0", "clear(o_ref)") + "o_ref[...] += x_ref[...]"
SCRATCH = (
    when("pl.program_id(2) == 0", "clear(acc_ref)")
    + "acc_ref[...] += x_ref[...]\n"
    + when(LAST, "o_ref[...] = acc_ref[...]")
)
PLAIN = "o_ref[...] = x_ref[...]"


def semantics(*names: str) -> str:
    spelled = ", ".join(f'"{name}"' for name in names)
    return f"\n        compiler_params=pltpu.CompilerParams(dimension_semantics=({spelled})),"


P, A = "parallel", "arbitrary"
# (kernel body, semantics of grid (2, 3, 4), the axis that is flagged)
CASES: dict[str, tuple[str, tuple[str, str, str], int | None]] = {
    "output, all parallel": (OUTPUT, (P, P, P), 2),
    "output, only the reduction": (OUTPUT, (A, A, P), 2),
    "output, right": (OUTPUT, (P, P, A), None),
    "output, all arbitrary": (OUTPUT, (A, A, A), None),
    "scratch, all parallel": (SCRATCH, (P, P, P), 2),
    "scratch, only the reduction": (SCRATCH, (A, A, P), 2),
    "scratch, right": (SCRATCH, (P, P, A), None),
}


@pytest.mark.parametrize("name", CASES)
def test_flagged(name: str) -> None:
    body, names, axis = CASES[name]
    found = lint(module(body, (2, 3, 4), I_J_K, semantics(*names)), select="PAL404")
    assert [f"axis {axis} " in finding.message for finding in found] == ([] if axis is None else [True]), found
    assert all(finding.severity.value == "warning" for finding in found)


def test_two_cores_make_it_certain() -> None:
    code = module(OUTPUT, (2, 3, 4), I_J_K, semantics(P, P, P))
    for device, severity in (("v4", "error"), ("v5p", "error"), ("v5e", "warning"), ("v6e", "warning")):
        assert [f.severity.value for f in lint(code, target=f"tpu:{device}", select="PAL404")] == [severity]


def test_blocks_of_their_own() -> None:
    extra = semantics(P, P, P)
    assert not lint(module(PLAIN, (2, 3, 4), "lambda i, j, k: (i * 12 + j * 4 + k, 0)", extra), select="PAL404")
    assert not lint(module(OUTPUT, (2, 3, 1), I_J_K, extra), select="PAL404")


def test_carried_from_block_to_block() -> None:
    body = when("pl.program_id(2) == 0", "clear(acc_ref)") + "acc_ref[...] += x_ref[...]\no_ref[...] = acc_ref[...]"
    own = "lambda i, j, k: (i * 12 + j * 4 + k, 0)"
    assert lint(module(body, (2, 3, 4), own, semantics(P, P, P)), select="PAL404")
    assert not lint(module(body, (2, 3, 4), own, semantics(P, P, A)), select="PAL404")


@pytest.mark.parametrize(("tested", "meant", "names"), [(1, 2, (P, P, A)), (2, 1, (P, A, P))])
def test_set_where_another_axis_begins(tested: int, meant: int, names: tuple[str, str, str]) -> None:
    clear = when(f"pl.program_id({tested}) == 0", "clear(acc_ref)")
    own = "lambda i, j, k: (i * 12 + j * 4 + k, 0)"
    code = module(f"{clear}acc_ref[...] += x_ref[...]\no_ref[...] = acc_ref[...]", (2, 3, 4), own, semantics(*names))
    (found,) = (each for each in lint(code, select="PAL404") if f"axis {tested} " in each.message)
    assert found.help is not None and f"where axis {meant} begins" in found.help
    # To mark the axis may hide that the guard is wrong.
    assert [fix.applicability for fix in found.fixes] == ["unsafe"]


SPELLINGS = {
    "strings": ('pltpu.CompilerParams(dimension_semantics=("parallel", "parallel"))', '"parallel", "arbitrary"'),
    "a list": ("pltpu.CompilerParams(dimension_semantics=['parallel', 'parallel'])", "'parallel', 'arbitrary'"),
    "constants": (
        "pltpu.CompilerParams(dimension_semantics=(pltpu.PARALLEL, pltpu.PARALLEL))",
        "pltpu.PARALLEL, pltpu.ARBITRARY",
    ),
    "members": (
        "pltpu.TPUCompilerParams(dimension_semantics=(pltpu.GridDimensionSemantics.PARALLEL,"
        " pltpu.GridDimensionSemantics.PARALLEL))",
        "pltpu.GridDimensionSemantics.PARALLEL, pltpu.GridDimensionSemantics.ARBITRARY",
    ),
    "a dict": (
        'dict(mosaic=dict(dimension_semantics=("parallel", "parallel")))',
        '"parallel", "arbitrary"',
    ),
    "a display": ('{"mosaic": {"dimension_semantics": ("parallel", "parallel")}}', '"parallel", "arbitrary"'),
    "repeated": ('pltpu.CompilerParams(dimension_semantics=("parallel",) * 2)', None),
    "a variable": ("pltpu.CompilerParams(dimension_semantics=SEMANTICS)", None),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name: str) -> None:
    params, after = SPELLINGS[name]
    body = when("pl.program_id(1) == 0", "clear(o_ref)") + "o_ref[...] += x_ref[...]"
    code = module(body, (2, 3), "lambda i, j: (i, 0)", f"\n        compiler_params={params},")
    code = code.replace("def kernel", 'SEMANTICS = ("parallel", "parallel")\n\n\ndef kernel', 1)
    found = lint(code, select="PAL404")
    assert len(found) == 1
    line = next(at for at, text in enumerate(code.splitlines(), 1) if "compiler_params" in text)
    assert lines(found, "PAL404") == {line}
    again = fixed(code, select="PAL404")
    assert (after is None and again.strip() == code.strip()) or (after is not None and after in again)


@pytest.mark.nightly
def test_as_two_cores_show() -> None:
    """Of some cases, at night of all."""
    cases = {name: case for name, case in CASES.items() if case[1] != (A, A, A)}
    launches = [
        (module(body, (2, 3, 4), I_J_K, semantics(*names)), (2, 3, 4), I_J_K) for body, names, _ in cases.values()
    ]
    _, verdicts = run(launches, cores=2)
    for name, (verdict,) in zip(cases, verdicts, strict=True):
        # It only runs grids of which the parallel axes come first.
        wanted = "right" if CASES[name][2] is None else "wrong" if CASES[name][1][0] == P else "prefix of the grid"
        assert wanted in verdict, (name, verdict)
