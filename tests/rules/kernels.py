"""Small launches around a kernel body, for tests of rules about what kernels compute."""

from __future__ import annotations

import textwrap

_PRELUDE = """\
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
"""
_IMPORTS = {
    "tpu": "from jax.experimental.pallas import tpu as pltpu\n",
    "triton": "from jax.experimental.pallas import triton as plgpu\n",
    None: "",
}
_PARAMS = {
    "tpu": "compiler_params=pltpu.CompilerParams(), ",
    "triton": "compiler_params=plgpu.CompilerParams(), ",
    None: "",
}


def launch(
    body: str,
    backend: str | None = "tpu",
    *,
    operand: str = "x",
    shape: str = "(16, 128)",
    dtype: str = "jnp.float32",
    extra: str = "",
    prelude: str = "",
) -> str:
    """A module with one launch of `kernel(x_ref, o_ref)`, whose body this is."""
    kernel = "def kernel(x_ref, o_ref):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    run = (
        f"def run(x):\n    return pl.pallas_call(kernel, {_PARAMS[backend]}{extra}"
        f"out_shape=jax.ShapeDtypeStruct({shape}, {dtype}))({operand})"
    )
    return f"{_PRELUDE}{_IMPORTS[backend]}{textwrap.dedent(prelude)}\n\n{kernel}\n\n\n{run}\n"


def line_of(code: str, text: str) -> int:
    """The number of the first line that contains `text`."""
    return next(number for number, line in enumerate(code.splitlines(), 1) if text in line)
