"""What a text costs grows as the text does: counted in calls, not in time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.run.project import Project
from pallas_lint.run.runner import check_source
from pallas_lint.text.source import Source
from tests.hostile import attack

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
TEXTS: dict[str, Callable[[int], str]] = {
    "codes": lambda n: "x = 1  # pallas-lint: disable=" + ",".join(f"PAL{i % 1000:03}" for i in range(n)),
    "unknown codes": lambda n: "x = 1  # pallas-lint: disable=" + ",".join(f"rule-{i}" for i in range(n)),
    "codes of noqa": lambda n: "x = 1  # noqa: " + ",".join(f"PAL{i % 1000:03}" for i in range(n)),
    "directives in a comment": lambda n: "x = 1" + " # pallas-lint: disable=PAL301" * n,
    "directives in lines": lambda n: "x = 1  # pallas-lint: disable=PAL301\n" * n,
    "directives above": lambda n: "# pallas-lint: disable=PAL301\n" * n + "x = 1",
    "directives in a list": lambda n: "x = [\n" + "'é',  # pallas-lint: disable=PAL301\n" * n + "]",
    "directives in a string": lambda n: f"x = '''é{'# pallas-lint: disable=PAL301 ' * n}'''",
    "directives at decorators": lambda n: "@f  # pallas-lint: disable=PAL301\n" * n + "def f(): pass",
    "directives at clauses": lambda n: "if x: pass\n" + "elif y:  # pallas-lint: disable=PAL301\n    pass\n" * n,
}


_KERNEL = """\
def kernel(x_ref, o_ref):
{body}

def run(x, n):
    return pl.pallas_call(kernel, {specs}out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)
