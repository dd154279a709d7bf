"""What coding agents read: the format and when it is taken, facts, the skill, rules and support in short."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from invocation import KERNEL

from pallas_lint.report.agents import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocation import Ran

    Lint = Callable[..., Ran]

ROOT = Path(__file__).resolve().parents[2]
NEW = ("--isolated", "--no-cache", "--jax-version", "0.12.0.1")
SIX = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

PARAMS = pltpu.TPUCompilerParams()


def scan(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def again(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)


def last(x_ref, o_ref):
    o_ref[...] = x_ref[...].reshape(3, 128)


def run(x):
    out = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    x = pl.pallas_call(scan, out_shape=out, compiler_params=PARAMS)(x)
    x = pl.pallas_call(again, out_shape=out, compiler_params=PARAMS)(x)
    return pl.pallas_call(last, out_shape=out, compiler_params=PARAMS)(x)


run(jnp.zeros((16, 128), jnp.float32))
"""


def tokens(text: str) -> int:
    """Words and signs: about what a model reads."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def test_one_line_for_equal_findings(folder: Path, lint: Lint) -> None:
    (folder / "k.py").write_text(SIX)
    ran = lint(*NEW, "--output-format", "agent", "--target", "tpu:v5e")
    *findings, judged = ran.out.splitlines()
    assert ran.status == 1
    assert [line.partition(": ")[0] for line in findings] == [
        "k.py:6 PAL701 error",
        "k.py:10,14 PAL101 error",
        "k.py:18 PAL509 error",
    ]
    assert "[safe fix: write `CompilerParams`]" in findings[0]
    assert "instead: `jnp.dot(x, jnp.triu(" in findings[1]
    assert judged == "judged for tpu:v5e, jax 0.12.0.1; shapes known for 3 of 3 launches"
    assert ran.out == lint(*NEW, "--output-format", "agent", "--target", "tpu:v5e").out


def test_the_last_line_has_what_is_missing(kernel_file: Path, lint: Lint) -> None:
    kernel_file.write_text(KERNEL.replace("i * 8", "i"))
    (line,) = lint(*NEW, "--output-format", "agent").out.splitlines()
    assert line.startswith("judged for jax 0.12.0.1; shapes known for 0 of 1 launch: add calls with literal shapes")
    assert "pass --target" in line


def test_a_file_without_kernels(folder: Path, lint: Lint) -> None:
    (folder / "plain.py").write_text("print(1)\n")
    assert lint(*NEW, "--output-format", "agent").out == "no kernel in 1 file\n"


@pytest.mark.parametrize("name", VARIABLES)
def test_an_agent_gets_it_by_default(kernel_file: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("PALLAS_LINT_AGENT")
    for other in VARIABLES:
        monkeypatch.delenv(other, raising=False)
    plain = lint(*NEW).out
    monkeypatch.setenv(name, "1")
    assert lint(*NEW).out == lint(*NEW, "--output-format", "agent").out != plain
    assert lint(*NEW, "--output-format", "full").out == plain
    monkeypatch.setenv("PALLAS_LINT_AGENT", "0")
    assert lint(*NEW).out == plain


# What was measured when the format was made, and a little: it must not grow unseen.
@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (("--output-format", "agent", "--target", "tpu:v5e"), 250),
        (("rule", "PAL101", "--output-format", "agent"), 220),
        (("support", "jnp.cumsum bf16 tpu", "--output-format", "agent"), 110),
        (("facts", "--target", "tpu:v6e", "--jax-version", "0.12.0.1"), 1200),
        (("facts", "--target", "triton", "--jax-version", "0.10.2"), 1200),
        (("facts", "tpu:v6e/sc", "--jax-version", "0.12.0.1"), 1200),
        (("facts", "--target", "mosaic-gpu", "--jax-version", "0.12.0.1"), 1300),
        (("skill",), 750),
    ],
)
def test_tokens(folder: Path, lint: Lint, arguments: tuple[str, ...], most: int) -> None:
    (folder / "k.py").write_text(SIX)
    ran = lint(*(NEW if arguments[0].startswith("-") else ()), *arguments)
    assert 0 < tokens(ran.out) <= most


def test_rules_in_short(folder: Path, lint: Lint) -> None:
    out = lint("rule", "PAL506", "--output-format", "agent").out
    assert out.startswith("PAL506 store-mismatch error, safe fix: ")
    assert "fix: Cast what is stored" in out
    assert "bad: o_ref[...] = x_ref[...].astype(jnp.float32) * 2.0" in out
    assert "good: o_ref[...] = (x_ref[...].astype(jnp.float32) * 2.0).astype(o_ref.dtype)" in out
    assert len(lint("rule", "--output-format", "agent").out.splitlines()) > 100


def test_facts_follow_target_and_version(folder: Path, lint: Lint) -> None:
    new, old = (lint("facts", "--target", "tpu:v6e", "--jax-version", each).out for each in ("0.12.0.1", "0.8.3"))
    assert "VMEM of v6e: 32 MiB" in new
    assert "bf16 f16 i16 16x128" in new
    assert "u8 to f32" in old
    assert "u8 to f32" not in new
    assert "pltpu.TPUCompilerParams -> pltpu.CompilerParams" in new
    assert "VMEM" not in lint("facts", "--target", "triton").out
    assert lint("facts", "--target", "tpu:v99").status == 2


def test_facts_of_sparse_cores(folder: Path, lint: Lint) -> None:
    out = lint("facts", "tpu:v6e/sc").out
    assert out == lint("facts", "--target", "tpu:v6e/sc").out
    assert "v6e: 2 cores of 16 vector subcores; VMEM of each 256 KiB" in out
    assert "16 bits (16,) or (2, 8)" in out
    assert "lower on a vector subcore" in out
    assert "argmax" in out
    assert "triu(jnp.ones" not in out  # what stands in for a cumsum on the tensor core
    assert "no SparseCores" in lint("facts", "tpu:v5e/sc").out


def test_the_skill_is_that_of_the_repository(folder: Path, lint: Lint) -> None:
    out = lint("skill").out
    assert out == (ROOT / "skills" / "pallas-lint" / "SKILL.md").read_text()
    assert out.startswith("---\nname: pallas-lint\ndescription: ")
