"""Calls of launchers in other files of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.config.settings import Overrides, SettingsFinder
from pallas_lint.run.cache_folder import CacheFolder, cache_folder
from pallas_lint.run.project import discover
from pallas_lint.run.project_calls import ProjectCalls
from pallas_lint.run.runner import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[..., None]

KERNEL = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x + jnp.sum(x.reshape(x.shape[0] * 4, x.shape[1] // 4))

def rows(x, *, bm=64, interpret=False):
    m, n = x.shape
    spec = pl.BlockSpec((bm, n), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(m // bm,), in_specs=[spec], out_specs=spec, interpret=interpret,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=pltpu.CompilerParams())(x)
"""
HEAD = "import jax\nimport jax.numpy as jnp\nimport pytest\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\n")

    def writing(**texts: str) -> None:
        for name, text in texts.items():
            file = tmp_path / f"{name.replace('__', '/').replace('/init', '/__init__')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return writing


def reported(folder: Path, cache: CacheFolder | None = None, jobs: int = 1, path: str = ".") -> list[tuple[str, str]]:
    """What the findings on the kernel rest on: arguments and source."""
    finder = SettingsFinder(Overrides({"jax-version": "0.10.2"}), folder)
    files = discover([path], finder, cwd=folder).files
    found = run(files, cwd=folder, jobs=jobs, cache_folder=cache).findings
    return [
        (each.known_call.spelled, each.known_call.source) for each in found if each.code == "PAL202" and each.known_call
    ]


@pytest.mark.parametrize(
    "test",
    [
        "from kern import rows\ndef test_rows():\n    rows(jnp.ones((256, 200)))\n",
        "import kern\ndef test_rows():\n    kern.rows(jnp.ones((256, 200)))\n",
        "from kern import rows as r\ndef test_rows():\n    jax.jit(r)(jnp.ones((256, 200)))\n",
        "def test_rows():\n    from kern import rows\n    rows(jnp.zeros((256, 200), jnp.float32))\n",
        "from kern import rows\nrows(jax.random.normal(jax.random.key(0), (256, 200)))\n",
        "from kern import rows\nclass TestRows:\n    def test_rows(self):\n        rows(jnp.ones((256, 200)))\n",
        "from kern import rows\ndef make():\n    return jnp.ones((256, 200))\ndef test_rows():\n    rows(make())\n",
        "from kern import rows\ndef check(n):\n    rows(jnp.ones((256, n)))\ndef test_rows():\n    check(200)\n",
    ],
)
def test_a_test_gives_shapes(tmp_path: Path, write: Write, test: str) -> None:
    write(kern=KERNEL, tests__test_kern=HEAD + test)
    ((arguments, source),) = reported(tmp_path)
    assert arguments.startswith("x: f32[256,200], bm=64")
    assert source.startswith("tests/test_kern.py:")


@pytest.mark.parametrize(
    "test",
    [
        "from other import rows\ndef test_rows():\n    rows(jnp.ones((256, 200)))\n",
        "from kern import rows\ndef test_other(rows):\n    rows(jnp.ones((256, 200)))\n",
        "from kern import rows\ndef test_a():\n    with pytest.raises(OSError):\n        rows(jnp.ones((8, 200)))\n",
        "from kern import rows\ndef test_rows(flag):\n    if flag:\n        rows(jnp.ones((256, 200)))\n",
        "from kern import rows\ndef test_rows():\n    rows(jnp.ones((256, 200)), interpret=True)\n",
        "from kern import rows\ndef test_rows(x):\n    rows(x)\n",
        "from kern import rows\ndef half(:\n",
    ],
)
def test_a_test_gives_no_shapes(tmp_path: Path, write: Write, test: str) -> None:
    write(kern=KERNEL, tests__test_kern=HEAD + test)
    assert not reported(tmp_path)


def test_over_other_files(tmp_path: Path, write: Write) -> None:
    write(
        pkg__init="from .ops import attend\n",
        pkg__kern=KERNEL,
        pkg__ops="from .kern import rows\n\ndef attend(x, scale):\n    return rows(x * scale, bm=32)\n",
        bench__run=HEAD + "import pkg\nif __name__ == '__main__':\n    pkg.attend(jnp.ones((256, 200)), 2.0)\n",
    )
    assert reported(tmp_path) == [("x: f32[256,200], bm=32, interpret=False", "bench/run.py:6")]


