"""Links and pictures of a built site that lead nowhere, and pages to which nothing leads: Zensical reports neither."""

from __future__ import annotations

import functools
import os
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Navigation = Iterable["str | dict[str, str | Navigation]"]


def dead_ends(site: Path) -> list[str]:
    """A line for each page, picture or heading that is linked to and not in `site`."""
    pages: dict[str, list[str]] = {}
    # The links of 404.html begin at the root of the host.
    for page in sorted(each for each in site.rglob("*.html") if each.name != "404.html"):
        for target in sorted({link for link in map(functools.partial(_dead_end, page), _read(page).links) if link}):
            name = Path(os.path.relpath(target, site.resolve())).as_posix()
            pages.setdefault(name, []).append(page.relative_to(site).as_posix())
    return [f"{name} is not there: linked from {_first(linked)}" for name, linked in sorted(pages.items())]


def unlisted(docs: Path, navigation: Navigation) -> list[str]:
    """A line for each page in the folder `docs` that is nowhere in the navigation."""
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    return [f"{page} is in no navigation: mkdocs.yml" for page in sorted(pages - set(_listed(navigation)))]


def _listed(navigation: Navigation) -> Iterator[str]:
    for entry in navigation:
        if isinstance(entry, str):
            yield entry
            continue
        for what in entry.values():
            yield from [what] if isinstance(what, str) else _listed(what)


def _first(pages: list[str]) -> str:
    return pages[0] if len(pages) == 1 else f"{pages[0]} and {len(pages) - 1} more"


class _Reader(HTMLParser):
    """What a page links to and what in it can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


@functools.cache
def _read(page: Path) -> _Reader:
    reader = _Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def _dead_end(page: Path, link: str) -> str | None:
    """The target of a link, if nothing is there."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return str(target)
    fragment = unquote(parts.fragment)
    return None if target.suffix != ".html" or fragment in _read(target).anchors else f"{target}#{fragment}"
