"""The backend of launches that tell none: presumed from the file, the project's kernels, its requirements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.checker.backend_inference import backends_named
from pallas_lint.run.cache_folder import cache_folder
from pallas_lint.run.project import InputFile, Project
from pallas_lint.run.runner import run
from pallas_lint.testing import settings
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.finding import Finding

UNKNOWN = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = jnp.cumsum(x_ref[...], axis=0)


def run(x):
    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    return pl.pallas_call(kernel, out_shape=out)(x)
"""
REPORTED = """\
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import {module} as other


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run(x):
    return pl.pallas_call(copy, out_shape=x, compiler_params=other.CompilerParams())(x)
"""
TPU, TRITON, MOSAIC = (REPORTED.format(module=module) for module in ("tpu", "triton", "mosaic_gpu"))
ON_TPU, ANYWHERE = ("warning", "tpu"), ("info", None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\n')
    (tmp_path / "unknown.py").write_text(UNKNOWN)
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def found(folder: Path, jax: str = "0.10.2", target: str | None = None, *, cached: bool = False) -> list[Finding]:
    """The findings of a run over `unknown.py` alone."""
    chosen = settings(jax, target, "PAL101")
    file = InputFile(folder / "unknown.py", "unknown.py", chosen)
    result = run([file], cwd=folder, cache_folder=cache_folder(folder) if cached else None)
    assert not result.errors
    return list(result.findings)


def verdicts(folder: Path, jax: str = "0.10.2", target: str | None = None, *, cached: bool = False) -> list[object]:
    return [(each.severity.value, each.backend) for each in found(folder, jax, target, cached=cached)]


def test_other_kernels_of_the_project_are_evidence(folder: Path) -> None:
    assert verdicts(folder) == [ANYWHERE]  # two of the backends have no lowering
    write(folder, one=TPU)
    (finding,) = found(folder)
    assert (finding.severity.value, finding.backend) == ON_TPU
    assert finding.message.endswith("(presumed TPU: the project's other kernel is)")
    (folder / "sub").mkdir()
    write(folder / "sub", two=TPU + "\n\nmore = pl.pallas_call(copy, out_shape=1)\n")
    assert found(folder)[0].message.endswith("(presumed TPU: the project's 3 other kernels are)")


@pytest.mark.parametrize("other", [TRITON, MOSAIC])
def test_a_project_for_several_backends_is_no_evidence(folder: Path, other: str) -> None:
    write(folder, one=TPU, two=TPU, three=other)
    assert verdicts(folder) == [ANYWHERE]


def test_only_configured_backends_count(folder: Path) -> None:
    write(folder, one=TPU)
    assert verdicts(folder, target="tpu") == [("error", "tpu")]
    assert verdicts(folder, target="triton") == []
    write(folder, unknown=UNKNOWN.replace("out_shape=out", "out_shape=out, compiler_params=dict(triton=dict())"))
    assert verdicts(folder, "0.4.35") == []


@pytest.mark.parametrize(
    "line",
    [
        'os.environ["LIBTPU_INIT_ARGS"] = ""',
        'os.environ["JAX_PLATFORMS"] = "tpu,cpu"',
        'jax.config.update("jax_platform_name", "tpu")',
        'jax.devices("tpu")',
        "x_vmem_ref = None",
    ],
)
def test_words_of_the_file_are_evidence(folder: Path, line: str) -> None:
    write(folder, one=TRITON, unknown=f"{UNKNOWN}\n\n{line}\n")
    assert "(presumed TPU: the file has `" in found(folder)[0].message
    write(folder, unknown=f"{UNKNOWN}\n\n# {line}\n")
    assert verdicts(folder) != [ON_TPU]  # a comment
    write(folder, unknown=f"{UNKNOWN}\n\n{line}\njax.devices('gpu')\n")
    assert verdicts(folder) != [ON_TPU]  # code for both


@pytest.mark.parametrize(
    ("line", "presumed"),
    [
        ('os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"', True),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = ""', False),  # hides GPUs
        ("jax.config.update('jax_platforms', 'cuda')", True),
        ("jax.config.update('jax_platforms', 'cpu')", False),
    ],
)
def test_settings_of_gpus_are_evidence(folder: Path, line: str, presumed: bool) -> None:
    write(folder, one=TPU, unknown=f"{UNKNOWN}\n\n{line}\n")
    assert (verdicts(folder, "0.4.35") != [ON_TPU]) is presumed


def test_the_files_other_launches_come_first(folder: Path) -> None:
    write(folder, one=TRITON, params="from jax.experimental.pallas import tpu as pltpu\nP = pltpu.CompilerParams()\n")
    other = "\n\ndef other(x):\n    return pl.pallas_call(kernel, out_shape=x, compiler_params=P)(x)\n"
    text = UNKNOWN.replace("import pallas as pl", "import pallas as pl\nfrom params import P") + other
    write(folder, unknown=text.replace("(kernel, out_shape=x", "(lambda x_ref, o_ref: None, out_shape=x"))
    (finding,) = found(folder)
    assert finding.message.endswith("(presumed TPU: the file's other launch is)")


PRIVATE = "from jax._src.pallas.{}.core import CompilerParams"


@pytest.mark.parametrize(("module", "backend"), [("triton", []), ("mosaic_gpu", ["mosaic_gpu"]), ("mosaic", ["tpu"])])
def test_private_modules_name_their_backend(folder: Path, module: str, backend: list[str]) -> None:
    write(folder, one=TPU, two=MOSAIC)
    text = UNKNOWN.replace("    out =", f"    {PRIVATE.format(module)}\n    out =")
    write(folder, unknown=text.replace("out_shape=out", "out_shape=out, compiler_params=CompilerParams()"))
    assert [finding.backend for finding in found(folder)] == backend
    write(folder, unknown=f"{PRIVATE.format(module)}\n" + UNKNOWN)
    assert [finding.backend for finding in found(folder)] == backend


def test_parameters_of_an_unknown_class_are_for_an_unknown_backend(folder: Path) -> None:
    write(folder, one=TPU)
    text = UNKNOWN.replace("import pallas as pl", "import pallas as pl\nfrom somewhere import params")
    write(folder, unknown=text.replace("out_shape=out", "out_shape=out, compiler_params=params.Params(num_warps=4)"))
    assert all("presumed" not in finding.message for finding in found(folder))


def test_contradicting_imports_in_the_file_stay_open(folder: Path) -> None:
    both = "import pallas as pl\nfrom jax.experimental.pallas import tpu, triton"
    write(folder, one=TPU, unknown=UNKNOWN.replace("import pallas as pl", both))
    assert verdicts(folder) == [ANYWHERE]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", '[project]\nname = "p"\ndependencies = ["jax[tpu]>=0.6"]\n', [ON_TPU]),
        ("pyproject.toml", '[tool.poetry.dependencies]\njax = {version = "^0.6", extras = ["tpu"]}\n', [ON_TPU]),
        ("requirements.txt", "numpy\nlibtpu==0.0.20\n", [ON_TPU]),
        ("requirements-tpu.txt", "jax[tpu] @ https://example.org/jax.whl#tpu\n", [ON_TPU]),
        ("uv.lock", '[[package]]\nname = "jax"\nversion = "0.6.2"\n\n[[package]]\nname = "libtpu"\n', [ON_TPU]),
        ("requirements.txt", "jax[cuda12]\n", []),  # Triton and Mosaic GPU: see the next test
        ("pyproject.toml", "[project.optional-dependencies]\na = ['jax[tpu]']\nb = ['jax[cuda12]']\n", [ANYWHERE]),
        ("requirements.txt", "jax  # or jax[tpu]\nnumpy\n", [ANYWHERE]),
        ("poetry.lock", '[[package]]\nname = "jax"\n\n[package.extras]\ntpu = ["libtpu (==0.1)"]\n', [ANYWHERE]),
    ],
)
def test_requirements_are_evidence_where_no_kernel_is(
    folder: Path, name: str, text: str, expected: list[object]
) -> None:
    (folder / name).write_text(text)
    # Triton has a lowering for cumsum.
    assert verdicts(folder, "0.8.3") == expected
    if expected == [ON_TPU]:
        write(folder, one=TRITON)
        assert verdicts(folder, "0.8.3") == []


