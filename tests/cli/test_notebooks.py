"""Notebooks on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pallas_lint.run.cache_folder import cache_folder
from tests.test_notebook import IMPORTS, KERNEL, LAUNCH, SILENT, document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.invocation import Lint

NEW = ("--jax-version", "0.10.2", "--isolated")


def write(folder: Path, *sources: str, name: str = "n.ipynb", **metadata: object) -> Path:
    file = folder / name
    file.write_text(json.dumps(document(*sources, **metadata), indent=1) + "\n")
    return file


def test_lines_are_those_of_a_cell(lint: Lint, folder: Path) -> None:
    write(folder, IMPORTS, KERNEL, LAUNCH)
    first, second, *_ = lint(*NEW, "--output-format", "concise", ".").out.splitlines()
    assert first.startswith("n.ipynb:cell 2:2:18: PAL101 [error] `jnp.cumsum` ")
    assert first.endswith(" [kernel, tpu]")
    assert second.startswith("n.ipynb:cell 3:2:46: PAL301 ")
    full = lint(*NEW, "n.ipynb").out
    assert "n.ipynb:cell 2:2:18 PAL101" in full
    assert "2 |     o_ref[...] = jnp.cumsum(x_ref[...], axis=1)\n" in full
    assert "launched here: n.ipynb:cell 3:3:12\n" in full
    assert "3 |     return pl.pallas_call(\n" in full


def test_json_names_the_cell_of_every_place(lint: Lint, folder: Path) -> None:
    write(folder, IMPORTS, KERNEL, LAUNCH)
    first, second = json.loads(lint(*NEW, "--output-format", "json", "n.ipynb").out)["findings"]
    assert (first["cell"], first["start"], first["related"][0]["cell"]) == (2, {"line": 2, "column": 18}, 3)
    (edit,) = second["fixes"][0]["edits"]
    assert (edit["cell"], edit["start"]["line"], edit["path"]) == (3, 2, "n.ipynb")


def test_the_other_formats(lint: Lint, folder: Path) -> None:
    write(folder, IMPORTS, KERNEL, LAUNCH)
    assert "cell 2, line 2: `jnp.cumsum`" in lint(*NEW, "--output-format", "github", "n.ipynb").out
    (run,) = json.loads(lint(*NEW, "--output-format", "sarif", "n.ipynb").out)["runs"]
    assert [result["properties"]["cell"] for result in run["results"]] == [2, 3]
    assert "line 2 of cell 3, column 46" in lint(*NEW, "--output-format", "junit", "n.ipynb").out


def test_the_cache_gives_the_same(lint: Lint, folder: Path) -> None:
    write(folder, IMPORTS, KERNEL, LAUNCH)
    options = ("--jax-version", "0.10.2", "--isolated", "n.ipynb")
    first = lint(*options)
    kept = cache_folder(folder)
    assert kept is not None and list(kept.path.glob("lint/??/*"))
    assert lint(*options).out == first.out
    assert "PAL101" in first.out


def test_fixes_are_written_into_the_notebook(lint: Lint, folder: Path) -> None:
    file = write(folder, IMPORTS, KERNEL, LAUNCH)
    before = file.read_text()
    diff = lint(*NEW, "--diff", "n.ipynb")
    assert "--- n.ipynb:cell 3\n+++ n.ipynb:cell 3\n@@ -1,5 +1,5 @@\n" in diff.out
    assert "-    spec = pl.BlockSpec((8, 128), lambda i: (i * 8, 0))\n" in diff.out
    assert file.read_text() == before
    assert "PAL301" not in lint(*NEW, "--fix", "n.ipynb").out
    assert file.read_text() == before.replace("i * 8", "i")


def test_standard_input(lint: Lint, folder: Path) -> None:
    data = write(folder, IMPORTS, KERNEL, LAUNCH).read_bytes()
    reported = ("--stdin-filename", "sub/x.ipynb", "-")
    assert "sub/x.ipynb:cell 3:2:46" in lint(*NEW, *reported, stdin=data).out
    assert lint(*NEW, "--fix", *reported, stdin=data).out == data.decode().replace("i * 8", "i")


def test_comments_and_settings_silence(lint: Lint, folder: Path) -> None:
    file = write(folder, IMPORTS, KERNEL, LAUNCH)
    (folder / "pallas-lint.toml").write_text('jax-version = "0.10.2"\nper-file-ignores = {"*.ipynb" = ["PAL301"]}\n')
    found = lint("--output-format", "concise", "n.ipynb").out
    assert "PAL101" in found and "PAL301" not in found
    (folder / "pallas-lint.toml").write_text('jax-version = "0.10.2"\nextend-exclude = ["*.ipynb"]\n')
    assert "no Python files" in lint(".").out
    (folder / "pallas-lint.toml").unlink()
    assert lint(*NEW, "--add-suppressions", "n.ipynb").status == 0
    cells = json.loads(file.read_text())["cells"]
    assert "".join(cells[1]["source"]) == KERNEL + "  # pallas-lint: disable=PAL101"
    assert "".join(cells[2]["source"]) == LAUNCH.replace("0))\n", "0))  # pallas-lint: disable=PAL301\n")


def test_a_baseline_knows_cells_that_moved(lint: Lint, folder: Path) -> None:
    write(folder, IMPORTS, KERNEL, LAUNCH)
    known = ("--baseline", "base.json", "n.ipynb")
    assert lint(*NEW, "--write-baseline", *known).status == 0
    write(folder, "print('pallas')", IMPORTS, "x = 1", "y = 2", KERNEL, LAUNCH)
    assert lint(*NEW, *known).status == 0


def test_unchecked_files_are_reported(lint: Lint, folder: Path) -> None:
    write(folder, IMPORTS, KERNEL, SILENT, name="r.ipynb", language_info={"name": "R"})
    (folder / "bad.ipynb").write_text('{"cells": [],\n "pallas" 1}')
    ran = lint(*NEW, ".")
    assert ran.status == 2
    assert "bad.ipynb:2: error: the notebook is not valid JSON: Expecting ':' delimiter" in ran.err
    assert "note: r.ipynb: a notebook in R, not linted" in ran.out
    assert "note: r.ipynb: a notebook in R, not linted" in lint("--jax-version", "0.10.2", "--isolated", "r.ipynb").out
