"""Settings: discovery, checks, merging, rule selection."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import pallas_lint.ruleset.registry
from pallas_lint import compat
from pallas_lint.config import selection
from pallas_lint.config.selection import Layer
from pallas_lint.config.settings import (
    DEFAULT_EXCLUDE,
    Overrides,
    Settings,
    SettingsError,
    SettingsFinder,
    configurable,
    line_of,
    load,
    schema,
)
from pallas_lint.config.targets import Target
from pallas_lint.finding import Severity
from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def effective(folder: Path, **values: Any) -> Settings:
    """The settings of `folder`, with these on the command line."""
    return SettingsFinder(Overrides({k.replace("_", "-"): v for k, v in values.items()}), folder).for_folder(folder)


def write(folder: Path, text: str, name: str = "pallas-lint.toml") -> Settings:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return effective(folder)


EVERYTHING = """\
target = ["tpu:v5e", "mosaic-gpu"]
jax-version = ">=0.8,<0.11"
select = ["PAL0", "unused-suppression"]
extend-select = ["PAL301"]
ignore = ["PAL001"]
exclude = ["a"]
extend-exclude = ["b"]
include = ["*.md"]
calls = ["workload(*create_inputs())"]
respect-gitignore = false
fail-on = "info"
baseline = "known.json"
cache-dir = ".kept"
extend = "base.toml"
fixable = ["PAL3"]
unfixable = ["PAL302"]
shapes = "shapes.toml"
preview = true

[per-file-ignores]
"tests/**" = ["PAL301"]

[severity]
unused-suppression = "error"

[assume]
bm = 128

[rules.unused-suppression]

