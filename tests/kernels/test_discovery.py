"""Discovery of kernels, however they are written, and of nothing else."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from pallas_lint.kernels.analysis.analysis import Analysis, analyse
from pallas_lint.kernels.interpreter.modules import ModuleGraph
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pathlib import Path

PRELUDE = """
import functools
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
SHAPE = jax.ShapeDtypeStruct((8, 128), jnp.float32)
"""


def run(code: str, file: Path | None = None) -> Analysis:
    module = ModuleGraph().add(Source("k.py", PRELUDE + inspect.cleandoc(code) + "\n"), file)
    return analyse(module, ("0.10.2",))


def kernels(code: str) -> set[str]:
    return {trace.name for trace in run(code).traces}


CASES = {
    "by name": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
    "keyword": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x): return pl.pallas_call(out_shape=SHAPE, kernel=kernel)(x)
    """,
    "partial": """
        def kernel(x_ref, o_ref, *, n): o_ref[...] = x_ref[...] * n
        def f(x): return pl.pallas_call(functools.partial(kernel, n=2), out_shape=SHAPE)(x)
    """,
    "partial through a variable": """
        def kernel(x_ref, o_ref, *, n): o_ref[...] = x_ref[...] * n
        def f(x):
            body = functools.partial(kernel, n=2)
            body = functools.partial(body)
            return pl.pallas_call(body, out_shape=SHAPE)(x)
    """,
    "nested def": """
        def f(x, n):
            def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] * n
            return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
    "lambda forwarding to a def": """
        def kernel(x_ref, o_ref, n): o_ref[...] = jnp.sort(x_ref[...]) * n
        def f(x): return pl.pallas_call(lambda a, b: kernel(a, b, 3), out_shape=SHAPE)(x)
    """,
    "parameter of the launching function": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def launch(body, x, spec): return pl.pallas_call(body, out_shape=SHAPE, in_specs=[spec])(x)
        def f(x): return launch(kernel, x, pl.BlockSpec((8, 128), lambda: (0, 0)))
    """,
    "method launching a method": """
        class Op:
            def kernel(self, x_ref, o_ref): o_ref[...] = x_ref[...]
            def __call__(self, x): return pl.pallas_call(self.kernel, out_shape=SHAPE)(x)
    """,
    "factory": """
        def make(n):
            def kernel(x_ref, o_ref): o_ref[...] = x_ref[...] * n
            return kernel
        def f(x): return pl.pallas_call(make(2), out_shape=SHAPE)(x)
    """,
    "factory of a partial, called in a variable": """
        def kernel(x_ref, o_ref, n): o_ref[...] = x_ref[...] * n
        def make(n): return functools.partial(kernel, n=n)
        def f(x):
            body = make(2)
            return pl.pallas_call(body, out_shape=SHAPE)(x)
    """,
    "rebinding the name to the launch": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x):
            body = kernel
            body = pl.pallas_call(body, out_shape=SHAPE)
            return body(x)
    """,
    "named_scope around the launch": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x): return jax.named_scope("k")(pl.pallas_call(kernel, out_shape=SHAPE))(x)
    """,
    "vmapped launch": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x): return jax.vmap(pl.pallas_call(kernel, out_shape=SHAPE))(x)
    """,
    "wrapped kernel": """
        @functools.partial(jax.named_call, name="k")
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
    "partial of pallas_call as a decorator": """
        def f(x):
            @functools.partial(pl.pallas_call, out_shape=SHAPE)
            def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
            return kernel(x)
    """,
    "pl.kernel as a decorator under jit": """
        @jax.jit
        @pl.kernel(out_type=SHAPE, mesh=pltpu.create_tensorcore_mesh("core"))
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
    """,
    "emit_pipeline is the kernel": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x):
            body = pltpu.emit_pipeline(kernel, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                                       out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)))
            return pl.pallas_call(body, out_shape=SHAPE, in_specs=[pl.BlockSpec(memory_space=pltpu.HBM)])(x)
    """,
    "wrapper of the project": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def my_pallas_call(*args, **kwargs): return pl.pallas_call(*args, interpret=True, **kwargs)
        def f(x): return my_pallas_call(kernel, out_shape=SHAPE)(x)
    """,
    "wrapper method that is not seen": """
        class T(Base):
            def test(self, x):
                def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
                return self.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
    "launcher defined inside and returned": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def build():
            @jax.custom_vjp
            def forward(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
            return forward
    """,
    "module level": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        call = pl.pallas_call(kernel, out_shape=SHAPE)
    """,
    "imports inside the function": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x):
            import jax.experimental.pallas as pallas
            return pallas.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
}


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_found(code: str) -> None:
    found = run(code)
    assert found.traces and all(trace.events for trace in found.traces)
    assert {trace.name for trace in found.traces} <= {"kernel", "<lambda>", "emit_pipeline"}


def test_a_wrapper_is_handed_its_kernel() -> None:
    """Else it is a function like others, whatever its name: the launch is where `pl.pallas_call` stands."""
    code = """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def my_pallas_call(PARAMETERS): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
        def f(x): return my_pallas_call(GIVEN), my_pallas_call(GIVEN)
    """

    def launched(parameters: str, given: str) -> set[str]:
        found = run(code.replace("PARAMETERS", parameters).replace("GIVEN", given))
        return {launch.called_at.code for launch in found.launches if launch.traces}

    assert launched("x", "x") == {"pl.pallas_call"}
    assert launched("kernel, x", "kernel, x") == {"my_pallas_call"}
    assert launched("kernel, x", "functools.partial(kernel), x=x") == {"my_pallas_call"}


def test_branches_give_both_kernels() -> None:
    assert kernels(
        """
        def f(x, fast):
            if fast:
                def one(x_ref, o_ref): o_ref[...] = x_ref[...]
                kernel = one
            else:
                def two(x_ref, o_ref): o_ref[...] = x_ref[...] + 1
                kernel = two
            return pl.pallas_call(kernel, out_shape=SHAPE)(x)
        """
    ) == {"one", "two"}


def test_conditional_expression_gives_both_kernels() -> None:
    assert kernels(
        """
        def one(x_ref, o_ref): o_ref[...] = x_ref[...]
        def two(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x, fast): return pl.pallas_call(one if fast else two, out_shape=SHAPE)(x)
        """
    ) == {"one", "two"}


def test_one_body_for_each_mesh() -> None:
    assert kernels(
        """
        def scalar(x_ref, o_ref): o_ref[...] = x_ref[...]
        def vector(x_ref, o_ref): o_ref[...] = x_ref[...]
        def f(x): return pl.kernel(body=[scalar, vector], mesh=[A, B], out_type=SHAPE)(x)
        """
    ) == {"scalar", "vector"}


def test_version_guard_decides() -> None:
    assert kernels(
        """
        def old(x_ref, o_ref): o_ref[...] = x_ref[...]
        def new(x_ref, o_ref): o_ref[...] = x_ref[...]
        kernel = old if jax.__version_info__ < (0, 9, 1) else new
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
        """
    ) == {"new"}


NOT_KERNELS = {
    "index map with prefetch refs": """
        def kernel(s_ref, x_ref, o_ref): o_ref[...] = x_ref[...]
        def index_map(i, s_ref): return jnp.sort(s_ref[...])[i], 0
        def f(s, x):
            spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,),
                in_specs=[pl.BlockSpec((8, 128), index_map)], out_specs=pl.BlockSpec((8, 128), index_map))
            return pl.pallas_call(kernel, grid_spec=spec, out_shape=SHAPE)(s, x)
    """,
    "function with ref-like parameters that nothing launches": """
        def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
        def helper(x_ref, y_ref): return jnp.sort(x_ref[...])
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
    "MLIR builder": """
        from jax.experimental.pallas import mosaic_gpu as plgpu
        def kernel(x_ref, o_ref):
            @plgpu.inline_mgpu(arg_types=(), return_type=())
            def build(ctx, x_ref): return jnp.sort(x_ref)
            build(x_ref)
            o_ref[...] = x_ref[...]
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
    "host callback": """
        def kernel(x_ref, o_ref):
            jax.debug.callback(lambda v: jnp.sort(v), x_ref[...])
            o_ref[...] = x_ref[...]
        def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """,
}


@pytest.mark.parametrize("code", NOT_KERNELS.values(), ids=NOT_KERNELS)
def test_not_a_kernel(code: str) -> None:
    found = run(code)
    assert {trace.name for trace in found.traces} == {"kernel"}
    assert not any(op.name == "jax.numpy.sort" for trace in found.traces for op in trace.ops())


def test_kernel_and_helper_of_other_modules(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    (package / "sub").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sub" / "__init__.py").write_text("from .maths import order as order\n")
    (package / "sub" / "maths.py").write_text(
        "import jax.numpy as jnp\ndef order(v): return jnp.sort(v)\ndef flip(v): return jnp.flip(v)\n"
    )
    (package / "body.py").write_text(
        "from pkg import sub\nimport pkg.sub.maths\n"
        "def kernel(x_ref, o_ref): o_ref[...] = sub.order(pkg.sub.maths.flip(x_ref[...]))\n"
    )
    code = "from .body import kernel\ndef f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)\n"
    found = run(code, package / "launch.py")
    (trace,) = found.traces
    assert trace.site.piece.source.path.endswith("body.py")
    assert [op.name for op in trace.ops()] == ["jax.numpy.flip", "jax.numpy.sort"]


def test_circular_imports_end(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from b import helper\ndef other(v): return helper(v)\n")
    (tmp_path / "b.py").write_text("from a import other\ndef helper(v): return other(v)\n")
    code = """
    from a import other
    def kernel(x_ref, o_ref): o_ref[...] = other(x_ref[...])
    def f(x): return pl.pallas_call(kernel, out_shape=SHAPE)(x)
    """
    assert [trace.name for trace in run(code, tmp_path / "k.py").traces] == ["kernel"]


def test_backends() -> None:
    def backend(arguments: str, imports: str = "") -> tuple[str | None, str | None]:
        code = f"""
{imports}
def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
def f(x, flag): return pl.pallas_call(kernel, out_shape=SHAPE, {arguments})(x)
"""
        text = PRELUDE.replace("from jax.experimental.pallas import tpu as pltpu\n", "") + code
        (launch,) = analyse(ModuleGraph().add(Source("k.py", text), None), ("0.6.2",)).launches
        return launch.backend, launch.evidence

    tpu = "from jax.experimental.pallas import tpu as pltpu"
    gpu = "from jax.experimental.pallas import triton as plgpu"
    mosaic = "from jax.experimental.pallas import mosaic_gpu as plgpu"
    assert backend("") == (None, None)
    assert backend("", tpu) == ("tpu", "import")
    assert backend("compiler_params=pltpu.CompilerParams()", tpu) == ("tpu", "params")
    assert backend("compiler_params=plgpu.CompilerParams()", f"{tpu}\n{gpu}") == ("triton", "params")
    assert backend("compiler_params=plgpu.CompilerParams()", mosaic) == ("mosaic_gpu", "params")
    assert backend("compiler_params=dict(triton=dict(num_warps=4))", tpu) == ("triton", "params")
    assert backend("in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)]", tpu) == ("tpu", "spec")
    both = "compiler_params=pltpu.CompilerParams() if flag else plgpu.CompilerParams()"
    assert backend(both, f"{tpu}\n{gpu}") == (None, "several")


def test_assumptions() -> None:
    code = """
    # pallas-lint: assume bn=256
    def kernel(x_ref, o_ref): o_ref[...] = x_ref[...]
    def f(x, bm, bn, bk):
        # pallas-lint: assume bm=8, bk = 128
        return pl.pallas_call(kernel, in_specs=[pl.BlockSpec((bm, bn, bk), lambda: (0, 0, 0))], out_shape=SHAPE)(x)
    def g(x, bm, bn):
        return pl.pallas_call(kernel, in_specs=[pl.BlockSpec((bm, bn), lambda: (0, 0))], out_shape=SHAPE)(x)
    """
    shapes = {trace.launch.scope: trace.refs[0].shape for trace in run(code).traces}
    assert shapes["f"] == (8, 256, 128)
    assert shapes["g"] is not None and shapes["g"][1] == 256 and not isinstance(shapes["g"][0], int)
