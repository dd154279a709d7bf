"""Calls on record, with a real jax: what functions got, whoever called them, and the file that keeps it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.known_calls import shapes_file
from tests.probe.running import run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

LAUNCHERS = """
import dataclasses, functools
from typing import NamedTuple
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from wrappers import logged

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def launch(x, bm):
    return pl.pallas_call(
        kernel, grid=(x.shape[0] // bm,), in_specs=[pl.BlockSpec((bm, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((bm, x.shape[1]), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def relu(x):
    return jnp.maximum(x, 0)

@dataclasses.dataclass(frozen=True)
class Config:
    bm: int = 8
    scale: float = 2.0
    act: object = relu
    dtype: object = jnp.bfloat16

class Pair(NamedTuple):
    left: object
    right: object

def plain(x, bm=8, name="fast"):
    return launch(x, bm)

@functools.partial(jax.jit, static_argnames=("cfg",))
def configured(x, *, cfg):
    return launch(x, cfg.bm)

def rebinds(x, bm=8):
    x = x.reshape(-1, 128)
    return launch(x, bm)

def changes(x, bm):
    def change():
        nonlocal bm
        bm = 8
    change()
    return launch(x, bm)

def tree(params, pair, dtype, *rest, **more):
    return launch(params["w"][0], 8)

class Layer:
    def __call__(self, x):
        return launch(x, 8)

@jax.custom_vjp
def custom(x):
    return launch(x, 8)

custom.defvjp(lambda x: (custom(x), x), lambda x, g: (backward(x, g),))

def backward(x, g):
    return launch(g, 8)

def maker(bm, flag):
    def run(x):
        return launch(x, bm)
    return run

@logged
def decorated(x):
    return launch(x, 8)

def kept(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner

@kept
def wrapped_here(x):
    return launch(x, 8)

def in_place(params, bm, **more):
    params["x"] = params["x"].reshape(-1, 128)
    more["made"] = 1
    return launch(params["x"], bm)
"""
WRAPPERS = """
import functools

def logged(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner
"""
PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
import launchers as L

def of(*shape):
    return jnp.ones(shape)

{lines}
"""


def project(folder: Path, *lines: str) -> None:
    (folder / "launchers.py").write_text(LAUNCHERS)
    (folder / "wrappers.py").write_text(WRAPPERS)
    (folder / "program.py").write_text(PROGRAM.format(lines="\n".join(lines)))


def recorded(folder: Path, *lines: str, options: tuple[str, ...] = ()) -> dict[str, list[dict[str, str]]]:
    """The arguments of the calls of each function that a program made."""
    project(folder, *lines)
    no_test = {"PYTEST_CURRENT_TEST": ""}  # which whatever a test starts inherits
    done = run("--capture", "--record", *options, "--", python(), "program.py", cwd=folder, env=no_test)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return calls_in(folder)


def calls_in(folder: Path) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    read = shapes_file.read(folder / shapes_file.NAME, shapes_file.NAME)
    assert not read.problems
    for each in read.known_calls:
        found.setdefault(each.function, []).append(dict(each.arguments))
    return found


PLAIN = {"bm": "8", "name": "'fast'"}


# Each a way to call `plain`, and what it got.
PLAIN_CALLS = {
    "L.plain(of(16, 128))": {"x": "f32[16,128]", **PLAIN},
    "L.plain(of(16, 128), name='/etc/hosts')": {"x": "f32[16,128]", "bm": "8"},
    "L.plain(of(16, 128), name=np.float32(2))": {"x": "f32[16,128]", "bm": "8"},
    "jax.jit(L.plain)(np.ones((16, 128)))": {"x": "f32[16,128]", **PLAIN},
    "jax.vmap(jax.jit(L.plain))(of(3, 16, 128))": {"x": "f32[16,128]", **PLAIN},
    "jax.jit(jax.vmap(L.plain))(of(3, 16, 128))": {"x": "f32[16,128]", **PLAIN},
    "jax.eval_shape(L.plain, of(16, 128))": {"x": "f32[16,128]", **PLAIN},
}
# Each a call of another function, with its name and what it got.
CALLS = [
    ("jax.grad(lambda x: L.custom(x).sum())(of(8, 256))", "backward", {"x": "f32[8,256]", "g": "f32[8,256]"}),
    (
        "L.configured(of(8, 128), cfg=L.Config())",
        "configured",
        {"x": "f32[8,128]", "cfg": "launchers.py:Config(bm=8, act=fn:launchers.py:relu, dtype=dtype:bf16)"},
    ),
    (
        "L.tree({'w': [of(8, 128), 2.5]}, L.Pair(of(1), None), jnp.int8, of(2), more=jax.nn.gelu)",
        "tree",
        {
            "params": "{'w': [f32[8,128], ...]}",
            "pair": "launchers.py:Pair(left=f32[1], right=None)",
            "dtype": "dtype:i8",
            "*0": "f32[2]",
            "more": "fn:jax.nn:gelu",
        },
    ),
    ("L.Layer()(of(8, 128))", "Layer.__call__", {"x": "f32[8,128]"}),
    ("L.maker(8, True)(of(8, 128))", "maker", {"bm": "8"}),
    ("L.decorated(of(8, 128))", "decorated", {"x": "f32[8,128]"}),
    ("L.wrapped_here(of(8, 128))", "wrapped_here", {"x": "f32[8,128]"}),
]


@pytest.mark.parametrize("line", PLAIN_CALLS)
def test_what_a_function_got(line: str, tmp_path: Path) -> None:
    assert recorded(tmp_path, line)["launchers.py::plain"] == [PLAIN_CALLS[line]]
    text = (tmp_path / shapes_file.NAME).read_text()
    assert str(tmp_path) not in text and f'seen = "program.py:{PROGRAM.splitlines().index("{lines}") + 1}"' in text


@pytest.mark.nightly
def test_what_functions_of_one_program_got(tmp_path: Path) -> None:
    found = recorded(tmp_path, *(line for line, _, _ in CALLS))
    expected = {f"launchers.py::{function}": [arguments] for _, function, arguments in CALLS}
    assert {name: calls for name, calls in found.items() if name in expected} == expected


@pytest.mark.nightly
def test_rebound_names_have_their_values_at_entry_or_none(tmp_path: Path) -> None:
    found = recorded(tmp_path, "for n in (2, 4): L.rebinds(of(n, 8, 128))", "L.changes(of(8, 128), 16)")
    version = subprocess.run([python(), "-c", "import sys; print(sys.version_info >= (3, 12))"], capture_output=True)
    if version.stdout.strip() == b"True":
        assert [each["x"] for each in found["launchers.py::rebinds"]] == ["f32[2,8,128]", "f32[4,8,128]"]
        assert found["launchers.py::changes"] == [{"x": "f32[8,128]", "bm": "16"}]
    else:
        assert found["launchers.py::rebinds"] == [{"bm": "8"}]
        assert found["launchers.py::changes"] == [{"x": "f32[8,128]"}]


@pytest.mark.nightly
def test_mutated_objects_have_their_values_at_entry_or_none(tmp_path: Path) -> None:
    (call,) = recorded(tmp_path, "L.in_place({'x': of(2, 8, 128)}, 8, other=3)")["launchers.py::in_place"]
    assert call in ({"bm": "8"}, {"bm": "8", "params": "{'x': f32[2,8,128]}"})


@pytest.mark.nightly
def test_floats_and_strings_where_they_are_recorded(tmp_path: Path) -> None:
    line = "L.plain(of(8, 128), name='a b'); L.configured(of(8, 128), cfg=L.Config())"
    found = recorded(tmp_path, line, options=("--record-values",))
    assert found["launchers.py::plain"][0]["name"] == "'a b'"
    assert "scale=2.0" in found["launchers.py::configured"][0]["cfg"]


@pytest.mark.nightly
def test_a_second_run_adds_and_replacing_forgets(tmp_path: Path) -> None:
    recorded(tmp_path, "L.plain(of(8, 128))")
    assert len(recorded(tmp_path, "L.plain(of(8, 200))")["launchers.py::plain"]) == 2
    before = (tmp_path / shapes_file.NAME).read_bytes()
    recorded(tmp_path, "L.plain(of(8, 200))")
    assert (tmp_path / shapes_file.NAME).read_bytes() == before
    assert len(recorded(tmp_path, "L.plain(of(8, 200))", options=("--record-replace",))["launchers.py::plain"]) == 1


def test_a_broken_file_is_left_as_it_is(tmp_path: Path) -> None:
    project(tmp_path, "L.plain(of(8, 128))")
    (tmp_path / shapes_file.NAME).write_text("version = 1\n[[[")
    done = run("--capture", "--record", "--", python(), "program.py", cwd=tmp_path)
    assert done.returncode == 2 and f"{shapes_file.NAME}:2" in done.stderr
    assert (tmp_path / shapes_file.NAME).read_text() == "version = 1\n[[["


STUBBED = """
print("zeros", float(L.plain(of(8, 128)).sum()))
print("vmap", jax.jit(jax.vmap(L.plain))(of(2, 8, 128)).shape)
print("grad", float(jax.grad(lambda x: L.plain(x).sum())(of(8, 128)).sum()))
from jax.sharding import Mesh, PartitionSpec as P
mapped = getattr(jax, "shard_map", None)
if mapped is None:
    from jax.experimental.shard_map import shard_map as mapped
mesh = Mesh(np.array(jax.devices()[:1]), ("d",))
def sharded(x):
    from jax.experimental import pallas as pl
    kinds = [each for each in ("manual_axis_type", "vma") if hasattr(jax.typeof(x), each)][:1]
    vma = {each: getattr(jax.typeof(x), each) for each in kinds}
    return pl.pallas_call(L.kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype, **vma))(x)
if hasattr(jax, "shard_map"):
    print("shard_map", mapped(sharded, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(of(8, 640)).shape)
"""


def test_stubs_return_zeros_under_every_transformation(tmp_path: Path) -> None:
    project(tmp_path, STUBBED)
    done = run("--capture", "--record-stub", "--", python(), "program.py", cwd=tmp_path)
    for reported in ("zeros 0.0", "vmap (2, 8, 128)", "grad 0.0"):
        assert reported in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert {"x": "f32[8,128]", **PLAIN} in calls_in(tmp_path)["launchers.py::plain"]


TESTS = """
import jax.numpy as jnp, pytest
import launchers as L

@pytest.mark.parametrize("n", [8, 16], ids=["a::b", "c"])
def test_plain(n):
    assert L.plain(jnp.ones((n, 128)))[0, 0] == 2

class TestLayer:
    def test_call(self):
        L.Layer()(jnp.ones((8, 256)))

def test_refused():
    with pytest.raises(ValueError):
        L.plain(jnp.ones((8, 1000)))
        raise ValueError
"""


def with_pytest(folder: Path, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    project(folder)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_launchers.py").write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), *sys.path))}
    return subprocess.run(
        [python(), "-m", "pytest", "-q", *options],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False, env=environment,
    )  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("processes", ["0", "2"])
def test_recording_tests(processes: str, tmp_path: Path) -> None:
    done = with_pytest(tmp_path, "--pallas-lint", "--pallas-lint-record", "-n", processes)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert "pallas-lint-shapes.toml: 3 calls of 2 functions" in done.stdout
    assert calls_in(tmp_path) == {
        "launchers.py::Layer.__call__": [{"x": "f32[8,256]"}],
        "launchers.py::plain": [{"x": f"f32[{n},128]", **PLAIN} for n in (16, 8)],
    }
    text = (tmp_path / shapes_file.NAME).read_text()
    assert 'seen = "tests/test_launchers.py::test_plain"' in text and "TestLayer::test_call" in text


@pytest.mark.nightly
def test_stubbed_tests_are_recorded_though_they_fail(tmp_path: Path) -> None:
    done = with_pytest(tmp_path, "--pallas-lint-record-stub", "-n", "0")
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert len(calls_in(tmp_path)["launchers.py::plain"]) == 2


def test_recording_runs_a_program_and_nothing_more() -> None:
    done = run("--record", "kernels.py::good")
    assert done.returncode == 2 and "--capture --record" in done.stderr


KERNEL = """
import functools, inspect
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def double(x):
    keyword = "out_type" if "out_type" in inspect.signature(pl.kernel).parameters else "out_shape"
    of = {keyword: jax.ShapeDtypeStruct(x.shape, x.dtype)}
    @functools.partial(pl.kernel, mesh=pltpu.create_tensorcore_mesh("c", num_cores=1), **of)
    def body(x_ref, o_ref):
        pltpu.sync_copy(x_ref, o_ref)
    return body(x)

if hasattr(pl, "kernel"):
    double(of(8, 128))
"""


ASKING = """
from jax.experimental.pallas import tpu as pltpu
if hasattr(pltpu, "get_tpu_info"):
    print("cores", pltpu.get_tpu_info().num_cores)
if hasattr(pltpu, "create_tensorcore_mesh"):
    assert dict(pltpu.create_tensorcore_mesh("c").shape) == {"c": 1}
L.plain(of(8, 128))
"""


@pytest.mark.nightly
def test_programs_that_query_the_tpu_get_the_target(tmp_path: Path) -> None:
    assert recorded(tmp_path, ASKING)["launchers.py::plain"]


@pytest.mark.nightly
def test_how_jax_runs_a_kernel_of_a_mesh_is_no_call_of_its_own(tmp_path: Path) -> None:
    found = recorded(tmp_path, KERNEL, "L.plain(of(8, 128))")
    assert found.get("program.py::double", [{"x": "f32[8,128]"}]) == [{"x": "f32[8,128]"}]
    assert (tmp_path / shapes_file.NAME).read_text().count("f32[8,128]") == len(found)
