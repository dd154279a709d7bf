"""Suppression comments: what they silence, and PAL002."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.run import fixer
from pallas_lint.text.source import Source
from pallas_lint.triage import suppressions
from tests.sampling import examples

ENABLED = frozenset({"PAL001", "PAL002", "PAL301"})


def source_and_findings(text: str, code: str = "PAL301") -> tuple[Source, list[Finding]]:
    """The text without its marks, and a finding from each § to the end of the word (or to the next ~)."""
    text = textwrap.dedent(text)
    places: list[tuple[int, int]] = []
    clean = ""
    start: int | None = None
    for char in text:
        if char == "§":
            start = len(clean)
            places.append((start, start + 1))
        elif char == "~":
            assert start is not None
            places[-1] = (start, len(clean))
        else:
            clean += char
    source = Source("k.py", clean)
    return source, [finding(source, start, end, code) for start, end in places]


def finding(source: Source, start: int, end: int, code: str) -> Finding:
    span = Span(source.path, source.position(start), source.position(end))
    return Finding(code, "some-rule", Severity.ERROR, "message", span)


def left(text: str, code: str = "PAL301") -> list[str]:
    """`line:code` of what remains."""
    source, findings = source_and_findings(text, code)
    remaining = suppressions.apply(source, findings, ENABLED)
    return [f"{f.span.start.line}:{f.code}" for f in remaining]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_comment_ends_with_its_line(end: str) -> None:
    lines = (
        "x = §f(1)  # pallas-lint: disable=PAL301",
        "# a note",
        "y = §f(2)  # pallas-lint: disable=PAL301",
        "z = §f(3)",
    )
    assert left(end.join(lines)) == ["4:PAL301"]


@pytest.mark.parametrize(
    "text",
    [
        "x = §f(1)  # pallas-lint: disable=PAL301\n",
        "x = §f(1)  # pallas-lint: disable=index-map-element-offset\n",
        "x = §f(1)  # pallas-lint: disable=PAL3\n",
        "x = §f(1)  # pallas-lint: disable=ALL\n",
        "x = §f(1)  # pallas-lint: disable=PAL301 the input is small\n",
        "x = §f(1)  #pallas-lint:disable = PAL301\n",
        "x = §f(1)  # a note  # pallas-lint: disable=PAL301\n",
        "x = §f(1)  # noqa: PAL301\n",
        "x = §f(1)  # noqa: E501, PAL301\n",
        "x = §f(1)  # noqa:E501,PAL3 # why\n",
        "x = §f(1)  # NOQA\n",
        "# pallas-lint: disable=PAL301\nx = §f(1)\n",
        "# pallas-lint: disable=PAL301\n# it is fine\nx = §f(1)\n",
        "# pallas-lint: disable=PAL301\nx = g(\n  1,\n  §f(1),\n)\n",
        # first and last line of a statement, and the line where the finding ends
        "x = g(  # pallas-lint: disable=PAL301\n  1,\n  §f(1),\n)\n",
        "x = g(\n  1,\n  §f(1),\n)  # pallas-lint: disable=PAL301\n",
        "x = g(\n  §f(\n    1\n  )~,  # pallas-lint: disable=PAL301\n)\n",
        "x = [\n  # pallas-lint: disable=PAL301\n  §f(1),\n]\n",
        "x = g(\n  # pallas-lint: disable=PAL301\n  key=h(\n    §f(1)),\n)\n",
        # the next line
        "# pallas-lint: disable-next-line=PAL301\nx = §f(1)\n",
        "x = 1  # pallas-lint: disable-next-line=PAL301 why\ny = §f(1)\n",
        "x = g(1,  # pallas-lint: disable-next-line=PAL301\n  §f(1),\n)\n",
        # headers of compound statements
        "def kernel(  # pallas-lint: disable=PAL301\n  §x_ref,\n):\n  pass\n",
        "def kernel(\n  §x_ref,\n):  # pallas-lint: disable=PAL301\n  pass\n",
        "# pallas-lint: disable=PAL301\n§@jit\ndef kernel(§x_ref):\n  pass\n",
        "# pallas-lint: disable=PAL301\nif §f(1):\n  pass\n",
        "if a:\n  pass\nelif §f(1):  # pallas-lint: disable=PAL301\n  pass\n",
        "try:\n  x = §f(1)  # pallas-lint: disable=PAL301\nexcept E:\n  pass\n",
        "class A:\n  def f(self):\n    # pallas-lint: disable=PAL301\n    return §f(1)\n",
        # the whole file
        "# pallas-lint: disable-file=PAL301\nx = §f(1)\n",
        "#!/usr/bin/env python\n# Copyright\n\n# pallas-lint: disable-file=PAL3\n'''Docs.'''\nx = §f(1)\n",
        "'''Docs.'''\n# pallas-lint: disable-file=PAL3\nx = §f(1)\n",
        # broken code around it
        "def f(:\n  x = §f(1)  # pallas-lint: disable=PAL301\n",
        "x = 'é日🚀'; y = §f(1)  # pallas-lint: disable=PAL301\n",
    ],
)
def test_silenced(text: str) -> None:
    assert left(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = §f(1)  # noqa: E501\n", ["1:PAL301"]),
        ("x = §f(1)  # flake8: noqa\n", ["1:PAL301"]),
        ("x = §f('# pallas-lint: disable=PAL301')\n", ["1:PAL301"]),
        ("x = '''\n# pallas-lint: disable=PAL301\n'''; §f(1)\n", ["3:PAL301"]),
        ("x = §f(1)\n# noqa: PAL301\n", ["1:PAL301"]),
        ("x = g(\n  1,  # noqa: PAL301\n  §f(1),\n)\n", ["3:PAL301"]),
        ("x = §f(1)  # pallas-lint: disable-next-line=PAL301\n", ["1:PAL301", "1:PAL002"]),
        ("x = 1  # pallas-lint: disable-next-line=PAL301\n\ny = §f(1)\n", ["3:PAL301", "1:PAL002"]),
        # only the header of a compound statement
        ("# noqa\ndef f():\n  x = §f(1)\n", ["3:PAL301"]),
        ("def f():  # noqa\n  x = §f(1)\n", ["2:PAL301"]),
        ("x = §f(1)\n\n# pallas-lint: assume bm=128\n# pallas-lint: probe(f32[8])\n", ["1:PAL301"]),
    ],
)
def test_not_silenced(text: str, expected: list[str]) -> None:
    assert left(text) == expected


@pytest.mark.parametrize(
    ("text", "message", "fixed"),
    [
        ("x = 1  # pallas-lint: disable=PAL301\n", "`PAL301` silences nothing here", "x = 1\n"),
        ("x = 1  # pallas-lint: disable=PAL301 for now\n", "`PAL301` silences nothing here", "x = 1\n"),
        (
            "x = 1  # pallas-lint: disable=PAL301  # noqa: E501\n",
            "`PAL301` silences",
            "x = 1  # noqa: E501\n",
        ),
        ("x = 1  # why  # pallas-lint: disable=PAL301\n", "`PAL301` silences nothing here", "x = 1  # why\n"),
        ("# pallas-lint: disable=PAL301\nx = 1\n", "`PAL301` silences nothing here", "x = 1\n"),
        ("x = 1\r\n  # pallas-lint: disable=PAL301\r\ny = 1", "`PAL301` silences nothing", "x = 1\r\ny = 1"),
        ("y = 1\n# pallas-lint: disable=PAL301", "`PAL301` silences nothing here", "y = 1\n"),
        (
            "x = §f()  # pallas-lint: disable=PAL301,PAL001\n",
            "`PAL001` silences nothing here",
            "x = f()  # pallas-lint: disable=PAL301\n",
        ),
        (
            "x = §f()  # pallas-lint: disable=PAL001, PAL301, NOPE why\n",
            "`NOPE` names no rule, `PAL001` silences nothing here",
            "x = f()  # pallas-lint: disable=PAL301 why\n",
        ),
        ("x = 1  # pallas-lint: disable=NOPE\n", "`NOPE` names no rule", "x = 1\n"),
        ("# pallas-lint: disable-file=PAL301\nx = 1\n", "`PAL301` silences nothing here", "x = 1\n"),
        (
            "x = 1  # pallas-lint: dissable=PAL301\n",
            "unknown directive `dissable`, did you mean `disable`?",
            None,
        ),
        ("x = 1  # pallas-lint: disable\n", "`disable` names no rule: write `disable=PAL103`", None),
        ("x = 1  # pallas-lint:\n", "no directive after `pallas-lint:`", None),
        ("x = 1\n# pallas-lint: disable-file=PAL301\n", "`disable-file` after the first statement", None),
    ],
)
def test_unused(text: str, message: str, fixed: str | None) -> None:
    source, findings = source_and_findings(text)
    (unused,) = suppressions.apply(source, findings, ENABLED)
    assert unused.code == "PAL002"
    assert unused.message.startswith(message)
    assert bool(unused.fixes) == (fixed is not None)
    if fixed is not None:
        plan = fixer.plan([(unused, unused.fixes[0])], {source.path: source})
        assert source.edited(plan.replacements[source.path]).text == fixed


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # noqa\n",
        "x = 1  # noqa: PAL301\n",
        "x = 1  # pallas-lint: disable=PAL002\n# pallas-lint: disable=PAL002,PAL301\ny = 1\n",
        "# pallas-lint: disable-file=PAL002\nx = 1  # pallas-lint: disable=PAL301\n",
        "x = '# pallas-lint: disable=PAL301'\n",
        "# pallas-lint: assume bm=128\n# pallas-lint: probe(f32[8,128], bm=1)\ndef f(): ...\n",
    ],
)
def test_not_called_unused(text: str) -> None:
    source, findings = source_and_findings(text)
    assert [f for f in suppressions.apply(source, findings, ENABLED) if "PAL002" not in f.message] == []


def test_a_rule_that_is_not_enabled_leaves_its_suppressions_alone() -> None:
    source = Source("k.py", "x = 1  # pallas-lint: disable=PAL001\n")
    assert suppressions.apply(source, [], frozenset({"PAL002", "PAL301"})) == []
    assert suppressions.apply(source, [], frozenset({"PAL001"})) == []
    assert suppressions.apply(source, [], ENABLED, report_unused=False) == []


def test_findings_in_other_files_pass() -> None:
    source = Source("k.py", "x = f()  # pallas-lint: disable=PAL301\n")
    elsewhere = Finding("PAL301", "n", Severity.ERROR, "m", Span("other.py", Position(1, 1), Position(1, 2)))
    assert suppressions.apply(source, [elsewhere], ENABLED, report_unused=False) == [elsewhere]


def test_used_comments_are_known_by_their_own_line() -> None:
    source, findings = source_and_findings("# pallas-lint: disable=PAL301\nx = §f(1)\n# noqa: PAL3\ny = §f(2)\n")
    kept, used = suppressions.silence(source, findings)
    assert kept == findings[1:]
    assert used == {("k.py", 1)}


def test_each_of_two_comments_for_one_finding_is_in_use() -> None:
    assert left("# pallas-lint: disable=PAL301\nx = §f(1)  # pallas-lint: disable=PAL301\n") == []


COMMENTS = st.sampled_from(
    [
        "# pallas-lint: disable=PAL301",
        "# noqa: PAL3",
        "# noqa",
        "# pallas-lint:",
        "# pallas-lint: disable-file=ALL",
    ]
)
LINES = st.one_of(COMMENTS, st.text(max_size=12), st.sampled_from(["def f(:", "x = (", ")", "'''", "if a:", "  y"]))


@examples(150)
@given(st.lists(st.tuples(LINES, LINES), max_size=8), st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_any_text_is_taken(lines: list[tuple[str, str]], newline: str, data: st.DataObject) -> None:
    source = Source("k.py", newline.join(code + comment for code, comment in lines))
    start = data.draw(st.integers(0, len(source.text)))
    end = data.draw(st.integers(start, len(source.text)))
    for found in suppressions.apply(source, [finding(source, start, end, "PAL301")], ENABLED):
        assert found.code in ("PAL301", "PAL002")
        assert found.span.start <= found.span.end
        for fix in found.fixes:
            assert fixer.plan([(found, fix)], {source.path: source}).taken


@pytest.mark.parametrize(
    ("line", "half_written"),
    [
        ("x = 1  # pallas-lint:", True),
        ("x = 1  # pallas-lint: dis", True),
        ("# pallas-lint: disable", True),
        ("# pallas-lint: disable-f", True),
        ("# pallas-lint: disable=", True),
        ("# pallas-lint: disable=PAL101, PAL3", True),
        ("# pallas-lint: disable=unsupp", True),
        ("# pallas-lint: disable=PAL101", False),
        ("# pallas-lint: disable=PAL1 because of its sums", False),
        ("# pallas-lint: disabel", False),
        ("# pallas-lint: disable=PAL3x", False),
        ("# pallas-lint: assume=PAL1", False),
        ("x = 1", False),
    ],
)
def test_half_written(line: str, half_written: bool) -> None:
    assert suppressions.is_half_written(line) is half_written
