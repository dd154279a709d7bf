"""Whatever a notebook's JSON holds: a verdict, or one error; a fix changes the text of cells and nothing else."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.lint import lint_source
from pallas_lint.notebooks.notebook import Notebook
from pallas_lint.run import fixer
from pallas_lint.run.project import Project
from pallas_lint.text.source import Source, SourceError
from tests.fuzz.texts import KERNEL, KERNELS, kernels
from tests.fuzz.verdicts import NOWHERE, assert_inside, assert_reported, chosen
from tests.sampling import examples

if TYPE_CHECKING:
    from pallas_lint.finding import Finding

MAGICS = [
    "%matplotlib inline\n",
    "!pip install jax\n",
    "%%bash\nls\n",
    "x = !ls\n",
    "?jnp\n",
    "%%time\n",
    "  %cd ..\n",
    "%",
]


@st.composite
def documents(draw: Any) -> dict[str, Any]:
    """A notebook as nbformat 4 wants it, with a kernel cut into cells."""
    text = draw(st.just(KERNEL) | st.sampled_from(KERNELS) | kernels(most=2))
    lines = text.splitlines(keepends=True)
    ends = sorted(draw(st.lists(st.integers(0, len(lines)), max_size=4)))
    texts = ["".join(lines[a:b]) for a, b in zip([0, *ends], [*ends, len(lines)], strict=True)]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(texts) - 1))
        texts[at] = draw(st.sampled_from(MAGICS)) + texts[at]
    cells = []
    for source in texts:
        kind = draw(st.sampled_from(["code", "code", "code", "markdown", "raw"]))
        parts: object = draw(st.sampled_from([source, source.splitlines(keepends=True), list(source), [source]]))
        outputs = {"outputs": [{"text": ["é 🟦 \x1b[0m"]}], "execution_count": 1} if kind == "code" else {}
        cells.append({"cell_type": kind, "metadata": {"z": 1.0}, "source": parts, **outputs})
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}}, "cells": cells}


def written(document: object, data: st.DataObject) -> str:
    indent = data.draw(st.sampled_from([None, 1, 2, "\t"]))
    return json.dumps(document, ensure_ascii=data.draw(st.booleans()), indent=indent) + data.draw(
        st.sampled_from(["", "\n"])
    )


def found(source: Source) -> list[Finding]:
    result = lint_source(source, chosen(None, "0.4.35"), Project(NOWHERE))
    assert not result.errors, (result.errors, result.traceback)
    for finding in result.findings:
        assert_inside(source, finding.span)
        assert source.to_cell(finding.span).cell is not None
    assert_reported(source, result)
    return list(result.findings)


def without_sources(document: Any) -> Any:
    rest = copy.deepcopy(document)
    for cell in rest["cells"]:
        if cell["cell_type"] == "code":
            del cell["source"]
    return rest


@examples(25)
@given(documents(), st.data())
def test_fixing_changes_the_text_of_cells_only(document: dict[str, Any], data: st.DataObject) -> None:
    text = written(document, data)
    source = Notebook.from_bytes(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode(), "n.ipynb")
    findings = found(source)
    assert source.edited([]).data == source.data
    outcome = fixer.fix({"n.ipynb": source}, findings, lambda sources, _: found(sources["n.ipynb"]), unsafe=True)
    after = outcome.sources["n.ipynb"]
    assert without_sources(json.loads(after.data)) == without_sources(json.loads(source.data))
    if not outcome.changed:
        assert after.data == source.data
    # What is no Python stays, in the cells that it was in.
    kept = [[line for line in text.splitlines() if line[:1] in ("%", "!", "?")] for _, text in source.parts]
    assert [[line for line in text.splitlines() if line[:1] in ("%", "!", "?")] for _, text in after.parts] == kept


OTHER = st.sampled_from([None, True, 0, 3, 5, -1, 10**30, 1.5, "", "x", "\ud800", [], ["a", 1], {}, [[]], {"name": []}])


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, each in inner for path in places(each, (*at, key)))]


@examples(40)
@given(documents(), st.data())
def test_any_document(document: Any, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(document)[1:] or [("cells",)]))
        holder = document
        for key in above:
            holder = holder[key]
        if data.draw(st.booleans()):
            holder[last] = copy.deepcopy(data.draw(OTHER))  # what is drawn again stays as it was
        elif isinstance(holder, dict):
            holder.pop(last, None)
        else:
            del holder[last]
    read(json.dumps(document).encode())


BROKEN = ["{", "}", "[", "]", ",", '"', "\\", "\\ud800", "NaN", "9" * 5000, "[" * 100_000, "\ufeff", "\x00", "\r", "é"]


@examples(40)
@given(documents(), st.data())
def test_any_text(document: Any, data: st.DataObject) -> None:
    text = written(document, data)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(["", *BROKEN])) + text[at + data.draw(st.integers(0, 5)) :]
    read(text.encode("utf-8", "surrogatepass"))


@examples(20)
@given(st.binary())
def test_any_bytes(raw: bytes) -> None:
    read(raw)


def read(raw: bytes) -> None:
    try:
        source = Notebook.from_bytes(raw, "n.ipynb")
    except SourceError as error:
        assert error.message and "\n" not in error.message
        assert error.line is None or 1 <= error.line <= raw.count(b"\n") + 1
        return
    assert source.data == raw
    found(source)
