"""Check the installed distribution: its import names, its data, and what linting imports."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib import metadata

CODE = """
import sys
from pallas_lint.cli import main
status = main(["--isolated", "--no-cache", "--jax-version", "0.10.2", "-q", "--output-format", "concise", sys.argv[1]])
assert status == 1, status
heavy = sorted({"jax", "jaxlib", "numpy", "pygls", "rich"} & {name.partition(".")[0] for name in sys.modules})
assert not heavy, f"linting imports {heavy}"
"""


def main(examples: str) -> None:
    """Exit with a message at the first thing that is not as it should be."""
    assert "repo" not in (importlib.util.find_spec("pallas_lint").origin or ""), "not the installed package"
    for name in ("rules", "server", "tests", "tools", "benchmarks", "examples"):
        assert importlib.util.find_spec(name) is None, f"a top-level module {name} was installed"
    files = {file.as_posix() for file in metadata.files("pallas-lint") or ()}
    for wanted in (
        "pallas_lint/py.typed",
        "pallas_lint/rules/registry.py",
        "pallas_lint/compat/data/versions.json",
    ):
        assert wanted in files, f"{wanted} is not in the wheel"
    about = metadata.metadata("pallas-lint")
    links = {line.partition(",")[0] for line in about.get_all("Project-URL") or ()}
    assert links >= {"Homepage", "Documentation", "Repository", "Issues", "Changelog"}, f"PyPI shows {sorted(links)}"
    licences = [file for file in metadata.files("pallas-lint") or () if file.name == "LICENSE"]
    assert licences, "the licence is not in the wheel"
    assert "Apache License" in licences[0].read_text(encoding="utf-8"), "the licence has no text"
    environment = {**os.environ, "PYTHONPATH": ""}
    ran = subprocess.run([sys.executable, "-c", CODE, examples], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    print(f"{len(files)} files, no stray import names, linting imports nothing heavy")


if __name__ == "__main__":
    main(sys.argv[1])
