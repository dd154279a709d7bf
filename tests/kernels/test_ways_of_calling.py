"""Shapes through ways of calling that are no plain calls: `shard_map`, ahead-of-time lowering, harnesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.cli import main
from pallas_lint.kernels.analysis.analysis import analyse
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.kernels.model.known_names import declares_array
from pallas_lint.kernels.model.symbols import default_of
from pallas_lint.kernels.model.values import Array, Const, Seq, Sym
from pallas_lint.testing import codes, lint
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Shape

TWICE = """
import jax, numpy as np, jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P
from jax.experimental.shard_map import shard_map
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

mesh = jax.make_mesh((2, 4), ("X", "Y"))

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def twice(x):
    params = pltpu.CompilerParams()
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=params)(x)

"""


def launches(code: str) -> list[Launch]:
    return analyse(ModuleGraph().add(Source("k.py", TWICE + code), None), ("0.12.0.1",)).launches


def operand_shapes(launch: Launch) -> list[Shape | None]:
    return [operand.shape for operand in launch.operands or () if isinstance(operand, Array)]


def shapes(code: str) -> list[tuple[object, ...]]:
    """The shapes of the operand by the launch's known calls."""
    operands = [launch.operands[0] for launch in launches(code) if launch.known_call is not None and launch.operands]
    found = [operand.shape for operand in operands if isinstance(operand, Array) and operand.shape is not None]
    return [shape for shape in found if not any(isinstance(size, Sym) for size in shape)]


def test_outputs_whose_memory_a_branch_chooses() -> None:
    code = """
def run(x, new):
    plain = jax.ShapeDtypeStruct(x.shape, jnp.int8)
    out = pltpu.HBM(x.shape, jnp.int8) if new else plain
    pair = [pltpu.HBM(x.shape, jnp.int8), plain] if new else [plain, plain]
    other = [plain, plain] if new else [plain, jax.ShapeDtypeStruct((8, 128), jnp.int8)]
    for shape in (out, pair, other):
        y = pl.pallas_call(lambda *refs: None, out_shape=shape)(x)

run(jnp.ones((16, 128), jnp.int8), jax.devices()[0].device_kind.endswith("7x"))
"""
    found = [launch.out_shapes for launch in launches(code) if launch.known_call is not None]
    declared = [[declares_array(item) for item in shapes.items] for shapes in found if shapes is not None]
    assert declared == [[True], [True, True], [True, False]]


X = "jnp.ones((1024, 512), jnp.bfloat16)"


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        ("jax.shard_map(twice, mesh=mesh, in_specs=P('X', 'Y'), out_specs=P('X', 'Y'))", (512, 128)),
        ("jax.shard_map(twice, mesh=mesh, in_specs=(P('X'),), out_specs=P('X'))", (512, 512)),
        ("jax.shard_map(twice, mesh=mesh, in_specs=P(None, ('X', 'Y')), out_specs=P())", (1024, 64)),
        ("jax.shard_map(twice, mesh=mesh, in_specs=P(), out_specs=P())", (1024, 512)),
        ("jax.jit(jax.shard_map(twice, mesh=mesh, in_specs=P('Y'), out_specs=P('Y')))", (256, 512)),
        ("shard_map(twice, Mesh(np.array(jax.devices()[:4]).reshape(4), ('a',)), P('a'), P('a'))", (256, 512)),
        ("shard_map(twice, Mesh(np.array(jax.devices()[:4]), ('a',)), P('a'), P('a'))", (256, 512)),
        ("shard_map(twice, Mesh(jax.devices()[:4], ('a',)), P('a'), P('a'))", (256, 512)),
        ("shard_map(twice, Mesh(create_device_mesh((2, 4)), ('a', 'b')), P('a', 'b'), P('a', 'b'))", (512, 128)),
        ("shard_map(twice, Mesh(create_device_mesh(mesh_shape=(4,)), ('a',)), P('a'), P('a'))", (256, 512)),
        ("jax.shard_map(twice, mesh=jax.make_mesh((n,), ('X',)), in_specs=P('X'), out_specs=P('X'))", (None, 512)),
        ("jax.shard_map(twice, mesh=mesh, in_specs=P('Z'), out_specs=P('Z'))", (None, 512)),
    ],
)
def test_what_a_device_gets(call: str, shape: tuple[int | None, ...]) -> None:
    assert shapes(
        f"from sizes import n\nfrom jax.experimental.mesh_utils import create_device_mesh\n{call}({X})\n"
    ) == [shape]


