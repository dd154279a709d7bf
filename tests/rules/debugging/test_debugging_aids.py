"""PAL604 to PAL608: checks that are off, formats, switches left on, lenient interpretation, missing guards."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_lint.finding import Severity
from pallas_lint.lint import lint_source
from pallas_lint.run.project import Project
from pallas_lint.testing import codes, fixed, lint, settings
from pallas_lint.text.source import Source
from tests.rules.traced import PRELUDE

TRITON = "from jax.experimental.pallas import triton as plt\n"
PARAMS = {"tpu": "pltpu.CompilerParams()", "triton": "plt.CompilerParams()"}


def kernel(body: str, backend: str | None = None, launch: str = "") -> str:
    params = f", compiler_params={PARAMS[backend]}" if backend else ""
    return (
        PRELUDE + TRITON + "LOGS = 'xla_tpu_enable_log_recorder'\n"
        "def kernel(n_ref, x_ref, o_ref):\n    i = pl.program_id(0)\n    v = x_ref[...]\n"
        f"    {body}\n    o_ref[...] = v\n"
        "def f(n, x):\n"
        "    specs = [pl.BlockSpec((8,), lambda i: (0,)), pl.BlockSpec((8, 128), lambda i: (i, 0))]\n"
        f"    return pl.pallas_call(kernel, grid=(2,), in_specs=specs, out_shape=OUT{params}{launch})(n, x)\n"
    )


def formats(body: str, backend: str, jax: str = "0.12.0") -> set[str]:
    return {f.severity.name for f in lint(kernel(body, backend), jax, select="PAL605")}


@pytest.mark.parametrize(
    ("body", "tpu", "triton"),
    [
        ("pl.debug_print('x')", False, False),
        ("pl.debug_print('x', i)", False, False),
        ("pl.debug_print('{}', i)", False, True),
        ("pl.debug_print('{} {}', i, i)", False, True),
        ("pl.debug_print('{:d}', i)", True, True),
        ("pl.debug_print('{0}', i)", True, True),
        ("pl.debug_print('{!r}', i)", True, True),
        ("pl.debug_print('{} {}', i)", True, True),
        ("pl.debug_print('{}', i, i)", True, True),
        ("pl.debug_print('{x}', x=i)", True, True),
        ("pl.debug_print('{}', v)", False, True),
        ("pl.debug_print('v', v)", True, False),
        ("pl.debug_print('{} end', v)", True, True),
        ("pl.debug_print('{} {}', v, v)", True, True),
        ("pl.debug_print('{} {}', v, i)", True, True),
        ("pl.debug_print('{}', i > 0)", True, True),
        ("pl.debug_print('b', i > 0)", False, False),
        ("pl.debug_print('{}', i.astype(jnp.float32))", False, True),
        ("pl.debug_print('{}', i.astype(jnp.bfloat16))", True, True),
        ("jax.debug.print('{}', i)", False, True),
        ("jax.debug.print('{x}', x=i)", True, True),
        ("jax.debug.print('{} {}', i)", True, True),
        ("jax.debug.print('x', i)", True, True),
    ],
)
def test_formats(body: str, tpu: bool, triton: bool) -> None:
    """As lowered by jax 0.12.0.1."""
    assert formats(body, "tpu") == ({"ERROR"} if tpu else set())
    assert formats(body, "triton") == ({"ERROR"} if triton else set())


@pytest.mark.parametrize(
    ("body", "backend", "jax", "refused"),
    [
        ("pl.debug_print('{}', i.astype(jnp.float32))", "tpu", "0.10.2", True),
        ("pl.debug_print('{}', i.astype(jnp.float32))", "tpu", "0.11.2", False),
        ("pl.debug_print('{}', n_ref[0] / 2)", "tpu", "0.10.2", True),
        ("pl.debug_print('{}', n_ref[0] / 2)", "tpu", "0.11.2", False),
        ("pl.debug_print('{}', n_ref[0] + 1)", "tpu", "0.10.2", False),
        ("pl.debug_print('x', i)", "tpu", "0.5.3", True),
        ("pl.debug_print('x', i)", "tpu", "0.6.2", False),
        ("pl.debug_print('{}', v)", "tpu", "0.4.35", True),
        ("pl.debug_print('{}', v)", "tpu", "0.5.3", False),
        ("jax.debug.print('{x:.2f}', x=i)", "tpu", "0.6.2", False),
        ("jax.debug.print('{x:.2f}', x=i)", "tpu", "0.7.2", True),
        ("jax.debug.print('x')", "triton", "0.6.2", True),
        ("jax.debug.print('x')", "triton", "0.7.2", False),
    ],
)
def test_formats_by_version(body: str, backend: str, jax: str, refused: bool) -> None:
    code = kernel(body, backend)
    if jax in ("0.4.35", "0.5.3"):
        code = code.replace(".CompilerParams", ".TPUCompilerParams" if backend == "tpu" else ".TritonCompilerParams")
    assert bool(lint(code, jax, select="PAL605")) is refused


def test_f_strings_and_print_show_tracers() -> None:
    assert formats("pl.debug_print(f'i {i}')", "tpu") == {"WARNING"}
    assert formats("pl.debug_print(f'shape {v.shape}')", "tpu") == set()
    assert formats("print(i)", "tpu") == {"INFO"}
    assert formats("print(f'i {i}')", "tpu") == {"INFO"}
    assert formats("print(v.shape)", "tpu") == set()
    assert "pl.debug_print('i {}', i)" in fixed(kernel("pl.debug_print(f'i {i}')", "tpu"), "0.12.0", None, "PAL605")


def test_the_log_recorder() -> None:
    code = kernel("pl.debug_print('{}', i)", "tpu").replace("LOGS = 'xla_tpu_enable_log_recorder'\n", "")
    assert [f.severity for f in lint(code, "0.12.0", select="PAL605")] == [Severity.INFO]
    assert not lint(code.replace(PARAMS["tpu"], PARAMS["tpu"] + ", interpret=True"), "0.12.0", select="PAL605")


def test_debug_checks() -> None:
    code = kernel("pl.debug_check(i < 3, 'few')", "tpu")
    assert [f.severity for f in lint(code, "0.12.0", select="PAL604")] == [Severity.INFO]
    assert not lint(code + "with pl.enable_debug_checks(True):\n    pass\n", "0.12.0", select="PAL604")
    code = kernel("pl.debug_check(i < 3, 'few')", "triton") + "pl.enable_debug_checks\n"
    assert [f.severity for f in lint(code, "0.12.0", select="PAL604")] == [Severity.ERROR]


def in_project(folder: Path, name: str, text: str, rule: str) -> set[str]:
    (folder / "pyproject.toml").write_text("")
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    source = Source(str(file), text)
    return codes(list(lint_source(source, settings("0.12.0", None, rule), Project(folder)).findings))


def test_debug_checks_are_looked_for_in_the_project(tmp_path: Path) -> None:
    code = kernel("pl.debug_check(i < 3, 'few')", "tpu")
    assert in_project(tmp_path, "kernels.py", code, "PAL604")
    (tmp_path / "conftest.py").write_text("with pl.enable_debug_checks(True):\n    run()\n")
    assert not in_project(tmp_path, "kernels.py", code, "PAL604")


@pytest.mark.parametrize(
    ("launch", "severity", "after"),
    [
        ("debug=True", Severity.WARNING, ""),
        ("debug=True, interpret=interpret", Severity.WARNING, "interpret=interpret"),
        ("interpret=True", Severity.WARNING, ""),
        ("interpret=pltpu.InterpretParams()", Severity.WARNING, ""),
        ("interpret=pltpu.InterpretParams() if on else False", None, None),
        ("debug=False", None, None),
        ("debug=debug, interpret=interpret", None, None),
    ],
)
def test_switches(launch: str, severity: Severity | None, after: str | None) -> None:
    def code(keywords: str) -> str:
        return PRELUDE + f"def f(x, on, debug, interpret):\n    return pl.pallas_call(copy, out_shape=OUT{keywords})(x)"

    found = lint(code(f", {launch}"), "0.12.0", select="PAL606")
    assert [f.severity for f in found] == ([severity] if severity else [])
    if after is not None:
        assert fixed(code(f", {launch}"), "0.12.0", None, "PAL606").rstrip() == code(f", {after}" if after else "")


def test_a_switch_below_a_comment_goes_with_its_line() -> None:
    call = "pl.pallas_call(\n    copy,\n    out_shape=OUT,  # as x\n{}    grid=(),  # one\n{})(x)\n"
    code = PRELUDE + call.format("    interpret=True,\n", "    debug=True,\n")
    assert fixed(code, "0.12.0", None, "PAL606").rstrip("\n") == (PRELUDE + call.format("", "")).rstrip("\n")


@pytest.mark.parametrize(
    ("name", "code", "found"),
    [
        ("ops.py", "f = pl.pallas_call(copy, out_shape=OUT, debug=True)", True),
        ("ops.py", "f = functools.partial(pl.pallas_call, interpret=True)", True),
        ("test_ops.py", "f = pl.pallas_call(copy, out_shape=OUT, debug=True)", False),
        ("tests/ops.py", "f = pl.pallas_call(copy, out_shape=OUT, debug=True)", False),
        ("ops.py", "def test_f(x):\n    pl.pallas_call(copy, out_shape=OUT, interpret=True)(x)", False),
        (
            "ops.py",
            "class OpsTest:\n    def f(self, x):\n        pl.pallas_call(copy, out_shape=OUT, interpret=True)(x)",
            False,
        ),
        ("ops.py", "import os\nos.environ['MOSAIC_GPU_DUMP_PTX'] = '1'", True),
        ("ops.py", "import os\nos.environ['MOSAIC_GPU_DUMP_PTX'] = '0'", False),
        ("ops.py", "import os\nos.environ['MOSAIC_GPU_DUMP_' + name] = '1'", False),
        ("ops.py", "import os\nos.environ.setdefault('LIBTPU_INIT_ARGS', '--xla_mosaic_dump_to=/tmp/x')", True),
        ("ops.py", "jax.config.update('jax_pallas_dump_promela_to', '/tmp/x')", True),
        ("ops.py", "'''Set MOSAIC_GPU_DUMP_PTX=1 in os.environ.'''", False),
        (
            "ops.py",
            "def f(x, interpret: bool = True):\n    return pl.pallas_call(copy, out_shape=OUT, interpret=interpret)(x)",
            True,
        ),
        (
            "ops.py",
            "def f(x, interpret=False):\n    return pl.pallas_call(copy, out_shape=OUT, interpret=interpret)(x)",
            False,
        ),
    ],
)
def test_switches_by_place(tmp_path: Path, name: str, code: str, found: bool) -> None:
    assert bool(in_project(tmp_path, name, PRELUDE + code + "\n", "PAL606")) is found


def test_a_script_is_a_demonstration() -> None:
    code = PRELUDE + "if __name__ == '__main__':\n    pl.pallas_call(copy, out_shape=OUT, interpret=True)(1)\n"
    assert [f.severity for f in lint(code, "0.12.0", select="PAL606")] == [Severity.INFO]


def test_interpretation_of_what_another_module_launches(tmp_path: Path) -> None:
    (tmp_path / "pallas_ops.py").write_text(
        PRELUDE + "def run(x, interpret):\n    return pl.pallas_call(copy, out_shape=OUT, interpret=interpret)(x)\n"
    )
    test = "import jax\nfrom pallas_ops import run\n\ndef test_run():\n    run(jax.numpy.ones(8), interpret=True)\n"
    assert in_project(tmp_path, "test_ops.py", test, "PAL607")
    assert not in_project(tmp_path, "test_ops.py", test + "    run(1, interpret=pltpu.InterpretParams())\n", "PAL607")
    assert not in_project(tmp_path, "use.py", test.replace("test_run", "use"), "PAL607")


def test_guards_are_missed_on_demand_only() -> None:
    code = kernel("v = v / n_ref[0]")
    assert "PAL608" not in codes(lint_by_default(code))
    assert lint(code, "0.12.0", select="PAL608")
    assert not lint(kernel("v = v / jnp.maximum(n_ref[0], 1)"), "0.12.0", select="PAL608")
    assert not lint(kernel("pl.debug_check(n_ref[0] > 0, 'n'); v = v / n_ref[0]"), "0.12.0", select="PAL608")
    assert not lint(kernel("v = v / 8 + jnp.sqrt(jnp.exp(v)) + jnp.log(v * v + 1)"), "0.12.0", select="PAL608")
    assert lint(kernel("v = jnp.log(v)"), "0.12.0", select="PAL608")
    assert lint(kernel("v = x_ref[n_ref[0]]"), "0.12.0", select="PAL608")


def lint_by_default(code: str) -> list:  # type: ignore[type-arg]
    from pallas_lint.config.settings import Overrides, SettingsFinder

    finder = SettingsFinder(Overrides({}, isolated=True), Path("/nonexistent"))
    chosen = finder.for_folder(Path("/nonexistent"))
    return list(lint_source(Source("example.py", code), chosen, Project(Path("/nonexistent"))).findings)


LEFT_ON = """
import argparse
import os
import jax
from jax.experimental import pallas as pl

