"""PAL507 and PAL508: launches that run on several devices, against what jax lowers for TPU on a mesh of four."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Finding, Severity
from pallas_lint.lint import check_file
from pallas_lint.run.project import Project
from pallas_lint.testing import fixed_text, lint_text, settings
from pallas_lint.text.source import Source
from tests.rules.interpreted import python
from tests.rules.spread_forms import FORMS, NEW, OLD, PRELUDE

if TYPE_CHECKING:
    from pathlib import Path

_RUNNER = """
import json, sys
import jax, jax.numpy as jnp
found = []
for code in json.load(sys.stdin):
    scope = {}
    try:
        exec(code, scope)
        operand = jnp.zeros((1, 8, 128) if "pmap" in code else (16, 128), jnp.float32)
        f = scope["f"] if hasattr(scope["f"], "trace") else jax.jit(scope["f"])
        f.trace(operand).lower(lowering_platforms=("tpu",))
        found.append("")
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}".partition("\\n")[0])
print(json.dumps([jax.__version__, found]))
"""
_OURS = {
    "PAL507": ("No replication rule for", "When `check_vma=True` on `jax.shard_map`"),
    "PAL508": ("Mosaic kernels cannot be automatically partitioned", "requires all mesh axes to be Manual"),
}


def findings(code: str, version: str = "0.9.2") -> list[Finding]:
    return [each for each in lint_text(PRELUDE + code + "\n", version) if each.code in _OURS]


def codes(code: str, version: str = "0.9.2") -> set[str]:
    return {each.code for each in findings(code, version)}


@pytest.mark.nightly
def test_as_lowered() -> None:
    """What is flagged, jax refuses for that reason, and what it refuses for that reason is flagged."""
    done = subprocess.run(
        [python(), "-c", _RUNNER],
        input=json.dumps([PRELUDE + code for code in FORMS.values()]),
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    version, errors = json.loads(done.stdout)
    differing = {}
    for (name, code), error in zip(FORMS.items(), errors, strict=True):
        refused = {code for code, texts in _OURS.items() if any(text in error for text in texts)}
        # Of what fails for another reason, such as a name that this jax does not have, nothing is known.
        if codes(code, version) != refused and (refused or not error):
            differing[name] = (codes(code, version), error)
    assert not differing


@pytest.mark.parametrize("name", FORMS)
def test_flagged(name: str) -> None:
    rule = name.partition(":")[0]
    assert codes(FORMS[name]) == (set() if rule == "silent" else {rule})


def first(code: str, version: str = "0.9.2") -> Finding:
    return findings(code, version)[0]


def test_severity_of_meshes() -> None:
    jit = "f = jax.jit(double, in_shardings=NamedSharding({}, P('x')))"
    sure = ("jax.make_mesh((2, 4), ('x', 'y'))", "Mesh(np.array(jax.devices()).reshape(8), ('x',))")
    for mesh in sure:
        assert first(jit.format(mesh)).severity is Severity.ERROR
    open_ = ("Mesh(jax.devices(), ('x',))", "jax.make_mesh((jax.device_count(),), ('x',))", "elsewhere.mesh()")
    for mesh in open_:
        assert first(jit.format(mesh)).severity is Severity.WARNING
    in_function = "def make(mesh):\n    return jax.jit(double, out_shardings=NamedSharding(mesh, P('x')))"
    assert first(in_function).severity is Severity.WARNING


@pytest.mark.parametrize(
    ("call", "version", "phrase"),
    [
        (NEW, "0.6.0", None),
        (NEW, "0.6.1", None),
        (NEW, "0.6.2", "`vma`"),
        (NEW, "0.9.2", "`vma`"),
        (NEW, "0.10.0", "`manual_axis_type`"),
        (NEW, "0.12.0.1", "`manual_axis_type`"),
        (NEW, ">=0.8,<0.11", "`manual_axis_type`"),
        (OLD, "0.5.3", "replication rule"),
        (OLD, "0.6.1", None),
        (OLD, "0.6.2", "`vma`"),
    ],
)
def test_versions(call: str, version: str, phrase: str | None) -> None:
    found = findings(f"f = {call.format('double')}", version)
    assert [each.severity for each in found] == ([] if phrase is None else [Severity.ERROR])
    assert phrase is None or phrase in found[0].message


def test_no_version_known() -> None:
    """Every release refuses it in its own words: it does not matter which is meant."""
    (found,) = [each for each in lint_text(PRELUDE + f"f = {NEW.format('double')}\n") if each.code == "PAL507"]
    assert (found.severity, found.jax) == (Severity.ERROR, None)


@pytest.mark.parametrize(
    "code",
    [
        # what is not known: the check, the wrapper, the arguments of the wrapper, the out_shape
        "def f(x, check):\n    return jax.shard_map(double, **HOW, check_vma=check)(x)",
        "def f(x, how):\n    return jax.shard_map(double, mesh=MESH, in_specs=P(), out_specs=P(), **how)(x)",
        "from elsewhere import shard_map\nf = shard_map(double, mesh=MESH, in_specs=P(), out_specs=P())",
        f"from elsewhere import out_of\nf = {NEW.format('lambda x: like(x, out_of(x))')}",
        f"from elsewhere import wrapped\nf = {NEW.format('wrapped(double)')}",
        f"from elsewhere import wrapped\n@wrapped\ndef g(x):\n    return double(x)\nf = {NEW.format('g')}",
        "import inspect\nhas_vma = 'check_vma' in inspect.signature(jax.shard_map).parameters\n"
        "how = {'check_vma' if has_vma else 'check_rep': False}\n"
        "f = jax.shard_map(double, mesh=MESH, in_specs=P(), out_specs=P(), **how)",
        # shardings that are not seen, and another program
        "def make(rows):\n    return jax.jit(double, in_shardings=rows)",
        "f = jax.jit(double, in_shardings=P('x'))",
        "from elsewhere import wrapped\nf = jax.jit(wrapped(double), in_shardings=ROWS)",
        "from elsewhere import wrapped\n@wrapped\ndef g(x):\n    return double(x)\nf = jax.jit(g, in_shardings=ROWS)",
        "def f(x):\n    return lax.with_sharding_constraint(x, ROWS), double(x)",
        "f = jax.jit(lambda x: lax.with_sharding_constraint(x, ROWS))\ndef g(x):\n    return double(x)",
    ],
)
def test_silent(code: str) -> None:
    assert findings(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    with jax.set_mesh(MESH):\n        return double(x)",
        "def f(x):\n    with jax.sharding.use_mesh(MESH):\n        return jax.jit(double)(x)",
        "def f(x):\n    return double(jax.device_put(jnp.ones((8, 128)), ROWS))",
        "import pytest\n@pytest.mark.parametrize('n', [1])\n@functools.partial(jax.jit, in_shardings=ROWS)\n"
        "def f(x, n):\n    return double(x + n)",
    ],
)
def test_partitioned(code: str) -> None:
    """Refused by jax 0.5.3 to 0.12.0.1, as far as they have these names."""
    assert codes(code) == {"PAL508"}


TENSOR_CORE = """\
def body(x_ref, o_ref):
    pltpu.sync_copy(x_ref, o_ref)