def test_cuda_is_triton_or_mosaic_gpu_by_version(folder: Path) -> None:
    (folder / "requirements.txt").write_text("jax[cuda12]\n")
    assert verdicts(folder, "0.8.3") == []
    assert verdicts(folder, "0.10.2") == [("warning", "mosaic_gpu")]
    assert verdicts(folder, ">=0.8.3,<0.11") == [ANYWHERE]


def test_kept_verdicts_hold_as_long_as_the_inferred_backend(folder: Path) -> None:
    assert verdicts(folder, cached=True) == [ANYWHERE]
    write(folder, one=TPU)
    assert verdicts(folder, cached=True) == [ON_TPU]
    assert verdicts(folder, cached=True) == [ON_TPU]
    write(folder, two=TRITON)
    assert verdicts(folder, cached=True) == [ANYWHERE]


def test_texts_of_an_editor_go_before_those_on_disk(folder: Path) -> None:
    write(folder, one=TPU)
    project = Project(folder)
    assert dict(project.evidence(folder).launches) == {"tpu": 1}
    project.overlay = {folder / "two.py": Source("two.py", TRITON), folder / "one.py": Source("one.py", "")}
    assert dict(project.evidence(folder).launches) == {"triton": 1}
    project.overlay = {}
    write(folder, one=MOSAIC)
    project.forget(folder / "one.py")
    assert dict(project.evidence(folder).launches) == {"mosaic_gpu": 1}


