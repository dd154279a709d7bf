"""The text reports: what they look like, and that no source line can spoil them."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pallas_lint import report
from pallas_lint.config.targets import JaxVersions
from pallas_lint.finding import Edit, Finding, Fix, LintError, Position, Related, Severity, Span
from pallas_lint.launch_summary import LaunchSummary
from pallas_lint.records import evolve
from pallas_lint.report import Assumed, Report
from pallas_lint.report.full import MAX_LINE_WIDTH, underline
from pallas_lint.report.style import Style, text_width, visible
from pallas_lint.text.source import Source
from tests.sampling import examples

TEXT = """\
def kernel(x_ref, o_ref):
    m = x_ref[...]
    o_ref[...] = jnp.where(
        jnp.isfinite(m),
        m,
        0.0,
    )


def run(x):
    return pl.pallas_call(kernel, out_shape=x)(x)
"""


def span(line: int, column: int, end_line: int, end_column: int) -> Span:
    return Span("src/k.py", Position(line, column), Position(end_line, end_column))


FINDING = Finding(
    "PAL103",
    "isfinite-unsupported",
    Severity.ERROR,
    "`is_finite` has no lowering in Triton before jax 0.8",
    span(4, 9, 4, 24),
    help="compare with infinity",
    kernel="kernel",
    backend="triton",
    device="rocm",
    jax="0.4.35",
    related=(Related(span(11, 12, 11, 50), "launched here"),),
    fixes=(Fix("Replace by `jnp.abs(m) < jnp.inf`", "safe", (Edit(span(4, 9, 4, 24), "x"),)),),
)


def render(output_format: str, *findings: Finding, text: str = TEXT, **options: object) -> str:
    source = Source("src/k.py", text)
    given = Report(
        findings=findings,
        files=2,
        source_line=lambda path, number, cell=None: source.line(number) if path == source.path else None,
        **{"kernels": 1, **options},  # type: ignore[arg-type]
    )
    return "".join(report.render(output_format, given))


def test_findings_of_a_launch_are_together() -> None:
    """Findings that are about no launch come first; of each launch its findings, their charts, and its stages."""
    first, second, apart = (evolve(FINDING, message=message, fixes=()) for message in ("alpha", "beta", "gamma"))
    launched = [("a.py:9: other", [second]), ("a.py:1: kernel", [first])]
    chart = {("PAL103", "kernel", "alpha"): ["device 0", "read :4 <- too early"]}
    shown = render("full", first, second, apart, launched=launched, charts=chart)
    order = ["gamma", "beta", "a.py:9", "alpha", "as it can happen", "read :4 <- too early", "a.py:1", "Found 3"]
    assert [shown.index(words) for words in order] == sorted(map(shown.index, order))
    quiet = render("full", first, second, launched=launched, quiet=True)
    assert "a.py:9" not in quiet and quiet.index("alpha") < quiet.index("beta")


def test_full() -> None:
    assert (
        render("full", FINDING)
        == """\