copy = pl.kernel(body, out_type=OUT, mesh=pltpu.create_tensorcore_mesh("core", num_cores=1))

@functools.partial(pl.kernel, out_type=OUT, mesh=pltpu.create_tensorcore_mesh("core", num_cores=1))
def copy_too(x_ref, o_ref):
    pltpu.sync_copy(x_ref, o_ref)

"""


@pytest.mark.parametrize("name", ["copy", "copy_too"])
def test_kernels_on_a_mesh(name: str) -> None:
    """Lowered with jax 0.8.3 to 0.12.0.1; `shard_map` does not request `vma` there."""
    for code in ("jax.jit({}, in_shardings=ROWS)", "jax.jit(lambda x: {}(x), out_shardings=ROWS)"):
        assert codes(f"{TENSOR_CORE}f = {code.format(name)}", "0.10.2") == {"PAL508"}
    for code in ("jax.jit({})", "jax.jit({}, in_shardings=NamedSharding(ALONE, P()))", NEW):
        assert codes(f"{TENSOR_CORE}f = {code.format(name)}", "0.10.2") == set()


def test_other_backends() -> None:
    code = "f = jax.jit(double, in_shardings=ROWS)\n"
    assert not [each for each in lint_text(PRELUDE + code, "0.9.2", target="triton") if each.code == "PAL508"]


FIXABLE = """\
import jax
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0

