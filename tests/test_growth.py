"""What a text costs grows no faster than the text: counted in steps, events, launches and visits of rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.lint import check_file
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.run.project import Project
from pallas_lint.testing import lint_text, settings
from pallas_lint.text.source import Source
from tests.sampling import by_day

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

"""
_LAUNCH = """
def run{at}(x, n):
    return pl.pallas_call(
        functools.partial({kernel}, n=n),
        grid=({grid},),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((8 * {grid}, 128), jnp.float32),
    )(x)
"""
_COPY = "def h0(x_ref, o_ref, n):\n    o_ref[...] = x_ref[...]\n"


def _launch(kernel: str, at: object = "", grid: int = 8) -> str:
    return _LAUNCH.format(kernel=kernel, at=at, grid=grid)


def _chain(size: int, guard: str, *, nested: bool = False) -> str:
    """Helpers of which each calls the one before twice, guarded or not."""
    helpers = [_COPY]
    for at in range(1, size + 1):
        calls = [guard.format(at=at, sign=sign, call=f"h{at - 1}(x_ref, o_ref, n)") for sign in "<>"]
        helpers.append(f"def h{at}(x_ref, o_ref, n):\n" + "".join(calls))
    text = "\n".join(helpers)
    if nested:
        lines = "".join(f"    {line}\n" for line in text.splitlines())
        return f"{_HEAD}def kernel(x_ref, o_ref, n):\n{lines}    h{size}(x_ref, o_ref, n)\n{_launch('kernel')}"
    return _HEAD + text + _launch(f"h{size}")


def _changing(size: int, second: str, *, guarded: bool = False) -> str:
    """Helpers that call the one before with an array that they got, and with another that they made of it."""
    helpers = ["def h0(x, n):\n    return x\n"]
    for at in range(1, size + 1):
        calls = (f"h{at - 1}(x, n)", f"h{at - 1}({second}, n)")
        if guarded:
            body = f"    if n > {at}:\n        x = {calls[0]}\n    else:\n        x = {calls[1]}\n    return x\n"
        else:
            body = f"    return {calls[0]} + {calls[1]}\n"
        helpers.append(f"def h{at}(x, n):\n{body}")
    kernel = f"def kernel(x_ref, o_ref, n):\n    o_ref[...] = h{size}(x_ref[...], pl.program_id(0))\n"
    return _HEAD + "\n".join(helpers) + kernel + _launch("kernel")


def _storing(size: int) -> str:
    """The same with guards that are functions: what is made is stored."""
    helpers = ["def h0(x, o_ref, n):\n    o_ref[...] = x\n"]
    for at in range(1, size + 1):
        calls = (f"h{at - 1}(x, o_ref, n)", f"h{at - 1}(x + 1, o_ref, n)")
        whens = [_WHEN.format(at=at, sign=sign, call=call) for sign, call in zip("<>", calls, strict=True)]
        helpers.append(f"def h{at}(x, o_ref, n):\n" + "".join(whens))
    kernel = f"def kernel(x_ref, o_ref, n):\n    h{size}(x_ref[...], o_ref, n)\n"
    return _HEAD + "\n".join(helpers) + kernel + _launch("kernel")


_IF = "    if n {sign} {at}:\n        {call}\n"
_WHEN = "    @pl.when(pl.program_id(0) {sign} {at})\n    def _():\n        {call}\n"


def _launching(size: int) -> str:
    """Functions outside kernels of which each calls the one before twice; the first launches."""
    helpers = [_COPY, _launch("h0")]
    for at in range(1, size + 1):
        before = f"f{at - 1}" if at > 1 else "run"
        helpers.append(f"def f{at}(x, n):\n    pl.BlockSpec((8, 128))\n    {before}(x, n)\n    return {before}(x, n)\n")
    return _HEAD + "\n".join(helpers)


def _guards(size: int) -> str:
    whens = "".join(_WHEN.format(at=at, sign="==", call="h0(x_ref, o_ref, n)") for at in range(size))
    return f"{_HEAD}{_COPY}\ndef kernel(x_ref, o_ref, n):\n{whens}{_launch('kernel')}"


def _callers(size: int) -> str:
    callers = [f"def caller{at}(n):\n    return run(jnp.zeros((64, 128), jnp.float32), {at})\n" for at in range(size)]
    return _HEAD + _COPY + _launch("h0") + "\n".join(callers)


