"""Baselines and written suppressions, on whatever code and whatever files."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import assume, given
from hypothesis import strategies as st

from pallas_lint.cli import main
from pallas_lint.finding import Severity
from pallas_lint.report.lines import Lines
from pallas_lint.text.source import Source, SourceError
from pallas_lint.triage.baseline import Baseline, BaselineError
from tests.fuzz.texts import KERNELS, kernels, sensible
from tests.fuzz.verdicts import NOWHERE, circumstances, verdict
from tests.sampling import examples

if TYPE_CHECKING:
    from pallas_lint.finding import Finding

WHERE = (None, "0.4.35")


def lined(source: Source) -> Any:
    return Lines(NOWHERE, {source.path: source}).line


def findings_in(text: str) -> tuple[Source, list[Finding]]:
    source = Source("k.py", text)
    return source, list(verdict(source, *WHERE).findings)


@examples(20)
@given(kernels(), st.data())
def test_a_baseline_knows_what_was_written(text: str, data: st.DataObject) -> None:
    """After reading it back, and with comments above that were not there."""
    source, findings = findings_in(text)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known.json"
        Baseline(file).updated(findings, ["k.py"], NOWHERE, lined(source)).write(Path(folder))
        known = Baseline.read(file)
    assert known.split(findings, NOWHERE, lined(source)) == ([], len(findings))
    assert known.gone(findings, ["k.py"], NOWHERE, lined(source)) == 0
    assume(not text.startswith("\ufeff"))
    # Where a text does not parse, the place is the parser's guess.
    assume(all(finding.code != "PAL001" for finding in findings))
    moved, again = findings_in("# moved\n" * data.draw(st.integers(1, 3)) + text)
    # A file's first lines may mean something: an encoding, a docstring, a comment for the whole file.
    if [each.message for each in again] == [each.message for each in findings]:
        assert known.split(again, NOWHERE, lined(moved)) == ([], len(again))


OTHER = st.sampled_from(
    [None, True, 1, 2, -1, 10**30, 1.5, "", "x", "\0", "\ud800", "y" * 5000, [], [None], {}, {"a": 1}]
)
ROW = {"path": "k.py", "code": "PAL101", "name": "n", "message": "m", "fingerprint": "0" * 32}


@examples(60)
@given(st.data())
def test_any_baseline(data: st.DataObject) -> None:
    row = {**ROW, data.draw(st.sampled_from([*ROW, "more"])): data.draw(OTHER)}
    document: Any = {"version": 1, "tool": "0", "findings": [ROW, row]}
    changed = data.draw(st.sampled_from([document, document, {**document, "version": data.draw(OTHER)},
                                         {**document, "findings": data.draw(OTHER)}, data.draw(OTHER)]))  # fmt: skip
    text = json.dumps(changed).encode()
    at = data.draw(st.integers(0, len(text)))
    raw = data.draw(
        st.sampled_from([text, text, text[:at], text[:at] + b"\xff" + text[at:], b"[" * 100_000, b"9" * 5000])
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known.json"
        file.write_bytes(raw)
        try:
            known = Baseline.read(file)
        except BaselineError as error:
            assert error.message and "\n" not in error.message
            return
        known.gone([], ["k.py"], NOWHERE, lambda *_: None)
        known.updated([], ["k.py"], NOWHERE, lambda *_: None).write(Path(folder))
        assert Baseline.read(file)


_OURS = re.compile(
    r"^[ \t]*# pallas-lint: disable=PAL\d+(?:,PAL\d+)*(?:\r\n|\n|\r)|  # pallas-lint: disable=PAL\d+(?:,PAL\d+)*", re.M
)


@examples(15)
@given(sensible(2) | kernels(most=2) | st.sampled_from(KERNELS), circumstances)
def test_written_suppressions_silence_and_change_nothing(text: str, where: tuple[str | None, str]) -> None:
    target, jax = where
    assume("pallas-lint" not in text)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "k.py"
        file.write_bytes(text.encode())
        try:
            Source.read(file, "k.py")
        except SourceError:
            return
        options = ["--isolated", "--no-cache", "--jax-version", jax, *(["--target", target] if target else [])]
        status = main([*options, "--add-suppressions", "--quiet", str(file)])
        after = Source.read(file, "k.py")
        left = [
            finding
            for finding in verdict(Source("k.py", after.text), target, jax).findings
            if finding.severity is not Severity.INFO and not finding.code.startswith("PAL00")
        ]
    assert status in (0, 1)
    assert not left, left
    assert _OURS.sub("", after.data.decode()) == text
