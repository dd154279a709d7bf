"""Check that a source distribution has what the tests need: whoever packages it runs them from there."""

from __future__ import annotations

import sys
import tarfile

FOLDERS = ("tests/", "examples/", "docs/", "tools/", "pallas_lint/", "rules/", "server/")


def files_in(archive: str) -> set[str]:
    with tarfile.open(archive) as tar:
        return {member.name.removeprefix("./") for member in tar.getmembers() if member.isfile()}


def main(source: str, sdist: str) -> None:
    """Exit with a message if a file is missing. `source`: an archive of what git has."""
    within = {name.partition("/")[2] for name in files_in(sdist)}
    # The source may be a folder without git, with whatever else lies in it.
    wanted = {name for name in files_in(source) if name.startswith(FOLDERS) and "__pycache__" not in name}
    missing = sorted(wanted - within)
    assert not missing, f"{len(missing)} files are not in the sdist, say {', '.join(missing[:5])}"
    print(f"{len(within)} files in the sdist, the {len(wanted)} that the tests need among them")


if __name__ == "__main__":
    main(*sys.argv[1:])
