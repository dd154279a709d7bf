"""A sample of the packed verdicts, measured again with an installed jax."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = 60


def interpreter() -> str:
    """Interpreter with jax: the one named by the environment, or the running one."""
    named = os.environ.get("PALLAS_LINT_JAX_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("jax") is not None:
        return sys.executable
    pytest.fail("no jax here: set PALLAS_LINT_JAX_PYTHON to an interpreter that has one of the measured versions")


@pytest.mark.nightly
def test_a_random_sample_agrees_with_the_installed_jax() -> None:
    spec = importlib.util.spec_from_file_location("check_sample", ROOT / "tools" / "check_sample.py")
    assert spec is not None
    assert spec.loader is not None
    check_sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check_sample)
    agree, other = check_sample.compare(interpreter(), SAMPLE, seed=20)
    assert agree >= SAMPLE * 0.97, "\n".join(other)
