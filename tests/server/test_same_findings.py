"""What the terminal reports of a project is what the editor shows of its files, for projects and settings at random."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.cli import main
from pallas_lint.text.source import Source
from tests.sampling import examples
from tests.server.clients import session
from tests.server.test_agreement import as_shown, at_each_place, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

HELPERS = """\
import jax
import jax.numpy as jnp


def summed(x):
    return jnp.cumsum(x, axis=0){comment}


def rows(x):
    return jnp.sort(x){other}
"""
LAUNCH = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from helpers import rows, summed
{top}

def kernel(x_ref, o_ref):
    o_ref[...] = {function}(x_ref[...]){comment}
    o_ref[...] = jnp.sort(o_ref[...])


def run(x):
    shape = jax.ShapeDtypeStruct({shape}, jnp.float32)
    params = pltpu.TPUCompilerParams()
    return pl.pallas_call(kernel, out_shape=shape, compiler_params=params)(x)


def again(x):
    return pltpu.TPUCompilerParams
"""
CODES = ["PAL101", "PAL002", "PAL701", "PAL401", "PAL209"]
COMMENTS = st.sampled_from(["", "", "  # pallas-lint: disable=PAL101", "  # noqa", "  # pallas-lint: disable=PAL1"])


@st.composite
def launches(draw: st.DrawFn) -> str:
    return LAUNCH.format(
        top=draw(st.sampled_from(["", "", "# pallas-lint: disable-file=PAL701", "# pallas-lint: disable=PAL5"])),
        function=draw(st.sampled_from(["summed", "rows", "jnp.cumsum", "jnp.sin"])),
        comment=draw(COMMENTS),
        shape=draw(st.sampled_from(["x.shape", "(8, 128)", "(7, 100)"])),
    )


@st.composite
def settings_files(draw: st.DrawFn) -> str:
    severities = draw(
        st.dictionaries(st.sampled_from(CODES), st.sampled_from(["error", "warning", "info"]), max_size=2)
    )
    lines = [f"ignore = {json.dumps(draw(st.lists(st.sampled_from(CODES), max_size=1)))}"]
    lines += [f"unfixable = {json.dumps(draw(st.lists(st.sampled_from(CODES), max_size=1)))}"]
    lines += ['target = ["tpu"]', 'jax-version = "0.10.2"', 'baseline = "known.json"']
    lines += ["[severity]", *(f'{code} = "{severity}"' for code, severity in severities.items())]
    left_out = draw(st.lists(st.sampled_from(CODES), max_size=2, unique=True))
    lines += [
        "[per-file-ignores]",
        f"{json.dumps(draw(st.sampled_from(['helpers.py', 'a.py'])))} = {json.dumps(left_out)}",
    ]
    return "\n".join(lines)


def run(folder: Path, *arguments: str) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            assert main(["--no-cache", *arguments]) in (0, 1)
    finally:
        os.chdir(before)


def report_of(folder: Path) -> list[dict[str, Any]]:
    """The findings that the command line reports."""
    file = folder.parent / "report.json"
    run(folder, "--output-format", "json", "--output-file", str(file))
    found: list[dict[str, Any]] = json.loads(file.read_text())["findings"]
    return found


async def shown_in_editor(folder: Path, texts: Mapping[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    async with session("pull", folder) as editor:
        uris = {name: (folder / name).as_uri() for name in texts}
        for name, text in texts.items():
            editor.open(uris[name], text)
        for uri in uris.values():
            await editor.pulled(uri)  # only when all are known, a helper has what kernels elsewhere make of it
        return {name: shown(await editor.pulled(uri)) for name, uri in uris.items()}


@pytest.mark.slow
@examples(20)
@given(st.lists(launches(), min_size=1, max_size=3), COMMENTS, COMMENTS, settings_files(), st.data())
def test_the_terminal_and_the_editor_agree(
    files: list[str], comment: str, other: str, config: str, data: st.DataObject
) -> None:
    texts = {
        "helpers.py": HELPERS.format(comment=comment, other=other),
        **dict(zip(["a.py", "b.py", "c.py"], files, strict=False)),
    }
    with tempfile.TemporaryDirectory() as place:
        folder = Path(os.path.realpath(place)) / "project"
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text)
        (folder / "pallas-lint.toml").write_text(config)
        (folder / "known.json").write_text(json.dumps({"version": 1, "tool": "0", "findings": []}))
        if data.draw(st.booleans()):  # what is wrong with one of the files today is known
            run(folder, "--write-baseline", data.draw(st.sampled_from(sorted(texts))))
        else:
            run(folder, "--write-baseline", "--select", "PAL209")
        findings = at_each_place(report_of(folder))
        expected = {
            name: sorted(as_shown(each, Source(name, text)) for each in findings if each["path"] == name)
            for name, text in texts.items()
        }
        assert asyncio.run(shown_in_editor(folder, texts)) == expected
