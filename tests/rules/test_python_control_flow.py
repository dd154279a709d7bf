"""PAL502 to PAL504: what is flagged is what jax refuses to trace, and nothing else.

Each case is the body of a kernel, with the code of the finding that it deserves or None. The slow test traces every
case with a real jax.
"""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import codes, fixed, lint
from tests.rules.traced import PRELUDE, outcomes

OURS = frozenset({"PAL502", "PAL503", "PAL504"})
FLOW, RETURN, GRID = "PAL502", "PAL503", "PAL504"


def kernel(body: str, launch: str = "grid=(2,)", keywords: str = "") -> str:
    return (
        f"import math\ndef kernel(x_ref, o_ref{keywords}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
        f"def f(x):\n    return pl.pallas_call(kernel, {launch}, out_shape=OUT)(x)\n"
    )


def index_map(text: str) -> str:
    return (
        "def f(x):\n"
        f"    spec = pl.BlockSpec((128, 128), {text})\n"
        "    return pl.pallas_call(copy, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=OUT)(x)\n"
    )


CASES: dict[str, tuple[str, str | None]] = {
    # -- traced values
    "if on a load": (kernel("if x_ref[0, 0] > 0:\n    pass"), FLOW),
    "if on a program id": (kernel("i = pl.program_id(0)\nif i == 0:\n    pass"), FLOW),
    "if on jnp of a number": (kernel("if jnp.int32(3) > 2:\n    pass"), FLOW),
    "if on lax of numbers": (kernel("if lax.rem(4, 2) == 0:\n    pass"), FLOW),
    "if on a reduction": (kernel("if jnp.any(x_ref[...] > 0):\n    pass"), FLOW),
    "if on a method": (kernel("if (x_ref[...] > 0).all():\n    pass"), FLOW),
    "if on a ref": (kernel("if x_ref:\n    pass"), FLOW),
    "if on cdiv of a program id": (kernel("if pl.cdiv(pl.program_id(0), 2) == 1:\n    pass"), FLOW),
    "while": (kernel("while x_ref[0, 0] > 0:\n    pass"), FLOW),
    "assert": (kernel("assert x_ref[0, 0] > 0"), FLOW),
    "conditional expression": (kernel("y = 1 if x_ref[0, 0] > 0 else 2"), FLOW),
    "and": (kernel("y = x_ref[0, 0] > 0 and True"), FLOW),
    "or": (kernel("y = x_ref[0, 0] > 0 or True"), FLOW),
    "not": (kernel("y = not x_ref[0, 0] > 0"), FLOW),
    "chain": (kernel("y = 0 < pl.program_id(0) < 3"), FLOW),
    "in": (kernel("y = pl.program_id(0) in (0, 1)"), FLOW),
    "match": (kernel("match pl.program_id(0):\n    case 0:\n        pass"), FLOW),
    "range": (kernel("for _ in range(pl.program_id(0)):\n    pass"), FLOW),
    "int": (kernel("y = int(x_ref[0, 0])"), FLOW),
    "float": (kernel("y = float(x_ref[0, 0])"), FLOW),
    "bool": (kernel("y = bool(x_ref[0, 0])"), FLOW),
    "max": (kernel("y = max(pl.program_id(0), 1)"), FLOW),
    "min of a list": (kernel("y = min([x_ref[0, 0], x_ref[0, 1]])"), FLOW),
    "any": (kernel("y = any([x_ref[0, 0] > 0])"), FLOW),
    "list index": (kernel("y = [1, 2][pl.program_id(0)]"), FLOW),
    "refs by index": (kernel("y = (x_ref, o_ref)[pl.program_id(0)]"), FLOW),
    "slice of a ref": (kernel("i = pl.program_id(0)\ny = x_ref[i * 4:(i + 1) * 4]"), FLOW),
    "slice of a view": (kernel("i = pl.program_id(0)\ny = x_ref.at[i:]"), FLOW),
    "slice stored to": (kernel("i = pl.program_id(0)\no_ref[i:i + 1] = x_ref[0:1]"), FLOW),
    "size of a slice": (kernel("y = x_ref[pl.ds(0, pl.program_id(0))]"), FLOW),
    "iterating over a ref": (kernel("for row in x_ref:\n    pass"), FLOW),
    "math": (kernel("y = math.sqrt(x_ref[0, 0])"), FLOW),
    "numpy": (kernel("y = np.exp(x_ref[...])"), FLOW),
    "numpy where": (kernel("y = np.where(x_ref[...] > 0, 1, 0)"), FLOW),
    "item": (kernel("y = x_ref[0, 0].item()"), FLOW),
    "format spec": (kernel("y = f'{x_ref[0, 0]:.2f}'"), FLOW),
    "traced shape": (kernel("y = jnp.zeros((pl.program_id(0),))"), FLOW),
    "traced arange": (kernel("y = jnp.arange(pl.program_id(0))"), FLOW),
    "loop index": (kernel("lax.fori_loop(0, 4, lambda i, c: c if i == 0 else c + 1, 0)"), FLOW),
    "loop carry": (kernel("lax.fori_loop(0, 4, lambda i, c: c if c == 0 else c + 1, 0)"), FLOW),
    "carry of a while loop": (kernel("lax.while_loop(lambda c: c[0] < 3 and c[1] > 2, lambda c: c, (0, 1))"), FLOW),
    "carry of a scan": (kernel("lax.scan(lambda c, x: (c if c > 0 else c, None), 0, None, length=4)"), FLOW),
    "operand of a cond": (kernel("lax.cond(pl.program_id(0) > 0, lambda a: a if a > 0 else a, lambda a: a, 3)"), FLOW),
    "condition of a while loop": (kernel("lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)"), None),
    "loop index of a list": (kernel("lax.fori_loop(0, 2, lambda i, c: [c, c][i], 0)"), FLOW),
    "in a helper": ("def half(v):\n    return v / 2 if v > 0 else v\n" + kernel("y = half(x_ref[0, 0])"), FLOW),
    "and with an open left side": (
        kernel("if flag and pl.program_id(0) == 0:\n    pass", keywords=", *, flag=True"),
        FLOW,
    ),
    "if in an index map": (index_map("lambda i: (i if i > 0 else 0, 0)"), FLOW),
    "max in an index map": (index_map("lambda i: (max(i - 1, 0), 0)"), FLOW),
    "int in an index map": (index_map("lambda i: (int(i / 2), 0)"), FLOW),
    # -- static values
    "shape": (kernel("if x_ref.shape[0] > 8:\n    pass"), None),
    "shape of a value": (kernel("x = x_ref[...]\nif x.ndim == 2 and x.size > 2 and x.shape[0] > 1:\n    pass"), None),
    "dtype": (
        kernel("if x_ref.dtype == jnp.float32 or jnp.issubdtype(x_ref[...].dtype, jnp.integer):\n    pass"),
        None,
    ),
    "is None": (kernel("if x_ref is not None:\n    pass"), None),
    "finfo": (kernel("if jnp.finfo(jnp.float32).min > 0:\n    pass"), None),
    "num_programs": (kernel("if pl.num_programs(0) == 2:\n    pass"), None),
    "range of num_programs": (kernel("for _ in range(pl.num_programs(0)):\n    pass"), None),
    "cdiv of num_programs": (kernel("for _ in range(pl.cdiv(pl.num_programs(0), 2)):\n    pass"), None),
    "math of num_programs": (kernel("y = math.floor(pl.num_programs(0) / 2)"), None),
    "a bound keyword": (kernel("if flag:\n    pass\ny = max(flag, 1)", keywords=", *, flag=True"), None),
    "isinstance": (kernel("i = pl.program_id(0)\nif isinstance(i, int) and i == 0:\n    pass"), None),
    "Python loops": (kernel("for k in range(4):\n    if k == 2:\n        continue\n    y = x_ref[k] * k"), None),
    "a value in a list": (kernel("if [x_ref[0, 0]]:\n    pass"), None),
    "iterating over a value": (kernel("for row in x_ref[0:2]:\n    pass"), None),
    "sum, abs, round": (kernel("y = sum([x_ref[0, 0], abs(x_ref[0, 1]), round(x_ref[0, 2])])"), None),
    "numpy that calls methods": (kernel("y = np.sum(x_ref[...]) + np.max(x_ref[...]) + np.mean(x_ref[...])"), None),
    "numpy of shapes": (kernel("if np.prod(x_ref.shape) > 3:\n    pass"), None),
    "numpy scalars": (kernel("y = x_ref[...] * np.float32(2) + np.log(2.0)"), None),
    "an f-string": (kernel("y = f'{x_ref[0, 0]}'"), None),
    "static slices": (kernel("y = x_ref[0:8, :]\nz = x_ref[pl.ds(pl.program_id(0), 4)]"), None),
    "index map with a default": (index_map("lambda i, n=3: (i if n > 0 else 0, 0)"), None),
    "index map of jnp": (index_map("lambda i: (jnp.maximum(i - 1, 0), 0)"), None),
    "a carry of None": (kernel("lax.fori_loop(0, 4, lambda i, c: c if c is None else c, None)"), None),
    # -- results
    "returns a value": (kernel("return x_ref[...]"), RETURN),
    "returns a ref": (kernel("o_ref[...] = x_ref[...]\nreturn o_ref"), RETURN),
    "returns a tuple": (kernel("return ()"), RETURN),
    "returns a number": (kernel("return 0"), RETURN),
    "lambda": ("def f(x):\n    return pl.pallas_call(lambda a, b: a[...] * 2, out_shape=OUT)(x)\n", RETURN),
    "returns None": (kernel("o_ref[...] = x_ref[...]\nreturn None"), None),
    # -- the grid
    "axis beyond the grid": (kernel("y = pl.program_id(1)"), GRID),
    "size beyond the grid": (kernel("y = pl.num_programs(2)"), GRID),
    "no grid": (kernel("y = pl.program_id(0)", "debug=False"), GRID),
    "an empty grid": (kernel("y = pl.program_id(0)", "grid=()"), GRID),
    "in the launching function": (
        "def f(x):\n    i = pl.program_id(0)\n    return pl.pallas_call(copy, grid=(2,), out_shape=OUT)(x + i)\n",
        GRID,
    ),
    "bound in the launching function": (
        "def k(x_ref, o_ref, *, i):\n    o_ref[...] = x_ref[...]\n"
        "def f(x):\n    kernel = functools.partial(k, i=pl.program_id(0))\n"
        "    return pl.pallas_call(kernel, grid=(2,), out_shape=OUT)(x)\n",
        GRID,
    ),
    "an axis of the grid": (kernel("y = pl.program_id(1) + pl.num_programs(0)", "grid=(2, 2)"), None),
    "a grid that is not known": (
        "def k(x_ref, o_ref):\n    o_ref[...] = x_ref[...] * pl.program_id(1)\n"
        "def g(x, grid):\n    return pl.pallas_call(k, grid=grid, out_shape=OUT)(x)\n"
        "def f(x):\n    return g(x, (2, 2))\n",
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_verdict(name: str) -> None:
    code, expected = CASES[name]
    assert codes(lint(PRELUDE + code, "0.12.0")) & OURS == ({expected} if expected else set())


@pytest.mark.slow
def test_jax_agrees() -> None:
    found = outcomes({name: code for name, (code, _) in CASES.items()})
    wrong = {name: error for name, error in found.items() if (error is not None) != (CASES[name][1] is not None)}
    assert not wrong


def findings(body: str, keywords: str = "") -> list[Severity]:
    code = PRELUDE + "FLAG = compute()\n" + kernel(body, keywords=keywords)
    return [f.severity for f in lint(code, "0.12.0", select="PAL502")]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            kernel("o_ref[...] = np.exp(x_ref)"),
            "`np.exp` computes while the kernel is traced, and is given the ref `x_ref`",
        ),
        (
            kernel("o_ref[...] = np.exp(x_ref[...])"),
            "`np.exp` computes while the kernel is traced, and is given a traced value, which comes from `x_ref`",
        ),
        (
            index_map("lambda i: (max(i - 1, 0), 0)"),
            "`max` needs Python numbers, and is given a traced value, which comes from a grid index",
        ),
    ],
)
def test_query_and_value_are_named(code: str, message: str) -> None:
    assert [finding.message for finding in lint(PRELUDE + "import numpy as np\n" + code) if finding.code == FLOW] == [
        message
    ]