@pytest.mark.parametrize(
    "mesh",
    [
        "jax.make_mesh((2, 4), ('a', 'b'))",
        "jax.make_mesh(axis_sizes=(2, 4), axis_names=('a', 'b'))",
        "Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ('a', 'b'))",
        "jax.sharding.AbstractMesh((2, 4), ('a', 'b'))",
    ],
)
def test_sizes_of_a_mesh(mesh: str) -> None:
    sizes = "mesh.shape['b'], mesh.shape.get('a'), mesh.size, len(mesh.axis_names)"
    assert shapes(f"mesh = {mesh}\ntwice(jnp.ones(({sizes})))\n") == [(4, 2, 8, 2)]
    other = "mesh = jax.make_mesh((n, 4), ('a', 'b'))"
    assert shapes(f"from sizes import n\n{other}\ntwice(jnp.ones(({sizes})))\n") == [(4, None, None, 2)]
    of_parameter = f"def run(n):\n    {other}\n    return twice(jnp.ones(({sizes})))\n"
    assert (4, 8, 32, 2) in shapes(f"{of_parameter}\nrun(8)\n")


@pytest.mark.parametrize("decorator", ["", "@functools.cache", "@functools.lru_cache(maxsize=None)"])
@pytest.mark.parametrize("call", ["build(256)", "build(block=256)", "jax.jit(build(256))"])
def test_what_a_factory_returns_is_called_at_once(decorator: str, call: str) -> None:
    inner = "    @jax.jit\n    def inner(a):\n        return twice(a[:block])\n    return inner\n"
    factory = f"import functools\n{decorator}\ndef build(block):\n{inner}"
    assert shapes(f"{factory}\ndef test_it():\n    {call}({X})\n") == [(256, 512)]


def test_what_is_none_on_all_devices() -> None:
    code = f"""
specs = (P("X", "Y"),)
specs += (None,)

@functools.partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=P("X", "Y"))
def split(x, scale):
    return twice(x if scale is None else x * scale)

split({X}, None)
"""
    assert shapes(f"import functools\n{code}") == [(512, 128)]


@pytest.mark.parametrize(
    ("space", "known"), [("pltpu.HBM", True), ("pltpu.MemorySpace.HBM", True), ("pltpu.VMEM", False)]
)
def test_arrays_with_a_memory_space(space: str, known: bool) -> None:
    found = shapes(f"def test_it():\n    twice(pltpu.with_memory_space_constraint({X}, {space}))\n")
    assert found == ([(1024, 512)] if known else [])


@pytest.mark.parametrize(
    "code",
    [
        "def bench(rows: int = 24, columns=384):\n    return twice(jnp.ones((rows, columns)))\n",
        "def bench(*, rows=24):\n    return twice(jnp.ones((rows, 384)))\n",
        "def bench(rows=24):\n    x = jnp.ones((rows, 384))\n    def run():\n        return twice(x)\n    return run\n",
        "def main():\n    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 24\n    twice(jnp.ones((rows, 384)))\n",
        "def main():\n    rows = 24 if len(sys.argv) < 2 else int(sys.argv[1])\n    twice(jnp.ones((rows, 384)))\n",
    ],
)
def test_defaults_of_functions_and_scripts(code: str) -> None:
    assert shapes(f"import sys\n{code}") == [(24, 384)]


@pytest.mark.parametrize("parameters", ["rows, columns=384", "rows=24, *, columns", "rows=size, columns=384"])
def test_a_function_that_needs_arguments(parameters: str) -> None:
    assert shapes(f"from sizes import size\ndef bench({parameters}):\n    return twice(jnp.ones((rows, 384)))\n") != [
        (24, 384)
    ]


def test_a_launcher_with_defaults_runs_with_them() -> None:
    code = """
def bench(rows=24):
    out = jax.ShapeDtypeStruct((rows, 384), jnp.float32)
    return pl.pallas_call(kernel, out_shape=out)(jnp.ones((rows, 384)))
"""
    assert (24, 384) in shapes(code)


SPLIT = "jax.shard_map(twice, in_specs=P('X', 'Y'), out_specs=P('X', 'Y'))"


