"""`--show-kernels`, and what a run says of how far it saw."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocation import Ran

    Lint = Callable[..., Ran]

HEAD = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


"""
ROWS = """\
def rows(x, bm=64):
    m, n = x.shape
    spec = pl.BlockSpec((bm, n), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(pl.cdiv(m, bm),), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=pltpu.CompilerParams())(x)
"""
HELD = ("--isolated", "--jax-version", "0.10.2")
SHOWN = (*HELD, "--show-kernels", "--no-cache")


def shown(lint: Lint, folder: Path, code: str, *options: str) -> str:
    """The line of the one launch in `code`, without its place."""
    (folder / "kern.py").write_text(HEAD + code)
    ran = lint(*SHOWN, *options)
    assert (ran.status, ran.err) == (0, "")
    line, _ = ran.out.splitlines()
    place, reported = line.split(": ", 1)
    assert place.startswith("kern.py:")
    return reported


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        (
            ROWS,
            "kernel: tpu (compiler_params); grid (cdiv(x.shape[0],bm)); "
            "?[x.shape[0],x.shape[1]] → ?[x.shape[0],x.shape[1]], as in the text",
        ),
        (
            f"{ROWS}\n\ndef main():\n    rows(jnp.ones((256, 128)))\n",
            "kernel: tpu (compiler_params); grid (4); f32[256,128] → f32[256,128], as in main",
        ),
        (
            f"{ROWS}\n\nrows(jnp.ones((256, 128)))\nrows(jnp.ones((8, 128)))\n",
            "kernel: tpu (compiler_params); grid (4); f32[256,128] → f32[256,128], as in line 18, and 1 other call",
        ),
        (
            f"# pallas-lint: probe(bf16[128,128])\n{ROWS}",
            "kernel: tpu (compiler_params); grid (2); bf16[128,128] → bf16[128,128], as in line 11",
        ),
        (
            "pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8,), jnp.int32))(jnp.arange(8), *unknown())\n",
            "kernel: tpu (imports); no grid; i32[8], … → i32[8], as in the text",
        ),
        (
            "x = jnp.ones((8, 128))\npl.pallas_call(kernel, out_shape=[x, None])(x)\n",
            "kernel: tpu (imports); no grid; f32[8,128] → f32[8,128], None, as in the text",
        ),
        (
            "def run(a):\n    return pl.pallas_call(kernel, grid=(2, *a.shape), out_shape=a, interpret=True)(a)\n",
            "kernel: tpu (imports; interpreted); grid (2, …); operands not known",
        ),
        (
            "def run(body, x):\n    return pl.pallas_call(body, out_shape=x)(x)\n",
            "not followed: its kernel `body` is not known: the caller of `run` passes it; tpu (imports); no grid; "
            "operands not known",
        ),
        (
            "def body(x_ref, o_ref):\n    # to do\ndef run(x):\n    return pl.pallas_call(body, out_shape=x)(x)\n",
            "not followed: its kernel `body` has a syntax error; tpu (imports); no grid; operands not known",
        ),
        (
            "from elsewhere import body\ndef run(x):\n    return pl.pallas_call(body, out_shape=x)(x)\n",
            "not followed: its kernel `body` is `elsewhere.body`, of a module that is not found; tpu (imports); "
            "no grid; operands not known",
        ),
        (
            "def launch(*a, **k):\n    return pl.pallas_call(*a, **k)\n",
            "not followed: its kernel is one of `*a`: the caller of `launch` passes it; tpu (imports); grid not known; "
            "operands not known",
        ),
        (
            "def run(x):\n    if False:\n        return pl.pallas_call(kernel, out_shape=x)(x)\n",
            "not followed: nothing that runs leads there",
        ),
    ],
)  # fmt: skip
def test_a_line_for_each_launch(code: str, reported: str, lint: Lint, folder: Path) -> None:
    assert shown(lint, folder, code) == reported


@pytest.mark.parametrize(
    ("target", "backend"),
    [
        (("tpu:v5e",), "tpu:v5e (as set)"),
        (("tpu:v5e", "triton"), "tpu:v5e (as set)"),
        (("triton",), "tpu (compiler_params; not among the targets)"),
    ],
)
def test_targets(target: tuple[str, ...], backend: str, lint: Lint, folder: Path) -> None:
    options = [word for each in target for word in ("--target", each)]
    assert shown(lint, folder, ROWS, *options).startswith(f"kernel: {backend}; grid")