"""
_INDEX = "i = pl.program_id(0)"


def _kernel(*lines: str, grid: str = "4", before: str = "", specs: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return before + _KERNEL.format(body=body, specs=f"grid=({grid},), {specs}")


def _doubled(line: str, *after: str, first: str = _INDEX) -> Callable[[int], str]:
    """A value that is made of itself, twice in every line."""
    return lambda n: _kernel(first, *[line] * n, *after)


def _mapped(line: str) -> Callable[[int], str]:
    specs = "in_specs=[pl.BlockSpec((8, 128), where)], out_specs=pl.BlockSpec((8, 128), where), "
    lines = "".join(f"    {each}\n" for each in (line, "return i, 0"))
    return lambda n: _kernel(
        "o_ref[...] = x_ref[...]",
        before=f"def where(i):\n{lines.replace(line, chr(10).join([line, *['    ' + line] * (n - 1)]))}\n",
        specs=specs,
    )


def _nested(header: str, *inside: str, first: str = "m = 0") -> Callable[[int], str]:
    """Blocks, each in the one before."""

    def text(n: int) -> str:
        headers = ["    " * at + header.format(at=at) for at in range(n)]
        return _kernel(first, *headers, *("    " * n + line.format(n=n) for line in inside))

    return text


def _grid(n: int) -> str:
    where = "in_specs=[pl.BlockSpec((8, 128), lambda *a: (sum(a), 0))], out_specs=pl.BlockSpec((8, 128), where), "
    requested = [f"i{at} = pl.program_id({at})" for at in range(n)]
    total = " + ".join(f"i{at}" for at in range(n))
    when = [f"@pl.when({total} == 0)", "def _():", "    o_ref[...] = jnp.zeros_like(o_ref)"]
    before = "def where(*a):\n    return a[0], 0\n"
    return _kernel(*requested, *when, "o_ref[...] += x_ref[...]", grid=", ".join("2" * n), before=before, specs=where)


_STORE = "o_ref[...] = x_ref[...]"
_WHEN = ("@pl.when(i == 0)", "def _():", f"    {_STORE}")
# Of these, what is written out of `n` lines is twice as much with every line.
SHARED: dict[str, Callable[[int], str]] = {
    "an index": _doubled("i = i + i", "o_ref[i] = x_ref[i]"),
    "the start of a slice": _doubled("i = i + i", "o_ref[pl.ds(i, 8)] = x_ref[pl.ds(i * 8, 8)]"),
    "a condition": _doubled("i = i + i", *_WHEN),
    "two conditions": _doubled(
        "i, j = i & j, i | j", *_WHEN, first="i, j = pl.program_id(0) == 0, pl.program_id(1) == 0"
    ),
    "a choice": _doubled("i = jnp.where(i > 2, i + 1, i % 3)", *_WHEN),
    "rows": _doubled("i = i + i", "o_ref[pl.ds(i, 1)] = x_ref[pl.ds(i + 1, 1)]"),
    "bounds of a loop": _doubled("i = i + i", "jax.lax.fori_loop(i, i + 4, lambda k, c: c + x_ref[k], 0)"),
    "conditions of Python": _doubled("i = i + i", "if i > 0:", f"    {_STORE}", first="i = x_ref[0, 0]"),
    "a vector": _doubled("i = i + i", "o_ref[...] = i.reshape(8, 16)", first="i = x_ref[0]"),
    "a mask": _doubled(
        "i = i & i", "o_ref[...] = jnp.where(i, x_ref[...], -jnp.inf).max()", first="i = x_ref[...] > 0"
    ),
    "a masked row": _doubled(
        "i, m = i + i, jnp.maximum(m, m)",
        "o_ref[...] = jnp.exp(i - m)",
        first="i = jnp.where(x_ref[...] > 0, x_ref[...], -jnp.inf); m = jnp.max(i, axis=1)",
    ),
    "a map": _mapped("i = i + i"),
    "a map of products": _mapped("i = i * i"),
    "a map of powers": _mapped("i = 2 ** i"),
    "a map of choices": _mapped("i = jnp.where(i > 2, i + 1, i % 3)"),
    "loops over numbers": _nested("for i{at} in range(4):", _STORE),
    "loops over anything": _nested("for i{at} in range(n):", "m = m + i0", "o_ref[pl.ds(m, 8)] = x_ref[...]"),
    "loops until something": _nested("while m < {at}:", "m = m + 1", _STORE),
    "comprehensions": lambda n: _kernel("A = [0] * 16", f"V = [a {'for a in A ' * n}]", _STORE),
    "axes": _grid,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_an_empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other file is read: a whole repository, searched for calls, would be most of each cost."""
    monkeypatch.chdir(tmp_path)


def cost(text: str) -> int:
    """Calls of Python and of C functions in one judgement."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    settings = SettingsFinder(Overrides(isolated=True, values={"jax-version": "0.10.2"})).for_folder(Path.cwd())
    source = Source("k.py", HEAD + text + "\n")
    sys.setprofile(count)
    try:
        check_source(source, settings, Project(Path.cwd(), {Path.cwd() / "k.py": source}))
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", TEXTS)
def test_twice_the_text_costs_twice_as_much(name: str) -> None:
    cost(TEXTS[name](20))  # what is done once is done
    few, many = (cost(TEXTS[name](n)) for n in (150, 300))
    assert many < 2.5 * few


@pytest.mark.parametrize("name", SHARED)
def test_what_is_shared_costs_what_is_written(name: str) -> None:
    cost(SHARED[name](4))  # what is done once is done
    few, many = (cost(SHARED[name](n)) for n in (9, 18))
    assert many < 3 * few


def test_a_long_chain_of_calls_ends(tmp_path: Path) -> None:
    """What stands around a use is known from the way to it: climbing up from each took hours here."""
    (tmp_path / "k.py").write_text(HEAD + "x = jnp.zeros(8)" + ".astype(jnp.float32)" * 8000 + "\n")
    ran = attack.run("k.py", cwd=tmp_path, home=tmp_path)
    assert ran.calm and ran.status == 0
