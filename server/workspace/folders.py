"""The folders of the workspace: each has its own client settings, settings files and files left out."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.server.workspace.client_settings import ClientSettings
from pygls import uris

from pallas_lint.config.bounds import project_root
from pallas_lint.config.settings import SettingsError, SettingsFinder
from pallas_lint.records import define, field
from pallas_lint.run.project import is_excluded
from pallas_lint.triage.baseline import Baseline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pallas_lint.config.settings import Settings
    from pallas_lint.config.targets import JaxVersions
    from pallas_lint.finding import Finding
    from pallas_lint.text.source import Source

_INSTALLED = frozenset({"site-packages", "dist-packages"})


@lru_cache(maxsize=1024)
def file_of(uri: str) -> Path | None:
    """The file at a URI; None for one that names no file, or in no way that a file could have."""
    try:
        found = uris.to_fs_path(uri)
    except ValueError:  # a host in brackets that is none
        return None
    return Path(found) if found and "\0" not in found else None


@define(eq=False)
class Folder:
    """One folder of the workspace; `uri` None for the one that stands for all files outside of them."""

    uri: str | None
    path: Path
    client: ClientSettings = field(factory=ClientSettings)
    _finder: SettingsFinder | None = field(default=None, init=False)
    _left_out: dict[Path, bool] = field(factory=dict, init=False)
    _baselines: dict[Path, tuple[int, Baseline]] = field(factory=dict, init=False)

    def configure(self, client: ClientSettings) -> bool:
        """Take a client's settings; whether they are others than before."""
        changed = client != self.client
        self.client = client
        if changed:
            self.forget()
        return changed

    def forget(self) -> None:
        """Settings files, or what they rest on, have changed."""
        self._finder = None
        self._left_out = {}
        self._baselines = {}

    def finder(self) -> SettingsFinder:
        """Where settings for the folders below come from. Raises SettingsError for a bad file that the client named."""
        finder = self._finder
        if finder is None:
            finder = self._finder = SettingsFinder(self.client.overrides(self.path), self.path)
        return finder

    def settings(self, file: Path) -> Settings:
        """The settings for a file. Raises SettingsError."""
        return self.finder().for_folder(file.parent)

    def leaves_out(self, file: Path) -> bool:
        """Whether a file is not to be looked at, as a search of this folder would not. Raises SettingsError."""
        known = self._left_out.get(file)
        if known is None:
            top = self.path
            if self.uri is None:
                # Opened by itself: folders above its project do not count, but installed packages belong to no project.
                if _INSTALLED & set(file.parts):
                    return True
                top = project_root(file.parent)
            known = is_excluded(file, top, self.finder(), exclude=self.client.left_out)
            self._left_out[file] = known
        return known

    def new(self, findings: Sequence[Finding], text_of: Callable[[str], Source | None]) -> Sequence[Finding]:
        """The findings in one file that are not in its baseline. Raises BaselineError."""
        if not findings:
            return findings
        try:
            settings = self.settings(Path(findings[0].span.path))
        except SettingsError:
            return findings
        if not settings.baseline:
            return findings
        source = text_of(findings[0].span.path)
        new, _ = self._baseline(settings.root / settings.baseline).split(
            findings, self.path, lambda _, line, cell=None: source.line_as_written(line, cell) if source else None
        )
        return new

    def jax_of(self, findings: Iterable[Finding]) -> dict[str, JaxVersions]:
        """The jax versions that files are checked for, by path, as far as their settings can be read."""
        found: dict[str, JaxVersions] = {}
        for path in dict.fromkeys(finding.span.path for finding in findings):
            with suppress(SettingsError):
                found[path] = self.settings(Path(path)).jax
        return found

    def _baseline(self, file: Path) -> Baseline:
        """What a file has, read again when it was written. Raises BaselineError."""
        try:
            written = file.stat().st_mtime_ns
        except OSError:
            return Baseline.read(file)  # which reports what is wrong with it
        known = self._baselines.get(file)
        if known is None or known[0] != written:
            known = self._baselines[file] = (written, Baseline.read(file))
        return known[1]


@define(eq=False)
class Folders:
    """All folders of the workspace."""

    rest: Folder = field(factory=lambda: Folder(None, Path.cwd()))
    _by_uri: dict[str, Folder] = field(factory=dict, init=False)

    def __iter__(self) -> Iterator[Folder]:
        return iter(self._by_uri.values())

    def add(self, uri: str) -> Folder | None:
        """A folder that was added, with the settings of the rest for now; None for one that is not on a disk."""
        path = file_of(uri)
        if path is None:
            return None
        folder = self._by_uri[uri] = Folder(uri, path, self.rest.client)
        return folder

    def remove(self, uri: str) -> Folder | None:
        return self._by_uri.pop(uri, None)

    def forget(self, below: Path) -> None:
        """Settings files in a folder, or what they rest on, have changed."""
        for folder in (self.rest, *self):
            if folder.uri is None or folder.path.is_relative_to(below) or below.is_relative_to(folder.path):
                folder.forget()

    def of(self, file: Path) -> Folder:
        """The innermost folder that a file lies in."""
        around = [folder for folder in self if file.is_relative_to(folder.path)]
        return max(around, key=lambda folder: len(folder.path.parts), default=self.rest)
