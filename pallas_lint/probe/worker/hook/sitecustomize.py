"""Found by Python at start-up through PYTHONPATH when a program's launches are captured: sets the capture going.

Whatever other `sitecustomize` the environment has runs as it would have.
"""

import importlib.util
import os
import sys


def _start_capture() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    main = os.path.join(os.path.dirname(here), "main.py")
    spec = importlib.util.spec_from_file_location("_pallas_lint_probe_main", main)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load_package()
    importlib.import_module(module.WORKER + ".capture").start(os.environ["PALLAS_LINT_CAPTURE"])


def _run_next() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    for entry in sys.path:
        file = os.path.join(entry or ".", "sitecustomize.py")
        if os.path.abspath(entry or ".") != here and os.path.isfile(file):
            spec = importlib.util.spec_from_file_location("sitecustomize", file)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules["sitecustomize"] = module
            spec.loader.exec_module(module)
            return


if os.environ.get("PALLAS_LINT_CAPTURE"):
    _start_capture()
_run_next()
