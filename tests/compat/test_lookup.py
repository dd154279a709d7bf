"""Known facts about jax, as the lookup tells them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pallas_lint import compat
from pallas_lint.compat import tables

PL = "jax.experimental.pallas"


def support(name: str) -> compat.FunctionSupport:
    found = compat.function(name)
    assert found is not None, f"{name} was not measured"
    return found


def status(name: str, backend: str, version: str, dtype: str | None = None, device: str | None = None) -> str:
    return support(name).verdict(backend, version, dtype=dtype, device=device).status


# --- versions ---------------------------------------------------------------------------------------------


def test_versions_are_sorted_and_span_the_supported_range() -> None:
    known = compat.known_versions()
    assert known[0] == compat.oldest() == "0.4.35"
    assert compat.newest() == known[-1] == "0.12.0.1"
    assert list(known) == sorted(known, key=lambda v: [int(part) for part in v.split(".")])
    assert set(compat.measured_versions()) <= set(known)


@pytest.mark.parametrize(
    ("version", "stands_for"),
    [
        ("0.4.35", "0.4.35"),
        ("0.8.3", "0.8.3"),
        ("0.10", "0.10.0"),
        ("0.10.99", "0.10.2"),
        ("0.13.1", "0.12.0.1"),
        ("0.12.0", "0.12.0"),
        ("0.7.2.dev20250801", "0.7.2"),
        ("0.9.0rc1", "0.9.0"),
        ("v0.6.2", "0.6.2"),
    ],
)
def test_nearest(version: str, stands_for: str) -> None:
    assert compat.nearest(version) == stands_for


@pytest.mark.parametrize("version", ["0.4.34", "0.3", "", "latest", "1.x", "0.8 or so", ">=0.8"])
def test_nearest_refuses_what_is_too_old_or_no_version(version: str) -> None:
    with pytest.raises(ValueError, match=r"oldest version known|not a jax version"):
        compat.nearest(version)


def test_ranges() -> None:
    assert compat.versions_in(">=0.8,<0.9") == ("0.8.0", "0.8.1", "0.8.2", "0.8.3")
    assert compat.versions_in("0.10.2") == ("0.10.2",)
    assert compat.versions_in("==0.4.*") == ("0.4.35", "0.4.36", "0.4.37", "0.4.38")
    assert compat.versions_in(">=99") == ()
    with pytest.raises(ValueError, match="neither a jax version nor a range"):
        compat.versions_in("around 0.8")


# --- functions --------------------------------------------------------------------------------------------


def test_is_finite_on_triton_came_with_0_8() -> None:
    assert status("jax.numpy.isfinite", "triton", "0.7.2", "f32") == "unsupported"
    assert status("jax.numpy.isfinite", "triton", "0.8.3", "f32") == "supported"
    verdict = support("jax.lax.is_finite").verdict("triton", "0.7.2")
    assert verdict.status == "unsupported"
    assert verdict.outcome is compat.SupportStatus.LOWER
    assert verdict.primitive == "is_finite"
    assert verdict.measured_at == "0.7.2"
    # The registries of the patch releases tell which of them it was.
    assert support("jax.lax.is_finite").since("triton", "f32") == "0.8.2"


def test_is_finite_on_tpu() -> None:
    assert status("jax.lax.is_finite", "tpu", "0.4.35") == "unsupported"
    assert status("jax.lax.is_finite", "tpu", "0.12.0.1", "f32") == "supported"
    assert status("jax.lax.is_finite", "tpu", "0.12.0.1", "bf16") == "unsupported"
    assert status("jax.lax.is_finite", "tpu", "0.12.0.1") == "depends"


@pytest.mark.parametrize("version", ["0.4.35", "0.8.3", "0.10.2", "0.12.0.1"])
def test_cumsum_never_lowers_on_tpu(version: str) -> None:
    verdict = support("jax.numpy.cumsum").verdict("tpu", version)
    assert (verdict.status, verdict.primitive) == ("unsupported", "cumsum")
    assert status("jax.numpy.cumsum", "triton", version, "f32") == "supported"
    elsewhere = support("jax.numpy.cumsum").works_elsewhere("tpu", version)
    assert [where.backend for where in elsewhere] == ["triton"]
    assert any("jnp.triu" in text for text in compat.substitutes("jax.numpy.cumsum", "tpu"))


def test_bf16_rem_on_tpu_lowers_but_does_not_compile() -> None:
    verdict = support("jax.lax.rem").verdict("tpu", "0.12.0.1", dtype="bf16", device="v5e")
    assert verdict.status == "unsupported"
    assert verdict.outcome is compat.SupportStatus.COMPILE
    assert verdict.compiled
    assert status("jax.lax.rem", "tpu", "0.12.0.1", "f32", "v5e") == "supported"
    assert status("jax.lax.rem", "tpu", "0.12.0.1", "i32", "v5e") == "supported"


def test_int8_arithmetic_does_not_compile_for_tpu() -> None:
    verdict = support("jax.numpy.add").verdict("tpu", "0.12.0.1", dtype="int8", device="v5e")
    assert verdict.status == "unsupported"
    assert "i8" in (verdict.message or "")


def test_argmax_over_all_axes_is_wrong_on_triton() -> None:
    verdict = support("jax.numpy.argmax").verdict("triton", "0.11.2", dtype="f32", variant="plain")
    assert verdict.outcome is compat.SupportStatus.WRONG
    assert status("jax.numpy.argmax", "triton", "0.11.2", "f32") == "depends"


@pytest.mark.parametrize("backend", ["tpu", "triton"])
@pytest.mark.parametrize(
    "name",
    [
        "jax.numpy.where", "jax.numpy.maximum", "jax.numpy.exp", "jax.numpy.zeros_like",
        "jax.numpy.full_like", "jax.numpy.logical_and", "jax.lax.select", "jax.numpy.sum", "jax.numpy.max",
        "jax.nn.silu", "jax.nn.sigmoid", "jax.numpy.tanh", "jax.named_scope", "operator:+", "operator:*",
        "method:astype",
    ],
)  # fmt: skip
def test_what_every_kernel_uses_is_not_called_unsupported(name: str, backend: str) -> None:
    for version in compat.measured_versions():
        assert status(name, backend, version) in ("supported", "depends"), version
    assert status(name, backend, "0.12.0.1", "f32") in ("supported", "depends")


def test_dtype_groups_and_long_names() -> None:
    isfinite = support("jax.numpy.isfinite")
    assert isfinite.verdict("triton", "0.7.2", dtype="float").status == "unsupported"
    # Integers are finite: that case is a constant and lowers anywhere.
    assert isfinite.verdict("triton", "0.7.2").status == "depends"
    assert isfinite.verdict("triton", "0.7.2", dtype="float32").status == "unsupported"
    assert isfinite.verdict("triton", "0.7.2", dtype="float64").status == "unknown"


def test_a_dtype_that_the_function_itself_refuses_is_no_failure_of_the_backend() -> None:
    verdict = support("jax.lax.is_finite").verdict("tpu", "0.12.0.1", dtype="i32")
    assert verdict.status == "unknown"
    assert verdict.outcome is compat.SupportStatus.UNSUPPORTED_DTYPE


def test_generations_that_were_not_compiled_for() -> None:
    """A TPU speaks for itself with the releases that were compiled for it; else only refusals in lowering count."""
    assert status("jax.numpy.add", "tpu", "0.7.2", "f32", "tpu7x") == "unknown"
    assert status("jax.numpy.cumsum", "tpu", "0.7.2", "f32", "tpu7x") == "unsupported"
    releases = compat.measured_versions()
    for device, compiled in (("v4", releases), ("v5p", releases), ("tpu7x", releases[releases.index("0.8.3") :])):
        for version in compiled:
            assert status("jax.numpy.add", "tpu", version, "f32", device) == "supported"
    assert status("jax.numpy.add", "tpu", "0.12.0.1", "f32", "tpu8i") == "unknown"


def test_rules_that_depend_on_the_generation() -> None:
    """jax lowers `top_k` of bfloat16 from the sixth generation on; lowered and compiled with jax 0.12.0.1."""
    top_k = support("jax.lax.top_k")
    reported = {
        device: top_k.verdict("tpu", "0.12.0.1", dtype="bf16", device=device, variant="unstable").status
        for device in ("v4", "v5e", "v5p", "v6e", "tpu7x")
    }
    assert [device for device, status in reported.items() if status == "supported"] == ["v6e", "tpu7x"]
    assert {reported[device] for device in ("v4", "v5e", "v5p")} == {"unsupported"}


def test_between_measured_versions_only_what_is_certain_counts() -> None:
    # 0.7.2 lacks is_finite on Triton, 0.8.3 has it; so does the registry of 0.8.2, but not that of 0.8.1.
    assert status("jax.lax.is_finite", "triton", "0.8.1", "f32") == "unsupported"
    assert status("jax.lax.is_finite", "triton", "0.8.2", "f32") == "unknown"


def test_unknown_functions() -> None:
    assert compat.function("jax.numpy.no_such_thing") is None
    assert compat.status("jax.numpy.no_such_thing", "tpu", "0.12.0.1") == "unknown"


def test_operators_are_measured_like_functions() -> None:
    assert support("operator:%").variants
    assert status("operator:@", "tpu", "0.12.0.1", "f32") in ("supported", "depends")


# --- names ------------------------------------------------------------------------------------------------


def test_pl_load_came_was_deprecated_and_went() -> None:
    history = compat.api(f"{PL}.load")
    assert history is not None
    assert (history.deprecated, history.removed) == ("0.7.1", "0.9.0")
    assert history.since_first
    assert "ref[idx]" in (history.message or "")
    statuses = [history.status(version) for version in ("0.4.35", "0.7.0", "0.7.1", "0.8.3", "0.9.0", "0.12.0.1")]
    assert statuses == ["present", "present", "deprecated", "deprecated", "removed", "removed"]
    assert history.present_in("0.8.3")
    assert not history.present_in("0.9.2")


def test_names_not_there_yet() -> None:
    history = compat.api(f"{PL}.tpu.CompilerParams")
    assert history is not None
    assert history.status("0.4.35") == "not-yet"
    assert history.status("0.8.3") == "present"
    assert history.removed is None


def test_names_that_went_and_came_back() -> None:
    history = compat.api(f"{PL}.fuser")
    assert history is not None
    assert len(history.spans()) == 2
    assert history.status("0.6.2") == "removed"
    assert history.status("0.12.0.1") == "present"


def test_names_no_version_ever_had() -> None:
    assert compat.api(f"{PL}.BlockSpecs") is None
    assert compat.known_module(PL)
    assert not compat.known_module("numpy")
    assert compat.nearest_names(PL, "BlokSpec", "0.10.2")[0] == "BlockSpec"
    assert "cdiv" in compat.nearest_names(PL, "ceil_div", "0.10.2") or compat.nearest_names(PL, "cdivs", "0.10.2")


def test_members_of_enums() -> None:
    history = compat.api(f"{PL}.tpu.MemorySpace.ANY")
    assert history is not None
    assert history.removed is not None
    assert compat.api(f"{PL}.tpu.MemorySpace.VMEM") is not None


def test_modules() -> None:
    assert compat.module_exists(f"{PL}.gpu", "0.5.3")
    assert not compat.module_exists(f"{PL}.gpu", "0.7.2")
    assert compat.module_exists(f"{PL}.ops.tpu.flash_attention", "0.12.0.1")
    assert "pallas_call" in compat.names_in(PL, "0.12.0.1")
    assert "load" not in compat.names_in(PL, "0.12.0.1")


def test_parameters_of_pallas_call() -> None:
    old = compat.parameters(f"{PL}.pallas_call", "0.8.3")
    new = compat.parameters(f"{PL}.pallas_call", "0.12.0.1")
    assert old is not None
    assert new is not None
    assert old.names[:2] == ("kernel", "out_shape")
    assert old.required == {"kernel", "out_shape"}
    assert old.accepts("backend")
    assert not new.accepts("backend")
    assert "grid" in new.keyword_only
    assert not new.accepts_any
    assert compat.parameters(f"{PL}.load", "0.12.0.1") is None


def test_parameters_that_take_anything() -> None:
    kernel = compat.parameters(f"{PL}.mosaic_gpu.kernel", "0.12.0.1")
    assert kernel is not None
    assert kernel.accepts_any
    assert kernel.accepts("whatever")


def test_primitives() -> None:
    assert compat.primitive_supported("cumsum", "tpu", "0.12.0.1") is False
    assert compat.primitive_supported("cumsum", "triton", "0.4.35") is True
    assert compat.primitive_supported("is_finite", "triton", "0.8.1") is False
    assert compat.primitive_supported("is_finite", "triton", "0.8.3") is True
    assert compat.primitive_supported("sort", "tpu", "0.12.0.1", core="sc_vector") is True
    assert compat.primitive_supported("add", "mosaic_gpu", "0.4.35", core="warpgroup") is None
    assert compat.primitive_supported("pjit", "tpu", "0.12.0.1") is True


# --- cost -------------------------------------------------------------------------------------------------

LIGHT = """
import sys
import pallas_lint.compat
from pallas_lint.compat import tables
heavy = {"jax", "numpy", "rich", "libcst", "packaging"} & set(sys.modules)
assert not heavy, heavy
lazy = (tables.apis, tables.functions, tables.cells, tables.parameters, tables.primitives, tables.ingredients)
loaded = [f.__name__ for f in lazy if f.cache_info().currsize]
assert not loaded, loaded
"""


def test_importing_loads_no_data_and_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, timeout=300)


def test_no_lookup_reads_its_table_again() -> None:
    support("jax.numpy.cumsum").verdict("tpu", "0.12.0.1")
    loaded = tables.functions.cache_info().misses
    for name in compat.function_names()[:100]:
        support(name).verdict("tpu", "0.10.2")
    assert tables.functions.cache_info().misses == loaded


# --- releases that were only lowered ---------------------------------------------------------------------


def test_what_compiles_neither_before_nor_after_does_not_compile_between() -> None:
    """Compiled with jax 0.6.2, 0.7.2 and 0.9.2: 363 of 363 such cases fail."""
    for version in ("0.4.35", "0.6.2", "0.7.2", "0.8.3"):
        assert status("jax.numpy.round", "tpu", version, "bf16", "v5e") == "unsupported"
    assert status("jax.numpy.round", "tpu", "0.9.2", "bf16", "v5e") == "supported"
    assert status("jax.numpy.round", "tpu", "0.6.2", "f32", "v5e") == "supported"


def test_a_case_that_was_not_measured_may_work() -> None:
    """`full_like` lowers with a scalar, not with an array; no compiler of v4 was queried about either."""
    found = compat.function("jax.numpy.full_like")
    assert found is not None
    assert [found.verdict("tpu", "0.8.3", device=each).status for each in ("v4", "v5e")] == ["depends", "depends"]
    assert found.verdict("tpu", "0.8.3", device="v4", variant="plain").status == "unsupported"


def test_mosaic_gpu_is_known_in_either_semantics() -> None:
    """Lowered with jax 0.6.2 to 0.12.0.1; `erf` has a rule in both, but none that infers its layouts."""
    erf = compat.function("jax.lax.erf")
    assert erf is not None
    reported = {
        (version, semantics): erf.verdict("mosaic_gpu", version, dtype="f32", device=semantics).status
        for version in ("0.8.3", "0.12.0.1")
        for semantics in ("lane", "warpgroup", None)
    }
    assert {semantics for (version, semantics), status in reported.items() if status == "supported"} == {"lane", None}
    assert [status for (version, _), status in reported.items() if version == "0.8.3"] == ["unsupported"] * 3
    tanh = compat.function("jax.numpy.tanh")
    assert tanh is not None and tanh.verdict("mosaic_gpu", "0.6.2", dtype="f32").status == "supported"
    assert tanh.verdict("mosaic_gpu", "0.4.35").status == "unknown", "no Mosaic GPU to choose semantics of"


def test_an_unmeasured_form_takes_back_the_verdict_of_another() -> None:
    """With a number to fill it with, `full_like` needs no `device_put`; that form could not be measured."""
    full_like = compat.function("jax.numpy.full_like")
    assert full_like is not None
    assert full_like.verdict("mosaic_gpu", "0.8.3").status == "unknown"
