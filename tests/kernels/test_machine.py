"""Conditions on the machine that code runs on: each branch is taken on some machine."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

CODE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def tpu_version():
    kind = jax.devices()[0].device_kind
    if "TPU" not in kind:
        return -1
    if kind.endswith(" lite"):
        kind = kind[: -len(" lite")]
    return int(kind[-1])


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + jnp.arange(3)


def launch(x):
    return pl.pallas_call(kernel, out_shape=x, compiler_params=pltpu.CompilerParams())(x)


def run(x, flag):
    {condition}


def test_run(flag=None):
    run(jnp.zeros((64,)), flag)
"""


def known(condition: str, **options: str) -> bool:
    """Whether the launch is judged for the call of the test."""
    return any(
        each.known_call is not None for each in lint(CODE.format(condition=condition), select="PAL509", **options)
    )


@pytest.mark.parametrize(
    "condition",
    [
        "return launch(x) if tpu_version() >= 5 else x",
        "return launch(x) if tpu_version() < 5 else x",
        "if x.shape[0] % 2 == 0 and tpu_version() >= 5:\n        return launch(x)",
        "if not (jax.devices()[0].platform == 'tpu'):\n        return x\n    return launch(x)",
        "on = jax.default_backend()\n    if on not in ('tpu', 'gpu'):\n        raise ValueError\n    return launch(x)",
        "if 'v6' in jax.local_devices()[0].device_kind.lower():\n        return launch(x)",
        "if pltpu.get_tpu_info().generation >= 6:\n        return launch(x)",
    ],
)
def test_a_branch_for_some_machine_counts(condition: str) -> None:
    assert known(condition)


@pytest.mark.parametrize(
    ("condition", "severity"),
    [
        ("return launch(x)", "ERROR"),
        ("if tpu_version() >= 5:\n        return launch(x)", "WARNING"),
        ("rows = 8 if tpu_version() >= 5 else 16\n    print(rows)\n    return launch(x)", "ERROR"),
    ],
)
def test_what_some_machines_alone_run_is_a_step_less_severe(condition: str, severity: str) -> None:
    found = [each for each in lint(CODE.format(condition=condition), select="PAL509") if each.known_call is not None]
    assert [each.severity.name for each in found] == [severity]


@pytest.mark.parametrize(
    "condition",
    [
        "if flag:\n        return launch(x)",
        "if flag and tpu_version() >= 5:\n        return launch(x)",
        "if jax.devices()[0].device_kind == flag:\n        return launch(x)",
        "if jax.devices()[flag].platform == 'tpu':\n        return launch(x)",
        "if len(jax.devices()) > 1:\n        return launch(x)",
    ],
)
def test_a_branch_for_some_argument_does_not(condition: str) -> None:
    assert not known(condition.replace("flag", "x.sum()"))


@pytest.mark.parametrize(("device", "taken"), [("v5e", True), ("v6e", True), ("v4", False)])
def test_the_kind_of_a_target_is_known(device: str, taken: bool) -> None:
    assert known("return launch(x) if tpu_version() >= 5 else x", target=f"tpu:{device}") is taken


INTERPRETED = """
def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run(x, bn, interpret=None):
    on_tpu = any(device.platform == "tpu" for device in jax.devices())
    if interpret is None:
        interpret = {interpret}
    spec = pl.BlockSpec((8, bn), lambda i: (0, i))
    params = pltpu.CompilerParams()
    return pl.pallas_call(
        copy, out_shape=x, grid=(x.shape[1] // bn,), in_specs=[spec], out_specs=spec, compiler_params=params,
        interpret=interpret,
    )(x)


def test_run():
    {call}
"""
SMALL = "run(jnp.zeros((8, 128)), 64)"


@pytest.mark.parametrize(
    ("interpret", "call", "severity"),
    [
        ("not on_tpu", SMALL, ["WARNING"]),
        ("jax.default_backend() != 'tpu'", SMALL, ["WARNING"]),
        ("False", SMALL, ["ERROR"]),
        ("not on_tpu", SMALL.replace("64)", "64, interpret=False)"), ["ERROR"]),
        ("not on_tpu", SMALL.replace("64)", "64, interpret=True)"), []),
    ],
)
def test_calls_that_a_backend_compiles_on_some_machines(interpret: str, call: str, severity: list[str]) -> None:
    code = CODE.partition("def tpu_version")[0] + INTERPRETED.format(interpret=interpret, call=call)
    assert [each.severity.name for each in lint(code, select="PAL201")][:1] == severity
