"""PAL307, PAL308, PAL412 and PAL420 where sizes have only names: findings hold for the numbers that they may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.testing import lint
from tests.sampling import examples

_MODULE = """
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

@dataclass
class Sizes:
    rows: int = 8

def kernel(x_ref, o_ref, tile_ref):
    {body}

def run(x{more}):
    m, n = x.shape
    {before}
    return pl.pallas_call(
        kernel,
        grid={grid},
        in_specs=[pl.BlockSpec({block}, lambda i, j: {index})],
        out_specs=pl.BlockSpec({out_block}, lambda i, j: {out_index}),
        out_shape=jax.ShapeDtypeStruct({out}, x.dtype),
        scratch_shapes=[pltpu.VMEM({tile}, jnp.float32)],
    )(x)
"""
_ONE_BLOCK = {"block": "(8, 128)", "out_block": "(8, 128)", "tile": "(8, 128)"}
_PLAIN = {
    "body": "o_ref[...] = x_ref[...]", "more": "", "before": "pass", "index": "(i, j)", "out_index": "(i, j)",
    "out": "(m, n)", "grid": "(m // 8, n // 128)", **_ONE_BLOCK,
}  # fmt: skip


def found(code: str, **given: str) -> list[str]:
    """The findings of a rule on the launch with these pieces: "line severity"."""
    text = _MODULE.format(**{**_PLAIN, **given})
    return [f"{finding.severity.value} {finding.message}" for finding in lint(text) if finding.code == code]


SWAPPED = {"grid": "(n // 128, m // 8)"}


class TestBlocksOutOfRange:
    @pytest.mark.parametrize("grid", ["(m // 8, n // 128)", "(pl.cdiv(m, 8), n // 128)"])
    def test_the_block_after_the_last(self, grid: str) -> None:
        (one,) = found("PAL307", index="(i + 1, j)", grid=grid)
        assert one.startswith(
            "warning the last step of grid axis 0 is given a block past the end: dimension 0 of input 0"
        )

    @pytest.mark.parametrize(
        "given",
        [
            {"index": "(i + 1, j)", "grid": "(m // 8 - 1, n // 128)"},
            {"index": "(i + 1, j)", "grid": "(m // 16, n // 128)"},
            {"index": "(jnp.minimum(i + 1, m // 8 - 1), j)"},
            {"index": "((i + 1) % (m // 8), j)"},
            {"index": "(i + step, j)", "more": ", step"},
        ],
    )
    def test_a_block_after_that_there_may_be(self, given: dict[str, str]) -> None:
        assert found("PAL307", **given) == []

    def test_swapped_axes(self) -> None:
        one, two = found("PAL307", **SWAPPED)
        assert one == (
            "warning grid axis 0 has x.shape[1] // 128 steps, and dimension 0 of input 0 x.shape[0] // 8 blocks"
        )
        assert "of output 0" in two

    @pytest.mark.parametrize(
        "given",
        [
            {"grid": "(pl.cdiv(n, 128), pl.cdiv(m, 8))"},
            {"grid": "(-(-n // 128), (m + 7) // 8)"},
            {"before": "import math", "grid": "(math.ceil(n / 128), int(math.ceil(m / 8)))"},
            {"more": ", rows=8", "block": "(rows, 128)", "out_block": "(rows, 128)", "grid": "(n // 128, m // rows)"},
            {"block": "(None, 128)", "out_block": "(None, 128)", "grid": "(n // 128, m)"},
        ],
    )
    def test_however_it_is_counted(self, given: dict[str, str]) -> None:
        assert len(found("PAL307", **given)) == 2

    @pytest.mark.parametrize("grid", ["(n // 8, m // 128)", "(pl.cdiv(n, 8), pl.cdiv(m, 128))"])
    def test_swapped_sizes(self, grid: str) -> None:
        one, two = found("PAL307", grid=grid)
        assert "grid axis 0 has x.shape[1] // 8 steps, and dimension 0 of input 0 x.shape[0] // 8 blocks" in one
        assert "of output 0" in two
        assert found("PAL307", grid=grid, before="assert n == m") == []

    def test_a_step_more_than_blocks(self) -> None:
        one, _ = found("PAL307", grid="(m // 8 + 1, n // 128)")
        assert one.endswith("has ((x.shape[0]//8)+1) steps, and dimension 0 of input 0 x.shape[0] // 8 blocks")

    @pytest.mark.parametrize("before", ["pass", "assert m > 8"])
    def test_a_step_less_than_blocks(self, before: str) -> None:
        (one,) = found("PAL308", grid="(m // 8 - 1, n // 128)", before=before)
        assert "the last blocks of output 0 are never written: dimension 0 has x.shape[0] // 8 blocks" in one
        assert found("PAL308", grid="(m // 8 - 1, n // 128)", out="(m - 8, n)") == []

    def test_more_steps_than_blocks(self) -> None:
        given = {"grid": "(m // 8, n // 128)", "block": "(16, 128)"}
        assert found("PAL307", **given) == [
            "warning grid axis 0 has x.shape[0] // 8 steps, and dimension 0 of input 0 x.shape[0] // 16 blocks"
        ]

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {**SWAPPED, "before": "assert m == n"},
            {**SWAPPED, "before": "assert x.shape == (n, m)"},
            {**SWAPPED, "before": "\n    if n > 128:\n        raise ValueError(n)"},
            {**SWAPPED, "index": "(j, i)", "out_index": "(j, i)"},
            {"grid": "(m // 8, n // 128)", "block": "(16, 128)", "index": "(i // 2, j)"},
            {"grid": "(m // 8, n // 128)", "block": "(16, 128)", "before": "assert m <= 8"},
            {"more": ", rows=8, wide=8", "grid": "(m // rows, n // 128)", "block": "(wide, 128)"},
        ],
    )
    def test_silent(self, given: dict[str, str]) -> None:
        assert found("PAL307", **given) == []


class TestOutputsNotCovered:
    def test_fewer_steps_than_blocks(self) -> None:
        given = {"grid": "(m // 16, n // 128)", "block": "(16, 128)", "body": "o_ref[...] = x_ref[:8]"}
        assert found("PAL308", **given) == [
            "warning the last blocks of output 0 are never written: dimension 0 has x.shape[0] // 8 blocks,"
            " and grid axis 0 x.shape[0] // 16 steps"
        ]

    def test_a_grid_without_steps(self) -> None:
        assert found("PAL308", before="m, n = 4096, 64", out="(4096, 64)") == [
            "warning output 0 is never written: axis 1 of the grid has no step"
        ]

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"grid": "(m // 16, n // 128)", "block": "(16, 128)", "out": "(m // 2, n)"},
            {"grid": "(m // 16, n // 128)", "block": "(16, 128)", "before": "assert m <= 8"},
            {"grid": "(m // 16, n // 128)", "block": "(16, 128)", "out_index": "(2 * i, j)"},
            {"grid": "(m // 8, n // n)", "block": "(8, n)", "out_block": "(8, n)", "out_index": "(i, 0)"},
        ],
    )
    def test_silent(self, given: dict[str, str]) -> None:
        assert found("PAL308", **given) == []


class TestSlicesPastTheEnd:
    @pytest.mark.parametrize(
        "given",
        [
            {"body": "tile_ref[pl.ds(pl.program_id(0) * 8, 8), :] = x_ref[...]"},
            {"body": "tile_ref[...] = x_ref[pl.ds(pl.program_id(0) * 8, 8), :]"},
            {"body": "tile_ref[0] = x_ref[pl.program_id(0)]", "block": "(1, 128)"},
            {
                "more": ", rows=8", "block": "(rows, 128)", "tile": "(rows, 128)", "grid": "(m // rows, 1)",
                "body": "tile_ref[pl.ds(pl.program_id(0) * x_ref.shape[0], x_ref.shape[0]), :] = x_ref[...]",
            },
            {
                "body": "tile_ref[pl.ds(pl.multiple_of(pl.program_id(0) * 8, 8), 8), :] = x_ref[...]",
            },
            {
                "body": "jax.lax.fori_loop(0, 2, lambda t, c: tile_ref.__setitem__(pl.ds(pl.multiple_of("
                "pl.program_id(0) * 8 + t * 4, 4), 4), x_ref[:4]), None)",
            },
        ],
    )  # fmt: skip
    def test_a_buffer_of_one_block(self, given: dict[str, str]) -> None:
        (only,) = found("PAL412", **given)
        assert only.startswith("warning the slice leaves dimension 0 of `"), only
        assert "at the second of x.shape[0]" in only

    @pytest.mark.parametrize(
        "given",
        [
            {"body": "tile_ref[pl.ds(pl.program_id(0) * 8, 8), :] = x_ref[...]", "tile": "(64, 128)"},
            {"body": "tile_ref[pl.ds(pl.program_id(0) * 8, 8), :] = x_ref[...]", "before": "assert m <= 8"},
            {"body": "tile_ref[pl.ds(pl.program_id(0) * 8, 8), :] = x_ref[...]", "grid": "(1, n // 128)"},
            {"body": "tile_ref[pl.ds(pl.program_id(0) % 2 * 8, 8), :] = x_ref[...]"},
            {"body": "pl.when(pl.program_id(0) == 0)(lambda: x_ref[pl.ds(pl.program_id(0) * 8, 8), :])"},
        ],
    )
    def test_silent(self, given: dict[str, str]) -> None:
        assert found("PAL412", **given) == []


class TestNeverRead:
    _SUM = {
        "body": "o_ref[...] += x_ref[:8]", "grid": "(m // 16, n // 128)", "out": "(8, n)", "out_index": "(0, j)",
    }  # fmt: skip

    def test_the_end_of_a_sum(self) -> None:
        assert found("PAL420", **self._SUM) == [
            "warning the last blocks of input 0, which is summed over, are never read: dimension 0 has"
            " x.shape[0] // 8 blocks, and grid axis 0 x.shape[0] // 16 steps"
        ]

    @pytest.mark.parametrize(
        "given",
        [
            {"grid": "(m // 8, n // 128)"},
            {"index": "(2 * i, j)"},
            {"out": "(m // 2, n)", "out_index": "(i, j)"},  # no sum: the outputs go as far
            {"before": "assert m == 16"},
        ],
    )
    def test_silent(self, given: dict[str, str]) -> None:
        assert found("PAL420", **{**self._SUM, **given}) == []

    def test_an_array_that_comes_twice(self) -> None:
        text = """
            def kernel(a_ref, b_ref, o_ref):
                o_ref[...] += a_ref[...] * b_ref[...]

            def gated(x):
                m, n = x.shape
                return pl.pallas_call(
                    kernel,
                    grid=(m // 128, n // 256),
                    in_specs=[
                        pl.BlockSpec((128, 128), lambda i, k: (i, k)),
                        pl.BlockSpec((128, 128), lambda i, k: (i, k + n // 256)),
                    ],
                    out_specs=pl.BlockSpec((128, 128), lambda i, k: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((m, 128), x.dtype),
                )(x, x)
        """
        imports = "import jax\nfrom jax.experimental import pallas as pl\n"
        assert not lint(imports + text, select="PAL420")


def test_a_multiple_of_a_name() -> None:
    given = {"more": ", bm", "out_block": "(bm, 128)", "block": "(bm, 128)"}
    assert found("PAL308", grid="(m // (2 * bm), n // 128)", **given)
    assert found("PAL307", grid="(2 * m // bm, n // 128)", **given) == []
    assert found("PAL308", grid="(m // (bm * 2), n // 128)", **given | {"out_block": "(2 * bm, 128)"}) == []


_SUM = {"grid": "(m // 8, n // 128)", "out": "(m, 128)", "out_index": "(i, 0)"}


def test_an_input_that_stays_at_the_first_block() -> None:
    assert found("PAL420", index="(i, 0)", **_SUM)
    assert found("PAL420", **_SUM) == []
    assert found("PAL420", index="(i, 0)", **_SUM | {"block": "(8, n)"}) == []  # whole rows
    assert found("PAL420", index="(i, 0)", **_SUM | {"grid": "(m // 8, 4)"}) == []
    assert found("PAL420", index="(i, 0)", **_SUM | {"out": "(n, m)", "out_index": "(j, i)"}) == []  # no sum


def test_an_input_that_stays_while_the_output_moves() -> None:
    moved = _SUM | {"out": "(m, n)", "out_index": "(i, j)"}
    [message] = found("PAL420", index="(i, 0)", **moved)
    assert message.endswith("leaves out grid axis 1, along which the output has as many")
    assert found("PAL420", index="(i, j)", **moved) == []
    assert found("PAL420", index="(i, 0)", **moved | {"block": "(8, n)"}) == []  # whole rows
    assert found("PAL420", index="(i, 0)", **moved | {"block": "(8, 256)"}) == []  # not as many blocks


def test_sizes_that_are_numbers_need_another_input() -> None:
    alone = {"before": "x = jnp.ones((64, 512)); m, n = x.shape"}
    assert found("PAL420", index="(i, 0)", **_SUM, **alone) == []


@pytest.mark.parametrize(("ahead", "count"), [("i + 1", 1), ("1 + i", 1), ("i", 0)])
def test_a_block_of_a_name_ahead(ahead: str, count: int) -> None:
    code = f"""
import functools, jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_hbm, o_ref, sem, *, bm):
    i = pl.program_id(0)
    pltpu.async_copy(x_hbm.at[pl.ds(({ahead}) * bm, bm)], o_ref, sem).wait()

def run(x, bm=64):
    m, n = x.shape
    assert m % bm == 0
    return pl.pallas_call(
        functools.partial(kernel, bm=bm),
        grid=(m // bm,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((bm, n), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(x)
"""
    assert len(lint(code, select="PAL412")) == count


@examples(60)
@given(
    rows=st.sampled_from([8, 16, 32]), block=st.sampled_from([8, 16, 32]), out=st.sampled_from([8, 16, 32]),
    swapped=st.booleans(), mapped=st.booleans(),
)  # fmt: skip
def test_numbers_show_the_same(rows: int, block: int, out: int, swapped: bool, mapped: bool) -> None:
    """A finding with names is a finding, or an error, with large numbers; none with names may be for equal numbers."""
    steps = [f"m // {rows}", "n // 128"]
    index = "(j, i)" if mapped else "(i, j)"
    given = {
        "grid": f"({', '.join(reversed(steps) if swapped else steps)})", "block": f"({block}, 128)",
        "out_block": f"({out}, 128)", "index": index, "out_index": index,
    }  # fmt: skip
    for code in ("PAL307", "PAL308"):
        if found(code, **given):
            # As many rows as columns of blocks would hide what is swapped.
            assert found(code, **given, before="x = jnp.ones((1920, 256), x.dtype); m, n = x.shape"), (code, given)


class TestBlocksOfOtherNames:
    """The grid is counted by one parameter, the blocks by another: they are what they are by default."""

    @pytest.mark.parametrize(("rows", "steps", "count"), [(16, 8, 1), (8, 8, 0), (8, 16, 0)])
    def test_defaults(self, rows: int, steps: int, count: int) -> None:
        given = {"more": f", rows={rows}, steps={steps}", "grid": "(m // steps, n // 128)", "block": "(rows, 128)"}
        texts = found("PAL307", **given, out="(m // rows * steps, n)", tile="(8, 128)")
        assert len(texts) == count
        assert all("grid axis 0 has x.shape[0] // steps steps" in text for text in texts)

    def test_a_parameter_without_a_default(self) -> None:
        given = {"more": ", rows, steps=8", "grid": "(m // steps, n // 128)", "block": "(rows, 128)"}
        assert found("PAL307", **given, out="(m // 8 * 8, n)", tile="(8, 128)") == []


_CACHE = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(slot_ref, new_ref, cache_hbm, out_hbm):
    pltpu.sync_copy(new_ref, out_hbm.at[slot_ref[0]])

def write(slot, new, cache, other):
    hbm = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM), hbm],
        out_specs=hbm,
        out_shape=jax.ShapeDtypeStruct({like}.shape, {like}.dtype){more},
    )(slot, new, cache)
"""


@pytest.mark.parametrize(
    ("like", "more", "count"), [("cache", "", 1), ("other", "", 0), ("cache", ", input_output_aliases={2: 0}", 0)]
)
def test_an_output_declared_like_an_input_that_is_not_used(like: str, more: str, count: int) -> None:
    codes = [finding.code for finding in lint(_CACHE.format(like=like, more=more))]
    assert codes.count("PAL421") == count


_PAGES = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(page_ref, new_ref, cache_ref, out_ref):
    {before}out_ref[...] = new_ref[...]

def update(pages, new, cache, other):
    n, size, d = new.shape
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(n,),
            in_specs=[pl.BlockSpec((1, size, d), lambda i, p: (i, 0, 0)), pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec((1, size, d), lambda i, p: ({page}, 0, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct({like}.shape, {like}.dtype){more},
    )(pages, new, cache)
{call}
"""


# With jax 0.12.0.1 the TPU interpreter returns NaN for the pages that are not in the table.
@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({}, 1),
        ({"page": "p[i] // 2"}, 1),
        ({"call": "update(jnp.arange(4), jnp.ones((4, 8, 128)), jnp.ones((16, 8, 128)), None)"}, 1),
        ({"call": "update(jnp.arange(4), jnp.ones((4, 8, 128)), jnp.ones((4, 8, 128)), None)", "page": "i"}, 0),
        ({"more": ", input_output_aliases={2: 0}"}, 0),
        ({"like": "other"}, 0),
        ({"page": "i"}, 0),
        ({"before": "pltpu.sync_copy(cache_ref.at[pl.ds(0, 1)], out_ref); "}, 0),  # the cache is used
    ],
)
def test_blocks_of_a_table_in_an_output_like_an_input_that_is_not_used(given: dict[str, str], count: int) -> None:
    text = _PAGES.format(**{"before": "", "page": "p[i]", "like": "cache", "more": "", "call": ""} | given)
    codes = [finding.code for finding in lint(text)]
    assert codes.count("PAL421") == count


@pytest.mark.parametrize(
    ("axis", "height", "more", "count"),
    [
        ("i", "y.shape[-1]", "", 1),
        ("i", "y.shape[2]", "", 1),
        ("j", "y.shape[-1]", "", 0),
        ("i", "y.shape[-1]", "assert y.shape[-1] == x.shape[0]", 0),
    ],
)
def test_a_size_counted_from_behind(axis: str, height: str, more: str, count: int) -> None:
    code = f"""
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]

def run(x, y, *, bm=128, bn=128):
    m, n = x.shape[0], {height}
    {more}
    return pl.pallas_call(
        kernel,
        grid=(m // bm, n // bn),
        in_specs=[
            pl.BlockSpec((bm, 1), lambda i, j: (i, 0)),
            pl.BlockSpec((None, 1, bn), lambda i, j: (0, 0, {axis})),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
    )(x, y)
"""
    assert len([finding for finding in lint(code) if finding.code == "PAL307"]) == count


class TestChosenSizes:
    """A size that an undecided branch chooses is equal to itself alone, and one of what the branch chooses from."""

    @pytest.mark.parametrize(
        ("more", "before"),
        [
            (", wide", "rows = 8 if wide else 16"),
            (", rows=None", "rows = rows or 16"),
            (", wide", "rows = 16\n    if wide:\n        rows = 8"),
            (", wide", "rows = (lambda: 8 if wide else 16)()"),
            (", sizes", "sizes = sizes or Sizes()\n    rows = sizes.rows"),
            (", wide", "rows = [{'rows': 8}, {'rows': 16}][0 if wide else 1]['rows']"),
        ],
    )
    def test_one_choice_in_several_places(self, more: str, before: str) -> None:
        given = {"more": more, "before": before, "grid": "(m // rows, n // 128)", "out_block": "(rows, 128)"}
        assert len(found("PAL307", **given, block="(rows, 128)", index="(i + 1, j)")) == 1
        assert found("PAL307", **given, block="(rows, 128)") == []
        shorter = {**given, "grid": "(m // rows - 1, n // 128)"}
        assert len(found("PAL308", **shorter, block="(rows, 128)")) == 1

    def test_the_same_attribute_of_one_object(self) -> None:
        given = {
            "more": ", sizes", "before": "sizes = sizes or Sizes()", "block": "(sizes.rows, 128)",
            "out_block": "(sizes.rows, 128)", "grid": "(m // sizes.rows, n // 128)",
        }  # fmt: skip
        assert len(found("PAL307", **given, index="(i + 1, j)")) == 1
        assert found("PAL307", **given) == []

    @pytest.mark.parametrize(
        "before",
        [
            "rows, high = (8 if wide else 16), (16 if wide else 8)",
            "rows = 8 if wide else 16\n    high = 8 if x.ndim > 1 else 16",
            "pick = lambda at: 8 if at > 1 else 16\n    rows, high = pick(wide.first()), pick(wide.second())",
        ],
    )
    def test_two_choices(self, before: str) -> None:
        given = {"more": ", wide", "before": before, "grid": "(m // rows, n // 128)", "block": "(high, 128)"}
        assert found("PAL307", **given, index="(i + 1, j)") == []

    @pytest.mark.parametrize(
        "before",
        [
            "rows = 64\n    while m % rows:\n        rows //= 2",
            "rows = 64\n    for _ in range(wide):\n        rows = rows // 2",
            "rows = 64\n    while True:\n        if not m % rows:\n            break\n        rows //= 2",
        ],
    )
    def test_what_a_loop_computes_is_no_choice(self, before: str) -> None:
        given = {"more": ", wide", "before": before, "block": "(rows, 128)", "out_block": "(rows, 128)"}
        assert found("PAL307", **given, grid="(m // rows, n // 128)", index="(i + 1, j)") == []

    def test_a_size_and_a_parameter_that_it_equals(self) -> None:
        code = _MODULE.format(**{
            **_PLAIN, "more": ", bias, wide", "before": "cols = 128 if wide else 256\n    assert n % cols == 0",
            "block": "(8, cols)", "out_block": "(8, cols)", "grid": "(m // 8, n // cols)",
        })  # fmt: skip
        code = code.replace("kernel(x_ref,", "kernel(x_ref, bias_ref,").replace(")(x)", ")(x, bias)")
        code = code.replace(
            "lambda i, j: (i, j))],", "lambda i, j: (i, j)), pl.BlockSpec((cols,), lambda i, j: (j,))],"
        )
        assert "(j,)" in code
        assert [finding.message for finding in lint(code) if finding.code == "PAL307"] == []

    @pytest.mark.parametrize(("options", "count"), [("8 if wide else m", 1), ("8 if m > 8 else m", 0)])
    def test_a_block_that_may_be_the_whole(self, options: str, count: int) -> None:
        given = {"more": ", wide", "before": f"rows = {options}", "block": "(rows, 128)", "tile": "(rows, 128)"}
        body = "tile_ref[pl.ds(pl.program_id(0) * x_ref.shape[0], x_ref.shape[0]), :] = x_ref[...]"
        assert len(found("PAL412", **given, body=body, grid="(m // rows, 1)")) == count

    def test_swapped_axes(self) -> None:
        given = {"more": ", wide", "before": "rows = 8 if wide else 16", "grid": "(n // 128, m // rows)"}
        assert len(found("PAL307", **given, block="(rows, 128)", out_block="(rows, 128)")) == 2

    @pytest.mark.parametrize(("before", "count"), [("rows = 32 if wide else rows", 0), ("pass", 1)])
    def test_a_block_that_may_not_divide(self, before: str, count: int) -> None:
        code = f"""
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref, *, rows):
    def add(t, total):
        return total + jnp.sum(x_ref[pl.ds(t * rows, rows), :], axis=0, keepdims=True)

    o_ref[...] = jax.lax.fori_loop(0, pl.cdiv(x_ref.shape[0], rows), add, jnp.zeros((1, 128), jnp.float32))

def run(x, rows, wide):
    {before}
    return pl.pallas_call(
        functools.partial(kernel, rows=rows),
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""
        assert len([finding for finding in lint(code) if finding.code == "PAL412"]) == count


@pytest.mark.parametrize(
    ("index", "rows", "count"),
    [("(0, 0)", "n", 1), ("(i, 0)", "n", 0), ("(0, 0)", "height", 0), ("(0, 0)", "8", 0)],
)
@pytest.mark.parametrize("changed", [False, True])
def test_an_output_that_stays_at_its_first_block(index: str, rows: str, count: int, changed: bool) -> None:
    """Also where a function sets the height, which is None so far."""
    code = f"""
        import jax
        from jax.experimental import pallas as pl

        {"HEIGHT = None" if changed else ""}

        def configure(height):
            {"global HEIGHT" if changed else ""}
            HEIGHT = height

        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        def double(x{"" if changed else ", height"}):
            {"height = HEIGHT" if changed else ""}
            n, width = x.shape
            return pl.pallas_call(
                kernel,
                grid=(pl.cdiv(n, height),),
                in_specs=[pl.BlockSpec((height, width), lambda i: (i, 0))],
                out_specs=pl.BlockSpec((height, width), lambda i: {index}),
                out_shape=jax.ShapeDtypeStruct(({rows}, width), x.dtype),
            )(x)
        """
    assert [finding.code for finding in lint(code, target="tpu", select="PAL308")] == ["PAL308"] * count


@pytest.mark.parametrize(
    ("before", "grid", "line"),
    [
        ("pass", "(x.shape[0] // 128,)", 14),
        ("steps = x.shape[0] // 128", "(steps,)", 11),
        ("grid = (x.shape[0] // 128,)", "grid", 11),
        ("steps = x.shape[0] // 128; grid = (steps,)", "grid", 11),
    ],
)
def test_steps_too_few_are_reported_where_they_are_computed(before: str, grid: str, line: int) -> None:
    code = f"""\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def double(x):
    {before}
    return pl.pallas_call(
        kernel,
        grid={grid},
        in_specs=[pl.BlockSpec((128, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


double(jnp.ones((320, 128)))
"""
    assert [finding.span.start.line for finding in lint(code, target="tpu", select="PAL308")] == [line]