@pytest.mark.parametrize(
    "code",
    [
        f"jax.set_mesh(mesh)\n{SPLIT}({X})\n",
        f"jax.set_mesh(mesh)\nsplit = {SPLIT}\ndef test_it():\n    split({X})\n",
        f"with jax.set_mesh(mesh):\n    {SPLIT}({X})\n",
        f"with jax.sharding.use_mesh(mesh):\n    {SPLIT}({X})\n",
        f"def main():\n    jax.set_mesh(mesh)\n    {SPLIT}({X})\n\nmain()\n",
        f"if __name__ == '__main__':\n    jax.set_mesh(mesh)\n    {SPLIT}({X})\n",
    ],
)
def test_the_mesh_that_is_set(code: str) -> None:
    assert (512, 128) in [
        operand.shape for launch in launches(code) for operand in launch.operands or () if isinstance(operand, Array)
    ]


def test_no_size_where_no_mesh_is_set() -> None:
    assert shapes(f"def main():\n    jax.set_mesh(mesh)\n\nmain()\n{SPLIT}({X})\n") == [(None, None)]


def test_what_becomes_of_results() -> None:
    mapped = "jax.shard_map(lambda x: (x, x + 1), mesh=mesh, in_specs=P('X', 'Y'), out_specs=(P('X', 'Y'), P('Y')))"
    assert shapes(f"a, b = {mapped}({X})\ntwice(a)\ntwice(b)\n") == [(1024, 512), (2048, 128)]


@pytest.mark.parametrize(
    "call",
    [
        "jax.shard_map(twice, mesh=mesh, in_specs=specs, out_specs=P())",
        "jax.shard_map(twice, mesh=mesh, in_specs=P('X', 'Y', None), out_specs=P())",
        "jax.shard_map(twice, mesh=mesh, in_specs=P(*axes), out_specs=P())",
    ],
)
def test_no_shape_where_specs_are_not_known(call: str) -> None:
    assert shapes(f"from sizes import axes, specs\n{call}({X})\n") == []


@pytest.mark.parametrize("method", ["lower(spec).compile()", "trace(spec)", "trace(spec).lower()", "lower(x=spec)"])
def test_ahead_of_time(method: str) -> None:
    assert shapes(f"spec = jax.ShapeDtypeStruct((24, 384), jnp.float32)\njax.jit(twice).{method}\n") == [(24, 384)]


def test_what_a_partial_binds_is_no_argument_of_what_is_jitted() -> None:
    launcher = """
import functools

def blocks(x, *, rows):
    spec = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, grid=(x.shape[0] // rows,), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

jitted = jax.jit({})
def test_it():
    jitted(jnp.ones((64, 128)){})
"""
    bound = launches(launcher.format("functools.partial(blocks, rows=16)", ""))
    passed = launches(launcher.format("blocks", ", rows=16"))
    known = Seq((Const(4),))
    assert known in [each.grid for each in bound]
    assert known not in [each.grid for each in passed]  # it depends on a tracer


@pytest.mark.parametrize("call", ["jax.eval_shape(twice, spec)", "jax.make_jaxpr(twice)(spec)"])
def test_what_is_only_traced(call: str) -> None:
    code = f"spec = jax.ShapeDtypeStruct((24, 384), jnp.float32)\ndef test_it():\n    {call}\n"
    assert shapes(code) == [(24, 384)]
    assert all(launch.only_traced for launch in launches(code) if launch.known_call is not None)


def test_what_is_only_traced_inside_a_shard_map() -> None:
    code = """
def test_it():
    rows = jax.sharding.PartitionSpec("x")
    mapped = jax.shard_map(twice, mesh=jax.make_mesh((2,), ("x",)), in_specs=rows, out_specs=rows)
    jax.eval_shape(mapped, jax.ShapeDtypeStruct((24, 384), jnp.float32))
"""
    assert shapes(code) == [(12, 384)]
    assert all(launch.only_traced for launch in launches(code) if launch.known_call is not None)


def test_arrays_made_one_by_one() -> None:
    code = "x, y = [jax.random.normal(k, (24, 384)) for k in jax.random.split(jax.random.key(0), 2)]\ntwice(y)\n"
    assert shapes(code) == [(24, 384)]


@pytest.mark.parametrize("inputs", ["create_inputs", "get_inputs", "make_inputs", "inputs"])
@pytest.mark.parametrize("function", ["workload", "kernel_of", "solution", "run", "main"])
def test_a_harness_calls_by_convention(function: str, inputs: str) -> None:
    code = f"def {inputs}(n=3):\n    return (jnp.ones((8 * n, 384)),)\n\ndef {function}(x):\n    return twice(x)\n"
    known = [] if function == "kernel_of" else [(24, 384)]
    assert shapes(code) == known
    for launch in launches(code) if known else ():
        if launch.known_call is not None:
            assert launch.known_call.kind == "convention"
            assert launch.known_call.describe("k.py").endswith(f"as a harness calls it: `{function}(*{inputs}())`")


