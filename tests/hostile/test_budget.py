"""Texts that grow without end when they are followed: values that double, numbers and grids of astronomical size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.testing import codes, lint_text
from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n\n"
_COPY = "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n\n"
_LAUNCH = "pl.pallas_call(kernel, {specs}out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)"
_TIMES = 60


def _in_launcher(*lines: str, specs: str = "", before: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{_HEAD}{before}{_COPY}def run(x, n):\n{body}    return {_LAUNCH.format(specs=specs)}\n"


def _in_kernel(*lines: str, specs: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{_HEAD}def kernel(x_ref, o_ref):\n{body}\ndef run(x):\n    return {_LAUNCH.format(specs=specs)}\n"


_PASSED_ON = "".join(f"def f{at}(*a):\n    return f{at + 1}(*a, *a)\n\n" for at in range(30))
BOMBS = {
    "a list and itself": _in_launcher("V = [0]", *["V = V + V"] * _TIMES),
    "a list and itself, in place": _in_launcher("V = [0]", *["V += V"] * _TIMES),
    "a list many times": _in_launcher("V = [0] * 200", *["V = V * 200"] * _TIMES),
    "a list unpacked twice": _in_launcher("V = [0]", *["V = [*V, *V]"] * _TIMES),
    "a shared tuple": _in_launcher("V = (0, 0)", *["V = (V, V)"] * _TIMES, "W = {V: V}", "print(V)"),
    "twins": _in_launcher("V = W = (n, 0)", *["V = (V, V)", "W = (W, W)"] * _TIMES, "A = V == W"),
    "a shared dictionary": _in_launcher("V = {}", *["V = {'a': V, 'b': V}"] * _TIMES),
    "a text and itself": _in_launcher("V = 'a'", *["V = V + V"] * _TIMES),
    "a text many times": _in_launcher("V = 'a' * 10**9", "W = b'a' * 10**9", "U = 'a' * (1 << 40)"),
    "a formatted text": _in_launcher("V = 'a'", *["V = f'{V}{V}'"] * _TIMES),
    "powers and shifts": _in_launcher("V = 10 ** 10 ** 8", "W = 1 << 10**9", *["W = V = (V or 2) * (V or 2)"] * _TIMES),
    "ranges": _in_launcher("for i in range(10**30): pass", "for i in range(0, 10**40, 3): pass", "list(range(10**18))"),
    "ranges of indices": _in_launcher("i = n", *["for i in range(i, i + i): pass"] * _TIMES),
    "sums of a name": _in_launcher("m = n", *["m = m + m"] * _TIMES, specs="grid=(m,), "),
    "items of a name": _in_launcher("m = n", *["m = m[m]"] * _TIMES),
    "comprehensions": _in_launcher("A = [0] * 32", "V = [a for a in A for b in A for c in A for d in A for e in A]"),
    "arguments passed on twice": _in_launcher("V = f0(1)", before=f"{_PASSED_ON}def f30(*a):\n    return a\n\n"),
    "a value or another": _in_launcher("V = 0", *(f"V = (V, V) if n > {at} else (V, {at})" for at in range(_TIMES))),
    "partials of partials": _in_launcher("V = functools.partial(kernel)", *["V = functools.partial(V, V, V)"] * _TIMES),
    "unknown calls": _in_launcher("V = W = foo(1)", *["V = foo(V, V)", "W = foo(W, W)"] * _TIMES, "A = V == W"),
    "shapes": _in_launcher("jnp.zeros((2**70,) * 64)", specs="grid=(10**30, 10**30), "),
    "refs": _in_kernel("V = (x_ref, o_ref)", *["V = (V, V)"] * _TIMES, "foo(V)"),
}  # fmt: skip


def test_values_that_double_end(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for number, text in enumerate(BOMBS.values()):
        (folder / f"bomb{number}.py").write_text(text)
    (folder / "fine.py").write_text(attack.KERNEL)
    ran = attack.run("--no-cache", ".", cwd=folder)
    assert ran.calm, ran.err
    assert "PAL301" in ran.out  # the others are judged


def test_the_server_answers_others(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    with attack.server(cwd=folder) as wire:
        wire.initialize(rootUri=folder.as_uri())
        for number, text in enumerate(BOMBS.values()):
            wire.open((folder / f"bomb{number}.py").as_uri(), text)
        wire.open((folder / "fine.py").as_uri(), attack.KERNEL)
        assert "PAL301" in wire.codes((folder / "fine.py").as_uri())
        assert wire.end() == 0


def test_a_file_beyond_the_budget_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pallas_lint.kernels.interpreter._TOTAL", 300)
    told = lint_text(attack.KERNEL * 8)
    assert "PAL001" in codes(told)
    assert [finding.severity.name for finding in told if finding.code == "PAL001"] == ["INFO"]
