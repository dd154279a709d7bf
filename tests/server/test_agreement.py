"""The server says what the command line says: pushed, requested, and as JSON; and it outlives a rule that fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import make_test_lsp_client

from pallas_lint.finding import ELSEWHERE
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.text.source import Source
from tests.sampling import NIGHT, by_day
from tests.server.clients import codes, document, session
from tests.server.test_protocol import CODE

ROOT = Path(__file__).resolve().parents[2]
SEVERITIES = {"error": 1, "warning": 2, "info": 3}


def samples() -> dict[str, str]:
    """The repository's examples, and the first of each rule (by day of one in four), by the name of a file."""
    found = {file.name: file.read_text(encoding="utf-8") for file in sorted((ROOT / "examples").rglob("*.py"))}
    for code, entry in by_day(all_rules().items()):
        for example in entry.rule.invalid[:1]:
            found[f"{code.lower()}.py"] = example.code.replace("#!", "")
    return found


def at_each_place(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The findings of which a run reports one for a whole project, as editors show them: each where it is."""
    found = []
    for each in findings:
        repeated = [place for place in each["related"] if place["message"] == ELSEWHERE and each["code"] == "PAL701"]
        message = re.sub(r" \(\d+ more places?\)$", "", each["message"]) if repeated else each["message"]
        found.append({**each, "message": message})
        found += [{**found[-1], **{key: place[key] for key in ("path", "start", "end")}} for place in repeated]
    return found


def as_shown(finding: dict[str, Any], source: Source) -> tuple[Any, ...]:
    """A finding of the JSON format as a client sees it: lines from 0, columns in UTF-16."""

    def place(at: dict[str, int]) -> tuple[int, int]:
        before = source.line(at["line"])[: at["column"] - 1]
        return at["line"] - 1, len(before.encode("utf-16-le")) // 2

    text = f"{finding['message']}\n{finding['help']}" if finding["help"] else finding["message"]
    return (place(finding["start"]), place(finding["end"]), finding["code"], SEVERITIES[finding["severity"]], text)


def shown(found: list[lsp.Diagnostic]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            (each.range.start.line, each.range.start.character),
            (each.range.end.line, each.range.end.character),
            each.code,
            int(each.severity or 0),
            each.message,
        )
        for each in found
    )


@pytest.mark.slow
async def test_pushed_pulled_and_as_json(tmp_path: Path) -> None:
    for name, text in samples().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pallas_lint", "--output-format", "json", "--no-cache", "--jobs", "1", "."]
    ran = subprocess.run(
        [*command, "--jax-version", "0.10.2"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    findings = at_each_place(json.loads(ran.stdout)["findings"])
    assert len(findings) > (50 if NIGHT else 20)
    async with session("minimal", tmp_path, options={"jaxVersion": "0.10.2"}) as editor:
        for name, text in samples().items():
            editor.open((tmp_path / name).as_uri(), text)
        for name in samples():
            await editor.pulled((tmp_path / name).as_uri())
        # Only now all is known: kernels in one file may have findings in another.
        for name, text in samples().items():
            uri, source = (tmp_path / name).as_uri(), Source(name, text)
            expected = sorted(as_shown(each, source) for each in findings if each["path"] == name)
            assert shown(await editor.pulled(uri)) == expected, name
            assert shown(await editor.pushed(uri)) == expected, name


RANGE = """\
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def f(body, mesh):
    return pl.kernel(body, mesh=mesh, compiler_params=pltpu.CompilerParams())
"""


async def test_the_effective_minimum_is_one_finding_for_both(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(RANGE)
    command = [sys.executable, "-m", "pallas_lint", "--output-format", "json", "--no-cache", "k.py"]
    ran = subprocess.run(
        [*command, "--jax-version", ">=0.4"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    expected = sorted(as_shown(each, Source("k.py", RANGE)) for each in json.loads(ran.stdout)["findings"])
    (minimum,) = [message for _, _, code, _, message in expected if code == "PAL703"]
    assert "the effective minimum is jax 0.8.1 (1 more use of" in minimum
    async with session("minimal", tmp_path, options={"jaxVersion": ">=0.4"}) as editor:
        uri = (tmp_path / "k.py").as_uri()
        editor.open(uri, RANGE)
        assert shown(await editor.pulled(uri)) == expected


PLUGIN = """\
from pallas_lint.ruleset.registry import all_rules

rule = all_rules()["PAL101"].rule
checked = rule.check_op


def check_op(self, op, context):
    raise RuntimeError("the rule fails")


rule.check_op = check_op
"""
FAILING = (
    "import runpy, sys, failing; sys.argv = ['pallas-lint', 'server']; "
    "runpy.run_module('pallas_lint', run_name='__main__')"
)


@pytest.mark.slow
@pytest.mark.parametrize("times", [3])
async def test_a_failing_rule_is_reported_once_and_the_server_lives(tmp_path: Path, times: int) -> None:
    (tmp_path / "failing.py").write_text(PLUGIN)
    client = make_test_lsp_client()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    await client.start_io(sys.executable, "-c", FAILING, env=environment)
    try:
        await client.initialize_session(
            lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), initialization_options={"jaxVersion": "0.10.2"})
        )
        for number in range(times):
            uri = (tmp_path / f"k{number}.py").as_uri()
            item = lsp.TextDocumentItem(uri=uri, language_id="python", version=1, text=CODE)
            client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
            report = await client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(document(uri)))
            # The other rules go on.
            assert codes(report.items) == ["PAL301"]  # type: ignore[union-attr]
        reported = [each.message for each in client.messages]
        assert len(reported) == 1 and "the rule fails" in reported[0]
        assert any("check_op" in each.message for each in client.log_messages)
        await client.shutdown_session()
    finally:
        await client.stop()
