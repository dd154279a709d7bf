"""Names that are bound again after a launch: a kernel sees what they are when it is launched."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import lines, lint

_IMPORTS = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

"""
_OUT = "out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32)"


def found(code: str, rule: str) -> list[str]:
    source = _IMPORTS + textwrap.dedent(code).replace("OUT", _OUT)
    marked = source.splitlines()
    return [marked[line - 1].strip() for line in sorted(lines(lint(source, jax="0.10.2", select=rule), rule))]


def test_local_bound_again_after_the_call() -> None:
    code = """
    def run(x):
        rows = {before}
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[pl.ds(0, rows), :]
        y = pl.pallas_call(kernel, OUT)(jnp.zeros((8, 128)))
        rows = {after}
        return y
    """
    assert found(code.format(before=8, after=16), "PAL412") == []
    assert found(code.format(before=16, after=8), "PAL412") == ["o_ref[...] = x_ref[pl.ds(0, rows), :]"]


def test_local_bound_between_the_function_and_the_call() -> None:
    code = """
    def run(x):
        rows = 16
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[pl.ds(0, rows), :]
        call = pl.pallas_call(kernel, OUT)
        rows = 8
        return call(jnp.zeros((8, 128)))
    """
    assert found(code, "PAL412") == []


def test_import_bound_again_in_a_function() -> None:
    code = """
    def run(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = np.concatenate([x_ref[0:4, :], x_ref[4:8, :]], axis=0)
        {first}
        y = pl.pallas_call(kernel, OUT)(x)
        {second}
        return np.asarray(y)
    """
    assert found(code.format(first="import jax.numpy as np", second="import numpy as np"), "PAL502") == []
    assert len(found(code.format(first="import numpy as np", second="import jax.numpy as np"), "PAL502")) == 1


@pytest.mark.parametrize("spelled", ["y = {}", "{}"])
def test_script_that_binds_kernels_and_sizes_again(spelled: str) -> None:
    first = spelled.format("pl.pallas_call(kernel, OUT)(jnp.zeros((8, 128)))")
    second = spelled.format("pl.pallas_call(kernel, OUT)(jnp.zeros((8, 128)), jnp.zeros((8, 128)))")
    code = f"""
    rows = {{before}}
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(0, rows), :]
    {first}
    rows = 4
    def kernel(x_ref, y_ref, o_ref):
        o_ref[pl.ds(0, 4), :] = x_ref[pl.ds(0, rows), :]
        o_ref[pl.ds(rows, 4), :] = y_ref[pl.ds(0, rows), :]
    {second}
    rows = 64
    """
    assert found(code.format(before=8), "PAL304") == []
    assert found(code.format(before=8), "PAL412") == []
    assert found(code.format(before=16), "PAL412") == ["o_ref[...] = x_ref[pl.ds(0, rows), :]"]


def test_script_that_launches_the_wrong_kernel() -> None:
    code = """
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
    pl.pallas_call(kernel, OUT)(jnp.zeros((8, 128)))
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]
    pl.pallas_call(kernel, OUT)(jnp.ones((8, 128)))
    """
    flagged = found(code, "PAL304")
    assert len(flagged) == 1
    assert "ones" in flagged[0]


def test_function_sees_what_the_file_binds_last() -> None:
    code = """
    ROWS = 4
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(0, ROWS), :]
    def run(x):
        return pl.pallas_call(kernel, OUT)(jnp.zeros((8, 128)))
    ROWS = 16
    """
    assert found(code, "PAL412") == ["o_ref[...] = x_ref[pl.ds(0, ROWS), :]"]


def test_names_narrowed_by_isinstance_and_none() -> None:
    code = """
    def opposite(flag):
        if isinstance(flag, jax.Array):
            return jnp.logical_not(flag)
        return not flag

    def kernel(m_ref, x_ref, o_ref, *, bound=None):
        if m_ref is not None:
            skip = m_ref[0, 0].astype(jnp.int32) != 1
        else:
            skip = False
        limit = None if m_ref is None else m_ref[0, 0]
        kept = limit if limit is None else limit + 1
        {use}
        @pl.when(opposite(skip))
        def _():
            o_ref[...] = x_ref[...]

    def run(m, x, spec=None):
        return pl.pallas_call(
            kernel, in_specs=[spec and pl.BlockSpec((8, 128), lambda: (0, 0)), pl.BlockSpec()], OUT
        )(m, x)
    """
    assert found(code.format(use="pass"), "PAL502") == []
    flagged = found(code.format(use="also = not skip"), "PAL502")
    assert flagged in ([], ["also = not skip"])