def test_severity_follows_what_is_known() -> None:
    assert findings("if x_ref[0, 0] > 0:\n    pass") == [Severity.ERROR]
    assert findings("if flag:\n    if x_ref[0, 0] > 0:\n        pass", ", *, flag=FLAG") == [Severity.WARNING]
    assert findings("if flag and x_ref[0, 0] > 0:\n    pass", ", *, flag=FLAG") == [Severity.WARNING]


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("flag or True", []),
        ("flag is None or done", []),
        ("not (flag and not done)", []),
        ("flag or False", [Severity.WARNING]),
        ("flag and done", [Severity.WARNING]),
    ],
)
def test_a_guard_is_decided_by_either_side(guard: str, expected: list[Severity]) -> None:
    body = f"if {guard}:\n    return\nif x_ref[0, 0] > 0:\n    pass"
    assert findings(body, ", *, flag=FLAG, done=True") == expected


def test_a_number_beside_an_unknown_is_not_the_value() -> None:
    body = "size = flag or 8\no_ref[...] = x_ref[...]\nif size == 8:\n    return\nif x_ref[0, 0] > 0:\n    pass"
    assert findings(body, ", *, flag=FLAG") == [Severity.WARNING]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "if pl.program_id(0) == 0:  # first\n    o_ref[...] = x_ref[...]",
            "@pl.when(pl.program_id(0) == 0)\ndef _():  # first\n    o_ref[...] = x_ref[...]",
        ),
        (
            "if (pl.program_id(0)\n        == 0):\n    o_ref[...] += 1",
            "@pl.when(pl.program_id(0)\n        == 0)\ndef _():\n    o_ref[...] += 1",
        ),
        (
            "if pl.program_id(0) == 0:\n    o_ref[...] = x_ref[...]\nelse:\n    o_ref[...] += 1",
            "@pl.when(pl.program_id(0) == 0)\ndef _():\n    o_ref[...] = x_ref[...]\n"
            "@pl.when(jnp.logical_not(pl.program_id(0) == 0))\ndef _():\n    o_ref[...] += 1",
        ),
        (
            "if pl.program_id(0) == 0:\n    y = x_ref[...] * 2\n    o_ref[...] = y",
            "@pl.when(pl.program_id(0) == 0)\ndef _():\n    y = x_ref[...] * 2\n    o_ref[...] = y",
        ),
        # What follows needs the name; a branch that returns; a condition that would still ask.
        ("if pl.program_id(0) == 0:\n    y = 1\n    o_ref[...] = y\nz = y", None),
        ("if pl.program_id(0) == 0:\n    return", None),
        ("if pl.program_id(0) == 0 and x_ref[0, 0] > 0:\n    o_ref[...] = x_ref[...]", None),
        ("if pl.program_id(0) == 0: o_ref[...] = x_ref[...]", None),
        ("if pl.program_id(0) == 0:\n    o_ref[...] = 1\nelif x_ref.shape[0] > 1:\n    o_ref[...] = 2", None),
        ("i = pl.program_id(0)\no_ref[i * 8:(i + 1) * 8] = 1", "i = pl.program_id(0)\no_ref[pl.ds(i * 8, 8)] = 1"),
        ("i = pl.program_id(0)\ny = x_ref[i:i + 4, :]", "i = pl.program_id(0)\ny = x_ref[pl.ds(i, 4), :]"),
        ("i = pl.program_id(0)\ny = x_ref[i:]", None),
    ],
)
def test_fix(before: str, after: str | None) -> None:
    whole = PRELUDE + kernel(before)
    wanted = whole if after is None else PRELUDE + kernel(after)
    assert fixed(whole, "0.12.0", None, "PAL502").rstrip() == wanted.rstrip()


