"""What a text costs grows as the text does: counted in calls, not in time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.project import Project
from pallas_lint.runner import judge_source
from pallas_lint.settings import Overrides, SettingsFinder
from pallas_lint.source import Source
from tests.hostile import attack

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "import jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
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
        judge_source(source, settings, Project(Path.cwd(), {Path.cwd() / "k.py": source}))
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", TEXTS)
def test_twice_the_text_costs_twice_as_much(name: str) -> None:
    cost(TEXTS[name](20))  # what is done once is done
    few, many = (cost(TEXTS[name](n)) for n in (150, 300))
    assert many < 2.5 * few


def test_a_long_chain_of_calls_ends(tmp_path: Path) -> None:
    """What stands around a use is known from the way to it: climbing up from each took hours here."""
    (tmp_path / "k.py").write_text(HEAD + "x = jnp.zeros(8)" + ".astype(jnp.float32)" * 8000 + "\n")
    ran = attack.run("k.py", cwd=tmp_path, home=tmp_path)
    assert ran.calm and ran.status == 0
