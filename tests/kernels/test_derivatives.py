"""Backward functions: the arguments with which jax calls them, and what they launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.run.project import InputFile
from pallas_lint.run.runner import run
from pallas_lint.testing import codes, lint, settings
from tests.kernels.test_ways_of_calling import TWICE, launches, operand_shapes

if TYPE_CHECKING:
    from pathlib import Path


DERIVATIVE = """
def back(scale_ref, x_ref, g_ref, o_ref):
    o_ref[...] = x_ref[...] * g_ref[...]

@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def act(x, n):
    return twice(x)[:n]

def forward(x, n):
    return twice(x)[:n], {"x": x, "scale": jnp.ones((8, 128))}

def backward(n, kept, g):
    x = kept["x"]
    launched = pl.pallas_call(back, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
    return (launched(kept["scale"], x, g),)

act.defvjp(forward, backward)
"""


@pytest.mark.parametrize(
    ("call", "traced"),
    [
        ("jax.grad(lambda x: act(x, 16).sum())(jnp.ones((64, 128)))", False),
        ("jax.value_and_grad(loss)(jnp.ones((64, 128)), 16)", False),
        ("out, pull = jax.vjp(lambda x: act(x, n=16), jnp.ones((64, 128)))", False),
        ("act(jnp.ones((64, 128)), 16)", True),
    ],
)
def test_what_a_backward_function_gets(call: str, traced: bool) -> None:
    code = (
        f"import functools\n{DERIVATIVE}\ndef loss(x, n):\n    return act(x, n).sum()\n\ndef test_it():\n    {call}\n"
    )
    (launch,) = [launch for launch in launches(code) if len(operand_shapes(launch)) == 3]
    assert operand_shapes(launch) == [(8, 128), (64, 128), (16, 128)]
    assert launch.only_traced is traced


def test_a_backward_function_gets_the_default_of_what_a_call_leaves_out() -> None:
    code = DERIVATIVE.replace("def act(x, n)", "def act(x, n=16)").replace('kept["x"]', 'kept["x"][:n]')
    code = f"import functools\n{code}\ndef test_it():\n    jax.grad(lambda x: act(x).sum())(jnp.ones((64, 128)))\n"
    (launch,) = [launch for launch in launches(code) if len(operand_shapes(launch)) == 3]
    assert operand_shapes(launch) == [(8, 128), (16, 128), (16, 128)]


@pytest.mark.parametrize(
    ("own", "derived"),
    [
        ("act.defvjp(forward, backward)", "also = act\nalso.defvjp(forward, backward)"),
        ("act.defvjp(forward, backward)", "act_op = act\nact_op.defvjp(forward, bwd=backward)"),
        ("def act(", "def _act("),
    ],
)
def test_what_a_backward_function_gets_by_another_name(own: str, derived: str) -> None:
    code = DERIVATIVE.replace(own, derived)
    if "_act(" in code:
        code = code.replace("@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))\n", "")
        code = code.replace("act.defvjp", "act = jax.custom_vjp(_act, nondiff_argnums=(1,))\nact.defvjp")
    code = f"import functools\n{code}\ndef test_it():\n    jax.grad(lambda x: act(x, 16).sum())(jnp.ones((64, 128)))\n"
    (launch,) = [launch for launch in launches(code) if len(operand_shapes(launch)) == 3]
    assert operand_shapes(launch) == [(8, 128), (64, 128), (16, 128)]


def test_what_a_backward_function_gets_by_a_call_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\n')
    (tmp_path / "acts.py").write_text(f"import functools\n{TWICE}{DERIVATIVE}")
    (tmp_path / "test_acts.py").write_text(
        "import jax, jax.numpy as jnp\nfrom acts import act\n\n\n"
        "def test_it():\n    jax.grad(lambda x: act(x, 16).sum())(jnp.ones((64, 128)))\n"
    )
    chosen = settings("0.12.0.1", "tpu", "PAL101")
    files = [InputFile(tmp_path / name, name, chosen) for name in ("acts.py", "test_acts.py")]
    assert "f32[8,128], f32[64,128], f32[16,128]" in str(run(files, cwd=tmp_path).launches)


def test_what_a_backward_function_gets_where_other_files_hand_it_over(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\n')
    imports = "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n"
    decorated = "@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))\n"
    before, _, after = DERIVATIVE.partition("def forward")
    rules = f"def forward{after}".replace("act.defvjp(forward, backward)", "")
    plain = before.replace(decorated, "").partition("def act")
    (tmp_path / "plain.py").write_text(f"{TWICE}def act{plain[2]}")
    (tmp_path / "rules.py").write_text(f"{imports}from plain import twice\n{plain[0]}{rules}")
    (tmp_path / "acts.py").write_text(
        "import jax\nfrom plain import act as _act\nfrom rules import forward, backward\n"
        "act = jax.custom_vjp(_act, nondiff_argnums=(1,))\nact.defvjp(forward, backward)\n"
    )
    (tmp_path / "test_acts.py").write_text(
        "import jax, jax.numpy as jnp\nfrom acts import act\n\n\n"
        "def test_it():\n    jax.grad(lambda x: act(x, 16).sum())(jnp.ones((64, 128)))\n"
    )
    chosen = settings("0.12.0.1", "tpu", "PAL101")
    names = ("plain.py", "rules.py", "acts.py", "test_acts.py")
    files = [InputFile(tmp_path / name, name, chosen) for name in names]
    assert "f32[8,128], f32[64,128], f32[16,128]" in str(run(files, cwd=tmp_path).launches)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Python raises a TypeError.
        ('def backward(n, kept, g):\n    x = kept["x"]', "def backward(extra, n, kept, g):\n    x = kept"),
        ("    x = kept", "    return other(kept['x'])\n    x = kept"),  # a derivative of a derivative
    ],
)
def test_backward_functions_that_do_not_run(old: str, new: str) -> None:
    other = DERIVATIVE.replace("(x, n)", "(x)").replace("(n, ", "(").replace("[:n]", "").replace("act", "other")
    other = (
        other.replace(", nondiff_argnums=(1,)", "").replace("forward", "forward_2").replace("backward", "backward_2")
    )
    code = f"import functools\n{other}{DERIVATIVE.replace(old, new)}\nact(jnp.ones((64, 128)), 16)\n"
    assert {shape for launch in launches(code) if launch.known_call for shape in operand_shapes(launch)} == {(64, 128)}


def test_a_derivative_of_ones_own_is_no_missing_one() -> None:
    code = f"import functools\n{TWICE}{DERIVATIVE}\njax.grad(lambda x: act(x, 16).sum())(jnp.ones((64, 128)))\n"
    assert "PAL505" not in codes(lint(code, select="PAL505"))


def test_a_derivative_inside_a_function() -> None:
    inner = DERIVATIVE.replace("\n", "\n    ").replace("def backward(n, kept, g)", "def backward(n, kept, grads)")
    inner = inner.replace("x, g)", "x, grads)")
    code = (
        f"import functools\ndef test_it():\n    {inner}\n    jax.grad(lambda x: act(x, 8).sum())(jnp.ones((64, 128)))\n"
    )
    assert [(8, 128), (64, 128), (8, 128)] in map(operand_shapes, launches(code))
