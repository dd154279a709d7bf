"""Start of the worker: `python main.py`. Reads requests from standard input, answers on standard output.

`python main.py --guard` does so under a guard that ends what it leaves behind; `python main.py --guard COMMAND` runs a
program under one instead. `--byte-code FOLDER` before them names where byte code of installed packages is kept.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys

PACKAGE = "_pallas_lint_probe"
WORKER = f"{PACKAGE}.worker"


def load_package() -> None:
    """Make this folder importable as WORKER, with what it shares with the probe, and take it off the search path."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    around = os.path.dirname(here)
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(around, "__init__.py"), submodule_search_locations=[around]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)


def serve() -> int:
    """Answer requests until there are no more; returns the exit status."""
    status: int = importlib.import_module(f"{WORKER}.server").serve()
    return status


if __name__ == "__main__":
    sys.dont_write_bytecode = True  # nothing is written beside the user's files, nor into a shared install
    load_package()
    arguments = sys.argv[1:]
    if arguments[:1] == ["--byte-code"]:
        importlib.import_module(f"{WORKER}.byte_code").keep_in(arguments[1])
        del arguments[:2]
    if arguments[:1] == ["--guard"]:
        guard = importlib.import_module(f"{WORKER}.guard")
        sys.exit(guard.guard(functools.partial(guard.become, arguments[1:]) if arguments[1:] else serve))
    sys.exit(serve())
