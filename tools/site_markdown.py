"""Pages as Markdown for programs, each beside its HTML, and `llms.txt`, which lists them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SNIPPET = re.compile(r'^--8<-- "([^":]+)(?::(\w+))?"$', re.MULTILINE)


def add_markdown(docs: Path, site: Path, settings: dict[str, Any], repository: Path) -> None:
    """Write `page.md` for each page of `docs` into `site`, with snippets filled in, and `llms.txt`."""
    for page in sorted(docs.rglob("*.md")):
        target = site / page.relative_to(docs)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = page.read_text(encoding="utf-8")
        target.write_text(_SNIPPET.sub(lambda found: _snippet(repository / found[1], found[2]), text), "utf-8")
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}", ""]
    lines += [f"- [{title}]({settings['site_url']}{path})" for title, path in _pages(settings["nav"])]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    skill = site / "skills" / "pallas-lint" / "SKILL.md"
    skill.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(repository / "skills" / "pallas-lint" / "SKILL.md", skill)


def _snippet(file: Path, section: str | None) -> str:
    """A file, or the section between its marks; of pictures nothing."""
    if file.suffix == ".svg":
        return ""
    text = file.read_text(encoding="utf-8")
    if section is None:
        return text
    _, _, rest = text.partition(f"[start:{section}]\n")
    lines = rest.partition(f"[end:{section}]")[0].splitlines()
    return "\n".join(line for line in lines if "--8<--" not in line)


def _pages(navigation: list[Any]) -> Iterator[tuple[str, str]]:
    """Title and path of each page, in the order of the navigation."""
    for entry in navigation:
        for title, below in entry.items() if isinstance(entry, dict) else [("", entry)]:
            if isinstance(below, list):
                yield from _pages(below)
            else:
                yield title or Path(below).stem, below
