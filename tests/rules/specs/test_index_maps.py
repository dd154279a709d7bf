"""PAL301 to PAL303 beyond what jax's verdict alone shows: fixes, places, what is not seen."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import codes, fixed, lines, lint
from tests.rules.kernels import line_of

PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

OUT = jax.ShapeDtypeStruct((256, 128), jnp.float32)


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


"""


def module(code: str) -> str:
    return PRELUDE + textwrap.dedent(code).strip() + "\n"


def launched(index_map: str, grid: str = "(2, 2)", block: str = "(128, 128)", before: str = "") -> str:
    return module(f"""
{textwrap.indent(textwrap.dedent(before), "")}
def f(x, bm, unknown):
    spec = pl.BlockSpec({block}, {index_map})
    return pl.pallas_call(copy, grid={grid}, in_specs=[spec], out_specs=pl.BlockSpec(), out_shape=OUT)(x)
""")


# -- PAL301 --------------------------------------------------------------------------------------------------------

OFFSETS = {
    "factor on the right": ("lambda i, j: (i * bm, 0)", "(bm, 128)", "lambda i, j: (i, 0)"),
    "factor on the left": ("lambda i, j: (bm * i, 0)", "(bm, 128)", "lambda i, j: (i, 0)"),
    "literal factor": ("lambda i, j: (i, j * 128)", "(8, 128)", "lambda i, j: (i, j)"),
    "constant of the module": ("lambda i, j: (i * BLOCK, j)", "(BLOCK, 128)", "lambda i, j: (i, j)"),
    "constant and literal": ("lambda i, j: (i * 64, j)", "(BLOCK, 128)", "lambda i, j: (i, j)"),
}


@pytest.mark.parametrize("name", OFFSETS)
def test_element_offset(name: str) -> None:
    index_map, block, repaired = OFFSETS[name]
    code = launched(index_map, block=block, before="BLOCK = 64")
    assert lines(lint(code, select="PAL301"), "PAL301") == {line_of(code, "spec = pl.BlockSpec")}
    assert repaired in fixed(code, select="PAL301")


@pytest.mark.parametrize(
    ("index_map", "block"),
    [
        ("lambda i, j: (i * bm, 0)", "(pl.Element(bm), 128)"),
        ("lambda i, j: (i * bm, 0)", "(pl.BoundedSlice(bm), 128)"),
        ("lambda i, j: (i * unknown, 0)", "(bm, 128)"),
        ("lambda i, j: (i * 1, 0)", "(1, 128)"),
        ("lambda i, j: (i * 2 + j, 0)", "(8, 128)"),
        ("lambda i, j: (j * bm + i, 0)", "(bm, 128)"),
        ("lambda i, j: (i, j * bm)", "(bm, 128)"),
        ("lambda i, j: (i * bm // 128, 0)", "(bm, 128)"),
    ],
)
def test_no_element_offset(index_map: str, block: str) -> None:
    assert "PAL301" not in codes(lint(launched(index_map, block=block), select="PAL301"))


@pytest.mark.parametrize(
    ("rows", "grid", "severities"),
    [
        (2048, "(4, 2)", []),  # every eighth block
        (200, "(4, 2)", []),
        (192, "(4, 2)", ["error"]),
        (32, "(4, 2)", ["error"]),
        (32, "(1, 4)", ["warning"]),  # right by chance: there is one step
        (None, "(4, 2)", ["error"]),
    ],
)
def test_element_offset_in_an_array_of_known_size(rows: int | None, grid: str, severities: list[str]) -> None:
    code = launched("lambda i, j: (i * 8, 0)", block="(8, 128)", grid=grid)
    code += f"\n\ndef main():\n    return f(jnp.zeros(({rows}, 128)), 8, 0)\n" if rows is not None else ""
    assert [finding.severity.value for finding in lint(code, select="PAL301")] == severities


def test_element_offset_in_a_def_with_locals() -> None:
    code = module("""
        def f(bm):
            def place(i, j):
                row = i * bm
                return row, j
            return pl.BlockSpec((bm, 128), place)
    """)
    assert lines(lint(code, select="PAL301"), "PAL301") == {line_of(code, "return row, j")}


# -- PAL302 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "grid"),
    [
        ("lambda i: (i, 0)", "lambda i, _: (i, 0)", "(2, 2)"),
        ("lambda i: (i, 0)", "lambda i, *_: (i, 0)", "(2, 2, 2)"),
        ("lambda _: (0, 0)", "lambda _, __: (0, 0)", "(2, 2)"),
        ("lambda i, j: (i, 0)", "lambda i: (i, 0)", "(2,)"),
        ("lambda i, j: (i, j)", None, "(2,)"),
        ("lambda i, b=bm: (i, b)", None, "(2, 2, 2)"),
    ],
)
def test_arity_fix(before: str, after: str | None, grid: str) -> None:
    code = launched(before, grid)
    assert "PAL302" in codes(lint(code, select="PAL302"))
    repaired = fixed(code, select="PAL302")
    assert (after in repaired) if after is not None else repaired == code


