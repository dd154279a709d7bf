"""A probe of what a notebook launches: with what it rests on of the cells, and reported in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp
from pallas_lint.server.probing.probe_targets import module_of

from pallas_lint.notebooks.notebook import Notebook
from tests.rules.interpreted import python
from tests.server.clients import document, session
from tests.server.test_notebooks import Cells
from tests.test_notebook import IMPORTS, KERNEL, SILENT

if TYPE_CHECKING:
    from pathlib import Path

# Would fail without a TPU.
RUNS = "%matplotlib inline\nimport time\nresult = run(jnp.zeros((8, 128)), 1)\nprint(result)"


def test_the_module_has_what_a_function_rests_on_in_its_lines() -> None:
    cells = enumerate(
        (IMPORTS, "SIZE = 8\nOTHER = 9", KERNEL, RUNS, SILENT.replace("(8, 128)", "(SIZE, 128)")), start=1
    )
    notebook = Notebook.of("n.ipynb", cells)
    module = module_of(notebook, "run")
    assert module.line_count == notebook.line_count
    kept = [(at, module.line(at)) for at in range(1, module.line_count + 1) if module.line(at)]
    assert all(notebook.line(at) == line for at, line in kept)
    text = module.text
    assert "SIZE = 8" in text and "def kernel" in text and "def run" in text and "import time" in text
    assert "OTHER" not in text and "print" not in text and "result" not in text


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_function_of_a_notebook_is_probed(tmp_path: Path) -> None:
    options = {"settings": {"interpreter": python(), "target": "tpu:v5e"}, "clientCommands": ["pallasLint.showLayout"]}
    async with session("visual-studio-code", tmp_path, options=options, allow_probe=True) as editor:
        cells = Cells(editor, tmp_path / "n.ipynb", IMPORTS, KERNEL, RUNS, SILENT)

        async def lenses(cell: int) -> list[lsp.Command]:
            found = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(document(cells.names[cell])))
            return [each.command for each in found or () if each.command is not None]

        (probe, *_) = await lenses(3)
        assert probe.title == "Probe" and probe.arguments is not None
        requested = [{**probe.arguments[0], "arguments": "f32[32,128], 4"}]
        done = await editor.client.workspace_execute_command_async(lsp.ExecuteCommandParams(probe.command, requested))
        assert (done["outcome"], done["launches"]) == ("done", 1), done
        titles = [each.title for each in await lenses(3)]
        assert "TPU · grid (4) · VMEM 16 KiB" in titles and "✗ tpu:v5e: lower" in titles, titles
        (found,) = [each for each in await editor.pulled(cells.names[1]) if each.code == "PAL101"]
        assert "the probe confirms it" in found.message and found.range.start.line == 1
        # The same at the cursor in a cell.
        here = [{"uri": cells.names[3], "line": 2, "arguments": "f32[32,128], 4"}]
        again = await editor.client.workspace_execute_command_async(lsp.ExecuteCommandParams("pallasLint.probe", here))
        assert again["outcome"] == "done" and "nothing has changed since" in again["message"], again
