"""Prepare a release: `python tools/release.py 0.1.0` writes its version and date, tests, and prints what is left to do.

The version goes wherever one stands, and what the changelog has under _Unreleased_ becomes the section of the version.
Nothing is committed, tagged or sent.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent.parent
NUMBER = r"\d+\.\d+\.\d+"
# The places of the version: pattern of what stands before it, and how often that is there.
VERSIONS = {
    "pallas_lint/__init__.py": (r'^__version__ = "', 1),
    "pyproject.toml": (r'^version = "', 1),
    "CITATION.cff": (r"^version: ", 1),
    "vscode-extension/package.json": (r'^  "version": "', 1),
    "vscode-extension/package-lock.json": (r'"name": "pallas-lint",\n +"version": "', 2),
}
RULES = "tools/released_rules.json"  # codes by the version that brought them: what `since` of a rule must be
# Texts that hold as long as nothing is published.
BEFORE = re.compile(r"checkout; or git\+|[Ff]rom a checkout|in a checkout|once there is|no release yet|git\+https")


class ReleaseError(Exception):
    """Why this cannot be released."""


def key(version: str) -> tuple[int, ...]:
    """Sort key of a version."""
    return tuple(map(int, version.split(".")))


def replaced(pattern: str, new: str, text: str, times: int, name: str) -> str:
    """The text with `new` for what the pattern finds, which has to be there so often."""
    text, found = re.subn(pattern, new, text, flags=re.MULTILINE)
    if found != times:
        raise ReleaseError(f"{name}: the version is written {found} times there instead of {times}")
    return text


def dated(changelog: str, version: str, day: str) -> str:
    """The changelog with what is unreleased as the section of a version, below an empty one."""
    versions = re.findall(rf"^## \[({NUMBER})\]", changelog, re.MULTILINE)
    if versions and key(version) <= key(versions[0]):
        raise ReleaseError(f"CHANGELOG.md: {versions[0]} is there, and {version} is not newer")
    start, heading, rest = changelog.partition("## [Unreleased]\n")
    section = rest.partition("\n## [")[0]
    first = section.find("### ")
    if not heading or first < 0:
        raise ReleaseError("CHANGELOG.md has nothing under Unreleased")
    # What stands there before the first heading is about the time before the release.
    return f"{start}{heading}\n## [{version}] - {day}\n\n{rest[first:]}"


def with_new_rules(released: str, version: str, since: Mapping[str, str]) -> str:
    """The list of released rules with those that a version brings. Raises ReleaseError for another `since`."""
    listed: dict[str, list[str]] = json.loads(released)
    known = {code for codes in listed.values() for code in codes}
    new = {code: stated for code, stated in since.items() if code not in known}
    for code, stated in new.items():
        if stated != version:
            raise ReleaseError(f"{code} is new in {version}, but has `since = {stated!r}`")
    return json.dumps({**listed, version: sorted(new)} if new else listed, indent=2) + "\n"


def prepare(root: Path, version: str, day: str, since: Mapping[str, str]) -> dict[str, str]:
    """The files that change, by path. `since`: that of each rule, by code. Raises ReleaseError."""
    if not re.fullmatch(NUMBER, version):
        raise ReleaseError(f"{version} is no version of three numbers")
    texts = {name: (root / name).read_text(encoding="utf-8") for name in VERSIONS}
    for name, (before, times) in VERSIONS.items():
        texts[name] = replaced(rf"({before}){NUMBER}", rf"\g<1>{version}", texts[name], times, name)
    citation = re.sub(r"^date-released: .*\n", "", texts["CITATION.cff"], flags=re.MULTILINE)
    texts["CITATION.cff"] = citation.replace(f"version: {version}\n", f"version: {version}\ndate-released: {day}\n")
    name = "CHANGELOG.md"
    texts[name] = dated((root / name).read_text(encoding="utf-8"), version, day)
    texts[RULES] = with_new_rules((root / RULES).read_text(encoding="utf-8"), version, since)
    name = "vscode-extension/CHANGELOG.md"
    if f"\n## {version}\n" not in (text := (root / name).read_text(encoding="utf-8")):
        raise ReleaseError(f"{name} has no section ## {version}")
    texts[name] = text.replace(f"\n## {version}\n", f"\n## {version} - {day}\n")
    return texts


def git(*arguments: str) -> str:
    """Output of git for this repository."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def texts_of_before(root: Path) -> list[str]:
    """Lines of what people read that hold only until there is a release."""
    return [
        f"{file.relative_to(root).as_posix()}:{number}: {line.strip()}"
        for file in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if BEFORE.search(line)
    ]


def main() -> None:
    """Prepare the release, or print why not."""
    parser = argparse.ArgumentParser(description="Prepare a release.")
    parser.add_argument("version")
    parser.add_argument("--date", default=datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat())
    options = parser.parse_args()
    tag = f"v{options.version}"
    try:
        if git("status", "--porcelain"):
            raise ReleaseError("there are changes that are not committed")
        if git("tag", "--list", tag):
            raise ReleaseError(f"there is a tag {tag}")
        since = {code: entry.rule.since for code, entry in all_rules().items() if entry.package is None}
        for name, text in prepare(ROOT, options.version, options.date, since).items():
            (ROOT / name).write_text(text, encoding="utf-8")
    except ReleaseError as error:
        sys.exit(f"no release: {error}")
    tests = ["tests/meta/test_release.py", "tests/extension"]
    if subprocess.run([sys.executable, "-m", "pytest", *tests], cwd=ROOT, check=False).returncode:
        sys.exit("no release: the tests of what is published fail; `git checkout .` takes the changes back")
    print(f"\n{options.version}, of {options.date}. These hold only until it is on PyPI:")
    print(*(f"    {line}" for line in texts_of_before(ROOT)), sep="\n")
    print("Look at `git diff`; what is left to do:")
    print(f"    .ci/run && git commit -am 'Release {options.version}'")
    print(f"    git tag {tag} && git push origin HEAD {tag}")


if __name__ == "__main__":
    main()
