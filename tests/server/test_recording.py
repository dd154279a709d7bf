"""`pallasLint.recordShapes`: the tests of a project are run for its user, and their calls are known afterwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp
from pallas_lint.server.commands.probe import NOT_ALLOWED

from tests.rules.interpreted import python
from tests.server.clients import session
from tests.server.test_known_calls import CODE, lenses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

pytestmark = pytest.mark.asyncio
SHAPES = "pallas-lint-shapes.toml"
# What it calls with is computed: who only reads does not know.
TEST = """\
import os
import jax.numpy as jnp
from kern import rows

def test_rows():
    rows(jnp.ones((int(os.environ.get("ROWS", "256")), 256)))

def test_that_fails():
    raise AssertionError
"""


def project(folder: Path, test: str = TEST) -> str:
    (folder / "pyproject.toml").write_text('[project]\nname = "p"\n')
    (folder / "kern.py").write_text(CODE)
    (folder / "test_kern.py").write_text(test)
    return (folder / "kern.py").as_uri()


async def record(editor: Editor, **request: object) -> Any:
    params = lsp.ExecuteCommandParams("pallasLint.recordShapes", [request])
    return await editor.client.workspace_execute_command_async(params)


async def shown(editor: Editor, uri: str) -> str:
    """The lens over the launcher that says with which shapes it is called."""
    (title,) = [each.title for each in await lenses(editor, uri, "def rows") if "witness" in each.title]
    return title


async def test_nothing_runs_where_the_user_did_not_allow_it(tmp_path: Path) -> None:
    uri = project(tmp_path)
    async with session("pull", tmp_path) as editor:
        editor.open(uri, CODE)
        answer = await record(editor, uri=uri)
        assert (answer["outcome"], answer["message"]) == ("not-allowed", NOT_ALLOWED)
        assert not (tmp_path / SHAPES).exists()


@pytest.mark.slow
async def test_tests_are_run_and_their_calls_are_shown(tmp_path: Path) -> None:
    uri = project(tmp_path)
    async with session("pull", tmp_path, options={"interpreter": python()}, allow_probe=True) as editor:
        editor.open(uri, CODE)
        assert "f32[?,256]" in await shown(editor, uri)
        answer = await record(editor, uri=uri)
        assert answer["outcome"] == "done", answer
        assert answer["message"] == f"{SHAPES}: 1 call of 1 function; some tests failed"
        assert 'x = "f32[256,256]"' in (tmp_path / SHAPES).read_text()
        assert "f32[256,256]" in await shown(editor, uri)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "told"), [("", "pytest finds no test in"), ("def test_one():\n    pass\n", "no call of this project's")]
)
async def test_what_records_nothing_says_why(tmp_path: Path, test: str, told: str) -> None:
    uri = project(tmp_path, test)
    async with session("pull", tmp_path, options={"interpreter": python()}, allow_probe=True) as editor:
        editor.open(uri, CODE)
        assert told in (await record(editor, uri=uri))["message"]
        assert not (tmp_path / SHAPES).exists()


@pytest.mark.slow
async def test_a_recording_ends_when_nobody_waits_for_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    uri = project(
        tmp_path, f"import time\ndef test_long():\n    open({str(begun)!r}, 'w').close()\n    time.sleep(600)\n"
    )
    async with session("pull", tmp_path, options={"interpreter": python()}, allow_probe=True) as editor:
        editor.open(uri, CODE)
        asked = asyncio.ensure_future(record(editor, uri=uri))
        while not begun.exists():
            await asyncio.sleep(0.05)
        editor.server.recorder.shutdown()
        assert "did not come to an end" in (await asyncio.wait_for(asked, 30))["message"]
