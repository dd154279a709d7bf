"""Facts from guards on symbols: `if x.shape[1] != 1: raise` before a block of one row."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint

LAUNCH = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def run(x, block, mode):
{guard}
    spec = pl.BlockSpec((1, 1, 128), lambda b, i: (b, i, 0))
    return pl.pallas_call(
        kernel,
        grid=(8, x.shape[1]),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""

SAYS_ONE = [
    "    assert x.shape[1] == 1",
    "    assert 1 == x.shape[1], x.shape",
    "    if x.shape[1] != 1:\n        raise ValueError(x.shape)",
    "    if not x.shape[1] == 1:\n        return x",
    "    if mode == 'fwd' or x.shape[1] != 1 or x.ndim != 3:\n        raise NotImplementedError",
    "    assert x.ndim == 3 and x.shape[1] == 1",
    "    assert x.shape == (8, 1, 128)",
    "    assert x.shape == block.shape == (8, 1, 128)",
    "    assert block == x.shape[1] == 1",
    "    assert x.shape[:2] == (8, 1) and x.shape[1] == 1",
    "    b, rows, d = x.shape\n    if rows != 1:\n        return x",
    "    assert (x.shape[0], x.shape[1]) == (8, 1)",
    "    if x.shape[1] == 1:\n        block = 1\n    else:\n        raise ValueError",
    "    if block:\n        assert x.shape[1] == 1\n    else:\n        assert x.shape[1] == 1",
    "    rows = 1 if x.shape[1] == 1 else 2\n    assert x.shape[1] == 1",
]
SAYS_NOTHING = [
    "    pass",
    "    assert x.shape[0] == 1",
    "    assert x.shape[1] != 1",
    "    assert block == x.shape[1] < 2",
    "    if block == x.shape[1] == 1:\n        return x",
    "    assert x.shape[1] == 1 or block",
    "    if x.shape[1] == 1:\n        return x",
    "    if x.shape[1] != 1 and block:\n        raise ValueError(x.shape)",
    "    if block:\n        assert x.shape[1] == 1",
    "    for y in block:\n        assert x.shape[1] == 1",
    "    rows = 2 if x.shape[1] == 1 else 3",
    "    try:\n        assert x.shape[1] == 1\n    except AssertionError:\n        block = 2",
]


@pytest.mark.parametrize("guard", SAYS_ONE)
def test_a_guard_gives_a_dimension(guard: str) -> None:
    assert not lint(LAUNCH.format(guard=guard), select="PAL201")


@pytest.mark.parametrize("guard", SAYS_NOTHING)
def test_other_guards_do_not(guard: str) -> None:
    assert {finding.code for finding in lint(LAUNCH.format(guard=guard), select="PAL201")} == {"PAL201"}


def test_in_the_branch_where_it_holds() -> None:
    body = LAUNCH.format(guard="    if x.shape[1] {} 1:\n        return x")
    inside = body.replace("        return x\n", "        rows = x.shape[1]\n    else:\n        return x\n")
    assert not lint(inside.format("=="), select="PAL201")
    assert lint(inside.format("!="), select="PAL201")


def test_a_remainder_that_is_nought() -> None:
    one = LAUNCH.replace("(1, 1, 128)", "(1, 1 + x.shape[1] % 8, 128)")
    assert not lint(one.format(guard="    pass"), select="PAL201")
    for guard in ("    assert x.shape[1] % 8 == 0", "    if x.shape[1] % 8:\n        raise ValueError"):
        assert lint(one.format(guard=guard), select="PAL201")


CALLS = (
    LAUNCH.format(guard="")
    + """

def inner(x, rows, mode):
    return run(x, rows, mode)


def decode(x, mode, other):
    if {condition}:
        raise ValueError(x.shape)
    return {call}
