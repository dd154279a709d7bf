"""The fixer: which edits go together, rounds, refusals, and writing."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.finding import Applicability, Edit, Finding, Fix, Severity, Span
from pallas_lint.run import fixer
from pallas_lint.text.source import Replacement, Source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def edit(source: Source, start: int, end: int, text: str) -> Edit:
    return Edit(Span(source.path, source.position(start), source.position(end)), text)


def finding(*edits: Edit, applicability: Applicability = "safe", code: str = "PAL103") -> Finding:
    return Finding(
        code, "a-rule", Severity.ERROR, "message", edits[0].span, fixes=(Fix("Do it", applicability, edits),)
    )


def candidates(*findings: Finding) -> list[tuple[Finding, Fix]]:
    return [(found, found.fixes[0]) for found in findings]


def planned(source: Source, *findings: Finding) -> str:
    plan = fixer.plan(candidates(*findings), {source.path: source})
    return source.edited(plan.replacements.get(source.path, ())).text


def test_choose_takes_safe_fixes_by_default() -> None:
    source = Source("a.py", "abc")
    safe, unsafe = (Fix(kind, kind, (edit(source, 0, 1, "x"),)) for kind in ("safe", "unsafe"))
    found = finding(edit(source, 0, 1, "x"))
    both = Finding(found.code, found.name, found.severity, "m", found.span, fixes=(unsafe, safe))
    only = Finding(found.code, found.name, found.severity, "m", found.span, fixes=(unsafe,))
    assert fixer.choose(both, unsafe=True) is safe
    assert fixer.choose(only, unsafe=False) is None
    assert fixer.choose(only, unsafe=True) is unsafe


def test_edits_that_overlap_wait() -> None:
    source = Source("a.py", "abcdef")
    assert planned(source, finding(edit(source, 0, 3, "X")), finding(edit(source, 2, 4, "Y"))) == "Xdef"
    assert planned(source, finding(edit(source, 0, 3, "X")), finding(edit(source, 3, 4, "Y"))) == "XYef"
    assert planned(source, finding(edit(source, 1, 1, "X")), finding(edit(source, 1, 1, "Y"))) == "aXbcdef"
    assert planned(source, finding(edit(source, 1, 1, "X")), finding(edit(source, 1, 3, "Y"))) == "aXbcdef"


def test_equal_edits_merge() -> None:
    source = Source("a.py", "f(x)\ng(x)\n")
    add = edit(source, 0, 0, "import m\n")
    first, second = finding(add, edit(source, 0, 1, "m.f")), finding(add, edit(source, 5, 6, "m.g"))
    # Within one fix an insertion and a replacement at one place have no order: that fix is never taken.
    assert planned(source, first, second) == "import m\nf(x)\nm.g(x)\n"


def test_a_fix_is_applied_whole_or_not_at_all() -> None:
    a, b = Source("a.py", "aaaa"), Source("b.py", "bbbb")
    both = finding(edit(a, 0, 2, "X"), edit(b, 0, 2, "X"))
    blocking = finding(edit(b, 1, 3, "Y"))
    plan = fixer.plan(candidates(blocking, both), {"a.py": a, "b.py": b})
    assert set(plan.replacements) == {"b.py"}
    assert fixer.plan(candidates(both), {"a.py": a}).taken == ()


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [
        ("a\nb\n", 0, "x\ny"),
        ("a\r\nb\r\n", 0, "x\r\ny"),
        ("a\r\nb", 4, "x\r\ny"),
        ("a\r\nb\n", 3, "x\ny"),
        ("a\rb\r", 0, "x\ry"),
    ],
)
def test_inserted_lines_end_as_those_around(text: str, offset: int, expected: str) -> None:
    assert fixer.with_newlines("x\ny", text, offset) == expected


REPLACEMENTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6), st.text("xyz\n", max_size=4)), max_size=8)


@given(st.text(min_size=0, max_size=30), REPLACEMENTS)
def test_applying_equals_replacing_one_after_another_from_the_end(
    text: str, wanted: list[tuple[int, int, str]]
) -> None:
    source = Source("a.py", text)
    spans = [(min(start, len(text)), min(start + length, len(text)), new) for start, length, new in wanted]
    plan = fixer.plan(
        candidates(*(finding(edit(source, start, end, new)) for start, end, new in spans)), {"a.py": source}
    )
    replacements = plan.replacements.get("a.py", ())
    naive = text
    for replacement in sorted(replacements, key=lambda r: (r.start, r.end), reverse=True):
        naive = naive[: replacement.start] + replacement.text + naive[replacement.end :]
    assert Source("a.py", text).edited(replacements).text == naive
    # What was taken does not overlap, and nothing that could have been taken with it was left.
    assert all(a.end <= b.start and a.start < b.start for a, b in itertools.pairwise(replacements))
    assert not wanted or replacements


def word_linter(rules: Mapping[str, str], broken: str = "BROKEN"):  # type: ignore[no-untyped-def]
    """A linter whose rules replace words, and for which a text with `broken` in it does not parse."""

    def relint(sources: Mapping[str, Source], changed: frozenset[str]) -> list[Finding]:
        found = []
        for source in sources.values():
            for word, new in rules.items():
                matches = re.finditer(rf"\b{word}\b", source.text)
                code = f"PAL{len(word)}"
                found += [finding(edit(source, *match.span(), new), code=code) for match in matches]
            if broken in source.text:
                place = edit(source, 0, 0, "").span
                found.append(Finding("PAL001", "syntax-error", Severity.ERROR, "m", place))
        return found

    return relint


def fixed(rules: Mapping[str, str], **texts: str) -> fixer.FixResult:
    sources = {path: Source(path, text) for path, text in texts.items()}
    relint = word_linter(rules)
    return fixer.fix(sources, relint(sources, frozenset()), relint)


def test_rounds_go_on_until_nothing_is_left() -> None:
    outcome = fixed({"a": "b", "b": "c"}, one="a b a", two="x")
    assert outcome.sources["one"].text == "c c c"
    assert set(outcome.changed) == {"one"}
    assert outcome.findings == []
    assert outcome.fixed.total() == 5
    assert outcome.problems == []


def test_fixes_that_undo_each_other_end_and_are_reported() -> None:
    outcome = fixed({"a": "b", "b": "a"}, one="a")
    assert [problem.path for problem in outcome.problems] == ["one"]
    assert "did not settle" in outcome.problems[0].message


def test_a_fix_that_changes_nothing_ends() -> None:
    outcome = fixed({"a": "a"}, one="a")
    assert outcome.changed == {}
    assert outcome.fixed.total() == 0


def test_a_fix_that_breaks_the_file_is_refused_and_the_others_applied() -> None:
    outcome = fixed({"a": "b", "bad": "BROKEN", "x": "y"}, one="a bad x", two="a")
    assert outcome.sources["one"].text == "b bad y"
    assert outcome.sources["two"].text == "b"
    (problem,) = outcome.problems
    assert "would break the file" in problem.message
    assert [found.code for found in outcome.findings] == ["PAL3"]


def test_a_broken_file_may_be_fixed() -> None:
    assert fixed({"a": "b"}, one="a BROKEN").sources["one"].text == "b BROKEN"


def write(folder: Path, groups: list[frozenset[str]], **texts: tuple[bytes, str]) -> tuple[set[str], list[str]]:
    """Write files with these bytes, then have the fixer replace their text."""
    changed = {}
    for name, (before, after) in texts.items():
        file = folder / name
        if not file.exists():
            file.write_bytes(before)
        source = Source.from_bytes(before, name)
        changed[name] = (source, Source(name, after, source.encoding))
    written, errors = fixer.write(changed, groups, folder)
    return written, [f"{error.path}: {error.message}" for error in errors]


def test_files_of_a_group_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"other\n")
    written, errors = write(tmp_path, [frozenset({"a", "b"})], a=(b"a\n", "A\n"), b=(b"b\n", "B\n"), c=(b"c\n", "C\n"))
    assert written == {"c"}
    assert errors == [
        "b: cannot write the fixed file: it was changed by someone else meanwhile",
        "a: not written, since b could not be",
    ]
    assert [(tmp_path / name).read_bytes() for name in "abc"] == [b"a\n", b"other\n", b"C\n"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b", "c"]


def test_a_character_that_the_encoding_lacks_is_an_error(tmp_path: Path) -> None:
    before = b"# coding: latin-1\nx = '\xe9'\n"
    written, errors = write(tmp_path, [], a=(before, "# coding: latin-1\nx = '\u65e5'\n"))
    assert written == set()
    assert errors == ["a: cannot write the fixed file: its encoding latin-1 cannot hold '\u65e5'"]
    assert (tmp_path / "a").read_bytes() == before


def test_a_diff_keeps_odd_line_ends_in_their_lines() -> None:
    before = Source("a.py", "x = 1\x0c\ny = 2\u2028\r\nz = 3")
    after = Source("a.py", "x = 1\x0c\ny = 4\u2028\r\nz = 3")
    assert "".join(fixer.unified_diff(before, after)) == (
        "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n x = 1\x0c\n-y = 2\u2028\r\n+y = 4\u2028\r\n z = 3\n"
        "\\ No newline at end of file\n"
    )


def test_replacements_sort_by_place() -> None:
    assert sorted([Replacement(2, 3, ""), Replacement(1, 9, "")])[0].start == 1
