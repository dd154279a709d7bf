"""Version guards: the versions for which guarded code is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.run.project import Project
from pallas_lint.syntax.uses import Uses
from pallas_lint.text.source import Source

HEAD = "import jax\nfrom jax.experimental.pallas import tpu as pltpu\n"
ALL = ("0.5.3", "0.7.2", "0.10.2")


def reached(code: str, versions: tuple[str, ...] = ALL) -> tuple[str, ...]:
    """The versions in which the last use of `pltpu.X` in the code is reached."""
    source = Source("example.py", HEAD + code + "\n")
    module = Project(Path("/nonexistent")).graph().add(source, None)
    tree = module.outline.tree
    assert tree is not None
    use = [use for use in Uses(source, tree.root_node).all if use.name.endswith(".X")][-1]
    return analyse(module, versions, {}).guards.reached_in(use, versions)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pltpu.X", ALL),
        ("if debug:\n    pltpu.X", ALL),
        ("if jax.__version_info__ >= (0, 7):\n    pltpu.X", ("0.7.2", "0.10.2")),
        ("if jax.__version_info__ >= (0, 7):\n    x\nelse:\n    pltpu.X", ("0.5.3",)),
        ("x = a if jax.__version_info__ < (0, 8, 0) else pltpu.X", ("0.10.2",)),
        ("NEW = jax.__version_info__ >= (0, 8)\nif NEW:\n    pltpu.X", ("0.10.2",)),
        ("NEW = jax.__version_info__ >= (0, 8)\nif not NEW:\n    pltpu.X", ("0.5.3", "0.7.2")),
        ("if hasattr(pltpu, 'CompilerParams'):\n    pltpu.X", ("0.7.2", "0.10.2")),
        ("if hasattr(pltpu, 'CompilerParams'):\n    x\nelse:\n    pltpu.X", ("0.5.3",)),
        ("P = getattr(pltpu, 'CompilerParams', None) or pltpu.X", ("0.5.3",)),
        (
            "def f():\n    if hasattr(pltpu, 'CompilerParams'):\n        return 1\n    return pltpu.X",
            ("0.5.3",),
        ),
        ("if jax.__version_info__ >= (0, 7) and debug:\n    pltpu.X", ("0.7.2", "0.10.2")),
        ("if jax.__version_info__ >= (0, 7) and debug:\n    x\nelse:\n    pltpu.X", ALL),
        ("if debug or jax.__version_info__ >= (0, 7):\n    x\nelse:\n    pltpu.X", ("0.5.3",)),
        ("if not (jax.__version_info__ >= (0, 7)):\n    pltpu.X", ("0.5.3",)),
        ("if TYPE_CHECKING:\n    pltpu.X", ()),
        ("if version_is_new():\n    pltpu.X", ()),
        ("def f():\n    new = jax.__version_info__ >= limit\n    if new:\n        pltpu.X", ()),
        ("def new():\n    return 'a' in inspect.signature(f).parameters\nif new():\n    pltpu.X", ()),
        ("@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason='old')\ndef test():\n    pltpu.X", ()),
        ("try:\n    pltpu.X\nexcept AttributeError:\n    x", ()),
    ],
)
def test_reached(code: str, expected: tuple[str, ...]) -> None:
    assert reached(code) == expected


@pytest.mark.parametrize("version", ALL)
def test_one_version_alone_gives_the_same(version: str) -> None:
    code = "NEW = jax.__version_info__ >= (0, 8)\nif NEW and debug:\n    pltpu.X"
    assert reached(code, (version,)) == ((version,) if version == "0.10.2" else ())