"""
)


def test_a_guard_holds_for_whom_it_calls() -> None:
    def flagged(condition: str, call: str) -> bool:
        # `rows` is given by callers only: what is reported of other callers' arrays is not this one's.
        code = CALLS.format(condition=condition, call=call).replace("def run(x, block, mode)", "def run(x, rows, mode)")
        return bool(lint(code.replace("(1, 1, 128)", "(1, rows, 128)"), select="PAL201"))

    for call in ("run(x, 1, mode)", "inner(x, 1, mode)"):
        assert not flagged("x.shape[1] != 1", call), call
        assert flagged("x.shape[1] != 2", call), call
        assert flagged("other.shape[1] != 1", call), call
    # The same call, where the guard is behind it or speaks of another array.
    assert flagged("x.shape[1] != 1", "run(other, 1, mode)")
    assert flagged("run(x, 1, mode) is None and x.shape[1] != 1", "run(x, 1, mode)")


def test_kernels_see_the_queries_of_their_launcher() -> None:
    code = """
    import jax
    from jax.experimental import pallas as pl

    def run(x):
        rows = x.shape[0]
        if rows != 3:
            raise ValueError

        def kernel(x_ref, o_ref):
            if rows == 3:
                o_ref[...] = x_ref[...]

        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    """
    assert not lint(code)
    assert {finding.code for finding in lint(code.replace("rows == 3:", "rows == 4:"))} >= {"PAL411"}


@pytest.mark.parametrize(("rows", "found"), [(48, 0), (64, 1)])
def test_a_guard_on_the_next_power_of_two(rows: int, found: int) -> None:
    code = f"""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton as plgpu

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + jnp.arange(3)

    def check(x):
        if x.shape[0] != pl.next_power_of_2(x.shape[0]):
            raise ValueError(x.shape)

    def run(x):
        check(x)
        return pl.pallas_call(kernel, out_shape=x, compiler_params=plgpu.CompilerParams())(x)

    run(jnp.zeros(({rows},)))
    """
    assert len(lint(code, select="PAL509")) == found


# Of a call with known shapes: what of it the text cannot decide, and whether it may end the call before the launch.
OPEN_GUARDS = [
    ("        check(x)", True),
    ("        if not fits(x.shape):\n            return reference(x)", True),
    ("        if not fits():\n            return reference(x)", False),  # of the machine, not of the arguments
    ("        if x.shape[0] % 7 == 0:\n            return reference(x)", False),  # it is decided
    ("        rows = 8 if fits(x) else 16", False),
    ("        assert fits(x)", False),
]


@pytest.mark.parametrize(("guard", "is_open"), OPEN_GUARDS)
def test_behind_a_guard_that_the_text_leaves_open_errors_are_warnings(guard: str, is_open: bool) -> None:
    code = f"""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton as plgpu
    from somewhere import fits, reference

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + jnp.arange(3)

    def check(x):
        if not fits(x.shape):
            raise ValueError(x.shape)

    def run(x):
{guard}
        return pl.pallas_call(kernel, out_shape=x, compiler_params=plgpu.CompilerParams())(x)

    run(jnp.zeros((64,)))
    """
    (finding,) = lint(code, select="PAL509")
    assert finding.severity is (Severity.WARNING if is_open else Severity.ERROR)


ON_CPU = [
    "    if jax.default_backend() == 'cpu':\n        return\n",
    "    if is_cpu():\n        pytest.skip('slow')\n",
    "    if jax.default_backend() not in ('cpu',):\n    ",
    "    if jax.devices()[0].platform == 'cpu':\n        return\n",
    "    if jax.local_devices()[0].platform not in ('cpu',):\n    ",
]


@pytest.mark.parametrize("guard", [*ON_CPU, "    if jax.default_backend() != 'cpu':\n    "])
def test_kernels_are_judged_as_an_accelerator_runs_them(guard: str) -> None:
    code = (
        "import jax\nimport jax.numpy as jnp\nimport pytest\nfrom jax.experimental import pallas as pl\n"
        "from jax.experimental.pallas import triton as plgpu\n\n\n"
        "def is_cpu():\n    return 'cpu' == jax.default_backend()\n\n\n"
        "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...] + jnp.arange(3)\n\n\n"
        "def run(x):\n    return pl.pallas_call(kernel, out_shape=x, compiler_params=plgpu.CompilerParams())(x)\n\n\n"
        f"def test_run():\n{guard}    run(jnp.zeros((64,)))\n"
    )
    (finding,) = lint(code, select="PAL509")
    assert finding.known_call is not None


RANKS = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.concatenate([x_ref[...], jnp.max(y_ref[...], axis=1)], axis=1)


def run(x, y):
    {guard}
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)
"""


@pytest.mark.parametrize(
    ("guard", "known"),
    [
        ("assert x.ndim == 2 and y.ndim == 2", True),
        ("assert x.ndim == y.ndim == 2", True),
        ("assert len(x.shape) == len(y.shape) == 2", True),
        ("if len(x.shape) != 2 or len(y.shape) != 2:\n        raise ValueError", True),
        ("assert x.ndim == y.ndim", False),
        ("assert len(x) == len(y) == 2", False),
    ],
)
def test_a_guard_gives_a_rank(guard: str, known: bool) -> None:
    found = lint(RANKS.format(guard=guard), "0.12.0.1", select="PAL509")
    assert [each.message.endswith("have different numbers of dimensions") for each in found] == [True] * known
