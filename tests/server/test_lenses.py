"""Code lenses: one for each launch and for each kernel, with a way to probe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from tests.server.clients import document, session

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio
PASSED = """\
import functools
import jax
from jax.experimental import pallas as pl


def first(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def second(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0


def third(x_ref, o_ref, *, n):
    o_ref[...] = x_ref[...] * n


def no_kernel(x):
    return x


def launch(body, x, epilogue=None):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(4,))(x)


def run(x):
    return launch(first, x, no_kernel)


def doubled(x):
    return launch(second, x, epilogue=no_kernel)


def outer(x, kernel_body):
    return launch(functools.partial(kernel_body, n=3), x)


def scaled(x):
    return outer(x, kernel_body=third)
"""


async def test_each_kernel_that_a_launcher_gets_has_its_own(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={"target": "triton"}) as editor:
        editor.open(uri, PASSED)
        found = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
        shown: dict[str, list[tuple[str, str | None]]] = {}
        for lens in found or ():
            assert lens.command is not None
            reported = lens.command.arguments[0]["function"] if lens.command.arguments else None
            line = PASSED.splitlines()[lens.range.start.line].strip()
            shown.setdefault(line.partition("(")[0], []).append((lens.command.title, reported))
    assert shown == {
        "def first": [("Probe", "run"), ("Triton · grid (4)", None)],
        "def second": [("Probe", "doubled"), ("Triton · grid (4)", None)],
        "def third": [("Probe", "scaled"), ("Triton · launched through launch", None)],
        "return pl.pallas_call": [("Probe", "run"), ("Triton · grid (4)", None)],
    }


@pytest.mark.parametrize("trusted", [True, False])
async def test_nothing_is_offered_to_be_run_where_the_workspace_is_not_trusted(tmp_path: Path, trusted: bool) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, trusted=trusted) as editor:
        editor.open(uri, PASSED)
        found = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
        commands = {lens.command.command for lens in found or () if lens.command is not None}
    assert commands == ({"", "pallasLint.probe"} if trusted else {""})


MANY = """\
import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


""" + "\n\n".join(
    f"def run{at}(x):\n    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)\n"
    for at in range(5)
)


async def test_lenses_of_a_launch_are_not_repeated_over_its_kernel(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    async with session("pull", tmp_path, options={"target": "triton"}) as editor:
        editor.open(uri, MANY)
        found = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(uri)))
        titles = [lens.command.title for lens in found or () if lens.command is not None]
    assert titles[:2] == ["Probe", "launched by run0, run1, run2 and 2 more"]
    assert titles[2:] == ["Probe", "Triton"] * 5
