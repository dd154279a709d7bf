"""Options of command lines: their defaults are those of argparse and its like."""

from __future__ import annotations

import sys
import textwrap
from typing import Any

import pytest

from pallas_lint.kernels.model.values import Const, Seq
from tests.kernels.test_host_code import evaluated, of_python

PARSER = "import argparse\n\ndef made():\n    return argparse.ArgumentParser()\n\n"
# What is done with `p`, and what then is read of `a`.
KNOWN = [
    ("p.add_argument('--bm', type=int, default=128)", "a.bm"),
    ("p.add_argument('--block-rows', '-b', type=int, default='64')", "a.block_rows"),
    ("p.add_argument('-b', '--bm', default='64')", "a.bm"),
    ("p.add_argument('-b', type=float, default='1.5')", "a.b"),
    ("p.add_argument('--bm', dest='rows', default=8)", "a.rows"),
    ("p.add_argument('--fast', action='store_true')\np.add_argument('--slow', action='store_false')", "a.fast, a.slow"),
    ("p.add_argument('--dtype')", "a.dtype"),
    ("p.add_argument('n', nargs='?', type=int, default=4)", "a.n"),
    ("p.add_argument_group('sizes').add_argument('--bm', default=2)", "a.bm"),
    (
        "g = p.add_mutually_exclusive_group()\ng.add_argument('--bm', default=2)\ng.add_argument('--bn', default=3)",
        "a.bn",
    ),
    ("p.add_argument('--bm', default=2)\np.set_defaults(bm=16, bn=32)", "a.bm, a.bn"),
    ("p.add_argument('--bm', default=2)", "(lambda given: given.bm)(a)"),
]
OPEN = [
    ("p.add_argument('n', type=int)", "a.n"),
    ("p.add_argument('--bm', type=int, required=True)", "a.bm"),
    ("p.add_argument('--bm', type=lambda text: 2 * int(text), default='8')", "a.bm"),
    ("p.add_argument(*f(), default=8)", "a.bm"),
    ("p.add_argument('--other', default=8)", "a.bm"),
]


def program(added: str, read: str, parsed: str = "p.parse_args()") -> str:
    body = f"p = made()\n{added}\na = {parsed}\nreturn {read}"
    return f"{PARSER}def run():\n{textwrap.indent(body, '    ')}\n"


@pytest.mark.parametrize(("added", "read"), KNOWN)
def test_defaults_of_argparse(added: str, read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["program"])
    scope: dict[str, Any] = {}
    exec(program(added, read), scope)
    assert of_python(evaluated(program(added, read))) == scope["run"]()


def test_the_rest_of_a_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    code = program("p.add_argument('--bm', default=2)", "a[0].bm", "p.parse_known_args()")
    monkeypatch.setattr(sys, "argv", ["program"])
    scope: dict[str, Any] = {}
    exec(code, scope)
    assert of_python(evaluated(code)) == scope["run"]()


@pytest.mark.parametrize(("added", "read"), OPEN)
def test_what_has_to_be_passed_is_not_known(added: str, read: str) -> None:
    value = evaluated(program(added, read))
    for part in value.items if isinstance(value, Seq) else (value,):
        assert not isinstance(part, Const), value


def test_given_arguments_are_not_the_defaults() -> None:
    added = "p.add_argument('--bm', type=int, default=2)"
    assert evaluated(program(added, "a.bm", "p.parse_args([])")) == Const(2)
    assert not isinstance(evaluated(program(added, "a.bm", "p.parse_args(['--bm', '3'])")), Const)


def test_flags_of_absl() -> None:
    code = "from absl import flags\nBM = flags.DEFINE_integer('bm', 128, 'rows')\n\ndef run():\n    return BM.value\n"
    assert evaluated(code) == Const(128)


@pytest.mark.parametrize("call", ["fire.Fire(main)", "tyro.cli(main)", "typer.run(main)"])
def test_a_function_with_parameters_like_options(call: str) -> None:
    module = call.split(".", 1)[0]
    code = f"import {module}\n\ndef main(bm: int = 64):\n    return bm\n\ndef run():\n    return {call}\n"
    assert evaluated(code) == Const(64)