@pytest.mark.parametrize("returned", ["{'x': jnp.ones((24, 384))}", "dict(x=jnp.ones((24, 384)))"])
def test_a_harness_passes_a_dictionary_by_name(returned: str) -> None:
    code = f"def make_inputs():\n    return {returned}\n\ndef solution(x):\n    return twice(x)\n"
    assert shapes(code) == [(24, 384)]


MODEL = """
class Model:
    def __init__(self, rows):
        self.rows = rows

    def forward(self, x):
        return twice(x.reshape(self.rows, -1))

def get_inputs():
    return [jnp.ones((24, 384))]

def get_init_inputs():
    return [48]
"""


def test_a_model_with_its_inputs() -> None:
    assert shapes(MODEL)[-1] == (48, 192)
    plain = MODEL.replace("(self, rows)", "(self)").replace("= rows", "= 48").partition("def get_init")[0]
    assert shapes(plain)[-1] == (48, 192)


def test_unknown_inputs_call_nothing() -> None:
    assert (
        shapes("from data import read\n\ndef get_inputs():\n    return read()\n\ndef run(x):\n    return twice(x)\n")
        == []
    )


GLOBAL = """
_STATE = None

def set_state(value):
    global _STATE
    _STATE = value

def run(x):
    if _STATE is None:
        raise ValueError("set_state first")
    def body(x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...], axis=0)
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams())(x)
"""


def test_a_global_that_a_function_sets_is_not_known() -> None:
    assert [f.code for f in lint(TWICE + GLOBAL, jax="0.12.0.1", select="PAL101")] == ["PAL101"]
    fixed = GLOBAL.replace("    global _STATE\n", "")  # it stays None: nothing after the exception runs
    assert lint(TWICE + fixed, jax="0.12.0.1", select="PAL101") == []


_GUARDED = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

try:
    from jax.experimental.pallas import tpu as pltpu
    HAS_TPU = True
except ImportError:
    HAS_TPU = False