def double(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def run(x, mesh, spec):
    return jax.shard_map(double, mesh=mesh, in_specs=spec, out_specs=spec)(x)
"""


@pytest.mark.parametrize(("version", "word"), [("0.9.2", "vma"), ("0.12.0.1", "manual_axis_type"), (">=0.9,<0.11", "")])
def test_fix(version: str, word: str) -> None:
    after = FIXABLE.replace("x.dtype)", f"x.dtype, {word}=jax.typeof(x).{word})") if word else FIXABLE
    assert fixed_text(FIXABLE, version, select="PAL507") == after


def test_fix_needs_one_named_operand() -> None:
    for operands in ("x, x", "x + 1", "*x"):
        code = FIXABLE.replace("(x)\n\ndef run", f"({operands})\n\ndef run")
        assert fixed_text(code, "0.9.2", select="PAL507") == code


def test_word_of_another_release() -> None:
    code = FIXABLE.replace("x.dtype)", "x.dtype, vma=jax.typeof(x).vma)")
    assert {each.code for each in lint_text(code, "0.10.2")} == {"PAL701"}
    assert not lint_text(code, "0.9.2")
    assert "PAL703" in {each.code for each in lint_text(code, "0.5.3")}


@pytest.mark.parametrize(
    "code",
    [
        f"def test_it(x):\n    f = jax.jit({NEW.format('double')})\n    with pytest.raises(ValueError):\n        f(x)",
        f"def test_it(x):\n    f = {OLD.format('double')}\n    with pytest.raises(ValueError):\n        f(x)",
        "def test_it(x):\n    f = jax.jit(double, in_shardings=ROWS)\n    with pytest.raises(Exception):\n        f(x)",
    ],
)
def test_expected_to_fail(code: str) -> None:
    assert findings(f"import pytest\n{code}") == []


def test_perhaps_no_mesh() -> None:
    rows = "rows = {} if mesh is None else NamedSharding(mesh, P('x'))"
    made = "def make(mesh):\n    {}\n    return jax.jit(double, in_shardings=rows)"
    assert findings(made.format(rows.format("None"))) == []
    assert codes(made.format(rows.format("ALL"))) == {"PAL508"}


KERNELS = """\
import jax
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0

def double(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def doubled_and_more(x):
    return double(x) + 1
"""
MODEL = """\
import jax
from pallas_kernels import double, doubled_and_more

def run(x, mesh, spec):
    mapped = jax.shard_map({}, mesh=mesh, in_specs=spec, out_specs=spec)
    return mapped(x)
"""


@pytest.mark.parametrize(
    ("mapped", "kernels", "lines"),
    [
        ("double", KERNELS, [5]),
        ("doubled_and_more", KERNELS, [5]),
        ("lambda x: double(x)", KERNELS, [5]),
        ("jax.jit(double)", KERNELS, [5]),
        ("double, check_vma=False", KERNELS, []),
        ("double", KERNELS.replace("x.dtype)", "x.dtype, vma=jax.typeof(x).vma)"), []),
        ("double", KERNELS.replace("jax.ShapeDtypeStruct(x.shape, x.dtype)", "x"), []),
    ],
)
def test_of_another_module(tmp_path: Path, mapped: str, kernels: str, lines: list[int]) -> None:
    """Said where it is mapped; the kernel itself is judged in its own module."""
    (tmp_path / "pallas_kernels.py").write_text(kernels)
    (tmp_path / "model.py").write_text(MODEL.format(mapped))
    source = Source("model.py", MODEL.format(mapped))
    file_analysis = check_file(source, settings("0.9.2", select="PAL507"), Project(tmp_path))
    assert [each.span.start.line for each in file_analysis.result.findings] == lines
    assert file_analysis.analysis is not None
    assert file_analysis.analysis.launches == []