@pytest.mark.parametrize(
    ("body", "launch", "expected"),
    [
        (
            "@pl.when(x_ref[0, 0] > 0)\ndef _():\n    o_ref[...] = x_ref[...] * pl.program_id(0)",
            "grid=(2,), interpret=True",
            True,
        ),
        ("@pl.when(x_ref[0, 0] > 0)\ndef _():\n    o_ref[...] = x_ref[...] * pl.program_id(0)", "grid=(2,)", False),
        (
            "@pl.when(x_ref[0, 0] > 0)\ndef _():\n    o_ref[...] = x_ref[...] * pl.num_programs(0)",
            "grid=(2,), interpret=True",
            False,
        ),
        (
            "i = pl.program_id(0)\n@pl.when(i > 0)\ndef _():\n    o_ref[...] = x_ref[...]",
            "grid=(2,), interpret=True",
            False,
        ),
    ],
)
def test_program_id_that_cannot_be_interpreted(body: str, launch: str, expected: bool) -> None:
    assert bool(lint(PRELUDE + kernel(body, launch), "0.12.0", select="PAL504")) is expected


def test_negative_axes_are_for_interpreters() -> None:
    code = PRELUDE + kernel("y = pl.program_id(-1)", "grid=(2, 4), compiler_params=pltpu.CompilerParams()")
    (finding,) = lint(code, "0.12.0", select="PAL504")
    assert finding.severity is Severity.ERROR
    assert "pl.program_id(1)" in fixed(code, "0.12.0", None, "PAL504")
