"""What Python decides while jax traces: numbers of the host, types of values, and functions that are chosen by them.

Each case is judged as a real jax does: the slow test traces all of them.
"""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import codes, lint
from tests.rules.traced import PRELUDE, outcomes

# How large a block is, computed from x of shape (1024,): a Python number or one of numpy's.
NUMBERS = """\
SIZES[np.argmin(-(-x.shape[0] // SIZES))].item()
int(SIZES[np.argmin(-(-x.shape[0] // SIZES))])
np.sort(SIZES).tolist()[0]
max(SIZES.tolist())
[size.item() for size in SIZES][0]
SIZES.max().item()
SIZES.reshape(-1)[1].item()
SIZES.item(1)
SIZES.astype(np.int32)[0].item()
(np.array([2, 4]) * 128).sum().item()
np.prod(x.shape).item()
np.int64(512).item()
np.power(2, 9).item()
int(np.minimum(512, x.shape[0]))
int(2 ** np.ceil(np.log2(x.shape[0])))
2 ** math.ceil(math.log2(x.shape[0]))
math.gcd(x.shape[0], 512)
min(512, x.size)
2048 // x.dtype.itemsize
np.dtype(x.dtype).itemsize * 128
SIZES.size * 256""".splitlines()
ARRAYS = """\
jnp.argmin(jnp.array([256, 512])) + 256
jnp.arange(256, 259)[0]
jnp.asarray(512)""".splitlines()

# A function of what a loop counts, which Python may compute with only where it is a number.
CHOICES = {
    "a function": "take = jnp.maximum if isinstance(i, jax.Array) else max\nreturn take(i, 1)",
    "one of several": "if isinstance(i, (jax.Array, jax.core.Tracer)):\n    return jnp.maximum(i, 1)\nreturn max(i, 1)",
    "numbers": "return max(i, 1) if isinstance(i, (int, np.integer)) else jnp.maximum(i, 1)",
    "a union": "return max(i, 1) if isinstance(i, int | np.integer) else jnp.maximum(i, 1)",
    "negated": "if not isinstance(i, jax.core.Tracer):\n    return max(i, 1)\nreturn jnp.maximum(i, 1)",
    "numpy": "if isinstance(i, np.ndarray) or np.isscalar(i):\n    return max(i, 1)\nreturn jnp.maximum(i, 1)",
    "an attribute": "return jnp.maximum(i, 1) if hasattr(i, 'aval') else max(i, 1)",
    "its type": "return max(i, 1) if type(i) is int else jnp.maximum(i, 1)",
    "one of types": "return max(i, 1) if type(i) in (int, float) else jnp.maximum(i, 1)",
    "match": "match i:\n    case int():\n        return max(i, 1)\n    case _:\n        return jnp.maximum(i, 1)",
    "match arrays": "match i:\n    case jax.Array():\n        return jnp.maximum(i, 1)\nreturn max(i, 1)",
    "any": "if any(isinstance(each, jax.Array) for each in (i, 1)):\n    return jnp.maximum(i, 1)\nreturn max(i, 1)",
    "all": "if all(isinstance(each, int) for each in (i, 1)):\n    return max(i, 1)\nreturn jnp.maximum(i, 1)",
    "arithmetic": "j = i * 2 + 1\nreturn jnp.maximum(j, 1) if isinstance(j, jax.Array) else max(j, 1)",
    "a cast": "j = jnp.int32(i)\nreturn jnp.maximum(j, 1) if isinstance(j, jax.Array) else max(j, 1)",
    "rank": "if jnp.ndim(i) == 0 and isinstance(i, jax.Array):\n    return jnp.maximum(i, 1)\nreturn max(i, 1)",
    "a dictionary": "return {True: jnp.maximum, False: max}[isinstance(i, jax.Array)](i, 1)",
    "failure": "try:\n    return max(int(i), 1)\nexcept TypeError:\n    return jnp.maximum(i, 1)",
    "failure of jax": "try:\n    return max(int(i), 1)\nexcept jax.errors.JAXTypeError:\n    return jnp.maximum(i, 1)",
    "anything": "return jnp.maximum(i, 1) if isinstance(i, object) else max(i, 1)",
}
WRONG = {
    "a function": "take = max if isinstance(i, jax.Array) else jnp.maximum\nreturn take(i, 1)",
    "the other value": "take = jnp.maximum if isinstance(1, jax.Array) else max\nreturn take(i, 1)",
    "negated": "return max(i, 1) if not isinstance(i, (int, np.integer)) else jnp.maximum(i, 1)",
    "numpy": "if not isinstance(i, np.ndarray):\n    return max(i, 1)\nreturn jnp.maximum(i, 1)",
    "an attribute": "return max(i, 1) if hasattr(i, 'aval') else jnp.maximum(i, 1)",
    "its type": "return max(i, 1) if type(i) is not int else jnp.maximum(i, 1)",
    "match": "match i:\n    case int():\n        return jnp.maximum(i, 1)\n    case _:\n        return max(i, 1)",
    "any": "if any(isinstance(each, jax.Array) for each in (i, 1)):\n    return max(i, 1)\nreturn jnp.maximum(i, 1)",
    "callable": "return max(i, 1) if not callable(i) else jnp.maximum(i, 1)",
    "another failure": "try:\n    return max(int(i), 1)\nexcept ValueError:\n    return jnp.maximum(i, 1)",
    "no test": "return max(i, 1)",
}

