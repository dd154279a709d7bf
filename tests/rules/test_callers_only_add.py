"""A caller never takes a finding away: what holds whatever is passed holds for what is passed, too."""

from __future__ import annotations

import ast
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.run.project import discover
from pallas_lint.run.runner import run
from pallas_lint.testing import lint
from tests.sampling import NIGHT, by_day

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLES = {
    f"{code}-{at}": example
    for code, entry in all_rules().items()
    for at, example in enumerate(entry.rule.invalid)
    if not example.code.lstrip().startswith("{")
}
# What these say of a launcher is about what all its callers do, or leave out: one that does it is the answer.
ABSENCE = {
    "PAL002": "a suppression is in use once a caller makes the finding that it silences",
    "PAL411": "a ref that the kernel leaves alone for one caller it may use for another",
    "PAL601": "a caller may run the launch under `checkify.checkify`",
    "PAL602": "a caller may look at the error",
    "PAL604": "a caller may switch the checks on",
    "PAL607": "a test may run the kernel in the interpreter that sees more, too",
}
PASSED = [
    "jnp.ones((256, 256), jnp.float32)",
    "jnp.ones((8, 128), jnp.bfloat16)",
    "jnp.arange(4)",
    "128",
    "3",
    "x",
    "None",
]
ROUNDS = range(5 if NIGHT else 1)  # of what is drawn for each example, another one for each
FORMS = [
    "def test_{n}(x=None):\n    {call}\n",
    "def main_{n}(x):\n    return {call}\n",
    "if __name__ == '__main__':\n    x = jnp.ones((16, 128))\n    {call}\n",
    "class Test{n}:\n    def test(self, x=0):\n        for _ in range(2):\n            {call}\n",
    "def caller_{n}(x):\n    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))\n    return {call}, spec\n",
]


def functions(code: str) -> list[tuple[str, int]]:
    """The functions at the top level that launch something, and how many arguments each wants."""
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return []
    return [
        (node.name, len(node.args.args) - len(node.args.defaults)) for node in body if isinstance(node, ast.FunctionDef)
    ]


def places(code: str, **options: str | None) -> set[tuple[str, int]]:
    return {(f.code, f.span.start.line) for f in lint(code, **options) if f.code not in ABSENCE}


@pytest.mark.parametrize("name", by_day(EXAMPLES))
@pytest.mark.parametrize("number", ROUNDS)
def test_adding_a_caller_takes_nothing_away(name: str, number: int) -> None:
    chance = random.Random(f"{name} {number}")
    example = EXAMPLES[name]
    code = example.code.strip() + "\n"
    options = {"jax": example.jax, "target": example.target}
    before = places(code, **options)
    added = "\n\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
    known = functions(code)
    for n in range(chance.randint(1, 4) if known else 0):
        called, count = chance.choice(known)
        arguments = [chance.choice(PASSED) for _ in range(count)]
        call = f"{called}({', '.join(arguments)})"
        added += "\n\n" + chance.choice(FORMS).format(n=n, call=call)
    assert before <= places(code + added, **options), added


LAUNCHERS = [name for name, example in EXAMPLES.items() if functions(example.code)]
NOTED = ["f32[256,256]", "bf16[8,128]", "i32[4]", "128", "3"]


def noted(code: str, note: Callable[[int], str]) -> str:
    """The code with a probe comment above each function that launches something, for so many arguments."""
    lines = code.splitlines()
    body = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    for node in reversed(body):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        lines.insert(first - 1, note(len(node.args.args) - len(node.args.defaults)))
    return "\n".join(lines) + "\n"


def marked(code: str, **options: str | None) -> Counter[tuple[str, str]]:
    """The findings by the text of their lines, which move when comments are added."""
    lines = code.splitlines()
    found = {(f.code, f.span.start.line) for f in lint(code, **options) if f.code not in ABSENCE}
    return Counter((rule, lines[line - 1]) for rule, line in found)


@pytest.mark.parametrize("name", by_day(LAUNCHERS))
@pytest.mark.parametrize("number", ROUNDS)
def test_adding_a_probe_comment_takes_nothing_away(name: str, number: int) -> None:
    chance = random.Random(f"{name} {number}")
    example = EXAMPLES[name]
    code = example.code.strip() + "\n"
    options = {"jax": example.jax, "target": example.target}
    arguments = [chance.choice(NOTED) for _ in range(8)]
    with_notes = noted(code, lambda count: f"# pallas-lint: probe({', '.join(arguments[:count])})")
    assert not marked(code, **options) - marked(with_notes, **options), with_notes


