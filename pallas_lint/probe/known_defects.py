"""Known defects of the jax and libtpu that a probe ran with, in the kernels that it launched: the rule's findings.

The rule reads versions from a project's files. Where a kernel was probed, those of its interpreter count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.advisories import advisories
from pallas_lint.config.targets import installed_versions
from pallas_lint.probe.places import shown_file
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.finding import Finding
    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.report.lines import Lines

CODE = "PAL706"


def known_defects(results: Iterable[ProbeResult], lines: Lines) -> list[Finding]:
    """The rule's findings in launched kernels, for the versions of the interpreter that launched them; each once."""
    wanted: dict[tuple[str, str, str | None], set[str]] = {}  # kernels, by their file and the versions
    for result in results:
        jax, libtpu = result.parts.get("jax"), result.parts.get("libtpu")
        if jax is None or not _has_defects(jax, libtpu):
            continue
        for launch in result.launches:
            for place in (launch.facts["place"], launch.facts["kernel_place"]):
                if place is not None:
                    wanted.setdefault((shown_file(place["file"], lines.cwd), jax, libtpu), set()).add(launch.kernel)
    found: list[Finding] = []
    for (path, jax, libtpu), kernels in wanted.items():
        found += [each for each in _in_file(path, jax, libtpu, lines) if each.kernel in kernels and each not in found]
    return found


def _has_defects(jax: str, libtpu: str | None) -> bool:
    versions = {"jax": jax, "libtpu": libtpu}
    ours = [(each, versions[each.package]) for each in advisories() if each.rule == CODE]
    return any(version is not None and each.affects(version) for each, version in ours)


def _in_file(path: str, jax: str, libtpu: str | None, lines: Lines) -> list[Finding]:
    from pallas_lint.config.settings import Overrides, SettingsFinder
    from pallas_lint.lint import lint_source
    from pallas_lint.run.project import Project

    source = lines.source(path)
    if source is None:
        return []
    finder = SettingsFinder(Overrides({"select": [CODE], "jax-version": jax}, isolated=True), lines.cwd)
    settings = evolve(finder.for_folder(lines.cwd), jax=installed_versions(jax, libtpu))
    overlay = {(lines.cwd / name).resolve(): each for name, each in lines.texts.items()}
    findings = lint_source(source, settings, Project(lines.cwd, overlay)).findings
    return [evolve(each, origin="probe") for each in findings if each.code == CODE]