# The height of the output's block, 1 for all of these; `at_least` computes it otherwise.
HEIGHTS = """\
max(lanes // group // 2, 1)
max(8 // x.dtype.itemsize // 4, 1)
max(1, min(lanes // 8, 4))
max(lanes // 16, 1, 0)
min(lanes, 1)
abs(7 - lanes)
lanes >> 3
(lanes & 7) | 1
-(-lanes // 8)
~-lanes // 7
lanes ** 0
lanes % 7
int(lanes / 8)
(lanes - 7).bit_length()
math.gcd(lanes, 3)
math.ceil(lanes / 16)
divmod(lanes, 8)[0]
max(lanes // 16, 1) * max(lanes // 32, 1)""".splitlines()


def by_size(size: str) -> str:
    return (
        "import math\nSIZES = np.array([256, 512, 1024])\nargs = (V,)\n"
        "def kernel(x_ref, o_ref, *, size):\n    o_ref[...] = jnp.where(jnp.arange(0, size) < 100, x_ref[...], 0)\n"
        "def launch(x, size):\n"
        "    spec = pl.BlockSpec((size,), lambda i: (i,))\n"
        "    kernel_of_size = functools.partial(kernel, size=size)\n"
        "    return pl.pallas_call(kernel_of_size, grid=(pl.cdiv(x.shape[0], size),), in_specs=[spec],"
        " out_specs=spec, out_shape=V)(x)\n"
        f"def f(x):\n    return launch(x, {size})\n"
    )


def by_choice(body: str) -> str:
    return (
        f"def choose(i):\n{textwrap.indent(body, '    ')}\n"
        "def kernel(x_ref, o_ref):\n    total = lax.fori_loop(0, 4, lambda i, c: c + choose(i), choose(3))\n"
        "    o_ref[...] = x_ref[...] + total\n"
        "def f(x):\n    return pl.pallas_call(kernel, out_shape=OUT)(x)\n"
    )


def by_height(height: str, factor: str = "1 * ") -> str:
    return (
        "import math\n"
        "def kernel(x_ref, o_ref):\n    o_ref[...] = jnp.sum(x_ref[...], axis=0, keepdims=True)\n"
        "def f(x, lanes=8, group=8):\n"
        f"    rows = {factor}({height})\n"
        "    return pl.pallas_call(kernel, grid=(8,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],"
        " out_specs=pl.BlockSpec((None, rows, 128), lambda i: (i, 0, 0)),"
        " out_shape=jax.ShapeDtypeStruct((8, 2, 128), jnp.float32))(x)\n"
    )


WORKING = {
    **{size: by_size(size) for size in NUMBERS},
    **{f"by {name}": by_choice(body) for name, body in CHOICES.items()},
    **{height: by_height(height) for height in HEIGHTS},
}
BROKEN = {
    **{size: (by_size(size), "PAL501") for size in ARRAYS},
    **{f"by {name}": (by_choice(body), "PAL502") for name, body in WRONG.items()},
    **{f"2 * {height}": (by_height(height, "2 * "), "PAL506") for height in HEIGHTS},
    "two lanes": (by_height("max(4 * lanes // group // 2, 1)"), "PAL506"),
}
CALLED = "\nf(jnp.ones((256, 128), jnp.float32))\n"


def judged(code: str) -> set[str]:
    return codes([finding for finding in lint(code, "0.12.0.1", select="PAL5") if finding.severity.value != "info"])


@pytest.mark.parametrize("name", WORKING)
def test_working(name: str) -> None:
    assert not judged(PRELUDE + WORKING[name])
    assert "args" in WORKING[name] or not judged(PRELUDE + WORKING[name] + CALLED)


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    code, expected = BROKEN[name]
    assert expected in judged(PRELUDE + code + ("" if "args" in code else CALLED))


@pytest.mark.nightly
def test_jax_agrees() -> None:
    failed = outcomes({**WORKING, **{f"broken {name}": code for name, (code, _) in BROKEN.items()}})
    assert {name for name, error in failed.items() if error is not None} == {f"broken {name}" for name in BROKEN}
