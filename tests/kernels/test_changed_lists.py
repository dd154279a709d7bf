"""Lists and dictionaries that are changed under another name, in a helper or in a closure."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = jnp.zeros(o_ref.shape)


def fill(sizes):
    sizes.append(8)


def run(x, flag=True):
    BODY
    out = jax.ShapeDtypeStruct(tuple(sizes), jnp.float32)
    spec = pl.BlockSpec((8, 128, 8), lambda: (0, 0, 0))
    return pl.pallas_call(kernel, out_shape=out, in_specs=[pl.no_block_spec], out_specs=spec)(x)


run(jnp.ones((64, 128)))
"""


def messages(body: str) -> list[str]:
    code = CODE.replace("BODY", "\n    ".join(body.split("\n")))
    return [finding.message for finding in lint(code, select="PAL310")]


@pytest.mark.parametrize(
    "body",
    [
        "sizes = [64, 128]",
        "sizes = [64, 128, 8]\nsizes.pop()",
        "other = [64, 128]\nsizes = other.copy()\nother.append(8)",
        "other = [64, 128]\nsizes = list(other)\nfill(other)",
        "sizes = [64]\ndef add(size):\n    sizes.append(size)\nadd(128)",
        "sizes, other = [64, 128], [64, 128]\nfill(other)",
    ],
)
def test_what_is_in_them_is_known(body: str) -> None:
    assert messages(body) == ["block of 3 dimensions for output 0, which has 2"]


@pytest.mark.parametrize(
    "body",
    [
        "sizes = [64, 128]\nother = sizes\nother.append(8)",
        "sizes = [64, 128]\nother = sizes\nother += [8]",
        "sizes = [64, 128]\nfill(sizes)",
        "sizes, other = [64, 128], [64, 128]\nfill(other)\nfill(sizes)",
        "sizes = [64, 128]\nadd = sizes.append\nadd(8)",
        "sizes = [64, 128]\n[sizes.append(size) for size in (8,)]",
        "sizes = [64, 128]\njax.tree.map(lambda size: sizes.append(size), (8,))",
        "sizes = [64, 128]\ndef add(size):\n    sizes.append(size)\nadd(8)",
        "sizes = [64, 128]\ndef add(size):\n    if x.sum() > 0:\n        sizes.append(size)\nadd(8)",
        "sizes = [64, 128]\nheld = {'sizes': sizes}\nheld['sizes'].append(8)",
        "sizes = [64, 128]\nheld = [sizes]\nfill(held[0])",
        "sizes = [64, 128, 8, 1]\ndel sizes[3]",
        "sizes = [64, 128, 8, 1]\nother = sizes\nother.pop()",
    ],
)
def test_they_may_be_changed_elsewhere(body: str) -> None:
    assert messages(body) == []


@pytest.mark.parametrize(
    "branches",
    [
        "if x.sum() > 0:\n    sizes.append(8)\nelse:\n    {}",
        "sizes.append(8) if x.sum() > 0 else {}",
        "match x.sum():\n    case 0:\n        sizes.append(8)\n    case _:\n        {}",
    ],
    ids=["statement", "expression", "match"],
)
def test_in_the_other_branch_they_are_as_they_were(branches: str) -> None:
    launch = (
        "pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(tuple(sizes), jnp.float32),"
        " in_specs=[pl.no_block_spec], out_specs=pl.BlockSpec((8, 128, 8), lambda: (0, 0, 0)))(x)"
    )
    assert messages("sizes = [64, 128]\n" + branches.format(launch)) == [
        "block of 3 dimensions for output 0, which has 2"
    ]


@pytest.mark.parametrize(
    ("changes", "known"),
    [("SIZES.append(8)", False), ("del SIZES[0]", False), ("SIZES[0] = 8", False), ("print(SIZES[0])", True)],
)
def test_globals_that_functions_change(changes: str, known: bool) -> None:
    code = f"SIZES = [64, 128]\n\ndef set_up():\n    {changes}\n\n" + CODE.replace("BODY", "sizes = SIZES")
    assert bool(lint(code, select="PAL310")) is known


def test_an_index_map_reads_what_its_own_run_changed() -> None:
    """Rules evaluate index maps after all runs: that of `moved` is not the last one."""
    code = CODE.replace("BODY", "sizes = [64, 128]") + (
        "\n\ndef moved():\n"
        "    first = [9]\n"
        "    other = first\n"
        "    other[0] = 0\n"
        "    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))\n"
        "    there = pl.BlockSpec((8, 128), lambda i: (first[0], 0))\n"
        "    x = jnp.ones((32, 128))\n"
        "    return pl.pallas_call(kernel, grid=(4,), in_specs=[there], out_specs=spec, out_shape=x)(x)\n"
    )
    assert lint(code, select="PAL307", target="tpu") == []
    assert lint(code.replace("other = first", "other = [9]"), select="PAL307", target="tpu") != []
