"""What whole functions cost, and plain jax beside them: probed with a real jax."""

from __future__ import annotations

import json
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pallas_lint.probe.client import Worker
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target
from pallas_lint.probe.worker.inputs.other_functions import named
from tests.probe.running import run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pathlib import Path

FUNCTIONS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P


def add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def around(x, y, *, rows=512):
    spec = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    z = pl.pallas_call(add, grid=(x.shape[0] // rows,), in_specs=[spec, spec], out_specs=spec, out_shape=x)(x.T, y)
    return jnp.tanh(z).sum(axis=0)


def plain(x, y):
    return jnp.tanh(x.T + y).sum(axis=0)


def empty(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return copied(x + pl.pallas_call(add, grid=(0,), in_specs=[spec, spec], out_specs=spec, out_shape=x)(x, x))


def copied(x):
    make_mesh = getattr(pltpu, "TensorCoreMesh", None) or pltpu.create_tensorcore_mesh
    return pl.kernel(pltpu.sync_copy, x, mesh=make_mesh("core", num_cores=1))(x)  # here


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


@jax.custom_vjp
def doubled(x):
    return pl.pallas_call(double, out_shape=x)(x)


def forward(x):
    return pl.pallas_call(add, out_shape=x)(x, x), None


doubled.defvjp(forward, lambda _, g: (pl.pallas_call(double, out_shape=g)(g),))


def selected(table, x):
    def copy_rows(rows_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    row = pl.BlockSpec((128, 128), lambda i, rows: (i, 0))
    other = pl.BlockSpec((128, 128), lambda i, rows: (rows[i], 0))
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[other], out_specs=row)
    return pl.pallas_call(copy_rows, grid_spec=spec, out_shape=x)(table - 1, x)


remembered = jax.custom_vjp(selected)
remembered.defvjp(lambda table, x: (selected(table, x), None), lambda _, g: (None, g), optimize_remat=True)


def flagged(flags, x):
    def copy_chosen(flags_ref, x_ref, o_ref):
        @pl.when(flags_ref[pl.program_id(0)])
        def _():
            o_ref[...] = x_ref[...]

    block = pl.BlockSpec((128, 128), lambda i, flags: (i, 0))
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[block], out_specs=block)
    return pl.pallas_call(copy_chosen, grid_spec=spec, out_shape=x)(flags, x)


def flags_of(x):
    return flagged(jnp.asarray([True, False]), x)


def derived(x):
    return jax.value_and_grad(lambda x: remembered(jnp.arange(1, 3), x).sum())(x)


def rows_of(table):
    return doubled(jnp.zeros((256, 128), jnp.float32).at[table].set(1.0))


def counted(x):  # traced twice, since its count begins as an integer; the kernel is another one then
    def step(state):
        def chosen(rows_ref, x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        count, x = state
        block = pl.BlockSpec((128, 128), lambda i, rows: (rows[i], 0))
        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[block], out_specs=block)
        return count + jnp.float32(1), pl.pallas_call(chosen, grid_spec=spec, out_shape=x)(jnp.arange(2), x)

    return jax.lax.while_loop(lambda state: state[0] < 3, step, (0, x))


def twice(xs):
    return jax.vmap(doubled)(xs) + doubled(xs[0])


def summed(x, y, mesh=jax.make_mesh((2,), ("d",))):
    def local(x, y):
        return jax.lax.psum(around(x, y, rows=256), "d")

    in_specs = (P("d", None), P(None, "d"))
    return jax.shard_map(local, mesh=mesh, in_specs=in_specs, out_specs=P(), check_vma=False)(x, y)


def chosen_by_device(x):
    from jax.extend.backend import get_default_device

    place = get_default_device()  # before anything else looks for devices
    if place.platform != "tpu" or "TPU" not in place.device_kind:
        raise NotImplementedError(f"not on {place.device_kind}")
    return doubled(x)


def gradients(xs):
    return jax.vmap(jax.grad(lambda x: (jax.jit(doubled)(x) ** 2).sum()))(xs)
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_function_beside_plain_jax(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = ("functions.py::around", "f32[1024,1024]", "f32[1024,1024]", "rows=256", "--target", "tpu:v5e")
    given = ("--stage", "cost", "--python", python(), "--output-format", "json")
    report = json.loads(run(*words, *given, "--against", "plain", cwd=tmp_path).stdout)
    (found,) = report["functions"]
    (tmp_path / "before.py").write_text(FUNCTIONS)
    (beside,) = json.loads(run(*words, *given, "--against", "before.py::around", cwd=tmp_path).stdout)["functions"]
    assert beside["against"]["function"] == "around", "of another file, and costed by itself"
    commented = FUNCTIONS.replace("def around", "# pallas-lint: reference(before.py::plain)\ndef around")
    (tmp_path / "functions.py").write_text(commented)
    (named,) = json.loads(run(*words, *given, cwd=tmp_path).stdout)["functions"]
    assert named["against"] == found["against"], "as its comment says"
    assert beside["against"]["microseconds"] == beside["microseconds"] == found["microseconds"]
    assert found["missing"] == [] and found["against"]["microseconds"] > 0
    assert found["microseconds"] == pytest.approx(found["kernels"] + found["xla"])
    assert found["low"] < found["microseconds"] < found["high"]
    (kernel,) = [each for each in found["operations"] if each["kernel"]]
    assert (kernel["path"], kernel["microseconds"]) == ("functions.py", pytest.approx(found["kernels"]))
    assert {stage["stage"] for stage in report["launches"][0]["stages"]} == {"trace", "grid", "lower", "compile"}


@pytest.mark.slow
def test_the_total_comes_before_what_launches_cost_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    tasks: list[str] = []
    options = ProbeOptions(("tpu:v5e",), "cost", perf=True, whole=True, runs=False)
    with Worker(python(), tmp_path) as worker:
        spec = parse_target("functions.py::around", ["f32[1024,1024]"] * 2)
        result = Session(worker, tmp_path, options, tasks.append).probe(spec)
    order = [task.removeprefix("around: ").partition(":")[0] for task in tasks]
    assert order == ["load", "trace", "lower", "function", "compile", "cost"]
    assert result.functions[0]["microseconds"] and result.launches[0].costs[0]["microseconds"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "words"),
    [
        (
            "plian",
            "pallas-lint: error: --against plian: functions.py: there is no `plian` in it (did you mean `plain`?)",
        ),
        ("jnp.tahn", "functions.py: error: cannot compare with `jnp.tahn`: `jnp` has no `tahn` (did you mean `tanh`?)"),
        ("jax.nowhere.dot", "functions.py: error: cannot compare with `jax.nowhere.dot`: `jax` has no `nowhere`"),
        ("jnp.pi", "functions.py: error: cannot compare with `jnp.pi`: it is not a function"),
    ],
)
def test_nothing_is_predicted_beside_a_function_that_is_not_there(tmp_path: Path, named: str, words: str) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    given = ("--target", "tpu:v5e", "--perf", "--python", python(), "--against", named)
    done = run("functions.py::around", "f32[8,8]", "f32[8,8]", *given, cwd=tmp_path)
    assert (done.stderr.splitlines(), done.returncode) == ([words], 2) and "µs" not in done.stdout


def test_names_of_packages_that_a_file_does_not_import() -> None:
    module = ModuleType("functions")
    assert named("json.decoder.JSONDecodeError", module) is json.JSONDecodeError
    assert named("concurrent.futures.thread.ThreadPoolExecutor", module).__name__ == "ThreadPoolExecutor"


@pytest.mark.nightly
@pytest.mark.slow
def test_a_function_on_two_devices(tmp_path: Path) -> None:
    """It is compiled for two of the target, each with half of the rows; what they send each other has a wide range."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = ("functions.py::summed", "f32[2048,1024]", "f32[1024,2048]", "--target", "tpu:v5e", "--stage", "cost")
    report = json.loads(run(*words, "--python", python(), "--output-format", "json", cwd=tmp_path).stdout)
    (found,) = report["functions"]
    assert found["missing"] == [] and found["kernels"] > 0 < found["xla"]
    assert 1.1 * found["low"] < found["microseconds"] < found["high"]
    assert any(each["name"].startswith("psum") for each in found["operations"])


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "argument"),
    [("rows_of", "i32[2]=[1,0]"), ("derived", "f32[256,128]"), ("flags_of", "f32[256,128]")],
)
def test_values_of_a_function_are_known(tmp_path: Path, function: str, argument: str) -> None:
    """Those that are all its arguments, those that a derivative of its own hands on, and booleans."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = (f"functions.py::{function}", argument, "--target", "tpu:v5e", "--stage", "cost", "--python", python())
    (found,) = json.loads(run(*words, "--output-format", "json", cwd=tmp_path).stdout)["functions"]
    assert found["missing"] == [] and found["kernels"] > 0


@pytest.mark.slow
def test_an_empty_grid_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = ("functions.py::empty", "f32[8,128]", "--target", "tpu:v5e", "--stage", "cost", "--python", python())
    report = json.loads(run(*words, "--output-format", "json", cwd=tmp_path).stdout)
    (cost_of,) = report["launches"][0]["cost"]
    assert (cost_of["microseconds"], cost_of["doubts"]) == (0.0, ["its grid has no step: nothing runs"])
    kernels = [(each["path"], each["line"]) for each in report["functions"][0]["operations"] if each["kernel"]]
    here = next(at for at, line in enumerate(FUNCTIONS.splitlines(), 1) if line.endswith("# here"))
    assert ("functions.py", here) in kernels and {path for path, _ in kernels} == {"functions.py"}


@pytest.mark.slow
def test_the_default_device_is_the_one_in_question(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = ("functions.py::chosen_by_device", "f32[8,128]", "--target", "tpu:v6e", "--stage", "trace")
    done = run(*words, "--python", python(), "--output-format", "json", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert report["errors"] == [] == report["findings"] and len(report["launches"]) == 1, done.stdout


@pytest.mark.nightly
@pytest.mark.slow
def test_values_of_a_kernel_that_is_traced_twice(tmp_path: Path) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = ("functions.py::counted", "f32[256,128]", "--target", "tpu:v5e", "--stage", "cost", "--python", python())
    report = json.loads(run(*words, "--output-format", "json", cwd=tmp_path).stdout)
    (launch,), (found,) = report["launches"], report["functions"]
    assert [each["doubts"] for each in launch["cost"]] == [[]] and launch["cost"][0]["microseconds"] > 0
    assert found["missing"] == [], "three turns are known"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "launches"),
    [
        ("gradients", [("add", [2, 128, 128]), ("double", [2, 128, 128])]),
        ("twice", [("double", [2, 128, 128]), ("double", [128, 128])]),
    ],
)
def test_launches_that_were_only_traced_have_no_cost(
    tmp_path: Path, function: str, launches: list[tuple[str, list[int]]]
) -> None:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    words = (f"functions.py::{function}", "f32[2,128,128]", "--target", "tpu:v5e", "--stage", "cost")
    report = json.loads(run(*words, "--python", python(), "--output-format", "json", cwd=tmp_path).stdout)
    assert sorted((each["kernel"], each["operands"][0]["shape"]) for each in report["launches"]) == launches