def test_the_kernel_alone(tmp_path: Path, write: Write) -> None:
    """Linting one file tells the same as linting all."""
    write(
        kern=KERNEL, tests__test_kern=HEAD + "from kern import rows\ndef test_rows():\n    rows(jnp.ones((256, 200)))\n"
    )
    assert reported(tmp_path, path="kern.py") == reported(tmp_path) != []


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_cache_knows_what_a_verdict_rests_on(tmp_path: Path, write: Write, jobs: int) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    cache = cache_folder(folder, tmp_path / "cache")
    (tmp_path / "pyproject.toml").rename(folder / "pyproject.toml")
    (folder / "kern.py").write_text(KERNEL)
    test = folder / "test_kern.py"
    assert not reported(folder, cache, jobs)
    for columns in (200, 200, 40, 200):
        test.write_text(HEAD + f"from kern import rows\ndef test_rows():\n    rows(jnp.ones((256, {columns})))\n")
        for _ in range(2):
            assert reported(folder, cache, jobs) == [
                (f"x: f32[256,{columns}], bm=64, interpret=False", "test_kern.py:6")
            ]
    # A helper of the test counts, too.
    (folder / "sizes.py").write_text("N = 40\n")
    test.write_text(
        HEAD + "from kern import rows\nfrom sizes import N\ndef test_rows():\n    rows(jnp.ones((256, N)))\n"
    )
    assert reported(folder, cache, jobs)[0][0].startswith("x: f32[256,40]")
    (folder / "sizes.py").write_text("N = 2000\n")
    assert reported(folder, cache, jobs)[0][0].startswith("x: f32[256,2000]")
    test.unlink()
    assert not reported(folder, cache, jobs)


def test_what_is_kept_and_broken_is_found_out_again(tmp_path: Path, write: Write) -> None:
    write(
        kern=KERNEL, tests__test_kern=HEAD + "from kern import rows\ndef test_rows():\n    rows(jnp.ones((256, 200)))\n"
    )
    cache = cache_folder(tmp_path, tmp_path / "cache")
    assert cache is not None
    before = reported(tmp_path, cache)
    (kept,) = cache.path.glob("calls/??/*")
    name = kept.parent.name + kept.name
    content = cache.read("calls", name)
    assert content is not None
    cache.write("calls", name, content[:-20])
    assert reported(tmp_path, cache) == before != []


