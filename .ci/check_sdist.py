"""Check that a source distribution has every file of the repository: whoever packages it runs the tests from there."""

from __future__ import annotations

import sys
import tarfile


def files_in(archive: str) -> set[str]:
    with tarfile.open(archive) as tar:
        return {member.name.removeprefix("./") for member in tar.getmembers() if member.isfile()}


def main(source: str, sdist: str) -> None:
    """Exit with a message if a file is missing. `source`: an archive of what git has."""
    within = {name.partition("/")[2] for name in files_in(sdist)}
    missing = sorted(files_in(source) - within)
    assert not missing, f"{len(missing)} files are not in the sdist, say {', '.join(missing[:5])}"
    print(f"{len(within)} files in the sdist, all of the repository's among them")


if __name__ == "__main__":
    main(*sys.argv[1:])
