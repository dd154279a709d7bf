"""Results that a repository brings along, where any version of the program would look for them: none is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.finding import Edit, FileResult, Finding, Fix, Position, Severity, Span
from pallas_lint.probe import stored_runs
from pallas_lint.probe.results import LaunchResult
from pallas_lint.records import evolve
from pallas_lint.run.cache import Cache
from pallas_lint.run.cache_folder import CacheFolder, cache_folder
from pallas_lint.run.project import Project
from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NEW = ("--jax-version", "0.10.2")
SEEN = "as probed"
PICTURE = "![x](http://tracker/x.png)\n\n# x www.tracker"


def planted_finding(path: str) -> Finding:
    span = Span(path, Position(1, 1), Position(1, 1))
    fix = Fix("planted", "safe", (Edit(span, 'import os; os.system("touch owned")\n'),))
    return Finding("PAL301", "index-map-element-offset", Severity.ERROR, "planted", span, fixes=(fix,))


def plant_verdict(kept: CacheFolder, folder: Path, *found: Finding) -> None:
    """A verdict on k.py, under the very key that the program looks for."""
    known = Cache(kept, folder, Project(folder))
    settings = SettingsFinder(Overrides({"jax-version": "0.10.2"}), folder).for_folder(folder)
    key = known.key("k.py", (folder / "k.py").read_bytes(), settings.fingerprint())
    known.put(FileResult("k.py", found, kernels=1), key)
    assert known.get("k.py", key) is not None


def plant_facts(kept: CacheFolder, file: Path) -> None:
    """A probe of the kernel, resting on nothing, that was never made."""
    operand = {"name": "x_ref", "dtype": "f99", "shape": [7], "block": None, "memory_space": PICTURE, "role": "in"}
    at = {"file": str(file), "line": 11}
    launch = LaunchResult(
        {"kernel": "kernel", "place": at, "kernel_place": None, "grid": [4], "stack": [], "operands": [operand]}, ()
    )
    found = evolve(planted_finding(""), code="PAL903", origin="probe", fixes=())
    run = stored_runs.StoredRun("run", "f32[8]", (launch,), (found,), (), {"jax": "0.10.2"})
    stored_runs._write(kept, file, [run])


def of_an_attacker(place: Path, tmp_path: Path) -> CacheFolder:
    """A cache folder in all that a repository can know of one: it lacks the key of whoever looks at it."""
    return CacheFolder(place, tmp_path / "attacker").check()


def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "k.py").write_text(attack.KERNEL)
    return folder


def hover(folder: Path, home: Path, *options: str) -> tuple[str, list[str | None]]:
    """What a server says of the ref `x_ref`, and the codes that it finds."""
    file = folder / "k.py"
    with attack.server(*options, cwd=folder, home=home) as wire:
        wire.initialize(rootUri=folder.as_uri())
        wire.open(file.as_uri(), attack.KERNEL)
        codes = wire.codes(file.as_uri())
        at = {"textDocument": {"uri": file.as_uri()}, "position": {"line": 5, "character": 12}}
        shown = wire.request("textDocument/hover", at)["result"]
        assert wire.end() == 0
    return shown["contents"]["value"], codes


def test_planted_verdicts(tmp_path: Path) -> None:
    """In every folder that the repository or its user can name: an error stays one, an edit is not written."""
    folder = project(tmp_path)
    for number, name in enumerate((".pallas-lint-cache", "cache", "cache/results")):
        plant_verdict(of_an_attacker(folder / name, tmp_path), folder, *[planted_finding("k.py")] * (number % 2))
    (folder / "pallas-lint.toml").write_text('cache-dir = "cache"\n')
    for options in ((), ("--config", "pallas-lint.toml"), ("--cache-dir", "cache"), ("--cache-dir", "cache/results")):
        ran = attack.run(*NEW, *options, ".", cwd=folder)
        assert ran.calm and (ran.status == 2 or "PAL301" in ran.out) and "planted" not in ran.out, options
        assert ran.status == (2 if options else 1) and (not options or "not made by pallas-lint" in ran.err)
    ran = attack.run("--fix", *NEW, ".", cwd=folder)
    assert ran.calm and ran.status == 0
    assert (folder / "k.py").read_text() == attack.FIXED


def test_edits_are_not_taken_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even from the user's own."""
    folder, home = project(tmp_path), tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    kept = cache_folder(folder)
    assert kept is not None
    plant_verdict(kept, folder, planted_finding("k.py"))
    ran = attack.run(*NEW, ".", cwd=folder)
    assert "planted" in ran.out, "the cache is read, or this test says nothing"
    for change in ("--add-suppressions", "--fix"):
        (folder / "k.py").write_text(attack.KERNEL)
        plant_verdict(kept, folder, planted_finding("k.py"))
        assert attack.run(change, *NEW, ".", cwd=folder).calm
        text = (folder / "k.py").read_text()
        assert "os.system" not in text and text.startswith("import jax\n") and text != attack.KERNEL


def test_planted_and_own_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, home = project(tmp_path), tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    own = cache_folder(folder)
    assert own is not None
    plant_facts(of_an_attacker(folder / ".pallas-lint-cache", tmp_path), folder / "k.py")
    shown = hover(folder, home)
    assert "x_ref" in shown[0] and SEEN not in shown[0] and shown[1] == ["PAL301"]
    # The same where the user's own probes leave theirs: shown, but not in a workspace that is not trusted.
    plant_facts(own, folder / "k.py")
    known = hover(folder, home)
    assert SEEN in known[0] and "PAL903" in known[1]
    assert r"\![X\](HTTP\://TRACKER/X.PNG) # X WWW\.TRACKER" in known[0]
    assert hover(folder, home, "--untrusted") == shown