def _kernel(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{_HEAD}def kernel(x_ref, o_ref, n):\n{body}{_launch('kernel')}"


def _importers(size: int) -> dict[str, str]:
    """Modules that call the launcher of one."""
    text = f"{_HEAD}from base import run\n\ndef call(n):\n    return run(jnp.zeros((64, 128), jnp.float32), n)\n"
    return {"base.py": _HEAD + _COPY + _launch("h0"), **{f"user{at}.py": text for at in range(size)}}


def _importers_of_importers(size: int) -> dict[str, str]:
    """Modules of which each calls what the one before has, twice, with other arrays."""
    files = {"m0.py": _HEAD + _COPY + _launch("h0", 0)}
    for at in range(1, size + 1):
        calls = f"    run{at - 1}(x, n)\n    return run{at - 1}(x + 1, n)\n"
        files[f"m{at}.py"] = f"{_HEAD}from m{at - 1} import run{at - 1}\n\ndef run{at}(x, n):\n{calls}"
    return files


def _helpers_of_modules(size: int) -> dict[str, str]:
    """The same in kernels: each module has a helper that calls that of the one before."""
    files = {"m0.py": f"{_HEAD}def h0(x, n):\n    return x\n"}
    for at in range(1, size + 1):
        body = f"    return h{at - 1}(x, n) * h{at - 1}(x + 1, n)\n"
        files[f"m{at}.py"] = f"{_HEAD}from m{at - 1} import h{at - 1}\n\ndef h{at}(x, n):\n{body}"
    kernel = _kernel(f"o_ref[...] = h{size}(x_ref[...], n)").replace(
        "def kernel", f"from m{size} import h{size}\n\ndef kernel"
    )
    return {**files, "kernel.py": kernel}


TEXTS: dict[str, Callable[[int], str]] = {
    "helpers": lambda size: _chain(size, "    {call}\n"),
    "helpers under `if`": lambda size: _chain(size, _IF),
    "helpers under `pl.when`": lambda size: _chain(size, _WHEN),
    "nested helpers under `if`": lambda size: _chain(size, _IF, nested=True),
    "helpers of changing arrays": lambda size: _changing(size, "x + 1"),
    "helpers of changing arrays under `if`": lambda size: _changing(size, "x + 1", guarded=True),
    "helpers of changing arrays under `pl.when`": _storing,
    "launchers of launchers": _launching,
    "launches": lambda size: _HEAD + _COPY + "".join(_launch("h0", at) for at in range(size)),
    "guards": _guards,
    "grid points": lambda size: _HEAD + _COPY + _launch("h0", grid=4**size),
    "callers": _callers,
    "chained calls": lambda size: _kernel("o_ref[...] = x_ref[...]" + ".astype(jnp.float32)" * 50 * size),
    "chained calls of a launcher": lambda size: (
        f"{_HEAD}{_COPY}{_launch('h0')}\ndef call(x):\n    return run(x{'.astype(jnp.float32)' * 50 * size}, 1)\n"
    ),
    "operations": lambda size: _kernel("x = x_ref[...]", *["x = jnp.exp(x + 1)"] * 20 * size, "o_ref[...] = x"),
    "accesses": lambda size: _kernel(*["o_ref[0:8] = x_ref[0:8]"] * 20 * size),
    "shared parts": lambda size: _kernel("i = pl.program_id(0)", *["i = i + i"] * 2 * size, "o_ref[i] = x_ref[i]"),
    "calls with other numbers": lambda size: _kernel(
        "def add(x, n):",
        "    return x + n",
        "x = x_ref[...]",
        *(f"x = add(x, {at})" for at in range(10 * size)),
        "o_ref[...] = x",
    ),
}
PROJECTS: dict[str, Callable[[int], dict[str, str]]] = {
    "importers": _importers,
    "importers of importers": _importers_of_importers,
    "helpers of modules": _helpers_of_modules,
}


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of rules that are called from now on."""
    called: list[str] = []

    def noting(check: Callable[..., object]) -> Callable[..., object]:
        def noted(*arguments: object) -> object:
            called.append(check.__qualname__)
            return check(*arguments)

        return noted

    for entry in all_rules().values():
        for name, check in vars(entry.rule).items():
            if name.startswith("check_"):
                monkeypatch.setattr(entry.rule, name, noting(check))
    return called


def _cost(files: dict[str, str], visits: list[str]) -> int:
    """Steps of the interpreter, events, launches, and calls of rules' methods, for all the files."""
    visits.clear()
    root = Path("/nonexistent")
    sources = {root / name: Source(name, text) for name, text in files.items()}
    project = Project(root, sources)
    total = 0
    for source in sources.values():
        file_analysis = check_file(source, settings(), project)
        assert not file_analysis.result.errors, file_analysis.result.errors
        assert file_analysis.analysis is not None
        events = sum(len(trace.events) for trace in file_analysis.analysis.traces)
        total += file_analysis.analysis.interpreter.total_steps + events + len(file_analysis.analysis.launches)
    return total + len(visits)


def _files(kind: str, size: int) -> dict[str, str]:
    return {"example.py": TEXTS[kind](size)} if kind in TEXTS else PROJECTS[kind](size)


@pytest.mark.parametrize("kind", by_day([*TEXTS, *PROJECTS], 3))
def test_cost_grows_with_the_text(kind: str, visits: list[str]) -> None:
    # Calls are followed 14 deep: 3, 6 and 12 helpers of which each has an inner function are all seen in part.
    small, twice, more = (_cost(_files(kind, size), visits) for size in (3, 6, 12))
    # Up to 128 events of a call are reported again one by one, and of longer calls with other arrays four are made in
    # earnest, so that short chains may grow faster, once: without a memory twelve helpers would take tens of thousands.
    assert twice <= 2.5 * small + 1000
    assert more <= 2.5 * twice + 5000


def test_chains_keep_their_findings() -> None:
    # The block is stored under every combination of conditions: none of the stores is lost, or made up.
    for kind in ("helpers under `if`", "helpers under `pl.when`"):
        reported = [
            {finding.code for finding in lint_text(TEXTS[kind](size), select="PAL4")} for size in (1, 2, 3, 4, 5)
        ]
        assert reported == reported[:1] * 5, kind