src/k.py:4:9 PAL103 isfinite-unsupported [error]
  `is_finite` has no lowering in Triton before jax 0.8
  3 |     o_ref[...] = jnp.where(
  4 |         jnp.isfinite(m),
    |         ^^^^^^^^^^^^^^^
    :: launched here: src/k.py:11:12
 11 |     return pl.pallas_call(kernel, out_shape=x)(x)
    |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    = for: kernel kernel, triton:rocm, jax 0.4.35
    = help: compare with infinity
    = fix: Replace by `jnp.abs(m) < jnp.inf` (--fix)

Found 1 finding (1 error) in 1 kernel, 2 files; 1 fixable with --fix.
"""
    )


def test_full_of_several_lines() -> None:
    finding = Finding("PAL304", "kernel-arity", Severity.WARNING, "m", span(3, 18, 7, 6))
    assert (
        render("full", finding, quiet=True)
        == """\
src/k.py:3:18 PAL304 kernel-arity [warning]
  m
 2 |     m = x_ref[...]
 3 |     o_ref[...] = jnp.where(
   |                  ^^^^^^^^^^
 4 |         jnp.isfinite(m),
   |         ^^^^^^^^^^^^^^^^
 5 |         m,
   |         ^^
 6 |         0.0,
   |         ^^^^
 7 |     )
   |     ^

"""
    )


def test_a_long_span_is_cut() -> None:
    finding = Finding("PAL304", "n", Severity.WARNING, "m", span(1, 1, 11, 50))
    out = render("full", finding, quiet=True)
    assert "...\n 11 |" in out
    assert out.count("|\n") + out.count("| ") < 16


def test_full_without_the_source() -> None:
    finding = Finding("PAL304", "n", Severity.INFO, "m", Span("gone.py", Position(3, 1), Position(3, 4)))
    assert render("full", finding, quiet=True) == "gone.py:3:1 PAL304 n [info]\n  m\n\n"


def test_concise() -> None:
    assert render("concise", FINDING, quiet=True) == (
        "src/k.py:4:9: PAL103 [error] `is_finite` has no lowering in Triton before jax 0.8 "
        "[kernel, triton:rocm, jax 0.4.35]\n"
    )


@pytest.mark.parametrize(
    ("findings", "options", "last"),
    [
        ([], {}, "No findings in 2 files.\n1 kernel judged\n"),
        ([], {"kernels": 0}, "No findings in 0 kernels, 2 files.\n"),
        ([], {"fixed": 2}, "No findings in 2 files. (2 findings fixed)\n1 kernel judged\n"),
        ([], {"quiet": True}, ""),
        ([], {"notes": ["something"]}, "No findings in 2 files.\nnote: something\n1 kernel judged\n"),
        ([], {"errors": [LintError("a", "m")], "files": 0}, ""),
        ([], {"errors": [LintError("a", "m")], "files": 1}, ""),
    ],
)
def test_footer(findings: list[Finding], options: dict[str, object], last: str) -> None:
    if "files" in options:
        given = Report(**options)  # type: ignore[arg-type]
        assert "".join(report.render("full", given)) == last
    else:
        assert render("full", *findings, **options) == last


SEEN = LaunchSummary("a.py", 3, 8, None, "kernel", "tpu:v5e", "as set", judged=True, shapes=True)
LOST = LaunchSummary("src/b.py", 40, 4, None, stopped="nothing that runs leads there", met=False)


@pytest.mark.parametrize(
    ("seen", "kernels", "last"),
    [
        ([SEEN], 1, "1 kernel judged for tpu:v5e, jax 0.10.2 (uv.lock); 1 with known shapes"),
        ([evolve(SEEN, shapes=False)], 1, "1 kernel judged for tpu:v5e, jax 0.10.2 (uv.lock); none with known shapes"),
        (
            [SEEN, evolve(SEEN, line=9, backend="triton"), LOST],
            2,
            "2 kernels judged for tpu:v5e, triton, jax 0.10.2 (uv.lock); of 3 launches 2 with known shapes, "
            "1 without a known backend, 1 not followed: src/b.py:40",
        ),
        (
            [evolve(LOST, line=line, backend="tpu", path="n.ipynb", cell=2) for line in range(1, 6)],
            0,
            "0 kernels judged for jax 0.10.2 (uv.lock); of 5 launches none with known shapes, "
            "5 not followed: n.ipynb:cell 2:1, n.ipynb:cell 2:2, n.ipynb:cell 2:3, …",
        ),
        (
            [evolve(SEEN, judged=False, why="imports; interpreted")],
            1,
            "1 kernel judged for jax 0.10.2 (uv.lock); 1 with known shapes",
        ),
    ],
)
def test_what_a_run_has_judged(seen: list[LaunchSummary], kernels: int, last: str) -> None:
    out = render("concise", seen=seen, kernels=kernels, jax=["jax 0.10.2 (uv.lock)"])
    assert out.splitlines()[-1] == last
    assert render("concise", seen=seen, kernels=kernels, quiet=True) == ""
    with_findings = render("concise", FINDING, seen=seen, kernels=kernels, jax=["jax 0.10.2 (uv.lock)"])
    assert with_findings.splitlines()[-1] == last.partition(" ")[2].partition(" ")[2], "the number stands above"


def test_footer_counts() -> None:
    place = span(1, 1, 1, 2)
    unsafe = Fix("t", "unsafe", ())
    findings = [
        FINDING,
        FINDING,
        Finding("A", "a", Severity.INFO, "m", place),
        Finding("A", "a", Severity.WARNING, "m", place, fixes=(unsafe,)),
    ]
    last = render("concise", *findings).splitlines()[-1]
    assert last == (
        "Found 4 findings (2 errors, 1 warning, 1 info) in 1 kernel, 2 files; "
        "2 fixable with --fix (1 more with --unsafe-fixes)."
    )
    assert render("concise", findings[3]).endswith("2 files; 1 fixable with --fix --unsafe-fixes.\n")


def test_an_assumed_version_is_a_note() -> None:
    assert "note: jax version unknown (no environment" in render("concise", FINDING, assumed=Assumed("0.12.0"))


def test_an_assumed_version_names_the_files_that_it_holds_for() -> None:
    reported = JaxVersions(("0.8.1",), exact=True, assumed=False, source="from uv.lock", text="0.8.1")
    unknown = JaxVersions(("0.12.0",), exact=True, assumed=True, source="newest known", text="0.12.0")
    judged = {f"{name}.py": unknown for name in "abcd"}
    assert Assumed.of({"t.py": reported}) is None
    assert Assumed.of(judged) == Assumed("0.12.0")
    two = render("concise", FINDING, assumed=Assumed.of({"a.py": unknown, "b.py": unknown, "t.py": reported}))
    assert "note: jax version unknown for 2 of 3 files, a.py, b.py (no environment" in two
    assert "for 4 of 5 files, a.py, b.py, c.py, … (no" in render(
        "concise", FINDING, assumed=Assumed.of({**judged, "t.py": reported})
    )


def test_json_end_to_end() -> None:
    given = Report([FINDING], [LintError("b.py", "no", 3)], 1, 1, [{"kernel": "k"}])
    document = json.loads("".join(report.render("json", given)))
    finding = document["findings"][0]
    assert (finding["start"], finding["end"]) == ({"line": 4, "column": 9}, {"line": 4, "column": 24})
    assert finding["related"] == [
        {
            "path": "src/k.py",
            "start": {"line": 11, "column": 12},
            "end": {"line": 11, "column": 50},
            "cell": None,
            "message": "launched here",
        }
    ]
    assert (finding["cell"], finding["dtype"], finding["origin"]) == (None, None, "static")
    assert document["errors"] == [{"path": "b.py", "line": 3, "message": "no"}]
    assert document["launches"] == [{"kernel": "k"}]


def test_tabs_wide_and_joined_characters_are_pointed_at() -> None:
    assert underline("\tx = 1", 1, 2) == ("    x = 1", "    ^")
    assert underline("a\tx", 2, 3) == ("a   x", "    ^")
    assert underline("日本 = x", 0, 2) == ("日本 = x", "^^^^")
    assert underline("日本 = x", 5, 6) == ("日本 = x", "       ^")
    assert underline("e\u0301 = x", 5, 6) == ("e\u0301 = x", "    ^")
    assert underline("🚀x", 1, 2) == ("🚀x", "  ^")
    assert underline("abc", 3, 3) == ("abc", "   ^")
    assert underline("abc", 1, 1) == ("abc", " ^")
    assert underline("", 0, 0) == ("", "^")


def test_a_line_without_end_is_cut_around_the_place() -> None:
    line, carets = underline("x" * 100_000 + "HERE" + "y" * 100_000, 100_000, 100_004)
    assert line.startswith("…x")
    assert line.endswith("y…")
    assert line[carets.index("^") : len(carets)] == "HERE"
    assert len(line) <= MAX_LINE_WIDTH + 6


def test_what_would_move_the_cursor_is_made_visible() -> None:
    assert visible("a\x1b[31m\r\u202eb\x7f\udce9") == "a\u241b[31m\u240d\ufffdb\u2421\ufffd"
    assert visible("é日🚀e\u0301") == "é日🚀e\u0301"
    finding = Finding("A", "n", Severity.ERROR, "m\x1b[2J", span(1, 1, 1, 2), help="\x1b", kernel="\x07")
    for output_format in ("full", "concise"):
        out = render(output_format, finding, text="\x1b[2J\u2066x\n")
        assert not set(out) & {"\x1b", "\x07", "\u2066"}


def test_colour_adds_nothing_but_colour() -> None:
    import re

    plain = render("full", FINDING)
    coloured = render("full", FINDING, style=Style(colour=True))
    assert coloured != plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


LINE = st.text(
    st.one_of(st.characters(exclude_characters="\n\r"), st.sampled_from("\t日🚀\u0301\u200d\x1b\x00\u3000")),
    max_size=300,
)


@examples(100)
@given(LINE, st.integers(0, 310), st.integers(0, 310))
@example("\u0301", 0, 1)
@example("\u200d" * 5 + "x", 0, 5)
def test_carets_stand_below_what_they_mean(text: str, begin: int, length: int) -> None:
    line, carets = underline(text, begin, begin + length)
    assert "\n" not in line
    assert set(carets) <= {" ", "^"}
    assert carets.count("^") >= 1
    if text_width(line) < MAX_LINE_WIDTH - 2 and "\t" not in text:
        begin, end = min(begin, len(text)), min(begin + length, len(text))
        left = text_width(visible(text[:begin]))
        assert carets.index("^") == left
        assert len(carets) == left + max(text_width(visible(text[begin : max(end, begin + 1)])), 1)


@examples(100)
@given(st.lists(LINE, min_size=1, max_size=9), st.data())
def test_no_text_spoils_a_report(lines: list[str], data: st.DataObject) -> None:
    source = Source("k.py", "\n".join(lines))
    start = data.draw(st.integers(0, len(source.text)))
    end = data.draw(st.integers(start, len(source.text)))
    place = Span("k.py", source.position(start), source.position(end))
    finding = Finding("PAL103", "n", Severity.ERROR, data.draw(LINE), place, related=(Related(place, "here"),))
    given = Report([finding], source_line=lambda path, number, cell=None: source.line(number))
    for output_format in report.FORMATS:
        "".join(report.render(output_format, given)).encode("ascii", "backslashreplace")
