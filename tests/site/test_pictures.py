"""Pictures that are made from what the program prints show what it prints today."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path

import pytest

from tests.rules.interpreted import python

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
pytestmark = pytest.mark.slow


def words(picture: Path) -> str:
    """What is written in a picture, without its colours and places."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    text = " ".join(html.unescape(" ".join(found)).split())
    return re.sub(r"jax [\d.]+ \([^)]*\)", "jax", text)  # the one of this environment


@pytest.mark.nightly
def test_they_are_as_they_would_be_made_now(tmp_path: Path) -> None:
    subprocess.run([python(), "tools/pictures.py", str(tmp_path)], cwd=ROOT, check=True)
    made = sorted(tmp_path.glob("*.svg"))
    assert made
    assert {picture.name: words(IMAGES / picture.name) for picture in made} == {each.name: words(each) for each in made}
