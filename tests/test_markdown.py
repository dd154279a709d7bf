"""Markdown: fenced blocks of Python, linted and fixed where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.cli import main
from pallas_lint.notebooks.markdown import Markdown

if TYPE_CHECKING:
    import pytest

GUIDE = """\
# A guide

Prose with `code`, and a block:

```python title="k.py"
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...].astype(jnp.float32) * 2.0
```

```python
def broken(:
```

```sh
pallas-lint k.py
```

~~~py
def run(x):
    out = jax.ShapeDtypeStruct((16, 128), jnp.bfloat16)
    return pl.pallas_call(kernel, out_shape=out, compiler_params=pltpu.CompilerParams())(x)
~~~
"""
OPTIONS = ("--isolated", "--no-cache", "--jax-version", "0.12.0.1")


def test_places_are_those_of_the_file() -> None:
    source = Markdown.of("guide.md", GUIDE)
    assert len(source.text) == len(GUIDE)
    assert source.line(12) == GUIDE.splitlines()[11]
    assert source.line(3).strip() == source.line(16).strip() == source.line(20).strip() == ""
    assert source.written == GUIDE
    assert source.data == GUIDE.encode()


def test_a_named_file_is_linted_and_fixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guide = tmp_path / "guide.md"
    guide.write_text(GUIDE)
    assert main([*OPTIONS, "--output-format", "concise", str(guide)]) == 1
    out = capsys.readouterr().out
    assert "guide.md:12:5: PAL506 [error]" in out
    assert "PAL001" not in out
    assert main([*OPTIONS, "--fix", str(guide)]) == 0
    fixed = GUIDE.replace(
        "x_ref[...].astype(jnp.float32) * 2.0", "(x_ref[...].astype(jnp.float32) * 2.0).astype(o_ref.dtype)"
    )
    assert guide.read_text() == fixed


def test_folders_have_them_where_settings_include_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text(GUIDE)
    (tmp_path / "notes.txt").write_text(GUIDE)
    monkeypatch.chdir(tmp_path)
    assert main([*OPTIONS, "--show-files"]) == 0
    assert "guide.md" not in capsys.readouterr().out
    (tmp_path / "pallas-lint.toml").write_text('include = ["docs/*.md", "notes.txt"]\n')
    assert main(["--no-cache", "--show-files"]) == 0
    assert [Path(line).name for line in capsys.readouterr().out.splitlines() if "notes" in line or "guide" in line] == [
        "guide.md"
    ]


@given(
    st.lists(
        st.sampled_from(["```python", "```", "~~~py", "~~~", "x = 1", "  y = (", "text", "````py", ""]),
        min_size=1,
        max_size=12,
    )
)
def test_lines_stay_where_they_are(lines: list[str]) -> None:
    document = "\n".join(lines)
    source = Markdown.of("x.md", document)
    assert len(source.text) == len(document)
    for shown, written in zip(source.text.split("\n"), lines, strict=True):
        assert shown in (written, " " * len(written))


def test_blocks_in_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = GUIDE.index("```python title"), GUIDE.index("~~~py")
    end = GUIDE.index("```", first + 3)
    indented = "".join(
        f"  {line}\n"
        for line in (GUIDE[first:end] + GUIDE[second:].partition("\n")[2].replace("~~~", "```")).splitlines()
    )
    guide = tmp_path / "list.md"
    guide.write_text(f"- an item\n\n{indented}")
    assert main([*OPTIONS, "--output-format", "concise", str(guide)]) == 1
    line = next(at for at, text in enumerate(guide.read_text().splitlines(), 1) if "* 2.0" in text)
    assert f"list.md:{line}:7: PAL506 [error]" in capsys.readouterr().out
