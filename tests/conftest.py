"""How a run of the tests is spread over processes, and what these share."""

from __future__ import annotations

import gc
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sampling import NIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_configure(config: pytest.Config) -> None:
    """Keep bytecode where none is wanted beside the sources: to compile them at every start takes most of a run."""
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(config.rootpath / ".pytest_cache" / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.setdefault("PYTHONPYCACHEPREFIX", sys.pycache_prefix)


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """No workers for tests that are requested by name: these take longer to start than a few tests do."""
    named = any(".py" in argument for argument in config.args)
    return 0 if named or config.option.keyword or config.getoption("lf", False) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the first case of each slow test by day; attacks always run."""
    seen: set[str] = set()
    left_out: list[pytest.Item] = []
    for item in items:
        if item.get_closest_marker("slow") and "hostile" not in item.path.parts:
            test = item.nodeid.partition("[")[0]
            left_out += [item] if test in seen else []
            seen.add(test)
    if left_out and not NIGHT:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish() -> None:
    """Collect garbage less often, and leave out modules and tests: they stay until the end, and are many."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.fixture(scope="session", autouse=True)
def findings_of_a_text_once() -> Iterator[None]:
    """Tests of a rule come back to the same texts: before and after a fix, with and without a caller."""
    from pallas_lint import testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "findings_of", lru_cache(1024)(testing.findings_of))
        yield


@pytest.fixture(scope="session", autouse=True)
def own_user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for caches of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("user-cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def text_as_wide_as_it_is() -> Iterator[None]:
    """No width of a terminal: xdist tells its workers one, readline what they start, unknown to `os.environ`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PALLAS_LINT_AGENT", "0")  # also where an agent runs the tests: they check the text formats
        patch.delenv("COLUMNS", raising=False)
        os.unsetenv("COLUMNS")
        yield


@pytest.fixture(scope="session", autouse=True)
def programs_that_run_once() -> Iterator[None]:
    """What jax runs in tests it runs once: to make that quick takes XLA longer than to run it. At night as users do."""
    with pytest.MonkeyPatch.context() as patch:
        if not NIGHT:
            patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        yield


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository, in an environment that knows no jax."""
    from pallas_lint.config import environment

    place = Path(os.path.realpath(tmp_path))
    (place / ".git").mkdir()
    monkeypatch.chdir(place)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setattr(environment, "_in_own_environment", lambda: None)
    return place
