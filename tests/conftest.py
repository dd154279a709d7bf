"""How a run of the tests is spread over processes, and what these share."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Keep bytecode where none is wanted beside the sources: to compile them at every start takes most of a run."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(config.rootpath / ".pytest_cache" / "bytecode"))


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """No workers for tests that are asked for by name: these take longer to start than a few tests do."""
    named = any(".py" in argument for argument in config.args)
    return 0 if named or config.option.keyword or config.getoption("lf", False) else None
