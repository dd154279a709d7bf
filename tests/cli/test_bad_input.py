"""What people, generators and file systems come up with: a clear word or a clean result, never a crash or a hang."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from invocation import KERNEL, OLD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocation import Ran

    Lint = Callable[..., Ran]

HEADER = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
"""
CUMSUM = """
def kernel(x_ref, o_ref):
    {body}
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def run(x):
    {wrapper}
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
                          compiler_params=pltpu.CompilerParams())(x)
"""
NEW = ("--isolated", "--no-cache", "--jax-version", "0.10.2", "--output-format", "concise")


def hard(top: str = "", body: str = "pass", wrapper: str = "pass") -> str:
    return HEADER + top + CUMSUM.format(body=body, wrapper=wrapper)


def lines(template: str, count: int) -> str:
    return "\n    ".join(template.format(number) for number in range(count))


CHAIN = (
    "".join(f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x)\n" for n in range(40)) + "def f40(x):\n    return x\n"
)
HARD = {
    "power": hard("N = 10 ** 10 ** 8\nM = 1 << 10 ** 11\n", body="y = 10 ** 10 ** 8"),
    "multiplied": hard("N = [0] * 10 ** 10\nS = 'a' * 10 ** 11\n", wrapper="y = (1,) * 10 ** 9"),
    "endless": hard(body="while True: pass", wrapper="for i in range(10 ** 12): y = i"),
    "comprehended": hard(wrapper="y = [i for i in range(10 ** 10)]; z = tuple(range(10 ** 10)); sum(range(10 ** 12))"),
    "recursive": hard("def f(x):\n    return g(x) + f(x)\ndef g(x):\n    return f(f(x)) + g(x)\n", "f(x_ref[...])"),
    "exponential": hard(CHAIN, body="f0(x_ref[...])"),
    "branching": hard(body=lines("if a{}: y = 1\n    else: y = 2", 60), wrapper=lines("z = 1 if b{} else 2", 60)),
    "self-referring": hard(wrapper="d = {}; d['a'] = d; p = functools.partial(run); p = functools.partial(p, p); p(p)"),
    "impossible": hard("N = 1 // 0\nL = 10.0 ** 1000\n", body="y = 1 % 0; z = [][0]; t = {}['a']; u = (1).foo"),
    "formatted": hard("S = f'{1:>{10 ** 10}}'\nU = '{:>99999999999}'.format(1)\nV = 'a'.ljust(10 ** 11)\n"),
}


@pytest.mark.parametrize("name", HARD)
def test_code_that_is_hard_to_evaluate_is_still_judged(lint: Lint, folder: Path, name: str) -> None:
    (folder / "hard.py").write_text(HARD[name])
    ran = lint(*NEW, "hard.py")
    assert (ran.status, ran.err) == (1, "")
    assert "jnp.cumsum" in ran.out


@pytest.mark.parametrize(
    "expression",
    ["(" * 3000 + ")" * 3000, "f(" * 900 + ")" * 900, "1" + " + 1" * 900, "a" + ".b" * 900, "[" * 3000],
    ids=["parentheses", "calls", "sum", "attributes", "unclosed"],
)
def test_deep_nesting_costs_its_own_statement_only(lint: Lint, folder: Path, expression: str) -> None:
    (folder / "deep.py").write_text(hard(f"DEEP = {expression}\n"))
    ran = lint(*NEW, "deep.py")
    assert (ran.status, ran.err) == (1, "")
    assert "jnp.cumsum" in ran.out
    (folder / "deep.py").write_text(hard(body=f"deep = {expression}"))
    ran = lint(*NEW, "--fail-on", "info", "deep.py")
    assert (ran.status, ran.err) == (1, "")
    assert "PAL001" in ran.out


@pytest.mark.nightly
def test_five_megabytes_of_literals_beside_a_kernel(lint: Lint, folder: Path) -> None:
    (folder / "table.py").write_text(hard("TABLE = [\n" + "    0x1234abcd, 'text', 3.25,\n" * 180_000 + "]\n"))
    ran = lint(*NEW, "table.py")
    assert (ran.status, ran.err) == (1, "")
    assert "jnp.cumsum" in ran.out
    assert len(ran.out) < 5000


