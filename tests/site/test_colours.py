"""Severities, verdicts and memories have the same colours wherever they are shown, and can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pallas_lint.memories import KINDS

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("bad", "warn", "good")


def colours(file: str, start: str) -> dict[str, str]:
    """The colours that a block of a style sheet gives, by name."""
    _, _, after = (ROOT / file).read_text(encoding="utf-8").partition(start)
    assert after, start
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", after[: after.index("}")]))


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


LIGHT = (
    colours("docs/assets/site.css", '[data-md-color-scheme="default"]'),
    colours("pallas_lint/probe/assets/report.css", ":root"),
    colours("vscode-extension/view/panel.css", "body.vscode-light,"),
)
DARK = (
    colours("docs/assets/site.css", '[data-md-color-scheme="slate"]'),
    colours("pallas_lint/probe/assets/report.css", "prefers-color-scheme: dark"),
    colours("vscode-extension/view/panel.css", "body.vscode-dark,"),
)


@pytest.mark.parametrize("places", [LIGHT, DARK], ids=["light", "dark"])
def test_documentation_report_and_panel_agree(places: tuple[dict[str, str], ...]) -> None:
    shown = [[place[name] for name in NAMES] for place in places]
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize(("places", "paper"), [(LIGHT, "#ffffff"), (DARK, "#1f1f1f")], ids=["light", "dark"])
def test_they_can_be_read(places: tuple[dict[str, str], ...], paper: str) -> None:
    site = places[0]
    for name in (*NAMES, "note"):
        assert contrast(site[name], paper) >= 4.5, name
        assert contrast(site[name], site[f"on-{name}"]) >= 4.5, name


@pytest.mark.parametrize(
    ("theme", "places", "papers"),
    [("light", LIGHT, ["#ffffff"]), ("dark", DARK, ["#1f1f1f", "#000000"])],
    ids=["light", "dark"],
)
def test_memories_have_the_editor_s_colours(theme: str, places: tuple[dict[str, str], ...], papers: list[str]) -> None:
    contributed = json.loads((ROOT / "vscode-extension/package.json").read_text(encoding="utf-8"))["contributes"][
        "colors"
    ]
    editor = {each["id"]: each["defaults"] for each in contributed}
    contrasting = {"light": "highContrastLight", "dark": "highContrast"}[theme]
    for kind in KINDS:
        colour = editor.pop(f"pallasLint.{kind}Foreground")
        assert colour[theme] == colour[contrasting] == places[0][kind] == places[1][kind], kind
        assert all(contrast(colour[theme], paper) >= 4.5 for paper in papers), kind
    assert not editor
