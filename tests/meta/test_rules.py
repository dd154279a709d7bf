"""Every rule is registered, documented and speaks as the others do."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
from pallas_lint.rules.registry import FORMER_NAMES, OPT_IN, PREVIEW, RULES

from pallas_lint import compat
from pallas_lint.finding import Finding, Severity
from pallas_lint.fixes.migration import advice
from pallas_lint.ruleset.registry import RuleEntry, all_rules, resolve
from pallas_lint.ruleset.rule import Rule
from pallas_lint.testing import MARK, lint

PROPER_NAMES = {"Pallas", "Triton", "Mosaic", "Python"}
FOLDER = Path(__file__).resolve().parents[2] / "rules"
ENTRIES = list(all_rules().values())
# Families are numbered as in the catalogue.
FAMILIES = {
    "0": "file", "1": "lowering", "2": "layout", "3": "specs", "4": "results", "5": "tracing", "6": "debugging",
    "7": "versions", "8": "cost", "9": "probe", "91": "devices",
}  # fmt: skip


def test_texts_name_only_rules_that_exist() -> None:
    assert set(RULES) >= OPT_IN | PREVIEW


def test_names_that_rules_had_before_still_name_them() -> None:
    assert FORMER_NAMES
    for name, code in FORMER_NAMES.items():
        assert resolve(name) == {code}
        assert all(entry.name != name for entry in all_rules().values())


def test_the_registry_is_the_files() -> None:
    modules = {
        ".".join(file.relative_to(FOLDER).with_suffix("").parts)
        for file in FOLDER.glob("*/*.py")
        if file.stem != "__init__" and not file.stem.startswith("_")
    }
    holding = {
        module
        for module in modules
        if any(
            isinstance(value, type) and issubclass(value, Rule) and value.__module__.endswith(module)
            for value in vars(importlib.import_module(f"pallas_lint.rules.{module}")).values()
        )
    }
    assert holding == {module for _, module in RULES.values()}
    assert list(RULES) == sorted(RULES)
    names = [name for name, _ in RULES.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
class TestRule:
    def test_is_as_in_the_registry(self, entry: RuleEntry) -> None:
        assert (entry.rule.code, entry.rule.name) == (entry.code, entry.name)
        assert re.fullmatch(r"PAL\d{3}", entry.code)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.name)
        assert entry.module.split(".")[-2] == (FAMILIES.get(entry.code[3:5]) or FAMILIES[entry.code[3]])
        assert entry.module.split(".")[-1] == entry.name.replace("-", "_")
        assert isinstance(entry.rule.severity, Severity)

    def test_is_documented(self, entry: RuleEntry) -> None:
        page = inspect.cleandoc(entry.rule.__doc__ or "")
        summary, blank, *_ = page.split("\n")
        assert summary.endswith(".") and len(summary) <= 110
        assert not blank, "the summary is one line"
        sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
        wanted = ["How to fix", *(["Fix safety"] if entry.rule.fix else []), "Known limits"]
        assert [section for section in sections if section in wanted] == wanted
        more = {"Options", "References", *(["How much it matters"] if entry.code.startswith("PAL8") else [])}
        assert set(sections) <= {"How to fix", "Fix safety", "Known limits"} | more

    def test_messages_follow_the_style(self, entry: RuleEntry) -> None:
        findings = [
            finding for example in entry.rule.invalid for finding in found(example.code, example.jax, example.target)
        ]
        findings = [finding for finding in findings if finding.code == entry.code]
        assert findings or entry.rule.probe_only
        for finding in findings:
            message = finding.message
            first = message[0]
            proper = message.split()[0].isupper() or message.split()[0] in PROPER_NAMES
            assert first == "`" or first.islower() or first.isdigit() or proper, message
            assert not message.endswith((".", "!")), message
            assert message.count("`") % 2 == 0, message
            assert "\n" not in message and len(message) <= 160, message
            assert not re.search(r"\b(please|should|consider)\b", message, re.IGNORECASE), message
            assert finding.help or finding.fixes, f"{message}: says nothing of what to do"
            assert not re.match(r"[A-Z][a-z]", finding.help), finding.help
            assert not finding.help.endswith((".", "!")) and finding.help.count("`") % 2 == 0, finding.help
            assert len(finding.help) <= 200, finding.help
            assert all(fix.title[0].islower() or fix.title[0] == "`" for fix in finding.fixes)


@pytest.mark.parametrize("replacement", compat.replacements(), ids=lambda each: f"{each.old}.{each.keyword}")
def test_old_names_have_replacements(replacement: compat.ApiReplacement) -> None:
    reported = advice(replacement)
    assert reported.count("`") % 2 == 0 and not reported.endswith(".") and not reported[0].isupper(), reported
    assert replacement.how == "manual" or "`" in reported, f"{reported}: names nothing to write"


def found(code: str, jax: str | None, target: str | None) -> list[Finding]:
    text = "\n".join(line.rstrip().removesuffix(MARK) for line in inspect.cleandoc(code).splitlines())
    return lint(text, jax, target)


@pytest.mark.parametrize("entry", all_rules().values(), ids=lambda entry: entry.code)
def test_jax_issues_are_links(entry: RuleEntry) -> None:
    unlinked = re.sub(r"\[\d+\]\([^)]*\)", "", entry.docs())
    assert not re.search(r"(?<![/-])\bjax\s+(?:issues?\s+)?\d{4,6}\b|; issue \d", unlinked)