{opening}
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...], axis=1)

    def run(x):
        return pl.pallas_call(kernel, out_shape=x, compiler_params=pltpu.CompilerParams())(x)
{closing}
"""


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("if True:", ""),
        ("if HAS_TPU:", ""),
        ("if HAS_TPU:", "else:\n    run = None"),
        ("try:", "except ImportError:\n    run = None"),
    ],
)
def test_functions_in_blocks_run(opening: str, closing: str) -> None:
    findings = lint(_GUARDED.format(opening=opening, closing=closing), "0.12.0.1", select="PAL101")
    assert [finding.span.start.line for finding in findings] == [13]


def test_a_harness_that_the_settings_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.py").write_text(
        "import jax\nimport jax.numpy as jnp\nfrom jax.experimental import pallas as pl\n\n"
        "def kernel(x_ref, o_ref):\n    o_ref[...] = x_ref[...].reshape(3, 128)\n\n"
        "def double(x):\n    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)\n\n"
        "def problem(n):\n    return [jnp.zeros((n, 128))]\n"
    )
    (tmp_path / "pallas-lint.toml").write_text('calls = ["absent(1)", "double(*problem(16))"]\n')
    options = ["--no-cache", "--jax-version", "0.12.0.1", "--config", str(tmp_path / "pallas-lint.toml")]
    assert main([*options, str(tmp_path / "k.py")]) == 1
    out = capsys.readouterr().out
    assert "(16, 128), 2048 elements" in out
    assert "as a harness calls it: `double(*problem(16))`" in out


@pytest.mark.parametrize(
    ("name", "seen"), [("reference.py", True), ("inputs.py", True), ("other.py", False), ("sub/reference.py", False)]
)
def test_inputs_beside_the_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, seen: bool) -> None:
    (tmp_path / "kernel.py").write_text(
        "import jax\nfrom jax.experimental import pallas as pl\n\n"
        "def body(x_ref, o_ref):\n    o_ref[...] = x_ref[...].reshape(3, 128)\n\n"
        "def solution(x, scale):\n"
        "    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)\n"
    )
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(
        "import jax.numpy as jnp\n\ndef get_inputs():\n    return [jnp.zeros((16, 128)), 2.0]\n"
    )
    main(["--isolated", "--no-cache", "--jax-version", "0.12.0.1", str(tmp_path / "kernel.py")])
    assert ("as a harness calls it: `solution(*get_inputs())`" in capsys.readouterr().out) is seen


PLAN = """
@dataclasses.dataclass(frozen=True)
class Plan:
    rows: int = 8

    @property
    def tile(self):
        return (self.rows, 128)

    def grid(self, n):
        return (n // self.rows,)
"""


def test_a_property_that_the_text_leaves_open_has_that_of_the_default() -> None:
    code = f"""
import dataclasses
{PLAN.replace("return (self.rows, 128)", "return 16 if self.rows > 4 else 8")}
def planned(x, plan=Plan()):
    return pl.pallas_call(kernel, grid=(plan.tile,), out_shape=x)(x)
"""
    (launch,) = [launch for launch in launches(code) if launch.argument("grid") is not None]
    grid = launch.argument("grid")
    assert isinstance(grid, Seq)
    assert default_of(grid.items[0]) == 16


def test_methods_of_the_default_of_a_parameter() -> None:
    code = f"""
import dataclasses
{PLAN}
def planned(x, plan=Plan()):
    spec = pl.BlockSpec(plan.tile, lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=plan.grid(x.shape[0]), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""
    (launch,) = [launch for launch in launches(code) if launch.argument("grid") is not None]
    grid = launch.argument("grid")
    assert isinstance(grid, Seq)
    (steps,) = grid.items
    assert isinstance(steps, Sym)
    assert steps.text == "(x.shape[0]//plan.rows)"
    assert default_of(steps) is None
    assert steps.operation is not None
    assert default_of(steps.operation[2]) == 8


@pytest.mark.parametrize(
    "guard",
    ["assert x.shape[0] % 128 == 0", "assert x.ndim == 3 and n", "if x.shape[0] % 128 != 0:\n        raise ValueError"],
)
def test_a_call_that_a_guard_stops_gives_nothing(guard: str) -> None:
    code = f"def checked(x, n=1):\n    {guard}\n    return twice(x)\n\ndef test_it():\n    checked({{}})\n"
    assert shapes(code.format("jnp.ones((100, 128))")) == []
    if "ndim" not in guard:
        assert shapes(code.format("jnp.ones((256, 128))")) == [(256, 128)]


OBJECT = """\
class Twice:
    def __init__(self, bm):
        self.bm = bm

    def {method}(self, x):
        spec = pl.BlockSpec((self.bm, 128), lambda i: (i, 0))
        return pl.pallas_call(kernel, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=x)(x)

op = Twice(bm=32)

"""


@pytest.mark.parametrize(("method", "call"), [("__call__", "op"), ("apply", "op.apply")])
@pytest.mark.parametrize("where", ["def test_it():\n    ", 'if __name__ == "__main__":\n    ', ""])
def test_an_object_with_a_name(method: str, call: str, where: str) -> None:
    assert shapes(f"{OBJECT.format(method=method)}{where}{call}(jnp.ones((64, 128)))\n") == [(64, 128)]


def test_an_object_that_is_jitted() -> None:
    code = f"{OBJECT.format(method='__call__')}def test_it():\n    jax.jit(Twice(bm=32))(jnp.ones((64, 128)))\n"
    assert shapes(code) == [(64, 128)]


def test_the_last_lines_of_a_script_call_by_any_name() -> None:
    code = (
        'import functools\nfast = functools.partial(twice)\nif __name__ == "__main__":\n    fast(jnp.ones((64, 128)))\n'
    )
    assert shapes(code) == [(64, 128)]
    assert shapes(code.replace("==", "!=")) == []


KERNEL_OBJECT = """\
class Kernel:
    def __call__(self, x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...], axis=1)

def run(x):
    return pl.pallas_call({}, out_shape=x, compiler_params=pltpu.CompilerParams())(x)
"""


@pytest.mark.parametrize("kernel", ["Kernel()", "functools.partial(Kernel())", "Kernel().__call__"])
def test_an_object_as_kernel(kernel: str) -> None:
    assert "PAL101" in codes(
        lint(f"import functools\n{TWICE}{KERNEL_OBJECT.format(kernel)}", "0.12.0.1", select="PAL101")
    )


SPECS = """\
from tokamax._src.autotuning.arg_spec import ArgSpec

def _make(rows):
    return ArgSpec(args={"x": jax.ShapeDtypeStruct((rows, 128), jnp.float32)}, project="p")

ARG_SPECS = (_make(64), _make(96))
"""


def test_what_tokamax_lists() -> None:
    assert shapes(SPECS) == [(64, 128), (96, 128)]


def test_what_tokamax_lists_beside_an_operation(tmp_path: Path) -> None:
    operation = "class Op(Base):\n    def _fwd(self, x, *, config):\n        return twice(x)\n"
    (tmp_path / "arg_specs.py").write_text(f"import jax, jax.numpy as jnp\n{SPECS}")
    file = tmp_path / "pallas_tpu.py"
    file.write_text(TWICE + operation)
    found = analyse(ModuleGraph().add(Source(str(file), TWICE + operation), file), ("0.12.0.1",)).launches
    calls = [launch.known_call for launch in found if launch.known_call is not None]
    assert [call.source.rpartition("::")[2] for call in calls] == [
        f"Op()._fwd(**ARG_SPECS[{at}].args)" for at in (0, 1)
    ]
    assert {call.kind for call in calls} == {"convention"}


def test_one_row_at_an_unknown_place() -> None:
    assert shapes("def main(i):\n    twice(jnp.ones((64, 128))[i : i + 1])\n") == [(1, 128)]


_PADDED = """
import jax.numpy as jnp

def pad_to(x, multiples, axes):
    '''Pads axes to multiples.'''
    if isinstance(multiples, int):
        multiples = [multiples]
    if isinstance(axes, int):
        axes = [axes]
    assert len(multiples) == len(axes), "one for each"
    widths = [(0, 0)] * x.ndim
    for at in range(len(axes)):
        rest = x.shape[axes[at]] % multiples[at]
        if rest == 0:
            continue
        widths[axes[at]] = (0, multiples[at] - rest)

    # The end is filled up with zeros.

    return jnp.pad(x, widths)
"""


def test_a_long_helper_of_another_module_pads(tmp_path: Path) -> None:
    """It is entered where it gets an array of known shape."""
    (tmp_path / "helpers.py").write_text(_PADDED)
    code = TWICE + "from helpers import pad_to\ntwice(pad_to(jnp.ones((1000, 500)), 128, 1))\n"
    found = analyse(ModuleGraph().add(Source("k.py", code), tmp_path / "k.py"), ("0.12.0.1",)).launches
    assert Array((1000, 512), "f32") in [operand for launch in found for operand in launch.operands or ()]


_BLOCK_SIZES = '''"""Block sizes, tuned for some sizes of a matrix."""
TUNED = {(4096, 4096, "bfloat16"): (512, 1024), (8192, 4096, "bfloat16"): (1024, 1024)}


def block_sizes(rows, columns, dtype):
    """The tuned sizes of blocks for a matrix.

    Where none were tuned, the blocks have 256 rows, and all columns up to the limit.
    """
    # Keys are exact.

    key = (
        rows,
        columns,
        str(dtype),
    )

    if key not in TUNED:
        if columns > 512:
            columns = 512

        # Rows are rounded up to a whole block.

        rows = (
            (rows + 255)
            // 256
            * 256
        )

        return rows, columns

    return TUNED[key]
'''


def test_a_long_helper_of_another_module_chooses_block_sizes(tmp_path: Path) -> None:
    """It is entered where it gets numbers."""
    (tmp_path / "helpers.py").write_text(_BLOCK_SIZES)
    code = TWICE + "from helpers import block_sizes\ntwice(jnp.ones(block_sizes(1000, 600, name())))\n"
    found = analyse(ModuleGraph().add(Source("k.py", code), tmp_path / "k.py"), ("0.12.0.1",)).launches
    assert Array((1024, 512), "f32") in [operand for launch in found for operand in launch.operands or ()]


def test_an_abstract_array_declares_an_output() -> None:
    code = f"""
def declared(x):
    return pl.pallas_call(kernel, out_shape=jax.core.ShapedArray((x.shape[0], 256), jnp.float32))(x)

twice(declared({X}))
"""
    assert shapes(code) == [(1024, 512), (1024, 256)]


def test_arrays_are_no_tensors_of_other_libraries() -> None:
    code = """
import torch
from jax.experimental.pallas.ops.tpu.paged_attention import quantization_utils

def run(x):
    if isinstance(x, (quantization_utils.QuantizedTensor, torch.Tensor)):
        x = x.weight
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))(x)

run(jnp.zeros((8, 128)))
"""
    assert any(operand_shapes(launch) == [(8, 128)] for launch in launches(code))