def test_a_loop_binds_names_again() -> None:
    """Both operands have the size of the loop's last turn, also where one name is bound once more later."""
    code = """
    def kernel(x_ref, t_ref, o_ref):
        o_ref[...] = x_ref[...] * t_ref[...]

    def run(x, t):
        spec = pl.BlockSpec((128, 128), lambda i: (i, 0))
        grid = (x.shape[0] // 128,)
        return pl.pallas_call(kernel, grid=grid, in_specs=[spec, spec], out_specs=spec, out_shape=x)(x, t)

    t = jnp.zeros((512, 128))
    x = jnp.zeros((512, 128))
    for rows in [256, {last}]:
        t = jnp.zeros((rows, 128))
        x = jnp.zeros(({of_x}, 128))
    run(x, jnp.zeros((t.shape[0], 128)))
    t = jnp.zeros((256, 128))
    """
    assert found(code.format(last=4096, of_x="rows"), "PAL307") == []
    assert found(code.format(last=4096, of_x="rows + 128"), "PAL307") != []


def test_a_loop_is_not_interrupted() -> None:
    """What a loop looks up for the first time leaves its variables as they are, and runs no later loop with them."""
    code = """
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(0, rows), :]
    STEP = 4
    table = jnp.ones((2, 2))
    rows, size = 4, 1
    for turn in (0, 1):
        rows = rows + {step}
        size = max(size, int(jnp.sum(table[turn])))
    x = jnp.zeros((8, size))
    for turn in range(1):
        x = x.at[turn, 0].set(1)
    pl.pallas_call(kernel, OUT)(x)
    """
    assert found(code.format(step=2), "PAL412") == []
    assert found(code.format(step="STEP"), "PAL412") == ["o_ref[...] = x_ref[pl.ds(0, rows), :]"]
    reader = code.replace("pl.ds(0, rows), :", ":, 1")
    assert found(reader.format(step=2), "PAL412") == []
    assert found(reader.replace("max(size, int(jnp.sum(table[turn])))", "1").format(step=2), "PAL412") != []


def test_a_loop_needs_what_a_later_one_changes() -> None:
    code = """
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[:, 1]
    table = jnp.ones((2, 2))
    size = 1
    for turn in (0, 1):
        size = size + int(table.shape[turn])
    for turn in (0, 1):
        table = jnp.zeros((8, size))
    pl.pallas_call(kernel, OUT)(table)
    """
    assert found(code, "PAL412") == []


@pytest.mark.parametrize(
    "filled",
    [
        "parts = [[None] * 2 for _ in range(2)]\n            parts[1][0] = ROWS",
        "parts = [[], []]\n            parts[1].append(ROWS)",
        "parts = {1: [None]}\n            parts[1][0] = ROWS",
    ],
)
def test_lists_in_lists_are_filled(filled: str) -> None:
    code = f"""
    def run(x):
        def kernel(x_ref, o_ref):
            {filled}
            o_ref[...] = jnp.concatenate([jnp.zeros((4, 128)), parts[1][0]])
        return pl.pallas_call(kernel, OUT)(x)
    """
    joined = "o_ref[...] = jnp.concatenate([jnp.zeros((4, 128)), parts[1][0]])"
    assert found(code.replace("ROWS", "jnp.ones((4, 128))"), "PAL509") == []
    assert found(code.replace("ROWS", "jnp.ones((128,))"), "PAL509") == [joined]


def test_a_place_that_another_function_fills() -> None:
    code = """
    def run(x):
        def fill(parts, part):
            parts[0] = part
        def kernel(x_ref, o_ref):
            parts = [None]
            fill(parts, x_ref[0:4, :])
            o_ref[...] = jnp.concatenate([x_ref[0:4, :], parts[0]], axis=0)
        return pl.pallas_call(kernel, OUT)(x)
    """
    assert found(code, "PAL509") == []