def test_a_project_without_kernels_runs_nothing(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(a="import b\n", b="x = 1\n")
    monkeypatch.setattr(ProjectCalls, "_find_calls", lambda *_: pytest.fail("something ran"))
    assert not reported(tmp_path)


CONFIGURED = KERNEL.replace(
    "def rows(x, *, bm=64, interpret=False):\n    m, n = x.shape",
    "def rows(x, cfg):\n    m, n = x.shape\n    bm, interpret = cfg.bm, False",
)


DATA = "@dataclasses.dataclass\nclass Config:\n    bm: int = 64\n    note: object = None\n"
NAMED = "class Config(typing.NamedTuple):\n    bm: int\n    note: str = ''\n"
MODES = "class Config(enum.Enum):\n    SMALL = 32\n    @property\n    def bm(self):\n        return self.value\n"


@pytest.mark.parametrize(
    ("config", "made", "known"),
    [
        (DATA, "Config(bm=32, note=jnp)", True),
        (NAMED, "Config(32)", True),
        (MODES, "Config.SMALL", True),
        (DATA, "Config(bm=open('bm'))", False),
    ],
)
def test_configurations(tmp_path: Path, write: Write, config: str, made: str, known: bool) -> None:
    """A field that cannot be written need not have its default."""
    test = f"from kern import rows, Config\ndef test_rows():\n    rows(jnp.ones((256, 200)), {made})\n"
    write(kern=f"import dataclasses, enum, typing\n{config}{CONFIGURED}", tests__test_kern=HEAD + test)
    finder = SettingsFinder(Overrides({"jax-version": "0.10.2"}), tmp_path)
    found = run(discover(["."], finder, cwd=tmp_path).files, cwd=tmp_path, jobs=1).findings
    messages = [each.message for each in found if each.code == "PAL202"]
    assert any(message.startswith("reshape of (32, 200)") for message in messages) is known
    assert not any("(64, 200)" in message for message in messages)


def test_a_file_that_takes_too_long_gives_what_was_found(tmp_path: Path, write: Write) -> None:
    endless = "    n = 0\n    while n < 10 ** 9:\n        n = max(n + 1, abs(-n))\n"
    calls = f"def test_it():\n    rows(jnp.ones((256, 200)))\n{endless * 2000}    rows(jnp.ones((512, 200)))\n"
    write(kern=KERNEL, test_it=HEAD + "from kern import rows\n" + calls)
    assert [arguments for arguments, _ in reported(tmp_path)] == ["x: f32[256,200], bm=64, interpret=False"]


def test_a_number_of_the_host_is_no_array(tmp_path: Path, write: Write) -> None:
    """`if scale != 1.0` in a kernel is decided by Python: of an array it would be traced."""
    calls = "import math\ndef test_it(x):\n    rows(jnp.ones((256, 200)), scale=1 / math.sqrt(x.shape[0]))\n"
    kernel = KERNEL.replace("bm=64", "bm=64, scale=1.0")
    write(kern=kernel, test_it=HEAD + "from kern import rows\n" + calls)
    assert [arguments for arguments, _ in reported(tmp_path)] == ["x: f32[256,200], bm=64, interpret=False"]


FACTORY = """

def make(bm):
    def call(x):
        return rows(x, bm=bm)

    return call
"""


def test_what_a_factory_returns_is_known_by_what_it_calls(write: Write, tmp_path: Path) -> None:
    test = f"{HEAD}from kern import make\ndef test_rows():\n    make(128)(jnp.ones((256, 200)))\n"
    write(kern=KERNEL + FACTORY, test_kern=test)
    assert reported(tmp_path) == [("x: f32[256,200], bm=128, interpret=False", "test_kern.py:6")]


HELPER = """
from jax.experimental import pallas as pl

def compat(kernel, *, interpret=None, **options):
    options.pop("stages", None)
    return pl.pallas_call(kernel, interpret=interpret, **options)
"""


def test_a_launch_by_a_helper_in_another_file(tmp_path: Path, write: Write) -> None:
    """The kernel's file has callers like one that launches itself, and its launch counts with their shapes."""
    kernel = KERNEL.replace("pl.pallas_call(", "compat(").replace("interpret=False", "interpret=None")
    test = HEAD + "from kern import rows\ndef test_rows():\n    rows(jnp.ones((256, 200)))\n"
    write(helper=HELPER, kern=f"from helper import compat\n{kernel}", tests__test_kern=test)
    ((arguments, source),) = reported(tmp_path)
    assert arguments.startswith("x: f32[256,200], bm=64")
    assert source == "tests/test_kern.py:6"
    files = discover(["."], SettingsFinder(Overrides({"jax-version": "0.10.2"}), tmp_path), cwd=tmp_path).files
    (launch,) = run(files, cwd=tmp_path, jobs=1).launches
    assert (launch.path, launch.kernel, launch.shapes) == ("helper.py", "kernel", True)


CONFIG = """
from dataclasses import dataclass

@dataclass
class Config:
    rows: int

def rows_of(config):
    \"\"\"The rows.
LINES
    \"\"\"
    if config.rows <= 0:
        raise ValueError(config)
    return int(config.rows)
"""


@pytest.mark.parametrize(("lines", "known"), [(40, True), (80, False)])
def test_sizes_that_a_function_of_another_file_reads(tmp_path: Path, write: Write, lines: int, known: bool) -> None:
    """Short functions that get a configuration are run, also in files without kernels."""
    kernel = KERNEL.replace("def rows(x, ", "def rows(x, config, ").replace("(x.shape, x.dtype)", "(shape, x.dtype)")
    kernel = kernel.replace("    m, n = x.shape\n", "    m, n = x.shape\n    shape = (rows_of(config), n)\n")
    call = "def test_rows():\n    rows(jnp.ones((256, 128)), Config(rows=256))\n"
    write(
        config=CONFIG.replace("LINES", "\n" * lines),
        kern=f"from config import rows_of\n{kernel}",
        tests__test_kern=f"{HEAD}from config import Config\nfrom kern import rows\n{call}",
    )
    files = discover(["."], SettingsFinder(Overrides({"jax-version": "0.10.2"}), tmp_path), cwd=tmp_path).files
    (launch,) = run(files, cwd=tmp_path, jobs=1).launches
    assert launch.shapes is known


def test_what_a_launcher_of_another_file_returns(tmp_path: Path, write: Write) -> None:
    """Its launch is judged in its own file, and the shape of its result is known here."""
    flip = """
def flip_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...].T

def flip(x):
    return pl.pallas_call(flip_kernel, out_shape=jax.ShapeDtypeStruct(x.shape[::-1], x.dtype))(x)
"""
    write(
        flips=KERNEL[: KERNEL.index("def kernel")] + flip,
        kern="from flips import flip\n"
        + KERNEL.replace("    m, n = x.shape\n", "    x = flip(x)\n    m, n = x.shape\n"),
        tests__test_kern=f"{HEAD}from kern import rows\ndef test_rows():\n    rows(jnp.ones((128, 256)))\n",
    )
    files = discover(["."], SettingsFinder(Overrides({"jax-version": "0.10.2"}), tmp_path), cwd=tmp_path).files
    launches = {launch.path: launch for launch in run(files, cwd=tmp_path, jobs=1).launches}
    assert sorted(launches) == ["flips.py", "kern.py"]
    assert launches["kern.py"].types == "f32[256,128] → f32[256,128]" and launches["flips.py"].shapes


def test_a_kernel_given_to_a_launcher_of_another_file(tmp_path: Path, write: Write) -> None:
    """A test that hands its own kernel to a launcher is a caller of the launcher, as any other."""
    write(
        kern=KERNEL.replace("def rows(x, ", "def rows(kernel, x, "),
        tests__test_kern=HEAD
        + "from kern import kernel as k, rows\ndef test_rows():\n    rows(k, jnp.ones((256, 200)))\n",
    )
    ((arguments, _),) = reported(tmp_path)
    assert "x: f32[256,200]" in arguments
