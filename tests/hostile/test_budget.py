"""Texts that grow without end when they are followed: values that double, numbers and grids of astronomical size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.testing import codes, lint_text
from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n\n"
_COPY = "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...]\n\n"
_LAUNCH = "pl.pallas_call(kernel, {specs}out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)"
_TIMES = 60


def _in_launcher(*lines: str, specs: str = "", before: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{_HEAD}{before}{_COPY}def run(x, n):\n{body}    return {_LAUNCH.format(specs=specs)}\n"


def _in_kernel(*lines: str, specs: str = "", before: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{_HEAD}{before}def kernel(x_ref, o_ref):\n{body}\ndef run(x):\n    return {_LAUNCH.format(specs=specs)}\n"


def _with_map(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in (*lines, "return i, 0"))
    specs = "grid=(8,), in_specs=[pl.BlockSpec((8, 128), where)], out_specs=pl.BlockSpec((8, 128), where), "
    return _in_kernel("o_ref[...] = x_ref[...]", specs=specs, before=f"def where(i):\n{body}\n")


_INDEX, _SUMS = "i = pl.program_id(0)", ["i = i + i"] * 100
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
    "tuples in tuples": _in_kernel("V = x_ref", *["V = (V,)"] * 3000, "W = {V: V}", "foo(W)"),
    "views of views": _in_kernel("V = x_ref", *["V = V.at[0:8]"] * 3000, "o_ref[...] = V[...]"),
    "sums of an index": _in_kernel(_INDEX, *_SUMS, "o_ref[i] = x_ref[i]", specs="grid=(4,), "),
    "sums in a condition": _in_kernel(_INDEX, *_SUMS, "@pl.when(i == 0)", "def _():", "    o_ref[...] = x_ref[...]"),
    "sums of what is read": _in_kernel("i = x_ref[...]", *_SUMS, "if i.max() > 0:", "    o_ref[...] = i"),
    "sums in a map": _with_map(*_SUMS),
    "products in a map": _with_map(*["i = i * i"] * _TIMES),
    "powers in a map": _with_map("i = 10 ** (10 ** i)", "i = 1 << i", "i = i ** i"),
    "64 axes": _in_kernel("o_ref[...] = x_ref[...]", specs="grid=(2,) * 64, out_specs=pl.BlockSpec((8, 128), where), ",
                          before="def where(*a):\n    return sum(a), 0\n\n"),
    "loops in loops": _in_kernel(*("    " * at + f"for i{at} in range(8):" for at in range(12)), "    " * 12 + "i0"),
    "comprehensions in a kernel": _in_kernel("A = [0] * 32", f"V = [a {'for a in A ' * 5}]", "o_ref[...] = x_ref[...]"),
    "branches": _in_kernel("if x: pass", *(f"elif x == {at}: o_ref[...] = x_ref[...]" for at in range(3000))),
    "digits": _in_kernel(f"V = {'9' * 10**6} + 0x{'9' * 10**6}", f"o_ref[{'9' * 10**5}] = x_ref[-{'9' * 10**5}] * V"),
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


def test_a_file_beyond_the_budget_has_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pallas_lint.kernels.interpreter.interpreter._MAX_TOTAL_STEPS", 300)
    reported = lint_text(attack.KERNEL * 8)
    assert "PAL001" in codes(reported)
    assert [finding.severity.name for finding in reported if finding.code == "PAL001"] == ["WARNING"]


_DEEP = "".join(f"def f{at}(x):\n    return f{at + 1}(x){' + 1' * 150}\n\n" for at in range(12))


@pytest.mark.parametrize(
    "text",
    [
        _in_launcher(*["n = n + 1 * 2 - 3"] * 100),
        _in_kernel(*["x = x_ref[...] + 1 * 2 - 3"] * 100),
        _in_launcher("V = f0(x)", before=f"{_DEEP}def f12(x):\n    return x\n\n"),
    ],
    ids=["a launcher", "a kernel", "depth"],
)
def test_a_run_beyond_its_budget_has_a_warning(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    if "f0" not in text:
        monkeypatch.setattr("pallas_lint.kernels.interpreter.interpreter._MAX_STEPS", 300)
    text = attack.KERNEL + text.removeprefix(_HEAD).replace("kernel", "body").replace("def run", "def launch")
    reported = [each for each in lint_text(text) if each.code in ("PAL001", "PAL301")]
    assert [(each.code, each.severity.name) for each in reported] == [("PAL301", "ERROR"), ("PAL001", "WARNING")]
    assert text.splitlines()[reported[1].span.start.line - 1].startswith("def launch(")


def test_loops_in_comprehensions_keep_the_launch() -> None:
    """The launch behind five loops over 32 elements was lost without a word."""
    text = BOMBS["comprehensions"].replace("    o_ref[...] = x_ref[...]", "    o_ref[...] = jnp.cumsum(x_ref[...])")
    assert codes(lint_text(text, target="tpu", select="PAL101")) == {"PAL101"}
