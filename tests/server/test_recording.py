"""`pallasLint.recordShapes`: the tests of a project are run for its user, and their calls are known afterwards."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types as lsp
from pallas_lint.server.commands.probe import NOT_ALLOWED

from tests.probe.test_containment import running, wait_for
from tests.rules.interpreted import python
from tests.server.clients import LIMIT, session
from tests.server.test_known_calls import CODE, lenses

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    (title,) = [each.title for each in await lenses(editor, uri, "def rows") if "known call" in each.title]
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
    ("test", "reported"),
    [("", "pytest finds no test in"), ("def test_one():\n    pass\n", "no call of this project's")],
)
async def test_an_empty_recording_has_a_reason(tmp_path: Path, test: str, reported: str) -> None:
    uri = project(tmp_path, test)
    async with session("pull", tmp_path, options={"interpreter": python()}, allow_probe=True) as editor:
        editor.open(uri, CODE)
        answer = await record(editor, uri=uri)
        assert answer["outcome"] == "failed" and reported in answer["message"]
        assert not (tmp_path / SHAPES).exists()


LONG = """\
import pathlib, subprocess, sys, time
import jax.numpy as jnp
from kern import rows

def test_long():
    rows(jnp.ones((int("256"), 256)))
    other = subprocess.Popen([sys.executable, "-c", "import other; other.time.sleep(600)", __file__ + "-other"])
    pathlib.Path(__file__).with_name("begun").touch()
    try:
        time.sleep(600)
    finally:
        pathlib.Path(__file__).with_name("torn_down").touch()
"""


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Programs can be interrupted: what a shell runs in the background ignores that, and so does what it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("end", ["cancelled", "the server ends"])
async def test_an_abandoned_recording_ends(tmp_path: Path, monkeypatch: Any, end: str) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # as the editor starts the server: not as tests are run
    uri = project(tmp_path, LONG)
    (tmp_path / "other.py").write_text("import time\n")
    other = f"{tmp_path / 'test_kern.py'}-other"
    async with session("pull", tmp_path, options={"interpreter": python()}, allow_probe=True) as editor:
        editor.open(uri, CODE)
        requested = asyncio.ensure_future(record(editor, uri=uri))
        assert await asyncio.to_thread(wait_for, (tmp_path / "begun").exists)
        assert await asyncio.to_thread(wait_for, lambda: running(other))
        if end == "cancelled":
            (token,) = editor.client.progress_reports
            editor.client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams(token))
            answer = await asyncio.wait_for(requested, LIMIT)
            assert answer["outcome"] == "cancelled"
            assert answer["message"] == f"the recording was cancelled; {SHAPES}: 1 call of 1 function"
            assert (tmp_path / "torn_down").exists(), "they got SIGTERM"
        else:
            editor.server.recorder.shutdown()
            assert "did not finish" in (await asyncio.wait_for(requested, LIMIT))["message"]
        assert await asyncio.to_thread(wait_for, lambda: not running(other)), "what the tests started has ended"
