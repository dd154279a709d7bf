"""What an editor shows while a probe goes on: each stage as soon as it has ended."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from tests.server.clients import LIMIT
from tests.server.test_probing import CODE, editor
from tests.stand_in_worker import WAIT, ended, go, launch, make

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.test_probing import Editor

TARGET = "tpu:v5e"
STAGES = [["grid", None], ["lower", TARGET], ["interpret", None]]
RAISED = {
    "kind": "raised", "type": "NotImplementedError", "message": "no lowering of sort", "places": [],
    "in_index_map": None, "in_launch": False,
}  # fmt: skip


async def until_reported(e: Editor, times: int) -> None:
    """Wait until the client was reported so often that there is something new to show."""

    async def reported() -> None:
        while len(e.probed) < times:
            await asyncio.sleep(0.01)

    await asyncio.wait_for(reported(), LIMIT)


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is started by its first line")
async def test_stages_are_shown_as_they_end(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    file, lines = folder / "k.py", CODE.splitlines()
    launched = lines.index("    return pl.pallas_call(") + 1
    defined = {"file": str(file), "line": lines.index("def fine(x_ref, o_ref):") + 1, "column": 1}
    program = make(
        tmp_path / "stand-in",
        [
            launch(file, launched, "fine", kernel_place=defined, stages=STAGES), ended("grid"), WAIT,
            ended("lower", TARGET, ok=False, problems=[RAISED]), WAIT,
            ended("interpret"),
        ],
    )  # fmt: skip
    async with editor(folder, "--allow-probe", options={"interpreter": str(program)}) as e:
        probe = asyncio.create_task(e.probe(function="doubled"))
        for times, verdicts, codes in ((1, "✓", []), (2, f"✗ {TARGET}: lower", ["PAL902"])):
            await until_reported(e, times)
            assert f"{verdicts} …" in await e.titles(e.line("def fine"))
            found = {each.code: each for each in await e.diagnostics() if each.code == "PAL902"}
            assert [*found] == codes and all("no lowering of sort" in each.message for each in found.values())
            assert ('<th scope="row">lower</th>' in (await e.report()).html) is (times == 2)
            assert not probe.done()
            go(program, times)
        answer = await probe
        assert (answer["outcome"], answer["launches"], answer["findings"]) == ("done", 1, 1), answer
        assert f"✗ {TARGET}: lower" in await e.titles(e.line("def fine"))
        assert set(e.probed) == {e.uri}
