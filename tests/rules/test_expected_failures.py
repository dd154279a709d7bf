"""What tests only call to see it fail is not reported, by any rule; all else is."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint_text

PRELUDE = """\
import unittest
import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

X = jnp.ones((8, 128))
OUT = jax.ShapeDtypeStruct((8, 128), jnp.float32)

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]
    o_ref[0, 0] = x_ref[0, 0]

def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]

"""
LAUNCH = "pl.pallas_call(kernel, out_shape=OUT, compiler_params=pltpu.CompilerParams())"
LAUNCHER = f"def launcher(x):\n    return {LAUNCH}(x)\n"
SPECS = "grid=(1,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i,))], out_shape=OUT"
CASES: dict[str, tuple[str, set[str]]] = {
    "launched there": (f"def test():\n    with pytest.raises(ValueError):\n        {LAUNCH}(X)\n", set()),
    "only called there": (
        f"def test():\n    f = {LAUNCH}\n    with pytest.raises(ValueError, match='VMEM') as caught:\n        f(X)\n",
        set(),
    ),
    "called elsewhere too": (
        f"def test():\n    f = {LAUNCH}\n    with pytest.raises(ValueError):\n        f(X)\n    f(X + 1)\n",
        {"PAL211"},
    ),
    "never called": (f"def test():\n    with pytest.raises(ValueError):\n        pass\n    f = {LAUNCH}\n", {"PAL211"}),
    "a method": (
        "class Test(unittest.TestCase):\n    def test(self):\n        @jax.jit\n        def run(x):\n"
        f"            return {LAUNCH}(x)\n"
        "        with self.assertRaisesRegex(ValueError, 'VMEM'):\n            run(X)\n",
        set(),
    ),
    "a launcher of the module": (
        LAUNCHER + "def test():\n    with pytest.raises(ValueError):\n        launcher(X)\n",
        {"PAL211"},
    ),
    "suppressed": (f"def test():\n    with contextlib.suppress(ValueError):\n        {LAUNCH}(X)\n", {"PAL211"}),
    "another context": (f"def test():\n    with jax.disable_jit():\n        {LAUNCH}(X)\n", {"PAL211"}),
    "index maps": (
        f"def test():\n    with pytest.raises(ValueError):\n        pl.pallas_call(kernel, {SPECS})(X)\n",
        set(),
    ),
    "index maps of what is called there": (
        f"def test():\n    f = pl.pallas_call(kernel, {SPECS})\n    with pytest.raises(ValueError):\n        f(X)\n",
        set(),
    ),
    "index maps in a dictionary": (
        "def test():\n    spec = pl.BlockSpec((8, 128), lambda i: (i,))\n"
        "    f = pl.pallas_call(kernel, grid=(1,), in_specs=[dict(one=spec)], out_shape=OUT)\n"
        "    with pytest.raises(ValueError):\n        f(dict(one=X))\n",
        set(),
    ),
    "index maps otherwise": (f"def test():\n    pl.pallas_call(kernel, {SPECS})(X)\n", {"PAL211", "PAL303"}),
    "a derivative": (
        f"def test():\n    def f(x):\n        return jnp.sum({LAUNCH.replace('kernel', 'copy')}(x))\n"
        "    f(X)\n    with pytest.raises(AssertionError):\n        jax.grad(f)(X)\n",
        set(),
    ),
    "a failing test": (f"@pytest.mark.xfail(reason='scalars')\ndef test():\n    {LAUNCH}(X)\n", set()),
    "another mark": (f"@pytest.mark.slow\ndef test():\n    {LAUNCH}(X)\n", {"PAL211"}),
    "in the kernel": (
        "def checking(x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n"
        "    with pytest.raises(ValueError):\n        o_ref[0, 0] = x_ref[0, 0]\n"
        f"def test():\n    {LAUNCH.replace('kernel', 'checking')}(X)\n",
        set(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_expected_failures(name: str) -> None:
    code, expected = CASES[name]
    findings = lint_text(PRELUDE + code, jax="0.12.0.1")
    assert {finding.code for finding in findings if finding.severity.rank} == expected