[probe]
python = "/usr/bin/python3"
stage = "lower"
timeout = 2.5
memory-limit = "16GiB"
all-targets = true
"""


def test_every_key(root: Path) -> None:
    (root / "base.toml").write_text("")
    settings = write(root, EVERYTHING)
    assert settings.target == (Target("tpu", "v5e"), Target("mosaic_gpu"))
    assert settings.jax.versions == tuple(compat.versions_in(">=0.8,<0.11"))
    assert (settings.select, settings.extend_select, settings.ignore) == (
        ("PAL0", "unused-suppression"),
        ("PAL301",),
        ("PAL001",),
    )
    assert settings.per_file_ignores == {"tests/**": ("PAL301",)}
    assert settings.severity == {"unused-suppression": Severity.ERROR}
    assert (settings.exclude, settings.extend_exclude, settings.include) == (("a",), ("b",), ("*.md",))
    assert settings.calls == {"**": ("workload(*create_inputs())",)}
    assert settings.respect_gitignore is False
    assert settings.preview is True
    assert settings.fail_on is Severity.INFO
    assert settings.baseline == "known.json"
    assert settings.shapes == "shapes.toml"
    assert settings.assume == {"bm": 128}
    assert settings.rules == {"PAL002": {}}
    assert settings.probe["timeout"] == 2.5
    assert settings.root == root
    assert settings.origins["fail-on"] == "pallas-lint.toml:11"
    assert settings.origins["assume"] == "pallas-lint.toml:26"
    assert "PAL302" in settings.unfixed and "PAL101" in settings.unfixed and "PAL301" not in settings.unfixed
    assert set(settings.origins) == set(configurable())


def test_pyproject_has_the_same_under_its_table(root: Path) -> None:
    text = '[project]\nname = "x"\n\n[tool.pallas-lint]\nfail-on = "error"\n[tool.pallas-lint.assume]\nbm = 1\n'
    settings = write(root, text, "pyproject.toml")
    assert (settings.fail_on, settings.assume) == (Severity.ERROR, {"bm": 1})
    assert settings.origins == {"fail-on": "pyproject.toml:5", "assume": "pyproject.toml:6"}


def test_the_nearest_file_wins_and_files_do_not_mix(root: Path) -> None:
    write(root, 'fail-on = "error"\nignore = ["PAL301"]\n')
    write(root / "a", "[tool.other]\n# pallas-lint\n", "pyproject.toml")
    inner = write(root / "a" / "b", 'fail-on = "info"\n')
    assert (inner.fail_on, inner.ignore) == (Severity.INFO, ())
    assert effective(root / "a").fail_on is Severity.ERROR
    write(root, '[tool.pallas-lint]\nfail-on = "info"\n', "pyproject.toml")
    assert effective(root).fail_on is Severity.ERROR  # pallas-lint.toml goes before pyproject.toml


def test_one_object_for_folders_alike(root: Path) -> None:
    for name in ("a/b", "a/c"):
        (root / name).mkdir(parents=True)
    finder = SettingsFinder(cwd=root)
    assert finder.for_folder(root / "a/b") is finder.for_folder(root / "a/c")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("select = [", 1, "invalid TOML: "),
        ('a = 1\n\nb = "\n', 3, "invalid TOML: "),
        ('selct = ["PAL0"]\n', 1, "unknown key 'selct', did you mean 'select'?"),
        ("\nwhatever = 1\n", 2, "unknown key 'whatever'"),
        ('select = "PAL0"\n', 1, "select: expected a list of strings, got a string"),
        ("select = [1]\n", 1, "select: expected a list of strings, got a number"),
        ('\nignore = ["PAL9999"]\n', 2, "ignore: "),
        ('target = "tpuu"\n', 1, "target: unknown target 'tpuu', did you mean 'tpu'?"),
        ('target = ["tpu:h100"]\n', 1, "target: unknown device 'h100' in target 'tpu:h100': tpu has v4, v5e"),
        ('jax-version = "0.3.1"\n', 1, "jax-version: jax 0.3.1 is older than"),
        ('jax-version = "new"\n', 1, "jax-version: 'new' is not a jax version"),
        (
            'fail-on = "warn"\n',
            1,
            "fail-on: 'warn' is not one of error, warning, info, did you mean 'warning'?",
        ),
        ("fail-on = 1\n", 1, "fail-on: a number is not one of"),
        ('respect-gitignore = "no"\n', 1, "respect-gitignore: expected true or false, got a string"),
        (
            '[per-file-ignores]\n"a.py" = ["PAL0"]\n"b.py" = "PAL0"\n',
            3,
            "per-file-ignores.b.py: expected a list",
        ),
        ('[severity]\nPAL001 = "fatal"\n', 2, "severity.PAL001: 'fatal' is not one of"),
        ('[severity]\nnope = "info"\n', 2, "severity.nope: "),
        ("assume = {bm = true}\n", 1, "assume.bm: expected a whole number, got true/false"),
        ('[assume]\n\n"b-m" = 1\n', 3, "assume.b-m: 'b-m' is not a Python name"),
        (
            "[rules.unused-supression]\nx = 1\n",
            1,
            "rules.unused-supression: unknown rule 'unused-supression', did you mean 'unused-",
        ),
        ("rules = 1\n", 1, "rules: expected a table, got a number"),
        ("[probe]\ntimeout = 0\n", 2, "probe.timeout: expected a number above 0"),
        ("[probe]\ntime-out = 1\n", 2, "unknown key 'time-out', did you mean 'timeout'?"),
        ('[probe]\nstage = "run"\n', 2, "probe.stage: 'run' is not one of"),
        ("[probe]\ntimeout = nan\n", 2, "probe.timeout: expected a number above 0"),
        ("[probe]\ntimeout = inf\n", 2, "probe.timeout: expected a number above 0"),
        ('[probe]\nmemory-limit = "512"\n', 2, "probe.memory-limit: expected bytes"),
        ("[probe]\nmemory-limit = -1\n", 2, "probe.memory-limit: expected bytes"),
        ('"sel\\u0065ct" = 1\n', 1, "select: expected a list"),
        ("[x]\n[tool.pallas-lint]\nselect = []\n", 1, "unknown key 'x'"),
        ("\n[tool.pallas-lint]\nselect = []\n", 2, "unknown key 'tool'"),
        ('[probe]\nmemory-limit = "much"\n', 2, "probe.memory-limit: expected bytes"),
    ],
)
def test_bad_values_name_file_line_and_what_was_meant(root: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        write(root, text)
    assert (caught.value.path, caught.value.line) == ("pallas-lint.toml", line)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    with pytest.raises(SettingsError) as caught:
        tables = re.sub(r"(?m)^\[", "[tool.pallas-lint.", text)
        write(root / "sub", f"[project]\n[tool.pallas-lint]\n{tables}", "pyproject.toml")
    assert (caught.value.path, caught.value.line) == ("pyproject.toml", line + 2)


def test_files_that_cannot_be_used(root: Path) -> None:
    (root / "latin.toml").write_bytes(b'fail-on = "error"\n# caf\xe9\n')
    with pytest.raises(SettingsError, match=r"latin.toml:2: TOML must be UTF-8"):
        load(root / "latin.toml")
    (root / "pallas-lint.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot read the configuration"):
        effective(root)
    (root / "pyproject.toml").write_text("[tool.pallas-lints]\n")
    with pytest.raises(SettingsError, match=r"no \[tool.pallas-lint\] table"):
        load(root / "pyproject.toml", required=True)
    (root / "pyproject.toml").write_text("tool.pallas-lint = 3\n")
    with pytest.raises(SettingsError, match=r"pyproject.toml:1: tool.pallas-lint must be a table"):
        load(root / "pyproject.toml")


def test_a_broken_pyproject_without_our_table_is_passed_over(root: Path) -> None:
    assert write(root, "[project\n", "pyproject.toml").config_file is None


def test_windows_line_ends_in_settings(root: Path) -> None:
    (root / "pallas-lint.toml").write_bytes(b'fail-on = "error"\r\nignore = ["PAL0"]\r\n')
    assert effective(root).origins["ignore"] == "pallas-lint.toml:2"


def test_the_line_of_an_entry() -> None:
    text = 'a.b = 1\n[t."x.y"]\nk = 2\n[[u]]\nm = {n = 1}\n'
    assert line_of(text, ("a", "b")) == 1
    assert line_of(text, ("t", "x.y", "k")) == 3
    assert line_of(text, ("t", "x.y", "missing")) == 2
    assert line_of(text, ("u", "m", "n")) == 5
    assert line_of(text, ("zzz",)) is None


def test_isolated_and_named_files(root: Path) -> None:
    write(root, 'fail-on = "error"\n')
    (root / "other.toml").write_text('fail-on = "info"\n')
    isolated = SettingsFinder(Overrides(isolated=True), root).for_folder(root)
    assert isolated.fail_on is Severity.WARNING
    named = SettingsFinder(Overrides(config_file=root / "other.toml"), root).for_folder(root)
    assert named.fail_on is Severity.INFO
    with pytest.raises(SettingsError, match="cannot read"):
        SettingsFinder(Overrides(config_file=root / "none.toml"), root)


DEFAULT = {code for code, info in all_rules().items() if not getattr(info, "opt_in", False)}


@pytest.mark.parametrize(
    ("config", "values", "changes"),
    [
        ("", {}, DEFAULT),
        ("", {"select": ["ALL"]}, set(all_rules())),
        ("", {"select": ["PAL001"]}, {"PAL001"}),
        ("", {"select": ["syntax-error"]}, {"PAL001"}),
        ("", {"select": ["PAL001", "PAL002"], "ignore": ["PAL002"]}, {"PAL001"}),
        ("", {"select": ["PAL001"], "ignore": ["PAL0"]}, {"PAL001"}),  # the narrower selector wins
        ("", {"select": ["ALL"], "ignore": ["PAL"]}, set()),
        ("", {"ignore": ["PAL001"]}, DEFAULT - {"PAL001"}),
        ('select = ["PAL001"]', {}, {"PAL001"}),
        ('select = ["PAL001"]', {"extend-select": ["PAL002"]}, {"PAL001", "PAL002"}),
        ('select = ["PAL001", "PAL002"]', {"ignore": ["PAL0"]}, set()),
        ('ignore = ["PAL001"]', {"select": ["PAL001"]}, {"PAL001"}),  # a later select starts afresh
        ('ignore = ["PAL001"]', {"ignore": ["PAL002"]}, DEFAULT - {"PAL001", "PAL002"}),
        ('select = ["PAL001"]\nextend-select = ["PAL002"]', {"select": ["PAL301"]}, {"PAL301"}),
    ],
)
def test_which_rules_are_enabled(root: Path, config: str, values: dict[str, Any], changes: set[str]) -> None:
    write(root, config)
    finder = SettingsFinder(Overrides(values), root)
    assert finder.for_folder(root).enabled == frozenset(changes)


@pytest.fixture
def _fresh_selectors() -> Iterator[None]:
    """What selectors stand for is kept: neither before nor after a test with other rules."""
    kept = (selection._resolved, pallas_lint.ruleset.registry.codes_of, pallas_lint.ruleset.registry.all_rules)
    for cached in kept:
        cached.cache_clear()
    yield
    for cached in kept:
        cached.cache_clear()


@pytest.mark.usefixtures("_fresh_selectors")
def test_opt_in_rules_are_used_when_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pallas_lint.ruleset.registry, "OPT_IN", frozenset({"PAL002"}))
    assert "PAL002" not in selection.enabled([])
    assert {"PAL001", "PAL002"} <= selection.enabled([Layer(), Layer(extend=("PAL002",))])
    assert selection.enabled([Layer(select=("PAL0",))]) == {"PAL001", "PAL002", "PAL003"}


@pytest.mark.usefixtures("_fresh_selectors")
def test_rules_in_preview_are_used_with_preview_or_by_their_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pallas_lint.ruleset.registry, "PREVIEW", frozenset({"PAL002"}))
    default = DEFAULT - {"PAL002"}
    assert selection.enabled([]) == selection.enabled([Layer(select=("ALL",), ignore=("PAL608",))]) == default
    assert selection.enabled([], preview=True) == DEFAULT
    assert selection.enabled([Layer(select=("PAL00",))]) == {"PAL001", "PAL003"}
    assert selection.enabled([Layer(select=("PAL00",))], preview=True) == {"PAL001", "PAL002", "PAL003"}
    for selector in ("PAL002", "pal002", "unused-suppression"):
        assert selection.enabled([Layer(extend=(selector,))]) == DEFAULT
    assert selection.enabled([Layer(select=("PAL00", "PAL002"))]) == {"PAL001", "PAL002", "PAL003"}
    assert selection.enabled([Layer(extend=("PAL002",)), Layer(select=("PAL0",))]) == {"PAL001", "PAL003"}
    assert selection.enabled([Layer(ignore=("PAL00",))], preview=True) == DEFAULT - {"PAL001", "PAL002", "PAL003"}


def test_per_file_ignores(root: Path) -> None:
    settings = write(root / "p", '[per-file-ignores]\n"tests/**" = ["PAL001"]\n"conf.py" = ["unused-suppression"]\n')
    assert settings.enabled - settings.enabled_in("p/tests/deep/k.py") == {"PAL001"}
    assert settings.enabled - settings.enabled_in("p/x/conf.py") == {"PAL002"}
    assert settings.enabled_in("p/k.py") == settings.enabled
    assert settings.enabled_in("tests/k.py") == settings.enabled  # relative to the settings, not to the run


def test_the_narrowest_severity_wins(root: Path) -> None:
    settings = write(root, 'severity = {PAL0 = "info", syntax-error = "error"}\n')
    assert settings.severity_of("PAL001") is Severity.ERROR
    assert settings.severity_of("PAL002") is Severity.INFO
    assert settings.severity_of("PAL301") is None


def test_the_fingerprint_follows_what_changes_findings(root: Path) -> None:
    same = {write(root, text).fingerprint() for text in ("", 'fail-on = "info"', 'exclude = ["x"]')}
    assert len(same) == 1
    texts = (
        'ignore = ["PAL001"]',
        "preview = true",
        "assume = {bm = 1}",
        'target = "tpu"',
        'severity = {PAL001 = "info"}',
    )
    different = {write(root, f"jax-version = '0.10.2'\n{text}").fingerprint() for text in texts}
    assert len(different | same) == 1 + len(texts)


def test_origins_of_the_command_line(root: Path) -> None:
    write(root, 'ignore = ["PAL001"]\n')
    settings = effective(root, ignore=["PAL002"], target=["tpu"])
    assert settings.ignore == ("PAL001", "PAL002")
    assert settings.origins == {"ignore": "pallas-lint.toml:1, --ignore", "target": "--target"}


# Each is taken or refused by the loader and by the schema alike.
DOCUMENTS: list[dict[str, Any]] = [
    {},
    {"target": "tpu"},
    {"target": ["tpu:v5e", "triton"]},
    {"target": "gpu"},
    {"target": 1},
    {"select": ["PAL001", "PAL0", "ALL", "unused-suppression"]},
    {"select": ["nope"]},
    {"select": "ALL"},
    {"per-file-ignores": {"a": ["PAL0"]}},
    {"per-file-ignores": {"a": "PAL0"}},
    {"severity": {"PAL001": "error", "unused-suppression": "info"}},
    {"severity": {"PAL001": "off"}},
    {"severity": {"nope": "info"}},
    {"exclude": ["a", "b"]},
    {"exclude": "a"},
    {"preview": True},
    {"preview": "yes"},
    {"respect-gitignore": True},
    {"respect-gitignore": 1},
    {"fail-on": "info"},
    {"fail-on": "never"},
    {"assume": {"bm": 128}},
    {"assume": {"bm": "128"}},
    {"assume": {"bm": 1.5}},
    {"baseline": "x"},
    {"baseline": 1},
    {"rules": {"unused-suppression": {}, "PAL001": {}}},
    {"rules": {"nope": {}}},
    {"rules": {"unused-suppression": 1}},
    {"probe": {"stage": "lower", "timeout": 1, "memory-limit": 1 << 30, "all-targets": False}},
    {"probe": {"stage": "fly"}},
    {"probe": {"timeout": 0}},
    {"probe": {"timeout": 999_999.5}},
    {"probe": {"timeout": 1_000_000}},
    {"probe": {"memory-limit": 1 << 20}},
    {"probe": {"memory-limit": (1 << 20) - 1}},
    {"probe": {"memory-limit": -1}},
    {"probe": {"memory-limit": True}},
    {"probe": {"memory-limit": "16GiB"}},
    {"probe": {"memory-limit": " 0.5 g"}},
    {"probe": {"memory-limit": "1M"}},
    {"probe": {"memory-limit": "0.5M"}},
    {"probe": {"memory-limit": "4096 KiB"}},
    {"probe": {"memory-limit": "512K"}},
    {"probe": {"memory-limit": "8000000b"}},
    {"probe": {"memory-limit": "8000"}},
    {"probe": {"memory-limit": "-4G"}},
    {"probe": {"memory-limit": "much"}},
    {"probe": {"other": 1}},
    {"jax-version": "0.10.2"},
    {"jax-version": 0.1},
    {"unknown": 1},
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_the_schema_takes_what_the_loader_takes(document: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    try:
        SettingsFinder(Overrides(document, isolated=True))
    except SettingsError:
        taken = False
    else:
        taken = True
    assert jsonschema.Draft7Validator(schema()).is_valid(document) == taken


def test_the_schema_describes_every_key() -> None:
    properties = schema()["properties"]
    assert set(properties) == set(configurable())
    assert all(entry["description"].endswith(".") for entry in properties.values())
    assert ".git" in DEFAULT_EXCLUDE


def test_calls_of_harnesses(root: Path) -> None:
    settings = write(root, '[calls]\n"bench/**" = ["run(*inputs(16))"]\n"**" = ["main()"]\n')
    assert settings.calls_in(str(root / "bench" / "a.py")) == ("run(*inputs(16))", "main()")
    assert settings.calls_in(str(root / "a.py")) == ("main()",)
    assert settings.fingerprint() != write(root, "").fingerprint()


@pytest.mark.parametrize("call", ["run(*inputs()", "run", "x = run()", "", f"f({'(' * 900})", "a" * 2000 + "()"])
def test_what_is_no_call(root: Path, call: str) -> None:
    with pytest.raises(SettingsError, match="expected calls"):
        write(root, f'calls = ["{call}"]\n')
