"""`pallas-lint advisories`: known defects, with the versions of the project marked."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.compat.advisories import advisories, advisory
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocation import Ran

    Lint = Callable[..., Ran]

LOCK = """
[[package]]
name = "jax"
version = "0.11.1"

[[package]]
name = "libtpu"
version = "0.0.44"
"""


def listed(lint: Lint, *arguments: str) -> dict[str, dict[str, Any]]:
    document = json.loads(lint("advisories", *arguments, "--output-format", "json").out)
    assert document["version"] == 1
    return {row["id"]: row for row in document["advisories"]}


def test_the_versions_of_the_project_are_marked(folder: Path, lint: Lint) -> None:
    (folder / ".git").mkdir()
    (folder / "uv.lock").write_text(LOCK)
    rows = listed(lint)
    assert set(rows) == {each.id for each in advisories()}
    assert rows["num-programs-of-first-grid"]["affected_versions"] == ["0.11.1"]
    assert rows["zeros-with-unused-hbm-operand"]["affected_versions"] == ["0.0.44"]
    assert rows["slow-tracing"]["affected"] is False
    marks = [row["affected"] for row in rows.values()]
    assert marks == sorted(marks, reverse=True)  # those of the project first
    text = lint("advisories").out
    assert text.startswith("jax 0.11.1, from uv.lock; libtpu 0.0.44\n")
    assert "zeros-with-unused-hbm-operand  libtpu >=0.0.43,<0.0.46  (affects libtpu 0.0.44 of this project)" in text
    assert "report: https://github.com/jax-ml/jax/issues/39744" in text


def test_unknown_versions(folder: Path, lint: Lint) -> None:
    assert all(row["affected"] is None for row in listed(lint, "--isolated").values())
    assert "libtpu version unknown" in lint("advisories", "--isolated").out
    rows = listed(lint, "--isolated", "--jax-version", ">=0.10,<0.12")
    assert rows["num-programs-of-first-grid"]["affected_versions"] == ["0.11.0", "0.11.1", "0.11.2"]
    assert rows["zeros-with-unused-hbm-operand"]["affected"] is None


def test_for_agents_each_is_a_line_without_urls(folder: Path, lint: Lint) -> None:
    lines = lint("advisories", "--isolated", "--jax-version", "0.11.2", "--output-format", "agent").out.splitlines()
    assert len(lines) == len(advisories()) + 1
    assert lines[0].startswith(
        "num-programs-of-first-grid PAL706 jax >=0.11.0,<0.12.0 [affects jax 0.11.2 of this project]: "
    )
    assert "https://" not in "".join(lines)


@pytest.mark.parametrize("arguments", [("nowhere",), ("a", "b"), ("--jax-version", "none")])
def test_bad_usage(folder: Path, lint: Lint, arguments: tuple[str, ...]) -> None:
    assert lint("advisories", *arguments).status == 2


def test_the_configuration_shows_libtpu(folder: Path, lint: Lint) -> None:
    (folder / ".git").mkdir()
    (folder / "uv.lock").write_text(LOCK)
    assert "# libtpu: 0.0.44" in lint("config").out
    assert json.loads(lint("config", "--output-format", "json").out)["jax"]["libtpu"] == "0.0.44"


_SQUARE = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl

def launch(kernel, *operands):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, grid=(4,), in_specs=[block] * len(operands), out_specs=block, interpret=True,
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(*operands)

def with_index(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.program_id(0)

def with_number(x_ref, o_ref):
    o_ref[...] = x_ref[...] * pl.num_programs(0)

def product(x_ref, w_ref, o_ref):
    o_ref[...] = x_ref[...] * w_ref[...]

def refused(function, *primals):
    try:
        jax.jvp(function, primals, primals)
    except (AssertionError, ValueError):
        return True
    return False

x = jnp.ones((32, 128))
found = [
    refused(lambda x: launch(with_index, x), x), refused(lambda x: launch(with_number, x), x),
    refused(lambda x: launch(product, x, jnp.ones((32, 128))), x), refused(lambda x, w: launch(product, x, w), x, x),
]
print(jax.__version__, *found)
"""


@pytest.mark.slow
def test_forward_mode_is_refused_as_reported() -> None:
    done = subprocess.run(
        [python(), "-c", _SQUARE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    version, *found = done.stdout.splitlines()[-1].split()
    ids = ("forward-mode-with-program-id", "forward-mode-of-some-operands")
    index, some = (str(advisory(each).affects(version)) for each in ids)
    assert found == [index, "False", some, "False"]