def run(kernel, x, args):
    call = pl.pallas_call(kernel, out_shape=x{interpret})
{body}
    return call(x)
"""


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("    os.environ['XLA_FLAGS'] = '--xla_dump_to=/tmp/dump'", True),
        ("    os.environ['XLA_FLAGS'] = os.environ.get('XLA_FLAGS', '') + ' --xla_dump_to=/tmp/dump'", True),
        ("    os.environ['MOSAIC_GPU_DUMP_PTX'] = '1'", True),
        ("    jax.config.update('jax_pallas_dump_promela_to', '/tmp/dump')", True),
        ("    os.environ['XLA_FLAGS'] = f'--xla_dump_to={args.dump}'", False),
        ("    os.environ['XLA_FLAGS'] = '--xla_dump_to=' + args.dump", False),
        ("    os.environ['XLA_FLAGS'] = '--xla_dump_to={}'.format(args.dump)", False),
        ("    os.environ['XLA_FLAGS'] = '--xla_dump_to=%s' % args.dump", False),
        ("    os.environ['MOSAIC_GPU_DUMP_TO'] = args.dump", False),
        ("    jax.config.update('jax_pallas_dump_promela_to', args.dump)", False),
        ("    if args.dump:\n        os.environ['XLA_FLAGS'] = '--xla_dump_to=/tmp/dump'", False),
        ("    args.dump_flags = '--xla_dump_to=/tmp/dump'", False),
        ("    args.dump_flags = f'--xla_dump_to={args.folder}'", False),
    ],
)
def test_dumps_that_are_surely_on(body: str, flagged: bool) -> None:
    assert bool(lint(LEFT_ON.format(interpret="", body=body), select="PAL606")) is flagged


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("    return pl.pallas_call(kernel, out_shape=x, interpret=True)(x)", True),
        ("    if x.ndim == 2:\n        return pl.pallas_call(kernel, out_shape=x, interpret=True)(x)", True),
        ("    if args.interpret:\n        return pl.pallas_call(kernel, out_shape=x, interpret=True)(x)", False),
        (
            "    if jax.default_backend() == 'cpu':\n        pl.pallas_call(kernel, out_shape=x, interpret=True)(x)",
            False,
        ),
        ("    if os.environ.get('DEBUG'):\n        call = pl.pallas_call(kernel, out_shape=x, debug=True)", False),
        ("    print(jax.make_jaxpr(pl.pallas_call(kernel, out_shape=x, interpret=True))(x))", False),
        ("    print(jax.eval_shape(pl.pallas_call(kernel, out_shape=x, interpret=True), x))", False),
    ],
)
def test_interpretation_that_is_surely_on(body: str, flagged: bool) -> None:
    assert bool(lint(LEFT_ON.format(interpret="", body=body), select="PAL606")) is flagged


def test_notebooks_that_are_kept_as_python_files() -> None:
    (found,) = lint(LEFT_ON.format(interpret=", interpret=True", body=""), select="PAL606")
    assert (found.severity, found.message.partition(" ")[0]) == (Severity.WARNING, "`interpret=True`")
    lesson = "# %% [markdown]\n# # Lesson 1\n\n# %%\n" + LEFT_ON.format(interpret=", interpret=True", body="")
    assert [found.severity for found in lint(lesson, select="PAL606")] == [Severity.INFO]


def test_interpretation_is_reported_once_a_file() -> None:
    more = "    call = pl.pallas_call(kernel, out_shape=x, interpret=True)\n" * 3
    (found,) = lint(LEFT_ON.format(interpret=", interpret=True", body=more), select="PAL606")
    assert found.severity is Severity.WARNING
    assert len(found.related) == 3
    (fix,) = found.fixes
    assert len(fix.edits) == 4
