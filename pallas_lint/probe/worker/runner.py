"""`python runner.py script.py ...`, `-m module ...`, `-c code ...`: as Python would, then the examination.

A program is examined before its interpreter shuts down: from Python 3.12 on nothing can be forked any more then.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from types import ModuleType


def _main_module() -> ModuleType:
    file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "main.py")
    spec = importlib.util.spec_from_file_location("_pallas_lint_probe_main", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(words: list[str]) -> None:
    """The program; returns or raises as it ends."""
    sys.path[:] = [
        entry for entry in sys.path if os.path.abspath(entry or ".") != os.path.dirname(os.path.abspath(__file__))
    ]
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        module = ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(words[1], "<string>", "exec"), module.__dict__)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main = _main_module()
    if main.PACKAGE not in sys.modules:  # else the hook has started the capture
        main.load_package()
    capture = importlib.import_module(f"{main.WORKER}.capture").start(os.environ["PALLAS_LINT_CAPTURE"])
    try:
        _run(sys.argv[1:])
    finally:
        capture.finish()
