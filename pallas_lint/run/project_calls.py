"""Known calls of a project's launchers: from its other files, and from its shapes file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pallas_lint.config.extension import is_in_project
from pallas_lint.finding import LintError
from pallas_lint.records import define, evolve, field
from pallas_lint.text.paths import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pallas_lint.config.settings import Settings
    from pallas_lint.known_calls.callers import Callers
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.known_calls.shapes_file import Shapes
    from pallas_lint.run.project import Project
    from pallas_lint.text.source import Source


def outside_of_project(shapes: Path, settings: Settings) -> str | None:
    """Why a shapes file is neither read nor written; None for one of the project, or that the command line names."""
    folder = settings.root if settings.shapes else shapes.parent
    if settings.origins.get("shapes") == "--shapes" or is_in_project(shapes, folder):
        return None
    real = os.path.realpath(shapes)
    return f"it leads out of the project, to {real}; only the command line may name such a file, with --shapes"


@define(eq=False)
class ProjectCalls:
    """The known calls of the files of a run, or of an editor's session."""

    project: Project
    crashes: dict[LintError, str] = field(factory=dict)  # of the engine while calls were found out, with tracebacks
    _callers: dict[tuple[Path, tuple[str, ...]], Callers] = field(factory=dict)  # by folder and jax versions
    _shapes: dict[Path, Shapes] = field(factory=dict)  # by shapes file
    _shapes_of: dict[Path, Path | None] = field(factory=dict)  # the shapes file that is found from a folder
    _folders: dict[Path, Path] = field(factory=dict)  # of projects, by a folder in them
    _overlay_of_folders: Mapping[Path, Source] | None = None  # the overlay with which they were looked up
    _overlaid: Mapping[Path, Source] | None = None  # the overlay that the callers know
    _seen: dict[Path, Source] = field(factory=dict)  # ... and what was in it

    def callers(self, file: Path, settings: Settings) -> Callers:
        """The files of the project that a file belongs to, and who of them calls whom."""
        folder = self._folder(file)
        known = self._callers.get((folder, settings.jax.versions))
        if known is None:
            from pallas_lint.known_calls.callers import Callers

            known = (self.project.known_callers or (lambda folder, versions: Callers(folder)))(
                folder, settings.jax.versions
            )
            self._callers[folder, settings.jax.versions] = known
            known.refresh(self.project.overlay)
        self._catch_up()
        return known

    def _catch_up(self) -> None:
        """Update the callers with open documents that have changed, or were closed."""
        if self.project.overlay is self._overlaid:
            return
        now = self._overlaid = self.project.overlay
        changed = [file for file, source in now.items() if self._seen.get(file) is not source]
        for file in (*changed, *(file for file in self._seen if file not in now)):
            for callers in self._callers.values():
                callers.edited(file, now.get(file))
        self._seen = dict(now)

    @property
    def found_callers(self) -> Iterator[tuple[tuple[str, ...], Callers]]:
        """What was found out that earlier runs did not know, with the jax versions for which it holds."""
        return ((versions, callers) for (_, versions), callers in self._callers.items() if callers.changed)

    def of(self, file: Path, settings: Settings) -> tuple[KnownCall, ...]:
        """The calls of what a file defines: those that other files of its project make, and those on record."""
        if self.project.wait_for_callers:
            self.find(file, settings)
        elif not self._has_callers(file, settings):
            return self.shapes(file, settings).of(file)
        callers = self.callers(file, settings)
        return (*callers.of(file), *self.shapes(file, settings).of(file))

    def find(self, file: Path, settings: Settings, gives_up: Callable[[], bool] = lambda: False) -> bool:
        """Search the calls of the launchers of a file; returns whether the search was completed."""
        callers = self.callers(file, settings)
        for caller in callers.missing((file,)):
            if gives_up():
                return False
            self._find_calls(callers, caller, settings)
        return True

    def waits(self, file: Path, settings: Settings) -> bool:
        """Whether there are calls that are still to be found out."""
        return not self._has_callers(file, settings) or bool(self.callers(file, settings).missing((file,)))

    def _has_callers(self, file: Path, settings: Settings) -> bool:
        """Whether the files of its project have been looked through: that takes a while where there are many."""
        return (self._folder(file), settings.jax.versions) in self._callers

    def _folder(self, file: Path) -> Path:
        """The folder of the project that a file belongs to, looked up on disk once for each overlay."""
        from pallas_lint.kernels.analysis.project_text import project_folder

        if self.project.overlay is not self._overlay_of_folders:
            self._overlay_of_folders = self.project.overlay
            self._folders.clear()
        if file.parent not in self._folders:
            self._folders[file.parent] = project_folder(file)
        return self._folders[file.parent]

    def rests_on(self, file: Path, settings: Settings) -> Iterator[Path]:
        """The files whose calls count for a file, and those that they rest on, as far as they are known."""
        return self.callers(file, settings).rests_on(file) if self._has_callers(file, settings) else iter(())

    def shapes(self, file: Path, settings: Settings) -> Shapes:
        """The shapes file for the functions of a file; an empty one where there is none."""
        from pallas_lint.known_calls import shapes_file

        if settings.shapes is None:
            if file.parent not in self._shapes_of:
                self._shapes_of[file.parent] = shapes_file.found(file.parent)
            place, root = self._shapes_of[file.parent], None
        else:
            place, root = (settings.root / settings.shapes if settings.shapes else None), settings.root
        if place is None:
            return shapes_file.Shapes()
        known = self._shapes.get(place)
        if known is None:
            shown = place.as_posix() if self.project.absolute_names else shown_path(place, self.project.cwd)
            reason = outside_of_project(place, settings)
            if reason is None:
                known = shapes_file.read(place, shown)
            else:
                known = shapes_file.Shapes(problems=(LintError(shown, f"cannot read the shapes file: {reason}"),))
            known = self._shapes[place] = evolve(known, file=place, shown=shown, root=root or place.parent)
        return known

    @property
    def shapes_read(self) -> Iterable[Shapes]:
        """The shapes files that were read."""
        return self._shapes.values()

    def _find_calls(self, callers: Callers, file: Path, settings: Settings) -> None:
        """Run the functions of a file that call launchers, and note what they pass."""
        from pallas_lint.known_calls.harvest import harvest

        graph = self.project.graph()
        found: tuple[KnownCall, ...] = ()
        try:
            module = graph.load(file)
            found = () if module is None else harvest(module, settings.jax.versions, callers)
        except Exception as error:
            import traceback

            shown = shown_path(file, self.project.cwd)
            message = f"internal error while its calls were followed: {type(error).__name__} (-v shows where)"
            self.crashes[LintError(shown, message)] = f"{shown}\n{traceback.format_exc()}"
        callers.record(file, found, graph.touched)

    def forget(self, file: Path) -> None:
        """The file has changed on disk."""
        for callers in self._callers.values():
            callers.forget(file)
        self._shapes.pop(file, None)
        self._folders.clear()
        if file.suffix == ".toml":
            self._shapes_of.clear()

    def saved(self, file: Path) -> None:
        """An open document was written to its file: calls that rest on it are to be found out again."""
        for callers in self._callers.values():
            callers.invalidate(file)

    def invalidate(self) -> None:
        """Forget all calls: modules may have moved."""
        self._folders.clear()
        for callers in self._callers.values():
            callers.invalidate_all()
