"""What a release is made of: one address, one version, and files that those who publish it request."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema

from pallas_lint import __version__
from pallas_lint.compat.versions import parse as parse_version
from pallas_lint.finding import DOCS_URL
from pallas_lint.ruleset.registry import all_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MANIFEST: dict[str, Any] = json.loads((ROOT / "vscode-extension" / "package.json").read_text(encoding="utf-8"))
WORKFLOWS = ROOT / ".github" / "workflows"
ADDRESS = PROJECT["urls"]["Repository"]
TEXTS = [
    "README.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", "CONTRIBUTING.md", "vscode-extension/README.md",
    "vscode-extension/package.json", "mkdocs.yml", ".github/ISSUE_TEMPLATE/config.yml",
    *(file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md")),
]  # fmt: skip


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TEXTS)
def test_there_is_one_public_address(name: str) -> None:
    owner = ADDRESS.removeprefix("https://github.com/").partition("/")[0]
    known = (ADDRESS, ADDRESS.replace("github.com", "raw.githubusercontent.com"), PROJECT["urls"]["Documentation"])
    for address in re.findall(r"https://[\w.]*(?:github[\w.]*)/[^\s)\"'>\]]*", read(name)):
        if owner in address:
            assert address.startswith(known), address


def test_pages_of_rules_are_in_the_documentation() -> None:
    site = yaml.safe_load(read("mkdocs.yml"))["site_url"]
    assert f"{site}rules/" == DOCS_URL
    assert site == PROJECT["urls"]["Documentation"] + "en/stable/"


def test_there_is_one_version() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    locked = json.loads(read("vscode-extension/package-lock.json"))
    versions = {PROJECT["version"], MANIFEST["version"], citation["version"], locked["version"]}
    assert versions | {locked["packages"][""]["version"]} == {__version__}


RELEASE = runpy.run_path(str(ROOT / "tools" / "release.py"))


def with_section(root: Path, version: str) -> None:
    """The files that a release changes, with changelogs that tell what the version brings."""
    for name in (*RELEASE["VERSIONS"], RELEASE["RULES"]):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(read(name), encoding="utf-8")
    (root / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\nNot yet.\n\n### Added\n\n- News.\n\n## [0.0.2] - 2098-01-01\n\n- Old.\n",
        encoding="utf-8",
    )
    (root / "vscode-extension" / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## {version}\n\n- News.\n", encoding="utf-8"
    )


def test_a_release_writes_its_version_and_its_date(tmp_path: Path) -> None:
    with_section(tmp_path, "99.1.0")
    texts = RELEASE["prepare"](tmp_path, "99.1.0", "2099-01-02", {"PAL999": "99.1.0"})
    assert '__version__ = "99.1.0"' in texts["pallas_lint/__init__.py"]
    assert tomllib.loads(texts["pyproject.toml"])["project"] == {**PROJECT, "version": "99.1.0"}
    assert json.loads(texts["vscode-extension/package.json"]) == {**MANIFEST, "version": "99.1.0"}
    citation = yaml.safe_load(texts["CITATION.cff"])
    assert (citation["version"], str(citation["date-released"])) == ("99.1.0", "2099-01-02")
    assert "\n## 99.1.0 - 2099-01-02\n" in texts["vscode-extension/CHANGELOG.md"]
    assert texts["CHANGELOG.md"] == (
        "# Changelog\n\n## [Unreleased]\n\n## [99.1.0] - 2099-01-02\n\n### Added\n\n- News.\n\n"
        "## [0.0.2] - 2098-01-01\n\n- Old.\n"
    )
    assert json.loads(texts[RELEASE["RULES"]])["99.1.0"] == ["PAL999"]
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for version in ("99.1.0", "0.0.1"):
        with pytest.raises(RELEASE["ReleaseError"], match="is not newer"):
            RELEASE["prepare"](tmp_path, version, "2099-01-03", {})


def test_what_cannot_be_released(tmp_path: Path) -> None:
    with_section(tmp_path, "99.1.0")
    for version, why in (("99.1", "three numbers"), ("98.0.0", "has no section")):
        with pytest.raises(RELEASE["ReleaseError"], match=why):
            RELEASE["prepare"](tmp_path, version, "2099-01-02", {})
    for text in ("# Changelog\n", "## [Unreleased]\n\n## [0.1.0]\n\n### Added\n"):
        with pytest.raises(RELEASE["ReleaseError"], match="nothing under Unreleased"):
            RELEASE["dated"](text, "99.1.0", "2099-01-02")


@pytest.mark.parametrize("name", ["README.md", "vscode-extension/README.md"])
def test_pages_elsewhere_show_links_and_pictures(name: str) -> None:
    assert re.findall(r"\]\((?!https?://|#)[^)]+\)", read(name)) == []
    targets = re.findall(r"(?:\]\(|\]: )(https://[^\s)]+)", read(name))
    own = [target for target in targets if "pallas-lint/pallas-lint/" in target and "/issues" not in target]
    assert own
    for target in own:
        path = re.sub(r".*?/(?:blob/)?main/", "", target).partition("#")[0]
        assert (ROOT / path).exists(), target


def test_links_of_the_readme_are_all_defined_and_used() -> None:
    text = read("README.md")
    defined = set(re.findall(r"^\[([\w-]+)\]: ", text, re.MULTILINE))
    used = set(re.findall(r"\]\[([\w-]+)\]", text))
    assert used == defined


def test_the_changelog_has_no_overlong_lines() -> None:
    assert [line for line in read("CHANGELOG.md").splitlines() if len(line) > 120] == []


def test_the_extension_brings_its_licence() -> None:
    assert read("vscode-extension/LICENSE") == read("LICENSE")
    assert MANIFEST["repository"]["url"] == f"{ADDRESS}.git"
    assert MANIFEST["bugs"]["url"] == PROJECT["urls"]["Issues"]


def test_the_pythons_that_are_named_are_those_that_are_tested() -> None:
    (matrix,) = (
        job["strategy"]["matrix"]["python"]
        for job in yaml.safe_load(read(".github/workflows/tests.yml"))["jobs"].values()
        if "python" in job.get("strategy", {}).get("matrix", {})
    )
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.", each)]
    assert named == matrix
    assert PROJECT["requires-python"] == f">={matrix[0]}"


def test_every_rule_has_its_first_release() -> None:
    listed = json.loads(read(RELEASE["RULES"]))
    released = {code: version for version, codes in listed.items() for code in codes}
    newest = max(
        map(parse_version, re.findall(r"^## \[(\d+\.\d+\.\d+)\]", read("CHANGELOG.md"), re.MULTILINE)), default=()
    )
    for code, entry in all_rules().items():
        if code in released:
            assert entry.rule.since == released[code], code
        else:
            assert parse_version(entry.rule.since) > newest, f"{code} is in no release: `since` is the next one"


def test_a_new_rule_has_the_next_release() -> None:
    before = '{"0.1.0": ["PAL001"]}'
    after = RELEASE["with_new_rules"](before, "0.2.0", {"PAL001": "0.1.0", "PAL002": "0.2.0"})
    assert json.loads(after) == {"0.1.0": ["PAL001"], "0.2.0": ["PAL002"]}
    assert json.loads(RELEASE["with_new_rules"](before, "0.2.0", {"PAL001": "0.1.0"})) == json.loads(before)
    with pytest.raises(RELEASE["ReleaseError"], match=r"PAL002 is new in 0.2.0, but has `since = '0.1.0'`"):
        RELEASE["with_new_rules"](before, "0.2.0", {"PAL001": "0.1.0", "PAL002": "0.1.0"})


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("vendor.github-workflows", sorted(path.relative_to(ROOT).as_posix() for path in WORKFLOWS.glob("*.yml"))),
        ("vendor.github-actions", ["action.yml"]),
        (
            "vendor.github-issue-forms",
            [f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug_report", "false_finding")],
        ),
        ("vendor.github-issue-config", [".github/ISSUE_TEMPLATE/config.yml"]),
        ("vendor.citation-file-format", ["CITATION.cff"]),
    ],
)  # fmt: skip
def test_files_are_what_they_are_read_as(schema: str, names: list[str]) -> None:
    arguments = ["--builtin-schema", schema, *(str(ROOT / name) for name in names)]
    assert check_jsonschema(arguments, standalone_mode=False) == 0  # which prints what is wrong