@pytest.mark.parametrize(
    "code",
    [
        launched("lambda i: (i, 0)", "unknown"),
        launched("lambda i: (i, 0)", "(*unknown, 2)"),
        launched("lambda i: (i, 0)", "(2,) if bm else (2, 2)"),
        launched("unknown", "(2, 2)"),
        launched("functools.partial(place, **unknown)", before="def place(i): return i, 0"),
        launched("place", before="@unknown_decorator\ndef place(i): return i, 0"),
        module("def spec(): return pl.BlockSpec((8, 128), lambda i: (i, 0))"),
        module("""
            import library
            def f(x):
                spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
                return library.pallas_call(copy, grid=(2, 2), in_specs=[spec], out_shape=OUT)(x)
        """),
        module("""
            def f(x, spec):
                block = pl.BlockSpec((8, 128), lambda i: (i, 0))
                return pl.pallas_call(copy, grid_spec=spec, in_specs=[block], out_shape=OUT)(x)
        """),
        module("""
            def f(x, n):
                grid_spec = pltpu.PrefetchScalarGridSpec(
                    num_scalar_prefetch=n, grid=(2,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))])
                return pl.pallas_call(copy, grid_spec=grid_spec, out_shape=OUT)(x)
        """),
    ],
)
def test_arity_is_not_seen(code: str) -> None:
    assert not {"PAL302", "PAL303"} & codes(lint(code))


def test_arity_of_a_pipeline_is_that_of_its_own_grid() -> None:
    code = module("""
        def kernel(x_ref, o_ref):
            good = pl.BlockSpec((8, 128), lambda i: (i, 0))
            bad = pl.BlockSpec((8, 128), lambda i, j: (i, j))
            pltpu.emit_pipeline(copy, grid=(4,), in_specs=[good], out_specs=[bad])(x_ref, o_ref)
        def f(x):
            return pl.pallas_call(kernel, grid=(2, 2), out_shape=OUT)(x)
    """)
    assert lines(lint(code, select="PAL302"), "PAL302") == {line_of(code, "bad = ")}


def test_a_spec_of_two_launches_is_judged_by_each() -> None:
    code = module("""
        SPEC = pl.BlockSpec((8, 128), lambda i: (i, 0))
        def f(x):
            return pl.pallas_call(copy, grid=(2,), in_specs=[SPEC], out_shape=OUT)(x)
        def g(x):
            return pl.pallas_call(copy, grid=(2, 2), in_specs=[SPEC], out_shape=OUT)(x)
    """)
    findings = lint(code, select="PAL302")
    assert len(findings) == 1
    assert {place.span.start.line for place in findings[0].related} >= {line_of(code, "grid=(2, 2)")}


def test_names_imported_otherwise() -> None:
    code = """
        from jax.experimental.pallas import BlockSpec as Spec, pallas_call
        def kernel(a, o): o[...] = a[...]
        def f(x):
            return pallas_call(kernel, grid=(2, 2), in_specs=[Spec((8, 128), lambda i: (i, 0))], out_shape=x)(x)
    """
    assert "PAL302" in codes(lint(code, select="PAL302"))


def test_one_of_two_maps_is_a_warning() -> None:
    code = launched("(lambda i: (i, 0)) if unknown else (lambda i, j: (i, j))")
    levels = {finding.severity.value for finding in lint(code, select="PAL302")}
    assert levels == {"warning"}


# -- PAL303 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("lambda i, j: (i / 2, j)", "lambda i, j: (i // 2, j)"),
        ("lambda i, j: ((i + j) / bm, j / 2)", "lambda i, j: ((i + j) // bm, j // 2)"),
        ("lambda i, j: (i * 0.5, j)", None),
    ],
)
def test_division_fix(before: str, after: str | None) -> None:
    code = launched(before)
    assert "PAL303" in codes(lint(code, select="PAL303"))
    repaired = fixed(code, select="PAL303")
    assert (after in repaired) if after is not None else repaired == code


@pytest.mark.parametrize(
    ("index_map", "block"),
    [
        ("lambda i, j: (i, 0)", "unknown"),
        ("lambda i, j: (i, 0)", "(*unknown, 128)"),
        ("lambda i, j: (i, *unknown)", "(8, 128)"),
        ("lambda i, j: unknown(i)", "(8, 128)"),
        ("lambda i, j: (i,) + (j,)", "(8, 128)"),
        ("lambda i, j: (int(bm / 2) + i, j)", "(8, 128)"),
        ("lambda i, j: (pl.cdiv(i, 2), j)", "(8, 128)"),
        ("lambda i, j: (0, 0, 0)", "None"),
    ],
)
def test_rank_is_right_or_not_seen(index_map: str, block: str) -> None:
    assert "PAL303" not in codes(lint(launched(index_map, block=block), select="PAL303"))


def test_rank_through_a_helper() -> None:
    code = module("""
        def pair(i):
            return i, 0
        SPEC = pl.BlockSpec((1, 8, 128), lambda i: pair(i))
    """)
    assert lines(lint(code, select="PAL303"), "PAL303") == {line_of(code, "SPEC = ")}


def test_specs_of_a_buffered_ref_with_rules_of_its_own() -> None:
    code = """
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    class KVRef(pltpu.BufferedRef):
        def copy_in(self, src_ref, grid_indices):
            self.fetch(src_ref, grid_indices[0])

    def allocations():
        spec = pl.BlockSpec((2, 8, 128), lambda i: (i,))
        return (
            {cls}.input(pl.BlockSpec((2, 8, 128), lambda i: (i,)), jnp.float32),
            {cls}.input(spec, jnp.float32, 2),
        )
    """
    assert not lint(code.format(cls="KVRef"), select="PAL3")
    assert len(lint(code.format(cls="pltpu.BufferedRef"), select="PAL303")) == 2