def test_modules_that_import_each_other_and_themselves(lint: Lint, folder: Path) -> None:
    (folder / "a.py").write_text(
        HEADER
        + "from b import helper, other\nimport a\nfrom a import kernel as again\n"
        + "def deeper(x):\n    return other(x)\n"
        + CUMSUM.format(body="helper(x_ref[...])", wrapper="a.run(again)")
        .replace("jnp.cumsum", "jnp.exp")
        .replace(", axis=1", "")
    )
    (folder / "b.py").write_text(
        "from a import deeper\nimport a, b\nfrom c import *\nimport jax.numpy as jnp\n"
        "def helper(x):\n    return a.deeper(x) + b.helper(x)\n"
        "def other(x):\n    return jnp.cumsum(x, axis=1) + starred(x)\n"
    )
    (folder / "c.py").write_text("from b import *\nfrom c import *\ndef starred(x):\n    return helper(x)\n")
    ran = lint(*NEW)
    assert (ran.status, ran.err) == (1, "")
    assert "b.py:8:" in ran.out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system here")
def test_links_that_lead_nowhere_or_in_circles_and_things_that_are_no_files(lint: Lint, folder: Path) -> None:
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "loop").symlink_to(".")
    (folder / "self.py").symlink_to("self.py")
    (folder / "dangling.py").symlink_to("gone.py")
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    ran = lint("--isolated", *OLD, "--output-format", "concise", "-q")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.count("PAL301") == 1
    for name in ("self.py", "dangling.py", "pipe.py", os.devnull):
        ran = lint("--isolated", *OLD, name)
        assert ran.status == 2
        assert ran.err.count("\n") == 1
        assert "no such file" in ran.err or "neither a file nor a folder" in ran.err
    assert lint("--isolated", *OLD, "loop", "-q").out.count("PAL301") == 1


def test_a_helper_module_that_is_no_file(lint: Lint, folder: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes in the file system here")
    os.mkfifo(folder / "numerics.py")
    (folder / "kernel.py").write_text(hard("from numerics import f\n", body="f(x_ref[...])"))
    ran = lint(*NEW, "kernel.py")
    assert (ran.status, ran.err) == (1, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# pallas",
        "pallas",
        "\n\n\f\n# pallas\n",
        "'''pallas",
        "pallas = (",
        "import jax.experimental.pallas as pl\npl.pallas_call()\npl.pallas_call(1, 2, 3)(4)\n",
        "from jax.experimental import pallas as pl\npl.pallas_call(*a, **b)(*c)\nx = pl.pallas_call\nx(x)(x)\n",
        "from jax.experimental import pallas as pl\n@pl.pallas_call\ndef k(*refs, **kw): refs[0][...] = refs[-1]\n",
        "from jax.experimental.pallas import *\npallas_call(lambda: 0, out_shape=None, grid=-1, in_specs=7)()\n",
        "from jax.experimental import pallas as pl\npl.BlockSpec((8, 128), lambda *i, **k: i[0])\npl.BlockSpec(1, 2)\n",
        "from jax.experimental import pallas as pl\npl.pallas_call(k, grid=(0,), out_shape=(), out_specs=[])()\n",
        "class pallas(pallas): pallas = pallas.pallas(pallas)[pallas]\n",
        "if pallas:\n\tx = 1\n        y = 2\n",
        "# pallas-lint: disable=\n# pallas-lint: disable=PAL999\n# pallas-lint: probe(\n# pallas-lint: assume x=\n",
        "x = 'pallas \ud800'\n".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_odd_texts(lint: Lint, text: str, newline: str) -> None:
    ran = lint(*NEW, "--select", "ALL", "--fix", "--unsafe-fixes", "-", stdin=text.replace("\n", newline).encode())
    assert ran.status in (0, 1), ran.err
    assert "internal error" not in ran.err
