"""Imports that fixes leave without a use go; all others stay."""

from __future__ import annotations

import pytest

from pallas_lint.fixes.idle_imports import without_idle_imports

PLTPU = "from jax.experimental.pallas import tpu as pltpu\n"
HEAD = f"import os\nimport jax\nfrom jax.experimental import pallas as pl\n{PLTPU}"
KEEPS = HEAD + "x = (jax, pl, pltpu)\n"


def test_what_is_used_no_more_goes() -> None:
    after = HEAD + "x = (jax, pl)\n"
    assert without_idle_imports(KEEPS, after) == after.replace(PLTPU, "")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_one_of_several(line_end: str) -> None:
    before = "from jax.experimental.pallas import tpu, triton\nx = (tpu, triton)\n"
    after = before.replace("(tpu, triton)", "triton")
    wanted = "from jax.experimental.pallas import triton\nx = triton\n"
    found = without_idle_imports(before.replace("\n", line_end), after.replace("\n", line_end))
    assert found == wanted.replace("\n", line_end)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(HEAD + "x = 1\n", HEAD + "x = 2\n", id="never used"),
        pytest.param("import os\nx = os\n", "import os\nx = 1\n", id="not of jax"),
        pytest.param(
            "import jax\n__all__ = ['jax']\nx = jax\n", "import jax\n__all__ = ['jax']\nx = 1\n", id="offered"
        ),
        pytest.param("import jax; y = 1\nx = jax\n", "import jax; y = 1\nx = 1\n", id="not alone on its line"),
        pytest.param("import jax\nx = jax\n", "import jax\nx = (\n", id="does not parse"),
        pytest.param(
            "try:\n    import jax\nexcept ImportError:\n    pass\nx = jax\n",
            "try:\n    import jax\nexcept ImportError:\n    pass\nx = 1\n",
            id="guarded",
        ),
        pytest.param(
            "from jax import (\n    lax,  # the one\n    nn,\n)\nx = (lax, nn)\n",
            "from jax import (\n    lax,  # the one\n    nn,\n)\nx = nn\n",
            id="with comments",
        ),
    ],
)
def test_what_stays(before: str, after: str) -> None:
    assert without_idle_imports(before, after) == after