def test_presumed_backend(lint: Lint, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "p"\ndependencies = ["jax[tpu]"]\n')
    code = HEAD.replace("from jax.experimental.pallas import tpu as pltpu\n", "")
    code += "def run(x):\n    return pl.pallas_call(kernel, out_shape=x)(x)\n"
    (folder / "kern.py").write_text(code)
    assert "kernel: tpu (presumed: the project requires `jax[tpu]`); no grid;" in lint(*SHOWN).out


def test_what_is_only_named_like_a_launch_is_none(lint: Lint, folder: Path) -> None:
    (folder / "kern.py").write_text(f"{HEAD}from elsewhere import sort_pallas_call\nsort_pallas_call(jnp.ones(3))\n")
    assert lint(*SHOWN).out == "0 launches in 1 file.\n"


def test_operands_that_are_named_tuples(lint: Lint, folder: Path) -> None:
    code = """
import typing

class Rows(typing.NamedTuple):
    offsets: jax.Array
    ids: jax.Array

def gather(rows, x_ref, o_ref):
    o_ref[...] = x_ref[...] + rows.ids[0]

def run(rows, x):
    spec = pl.BlockSpec((8, 128), lambda i, rows: (rows.offsets[i], 0))
    grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[spec], out_specs=spec)
    return pl.pallas_call(gather, grid_spec=grid, out_shape=x)(rows, x)

run(Rows(jnp.zeros(4, jnp.int32), jnp.zeros(5, jnp.int32)), jnp.zeros((16, 128), jnp.int32))
"""
    types = "(i32[4], i32[5]), i32[16,128] → i32[16,128]"
    assert shown(lint, folder, code) == f"gather: tpu (specs); grid (2); {types}, as in line 26"


def test_many_operands_are_cut(lint: Lint, folder: Path) -> None:
    args = ", ".join(f"jnp.ones(({number}, 128))" for number in range(1, 40))
    reported = shown(lint, folder, f"pl.pallas_call(kernel, out_shape=jnp.ones((8, 128)))({args}, *unknown())\n")
    assert "f32[1,128], f32[2,128], " in reported
    assert ", … → f32[8,128], as in the text" in reported
    assert len(reported) < 160


def test_findings_are_not_shown_and_do_not_count(kernel_file: Path, lint: Lint) -> None:
    ran = lint(*SHOWN)
    assert ran.status == 0
    assert "PAL" not in ran.out
    assert ran.out.startswith("kernel.py:11:12: kernel: backend not known (no evidence); grid (4); ")
    assert lint(*SHOWN, "--quiet").out.count("\n") == 1


def test_what_cannot_be_judged_is_an_error(kernel_file: Path, lint: Lint) -> None:
    (kernel_file.parent / "broken.py").write_bytes(b"import pallas\n\xff")
    for path in ("broken.py", "missing.py"):
        ran = lint(*SHOWN, path, "kernel.py")
        assert ran.status == 2
        assert path in ran.err
        assert "kernel.py:11:12" in ran.out


def test_standard_input(lint: Lint) -> None:
    code = f"{HEAD}{ROWS}".encode()
    ran = lint(*SHOWN, "--stdin-filename", "x.py", "-", stdin=code)
    assert ran.out.startswith("x.py:14:12: kernel: tpu")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--fix",), "--fix"),
        (("--write-baseline",), "--write-baseline"),
        (("--probe",), "--probe"),
        (("--output-format", "sarif"), "full, concise, json"),
    ],
)
def test_what_does_not_go_with_it(options: tuple[str, ...], named: str, kernel_file: Path, lint: Lint) -> None:
    ran = lint("--show-kernels", *options)
    assert ran.status == 2
    assert named in ran.err


def test_json(lint: Lint, folder: Path) -> None:
    (folder / "kern.py").write_text(f"{HEAD}{ROWS}\nrows(jnp.ones((256, 128)))\n")
    document = json.loads(lint(*SHOWN, "--output-format", "json").out)
    assert document["sight"] == {"launches": 1, "followed": 1, "backend": 1, "shapes": 1}
    (launch,) = document["kernels"]
    assert (launch["path"], launch["line"], launch["kernel"]) == ("kern.py", 14, "kernel")
    assert (launch["types"], launch["source"]) == ("f32[256,128] → f32[256,128]", "kern.py::line 17")


def test_how_far_it_saw_is_the_same_from_the_cache_and_from_several_processes(lint: Lint, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "p"\n')
    body = "def run(body, x):\n    return pl.pallas_call(body, out_shape=x)(x)\n"
    (folder / "kern.py").write_text(HEAD + ROWS + body)
    (folder / "other.py").write_text(
        f"{HEAD}import kern\npl.pallas_call(kernel, out_shape=y)(y)\nkern.run(kernel, y)\n"
    )
    (folder / "test_kern.py").write_text(
        "import jax.numpy as jnp\nfrom kern import rows\ndef test_rows():\n    rows(jnp.ones((256, 128)))\n"
    )
    options = ("--jax-version", "0.10.2", "--output-format", "json")
    for show in ((), ("--show-kernels",)):
        ran = [lint(*options, *show, *more).out for more in (("--no-cache", "--jobs", "1"), ("--jobs", "2"), ())]
        assert ran[0] == ran[1] == ran[2]
        # A launch in a helper is that of the helper's file.
        assert json.loads(ran[0])["sight"] == {"launches": 3, "followed": 3, "backend": 3, "shapes": 1}
    assert "test_kern.py:4" in ran[0]


def test_a_clean_run_prints_what_it_checked(lint: Lint, folder: Path) -> None:
    (folder / "kern.py").write_text(f"{HEAD}{ROWS}\n")
    assert lint(*HELD).out == (
        "No findings in 1 file.\n1 kernel judged for tpu, jax 0.10.2 (--jax-version); none with known shapes\n"
    )
    assert lint(*HELD, "--quiet").out == ""
    assert "judged" not in lint(*HELD, "--output-format", "github").out


def test_notebooks(lint: Lint, folder: Path) -> None:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
        for text in (HEAD, ROWS)
    ]
    document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    (folder / "n.ipynb").write_text(json.dumps(document))
    assert lint(*SHOWN).out.startswith("n.ipynb:cell 2:4:12: kernel: tpu (compiler_params)")
