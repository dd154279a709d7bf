"""Projects whose known calls are given: no files are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.records import define
from pallas_lint.run.project import Project

if TYPE_CHECKING:
    from pallas_lint.known_calls.known_call import KnownCall

NOWHERE = Path("/nonexistent")  # no folder has to be searched for calls


@define(eq=False, slots=False)
class ProjectWithCalls(Project):
    """A project with these known calls."""

    given: tuple[KnownCall, ...] = ()

    def known_calls(self, *_: object) -> tuple[KnownCall, ...]:
        return self.given
