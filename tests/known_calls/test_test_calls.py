"""With which arguments test runners call what calls launchers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.run.project import discover
from pallas_lint.run.runner import run

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    x = x_ref[...]
    if x.shape[1] % 128:
        x += jnp.sum(x.reshape(x.shape[0] * 4, x.shape[1] // 4))
    o_ref[...] = x

def rows(x, *, bm=64):
    m, n = x.shape
    spec = pl.BlockSpec((bm, n), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(m // bm,), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=pltpu.CompilerParams())(x)
"""
HEAD = """\
import itertools
import unittest
import jax
import jax.numpy as jnp
import pytest
from absl.testing import absltest, parameterized
from hypothesis import given, strategies as st
from jax._src import test_util as jtu
from kern import rows
SIZES = [128, 200]
"""
BODY = "    rows(jnp.ones((256, n)))\n"
METHOD = "    def test_rows(self, n):\n        rows(jnp.ones((256, n)))\n"


def reported(folder: Path, test: str, kernel: str = KERNEL, **others: str) -> list[str]:
    """The arguments with which the test finds what is wrong in the kernel."""
    (folder / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    (folder / "tests").mkdir()
    (folder / "kern.py").write_text(kernel)
    (folder / "tests" / "test_kern.py").write_text(HEAD + test)
    for name, text in others.items():
        (folder / "tests" / f"{name}.py").write_text(text)
    finder = SettingsFinder(Overrides({"jax-version": "0.10.2"}), folder)
    found = run(discover(["."], finder, cwd=folder).files, cwd=folder, jobs=1).findings
    return [each.known_call.spelled for each in found if each.code == "PAL202" and each.known_call]


@pytest.mark.parametrize(
    "test",
    [
        "@pytest.mark.parametrize('n', [128, 200])\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('n', SIZES, ids=str)\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize(argnames='n', argvalues=SIZES)\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('m, n', [(1, 128), pytest.param(2, 200, id='odd')])\ndef test_rows(m, n):\n" + BODY,
        "@pytest.mark.parametrize(('m', 'n'), [(1, 128), [2, 200]])\ndef test_rows(m, n):\n" + BODY,
        "@pytest.mark.parametrize(['n'], [(128,), (200,)])\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('n', [m * 100 for m in range(2, 4)])\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('m,n', list(itertools.product([8, 16], SIZES)))\ndef test_rows(m, n):\n" + BODY,
        "@pytest.mark.parametrize('m,n', itertools.product([8, 16], SIZES))\ndef test_rows(m, n):\n" + BODY,
        "@pytest.mark.parametrize('m', range(9))\n@pytest.mark.parametrize('n', SIZES)\ndef test_rows(m, n):\n" + BODY,
        "pytestmark = pytest.mark.parametrize('n', SIZES)\ndef test_rows(n):\n" + BODY,
        "pytestmark = [pytest.mark.slow, pytest.mark.parametrize('n', SIZES)]\ndef test_rows(n):\n" + BODY,
        "sizes = pytest.mark.parametrize('n', SIZES)\n@sizes\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('n', SIZES)\nclass TestRows:\n" + METHOD,
        "class TestRows(parameterized.TestCase):\n    @parameterized.parameters(128, 200)\n" + METHOD,
        "class TestRows(parameterized.TestCase):\n    @parameterized.parameters(*[(128,), (200,)])\n" + METHOD,
        "class TestRows(parameterized.TestCase):\n    @parameterized.parameters([dict(n=n) for n in SIZES])\n" + METHOD,
        "class TestRows(parameterized.TestCase):\n    @parameterized.parameters((n,) for n in SIZES)\n" + METHOD,
        "class TestRows(parameterized.TestCase):\n    @parameterized.named_parameters(('a', 128), ('b', 200))\n"
        + METHOD,
        "class TestRows(parameterized.TestCase):\n"
        "    @parameterized.named_parameters(dict(testcase_name='a', n=200))\n" + METHOD,
        "class TestRows(parameterized.TestCase):\n    @parameterized.product(n=SIZES)\n" + METHOD,
        "class TestRows(jtu.JaxTestCase):\n    @jtu.sample_product(n=SIZES)\n" + METHOD,
        "class TestRows(jtu.JaxTestCase):\n    @jtu.sample_product([dict(n=n) for n in SIZES])\n" + METHOD,
        "class TestRows(unittest.TestCase):\n    def setUp(self):\n        self.n = 200\n"
        "    def test_rows(self):\n        rows(jnp.ones((256, self.n)))\n",
        "class TestRows(unittest.TestCase):\n    N = 200\n"
        "    def test_rows(self):\n        rows(jnp.ones((256, self.N)))\n",
        "@pytest.fixture\ndef n():\n    return 200\ndef test_rows(n):\n" + BODY,
        "@pytest.fixture(scope='module')\ndef n():\n    size = 200\n    yield size\ndef test_rows(n):\n" + BODY,
        "@pytest.fixture(params=SIZES)\ndef n(request):\n    return request.param\ndef test_rows(n):\n" + BODY,
        "@pytest.fixture\ndef half():\n    return 100\n@pytest.fixture\ndef n(half):\n    return half * 2\n"
        "def test_rows(n):\n" + BODY,
        "class TestRows:\n    @pytest.fixture\n    def n(self):\n        return 200\n" + METHOD,
        "def test_rows(n=200):\n" + BODY,
        "def main(n=200):\n" + BODY,
        "def test_rows():\n    for n in [128, 200]:\n        rows(jnp.ones((256, n)))\n",
        "def test_rows():\n    for m, n in [(1, 128), (2, 200)]:\n        rows(jnp.ones((256, n)))\n",
    ],
)
def test_a_test_gives_shapes(tmp_path: Path, test: str) -> None:
    (arguments,) = reported(tmp_path, test)
    assert arguments.startswith("x: f32[256,200], bm=64")


@pytest.mark.parametrize(
    "test",
    [
        "@pytest.mark.skip\n@pytest.mark.parametrize('n', SIZES)\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.skip(reason='slow')\ndef test_rows(n=200):\n" + BODY,
        "@pytest.mark.xfail\ndef test_rows(n=200):\n" + BODY,
        "pytestmark = pytest.mark.skip('no')\ndef test_rows(n=200):\n" + BODY,
        "@unittest.skip('no')\nclass TestRows(unittest.TestCase):\n    def test_rows(self, n=200):\n    " + BODY,
        "@unittest.expectedFailure\ndef test_rows(n=200):\n" + BODY,
        "class TestRows(unittest.TestCase):\n    def test_rows(self, n=200):\n        self.skipTest('no')\n    " + BODY,
        "def test_rows(n=200):\n    pytest.skip('no')\n" + BODY,
        "@pytest.mark.parametrize('n', [128, pytest.param(200, marks=pytest.mark.xfail)])\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('n', [128, pytest.param(200, marks=[pytest.mark.skip('no')])])\n"
        "def test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('n', [128, 200])\ndef test_rows(n):\n    with pytest.raises(ValueError):\n    "
        + BODY,
        "@given(st.integers())\ndef test_rows(n):\n" + BODY,
        "@pytest.mark.parametrize('n', SIZES, indirect=True)\ndef test_rows(n):\n" + BODY,
        "def n():\n    return 200\ndef test_rows(n):\n" + BODY,
        "def helper(n=200):\n" + BODY,
    ],
)
def test_a_test_gives_no_shapes(tmp_path: Path, test: str) -> None:
    assert not reported(tmp_path, test)


def test_a_fixture_of_a_conftest(tmp_path: Path) -> None:
    conftest = "import pytest\n@pytest.fixture\ndef n():\n    return 200\n"
    (arguments,) = reported(tmp_path, "def test_rows(n):\n" + BODY, conftest=conftest)
    assert arguments.startswith("x: f32[256,200]")


def test_a_test_in_the_launchers_own_file(tmp_path: Path) -> None:
    test = "import pytest\n@pytest.mark.parametrize('n', [128, 200])\ndef test_rows(n):\n" + BODY
    (arguments,) = reported(tmp_path, "", KERNEL + test)
    assert arguments.startswith("x: f32[256,200]")


def test_of_many_cases_the_most_different(tmp_path: Path) -> None:
    sizes = [*range(128, 2048, 128), 200]
    (arguments,) = reported(tmp_path, f"@pytest.mark.parametrize('n', {sizes})\ndef test_rows(n):\n" + BODY)
    assert arguments.startswith("x: f32[256,200]")
