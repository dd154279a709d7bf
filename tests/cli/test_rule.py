"""`rule`: explaining rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocation import Ran

    Lint = Callable[..., Ran]


def test_a_rule_by_code_or_name(lint: Lint) -> None:
    by_code = lint("rule", "PAL301")
    assert by_code.status == 0
    assert by_code.out.startswith("PAL301 index-map-element-offset [error, safe fix, since 0.1.0]\n")
    assert "pl.Element" in by_code.out
    assert lint("rule", "index-map-element-offset") == by_code


def test_rules_as_json(lint: Lint) -> None:
    one = json.loads(lint("rule", "PAL301", "--output-format", "json").out)
    assert set(one) == {"code", "name", "severity", "fix", "since", "preview", "summary", "url", "docs"}
    every = json.loads(lint("rule", "--all", "--output-format", "json").out)
    assert one in every
    assert [rule["code"] for rule in every] == sorted(rule["code"] for rule in every)


@pytest.mark.slow
def test_rules_as_markdown(lint: Lint) -> None:
    page = lint("rule", "PAL301", "--output-format", "markdown").out
    assert page.startswith("# PAL301")
    assert page in lint("rule", "--all", "--output-format", "markdown").out


def test_pages_and_the_list_fit_the_terminal(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (200, 80, 40):
        monkeypatch.setenv("COLUMNS", str(columns))
        page = lint("rule", "PAL402").out
        assert "\n\n\n" not in page
        for text in (page, lint("rule").out):
            assert max(map(len, text.splitlines())) <= columns
    assert "\nPAL002 unused-suppression warning fix\n" in lint("rule").out


def test_the_list_of_rules(lint: Lint) -> None:
    ran = lint("rule")
    assert ran.status == 0
    assert any(line.startswith("PAL301  index-map-element-offset") for line in ran.out.splitlines())


def test_on_a_terminal_the_page_is_formatted(lint: Lint) -> None:
    assert "\x1b[" in lint("rule", "PAL301", "--color", "always").out


def test_an_unknown_rule_names_the_nearest(lint: Lint) -> None:
    ran = lint("rule", "index-map-element-ofset")
    assert ran.status == 2
    assert "index-map-element-offset" in ran.err
    assert ran.err.count("\n") == 1
