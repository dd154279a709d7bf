"""Starts pallas-lint for an editor: from the libraries beside this file, or from the interpreter's own environment.

Run by path, so that no folder of the user's project is on the path of imports. `PALLAS_LINT_LIBRARIES` is `bundled`
(also if unset) or `environment`; arguments are those of `pallas-lint`. With `--describe` it says as JSON what the
interpreter is and has. Written for Python 3.6, too: it has to say that one is too old.
"""

import json
import os
import platform
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = HERE.parent / "libs"
OLDEST_PYTHON = (3, 10)
OLDEST_GLIBC = (2, 28)  # of the compiled modules


def native_folder():
    """The name of the folder with compiled modules for this platform, as in `linux-x86_64`."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if sys.platform == "win32":  # an ARM machine runs either kind of process
        machine = "aarch64" if "arm64" in sys.version.lower() else "x86_64" if sys.maxsize > 2**32 else "x86"
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    return f"{system}-{machine}"


def bundled_problem():
    """Why the bundled libraries cannot be used by this interpreter; None where they can."""
    if sys.version_info < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return f"Python {platform.python_version()} is too old, pallas-lint needs {oldest} or newer"
    # Compiled files have the Python, and on Linux the C library, in their names.
    package = LIBRARIES / native_folder() / "libcst"
    missing = f"{sys.implementation.name} {platform.python_version()} on {native_folder()}"
    if any((package / f"native{suffix}").is_file() for suffix in EXTENSION_SUFFIXES):
        glibc = platform.libc_ver()[1] if sys.platform == "linux" else ""
        if not glibc or tuple(int(part) for part in glibc.split(".")[:2]) >= OLDEST_GLIBC:
            return None
        missing = "glibc " + glibc
    return (
        f"no libraries for {missing} come with the extension: install pallas-lint[server] for it, or choose another "
        "Python with pallasLint.interpreter"
    )


def installed(distribution):
    """The version of an installed distribution; None without it."""
    try:
        from importlib.metadata import version

        return version(distribution)
    except Exception:  # Python 3.7, or metadata that cannot be read
        return None


def describe():
    """What this interpreter is and has."""
    return {
        "executable": sys.executable,
        "version": platform.python_version(),
        "pallasLint": installed("pallas-lint"),
        "pygls": installed("pygls"),
        "bundledProblem": bundled_problem(),
    }


def use_bundled():
    """Put the bundled libraries before everything else on the path of imports. Exits where none fit."""
    problem = bundled_problem()
    if problem is not None:
        sys.exit("pallas-lint: " + problem)
    # Copies of the environment are never mixed with ours.
    sys.path[:0] = [str(LIBRARIES / "common"), str(LIBRARIES / native_folder())]


def main():
    # The script's own folder is on the path unless PYTHONSAFEPATH is set; nothing is imported from it.
    sys.path[:] = [place for place in sys.path if place and Path(place).resolve() != HERE]
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(describe()))
        return
    if os.environ.get("PALLAS_LINT_LIBRARIES", "bundled") == "bundled":
        use_bundled()
    from pallas_lint.cli import main as pallas_lint

    sys.exit(pallas_lint(sys.argv[1:]))


if __name__ == "__main__":
    main()
