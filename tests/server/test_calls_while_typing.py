"""Shapes that tests and records tell, while one types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lsprotocol import types as lsp

from tests.known_calls.test_callers import KERNEL
from tests.server.clients import session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.server.clients import Editor

OPTIONS = {"jaxVersion": "0.10.2"}
TEST = "import jax.numpy as jnp\nfrom kern import rows\n\ndef test_rows():\n    rows(jnp.ones((256, 200)))\n"
RECORD = 'version = 1\n["kern.py::rows"]\ncalls = [{ args = { x = "f32[256,40]" }, on = "trace", seen = "t.py::t" }]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")
    (tmp_path / "kern.py").write_text(KERNEL)
    (tmp_path / "test_kern.py").write_text(TEST)
    return tmp_path


def reported(editor: Editor, uri: str) -> str:
    """What the findings about reshapes that the client was shown rest on."""
    return " ".join(
        str(each.message).partition(", with ")[2] for each in editor.shown(uri) or () if each.code == "PAL202"
    )


async def shown(editor: Editor, uri: str, words: str) -> None:
    """Wait until the client sees these words, or none."""
    if not editor.server.reporter.pulls:
        await editor.until(lambda: words in reported(editor, uri) if words else not reported(editor, uri))
        return
    while True:
        before = editor.refreshed
        found = [
            str(each.message).partition(", with ")[2] for each in await editor.pulled(uri) if each.code == "PAL202"
        ]
        if any(words in each for each in found) if words else not found:
            return
        await editor.until(lambda: editor.refreshed > before)  # noqa: B023


@pytest.mark.parametrize("profile", ["minimal", "pull", "visual-studio-code"])
async def test_an_edit_in_a_test_judges_what_it_calls(profile: str, folder: Path) -> None:
    kernel, test = (folder / "kern.py").as_uri(), (folder / "test_kern.py").as_uri()
    async with session(profile, folder, options=OPTIONS) as editor:
        editor.open(kernel, KERNEL)
        await shown(editor, kernel, "x: f32[256,200]")
        editor.open(test, TEST)
        editor.change(test, TEST.replace("200", "40"))
        await shown(editor, kernel, "x: f32[256,40]")
        editor.change(test, TEST.replace("rows(", "print("))
        await shown(editor, kernel, "")
        editor.change(test, TEST)
        await shown(editor, kernel, "x: f32[256,200]")
        editor.close(test)
        (folder / "test_kern.py").unlink()
        editor.touched(folder / "test_kern.py", kind=lsp.FileChangeType.Deleted)
        await shown(editor, kernel, "")


async def test_an_edit_in_a_kernel_runs_no_test_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pallas_lint.run.project_calls import ProjectCalls

    ran = []
    find = ProjectCalls._find_calls

    def finding(self: ProjectCalls, callers: object, file: Path, settings: object) -> None:
        ran.append(file.name)
        find(self, callers, file, settings)  # type: ignore[arg-type]

    monkeypatch.setattr(ProjectCalls, "_find_calls", finding)
    uri = (folder / "kern.py").as_uri()
    async with session("minimal", folder, options=OPTIONS) as editor:
        editor.open(uri, KERNEL)
        await shown(editor, uri, "x: f32[256,200]")
        assert ran == ["test_kern.py"]
        changed = KERNEL.replace("x.shape[0] * 4", "x.shape[0] * 8").replace("// 4", "// 8")
        editor.change(uri, changed)
        await editor.until(lambda: any("(512, 25)" in str(each.message) for each in editor.shown(uri) or ()))
        assert ran == ["test_kern.py"]
        # Saved, it may take other arguments, or hand out others.
        (folder / "kern.py").write_text(changed.replace("bm=64", "bm=32"))
        editor.change(uri, changed.replace("bm=64", "bm=32"))
        editor.save(uri)
        await shown(editor, uri, "bm=32")


async def test_a_record_comes_and_goes(folder: Path) -> None:
    (folder / "test_kern.py").unlink()
    uri, file = (folder / "kern.py").as_uri(), folder / "pallas-lint-shapes.toml"
    async with session("minimal", folder, options=OPTIONS) as editor:
        editor.open(uri, KERNEL)
        await editor.pushed(uri)
        file.write_text(RECORD)
        editor.touched(file, kind=lsp.FileChangeType.Created)
        await shown(editor, uri, "x: f32[256,40]")
        file.write_text(RECORD.replace("40", "100"))
        editor.touched(file)
        await shown(editor, uri, "x: f32[256,100]")
        file.unlink()
        editor.touched(file, kind=lsp.FileChangeType.Deleted)
        await shown(editor, uri, "")