@pytest.mark.parametrize("name", by_day(LAUNCHERS))
def test_adding_a_test_file_takes_nothing_away(name: str, tmp_path: Path) -> None:
    example = EXAMPLES[name]
    code = example.code.strip() + "\n"
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    (tmp_path / "kern.py").write_text(code)
    given = {"jax-version": example.jax, "target": example.target, "select": ["ALL"]}
    finder = SettingsFinder(Overrides({key: value for key, value in given.items() if value is not None}), tmp_path)
    before = places(code, jax=example.jax, target=example.target)
    calls = "".join(
        f"\n\n@pytest.mark.parametrize('x', [jnp.ones((256, 256)), jnp.ones((8, 128), jnp.bfloat16), 128, 3])\n"
        f"def test_{function}(x):\n    kern.{function}({', '.join(['x'] * count)})\n"
        for function, count in functions(code)
    )
    (tmp_path / "test_kern.py").write_text("import jax.numpy as jnp\nimport pytest\nimport kern\n" + calls)
    findings = run(discover(["kern.py"], finder, cwd=tmp_path).files, cwd=tmp_path, jobs=1).findings
    assert before <= {(f.code, f.span.start.line) for f in findings}


JITTED = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref, *, scale):
    o_ref[...] = x_ref[...] * scale


{decorator}
def run(x, scale):
    return pl.pallas_call(
        functools.partial(kernel, scale=scale), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(x)
"""


@pytest.mark.parametrize("caller", ["", "\n\ndef test_run():\n    run(jnp.ones((8, 128)), 2.0)\n"])
def test_a_captured_tracer_stays_one_when_its_value_is_known(caller: str) -> None:
    assert {f.code for f in lint(JITTED.format(decorator="@jax.jit") + caller)} == {"PAL501"}
    static = JITTED.format(decorator='@functools.partial(jax.jit, static_argnames="scale")')
    assert not lint(static + caller)


def test_a_number_that_a_call_passes_to_a_traced_parameter_is_a_tracer() -> None:
    """Also for those who know of no other call: the kernel of a launcher that is jitted while another runs."""
    made = JITTED.replace("{decorator}\ndef run", "def plain")
    for call in ("jax.jit(plain)(jnp.ones((8, 128)), 2.0)", "jax.jit(plain)(x=jnp.ones((8, 128)), scale=2)"):
        assert "PAL501" in {f.code for f in lint(f"{made}\n\ndef test_run():\n    {call}\n")}
    for call in (
        "plain(jnp.ones((8, 128)), 2.0)",
        "jax.jit(plain, static_argnames='scale')(jnp.ones((8, 128)), scale=2)",
    ):
        assert not lint(f"{made}\n\ndef test_run():\n    {call}\n")


PAST_THE_END = """\
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref, *, block):
    def body(i, _):
        part = pl.ds(i * block, block)
        o_ref[part, :] = x_ref[part, :] * 2

    jax.lax.fori_loop(0, pl.cdiv(x_ref.shape[0], block), body, None)


@functools.partial(jax.jit, static_argnames="block")
def run(x, block):
    return pl.pallas_call(
        functools.partial(kernel, block=block), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(x)
"""


def test_a_test_that_calls_a_jitted_launcher_hides_nothing() -> None:
    callers = "".join(f"\n\ndef test_{n}():\n    run(jnp.ones(({n * 64}, 128)), {n * 8})\n" for n in range(1, 5))
    alone = places(PAST_THE_END)
    assert "PAL412" in {code for code, _ in alone}
    assert alone <= places(PAST_THE_END + callers)


def test_a_caller_more_displaces_no_other() -> None:
    wrong = "\n\ndef wrong():\n    run(jnp.ones((100, 128)), 64)\n"
    unsure = PAST_THE_END.replace("pl.cdiv(x_ref.shape[0], block)", "x_ref.shape[0] // block + x_ref.shape[0] % 2")
    others = "".join(f"\n\ndef test_{n}():\n    run(jnp.ones(({n * 64}, 128)), {n * 8})\n" for n in range(1, 9))
    alone = places(unsure + wrong)
    assert alone <= places(unsure + wrong + others)
