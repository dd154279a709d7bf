"""Build the documentation: `python tools/site.py`, into build/site; `serve` shows it and follows what is edited.

The pages of docs/ and those that `site_pages` makes are put together in a temporary folder with the settings of
mkdocs.yml, and Zensical makes a site of them there, with llms.txt and the pages as Markdown beside it. A link, picture
or page of the navigation that leads nowhere fails, and so does a page that is not in the navigation.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from site_links import dead_ends, unlisted
from site_markdown import add_markdown
from site_pages import generators, rules_in_navigation
from watchfiles import watch

if TYPE_CHECKING:
    from collections.abc import Sequence

_REPOSITORY = Path(__file__).resolve().parent.parent
_DOCS = _REPOSITORY / "docs"
_ZENSICAL = (sys.executable, "-m", "zensical")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build or serve; the exit status is 1 where a link leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("what", nargs="?", choices=["build", "serve"], default="build")
    parser.add_argument("--to", type=Path, default=_REPOSITORY / "build" / "site", metavar="FOLDER")
    parser.add_argument("--offline", action="store_true", help="pages that can be opened as files")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        _put_together(root, offline=options.offline)
        return _serve(root) if options.what == "serve" else _build(root, options.to)


def _put_together(root: Path, *, offline: bool) -> None:
    """Settings and all pages; what has not changed is not written, so that `serve` builds only what has."""
    (root / "mkdocs.yml").write_text(yaml.safe_dump(_settings(offline=offline), sort_keys=False), encoding="utf-8")
    pages: dict[str, bytes] = {path: generate().encode() for path, generate in generators().items()}
    for file in _DOCS.rglob("*"):
        if file.is_file() and not file.name.endswith(".in.md"):
            pages[file.relative_to(_DOCS).as_posix()] = file.read_bytes()
    for path, content in pages.items():
        page = root / "docs" / path
        if not page.exists() or page.read_bytes() != content:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_bytes(content)


def _settings(*, offline: bool) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((_REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    settings["nav"] = [{"Rules": rules_in_navigation()} if "Rules" in entry else entry for entry in settings["nav"]]
    for extension in settings["markdown_extensions"]:
        if "pymdownx.snippets" in extension:
            extension["pymdownx.snippets"]["base_path"] = [str(_REPOSITORY)]
    if offline:
        settings["plugins"].append("offline")
    return settings


def _build(root: Path, target: Path) -> int:
    made = subprocess.run([*_ZENSICAL, "build", "--strict", "-f", str(root / "mkdocs.yml")], check=False)
    if made.returncode:
        return made.returncode
    settings = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    add_markdown(root / "docs", root / "site", settings, _REPOSITORY)
    wrong = [*dead_ends(root / "site"), *unlisted(root / "docs", settings["nav"])]
    if not wrong:
        if target == _REPOSITORY / "build" / "site":
            shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(root / "site", target, dirs_exist_ok=True)
    print("\n".join(wrong) or f"built {target}")
    return 1 if wrong else 0


def _serve(root: Path) -> int:
    with subprocess.Popen([*_ZENSICAL, "serve", "-f", str(root / "mkdocs.yml")]) as serving:
        try:
            for _ in watch(_DOCS, _REPOSITORY / "CHANGELOG.md", _REPOSITORY / "mkdocs.yml", raise_interrupt=False):
                _put_together(root, offline=False)
        finally:
            serving.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
