"""The pages of the documentation are not published with links that lead nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PAGE = """<h1 id="top">Here</h1><a href="there/#known">a page</a> <a href="#top">a heading</a> <img src="picture.png">
<a href="https://docs.jax.dev/">elsewhere</a> <a href="mailto:someone@example.com">a letter</a>{}"""


def reported_of(site: Path, *wrong: str) -> list[str]:
    (site / "there").mkdir()
    (site / "picture.png").touch()
    also = "".join(wrong[:1]).replace('="', '="../')
    (site / "there" / "index.html").write_text(f'<h2 id="known">There</h2><a href="../">back</a>{also}')
    (site / "index.html").write_text(PAGE.format("".join(wrong)))
    program = "import sys, pathlib, site_links; print(*site_links.dead_ends(pathlib.Path(sys.argv[1])), sep='\\n')"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(site)], cwd=TOOLS, capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


def test_links_that_lead_somewhere(tmp_path: Path) -> None:
    assert reported_of(tmp_path) == [""]


def test_pages_headings_and_pictures_that_are_not_there(tmp_path: Path) -> None:
    assert reported_of(tmp_path, '<a href="gone/">', '<a href="there/#gone">', '<img src="gone.png">') == [
        "gone is not there: linked from index.html and 1 more",
        "gone.png is not there: linked from index.html",
        "there/index.html#gone is not there: linked from index.html",
    ]


def test_pages_that_nothing_leads_to(tmp_path: Path) -> None:
    for page in ("index.md", "start/first.md", "start/forgotten.md", "rules/PAL101.md", "picture.png"):
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).touch()
    navigation = [{"Home": "index.md"}, {"Start": [{"First": "start/first.md"}, "rules/PAL101.md"]}]
    program = "import sys, pathlib, site_links; print(*site_links.unlisted(pathlib.Path(sys.argv[1]), %r))"
    ran = subprocess.run(
        [sys.executable, "-c", program % navigation, str(tmp_path)],
        cwd=TOOLS,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "start/forgotten.md is in no navigation: mkdocs.yml\n"
