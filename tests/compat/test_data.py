"""The packed data hold together, and agree with what was written by hand."""

from __future__ import annotations

import re

import pytest

from pallas_lint import compat
from pallas_lint.compat import tables
from pallas_lint.compat.cells import parts_of, rows_of

VERSIONS = compat.known_versions()


def test_the_files_stay_small() -> None:
    total = sum(path.stat().st_size for path in tables.DATA.iterdir())
    assert total < 150_000


def test_opening_the_functions_makes_few_objects() -> None:
    """Every list and dictionary is looked at by the garbage collector, which was most of the time that opening took."""
    containers, stack = 0, [tables.functions()]
    while stack:
        current = stack.pop()
        if isinstance(current, dict | list):
            containers += 1
            stack += current.values() if isinstance(current, dict) else current
    assert containers < 100


def test_every_reference_inside_the_tables_resolves() -> None:
    data, cells = tables.functions(), tables.cells()
    for name in data["functions"]:
        for row in rows_of(data, name).values():
            for target, index in cells.columns:
                numbers = cells.find(row, target, index)
                assert numbers is None or max(numbers) < len(data["outcomes"])
    measured = len(compat.measured_versions())
    assert all(index < measured for _, index in cells.columns)
    assert all((target, index) in cells.columns for target, compiled in data["compiled"].items() for index in compiled)


def test_every_outcome_letter_is_known() -> None:
    letters = {parts_of(outcome)[0] for outcome in tables.functions()["outcomes"]}
    assert letters <= set("ktlcawuhsT-")


@pytest.mark.slow
def test_every_function_has_a_verdict_everywhere() -> None:
    for name in compat.function_names():
        found = compat.function(name)
        assert found is not None
        for backend in ("tpu", "triton", "mosaic_gpu"):
            for version in (VERSIONS[0], "0.8.1", VERSIONS[-1]):
                verdict = found.verdict(backend, version)
                assert verdict.status in ("supported", "unsupported", "depends", "unknown")
                if verdict.status == "unsupported":
                    assert verdict.outcome.fails
                    assert verdict.primitive or verdict.message, (name, backend, version)


def test_messages_name_no_paths_of_the_measuring_machine() -> None:
    texts = [*tables.functions()["outcomes"]]
    texts += tables.apis()["messages"]
    for text in texts:
        assert not re.search(r"(?<![\w.])/(?:work|root|home|tmp|usr|opt)/", text), text
        assert "0x7f" not in text


def test_masks_fit_the_known_versions() -> None:
    for kind in ("names", "members"):
        for groups in tables.apis()[kind].values():
            assert all(0 < int(mask, 16) < 1 << len(VERSIONS) for mask, _ in groups)


def test_every_public_pallas_name_has_a_history() -> None:
    for version in (VERSIONS[0], VERSIONS[-1]):
        for name in compat.names_in("jax.experimental.pallas", version):
            history = compat.api(f"jax.experimental.pallas.{name}")
            assert history is not None
            assert history.present_in(version)


# --- replacements and substitutes --------------------------------------------------------------------------


def gone_in(row: compat.ApiReplacement) -> str | None:
    """First version without the old name or keyword, or that calls it deprecated."""
    if row.gone_before is not None:
        return row.gone_before
    if row.keyword is None:
        history = compat.api(row.old)
        assert history is not None, f"no version ever had {row.old}"
        return history.removed or history.deprecated
    having = [
        version
        for version in VERSIONS
        if (taken := compat.parameters(row.old, version)) is not None and row.keyword in taken.names
    ]
    assert having, f"{row.old} never took {row.keyword}"
    last = VERSIONS.index(having[-1])
    return VERSIONS[last + 1] if last + 1 < len(VERSIONS) else None


@pytest.mark.parametrize("row", compat.replacements(), ids=lambda row: f"{row.old}:{row.keyword or row.new}")
def test_replacements_agree_with_the_releases(row: compat.ApiReplacement) -> None:
    gone = gone_in(row)
    assert gone is not None, "the old name is still there and not deprecated"
    assert row.note
    assert row.source.startswith("https://")
    if row.new is None:
        assert row.how == "manual"
        return
    later = VERSIONS[VERSIONS.index(gone) :]
    if row.how == "manual":
        assert row.available_in(VERSIONS[-1]) or any(row.available_in(version) for version in later)
    elif row.old.startswith("jax.experimental.pallas.gpu.") or ".fuser." in row.old or row.gone_before:
        # The whole module went at once, or long ago: the new name may have come some releases later.
        assert any(row.available_in(version) for version in later)
    else:
        assert row.available_in(gone), f"{row.new} is not there yet when {row.old} goes in {gone}"


def test_safe_replacements_are_mechanical() -> None:
    for row in compat.replacements():
        assert not (row.safe and row.how == "manual"), row.old
        assert not (row.safe and row.new is None), row.old


def test_every_name_that_pallas_removed_is_accounted_for() -> None:
    """A name that left a Pallas module has a replacement row, or a message of jax's own."""
    # Internals that no kernel used.
    ignored = {"CoreMemorySpace", "get_memory_space", "get_pipeline_schedule", "make_pipeline_allocations"}
    ignored |= {"verification", "deprecations", "unswizzle_ref", "untile_ref", "MemoryRef", "is_accelerated"}
    missing = []
    for module in ("", ".tpu", ".triton", ".mosaic_gpu", ".tpu_sc", ".fuser"):
        owner = "jax.experimental.pallas" + module
        for name in {name for version in VERSIONS for name in compat.names_in(owner, version)}:
            history = compat.api(f"{owner}.{name}")
            assert history is not None
            reported = history.message or compat.replacement(f"{owner}.{name}")
            if history.removed and name not in ignored and not reported:
                missing.append(f"{owner}.{name}")
    assert not missing


def test_substitutes_are_for_functions_that_were_measured() -> None:
    for row in tables.advice()["substitutes"]:
        assert row["instead"]
        for name in row["names"]:
            known = compat.function(name) is not None or any(n.startswith(name) for n in compat.function_names())
            assert known, name


def test_twice_replaced_names_give_what_the_version_has() -> None:
    old = "jax.experimental.pallas.gpu.TritonCompilerParams"
    at_6 = compat.replacement(old, version="0.6.0")
    at_7 = compat.replacement(old, version="0.7.2")
    assert at_6 is not None
    assert at_7 is not None
    assert at_6.new == "jax.experimental.pallas.triton.TritonCompilerParams"
    assert at_7.new == "jax.experimental.pallas.triton.CompilerParams"