def test_installed_packages_and_hidden_folders_are_not_the_project(folder: Path) -> None:
    for place in (".venv", "env/lib/site-packages", "node_modules"):
        (folder / place).mkdir(parents=True)
        write(folder / place, one=TPU)
    project = Project(folder)
    assert project.evidence(folder).launches == ()
    project.forget(folder / ".venv" / "one.py")
    assert project.evidence(folder).launches == ()


def test_without_a_project_neighbouring_files_are_evidence(folder: Path) -> None:
    (folder / "pyproject.toml").unlink()
    write(folder, one=TPU)
    (folder / "sub").mkdir()
    write(folder / "sub", two=TRITON)
    assert verdicts(folder) == [ON_TPU]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from jax.experimental.pallas import tpu as pltpu", {"tpu"}),
        ("import jax.experimental.pallas.tpu as pltpu", {"tpu"}),
        ("from jax.experimental.pallas.triton import CompilerParams", {"triton"}),
        ("from jax.experimental.pallas import (\n    mosaic_gpu as plgpu,\n)", {"mosaic_gpu"}),
        ("from jax.experimental.pallas import fuser, tpu", {"tpu"}),
        ("from jax.experimental.pallas import tpu_sc as plsc", {"tpu"}),
        ("from jax.experimental import pallas as pl  # not for tpu", set()),
        ("from jax.experimental.pallas import ops\nfrom a import tpu", set()),
        ("import jax.experimental.pallas.ops.tpu.flash_attention", set()),
    ],
)
def test_imports_of_backends(line: str, expected: set[str]) -> None:
    assert set(backends_named(line.encode())) == expected


@pytest.mark.parametrize(
    ("jax", "parameters", "backend"),
    [
        ("0.8.3", "", None),
        ("0.10.2", "", "mosaic_gpu"),
        ("0.12.0.1", "", None),
        ("0.12.0.1", ", compiler_params=None", None),
        ("0.12.0.1", ", compiler_params=plgpu.CompilerParams()", "mosaic_gpu"),
    ],
)
def test_the_import_of_mosaic_gpu_is_no_evidence_where_triton_is_the_default(
    folder: Path, jax: str, parameters: str, backend: str | None
) -> None:
    code = UNKNOWN.replace("def kernel", "from jax.experimental.pallas import mosaic_gpu as plgpu\n\n\ndef kernel")
    write(folder, unknown=code.replace("out_shape=out", f"out_shape=out{parameters}"))
    assert [each.backend for each in found(folder, jax)] == [backend]
