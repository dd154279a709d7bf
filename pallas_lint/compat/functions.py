"""Support of jnp, lax, nn, … functions inside kernels, by backend, version, dtype and device."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from pallas_lint.compat import histories, tables
from pallas_lint.compat.cells import parts_of, rows_of
from pallas_lint.compat.operations import operation_failure
from pallas_lint.compat.outcomes import (
    LETTERS,
    Measurement,
    Support,
    SupportStatus,
    dtypes_named,
    status_of,
    verdict_of,
)
from pallas_lint.compat.primitives import primitive_since, primitive_supported
from pallas_lint.compat.versions import known_versions, measured_versions, nearest, parse, position
from pallas_lint.records import frozen

TPU_DEVICES = ("v4", "v5e", "v5p", "v6e", "tpu7x")
# These count for all measured releases, by what lowers where one was not compiled; the others only where one was.
_ALWAYS = ("v5e", "v6e")
SUBCORES = ("sc_vector", "sc_scalar")  # of a SparseCore, which a verdict on TPU may name in the place of a device
SEMANTICS = ("lane", "warpgroup")  # which a verdict on Mosaic GPU may name in the place of a device
_UNKNOWN = (SupportStatus.UNKNOWN, None, None)

# Functions that were measured as operators only.
_SAME = {"jax.numpy.negative": "operator:neg"}

# (outcome, primitive, message, letter)
_Outcome = tuple[SupportStatus, "str | None", "str | None", str]


@frozen
class OtherBackend:
    """A backend where the function works although it does not work here."""

    backend: str
    since: str
    status: str


@functools.cache
def function(name: str) -> FunctionSupport | None:
    """Support of a function by canonical name ("jax.numpy.cumsum", "operator:%"); None if not measured."""
    name = _SAME.get(name, name)
    if name not in tables.functions()["functions"]:
        return None
    return FunctionSupport(name)


@functools.cache
def can_copy(dtype: str, backend: str, device: str | None, version: str) -> bool:
    """Whether a kernel that only copies blocks of this dtype works; True where that was not measured."""
    if backend == "tpu" and operation_failure("copy", dtype, backend, device, version) is not None:
        return False
    identity = function("kernel:identity")
    return identity is None or identity.verdict(backend, version, dtype=dtype, device=device).status != "unsupported"


@functools.cache
def function_names() -> tuple[str, ...]:
    """Every measured function."""
    return tuple(tables.functions()["functions"])


@frozen
class FunctionSupport:
    """Everything measured about one function."""

    name: str

    @property
    def variants(self) -> tuple[str, ...]:
        """Ways of calling it that were tried."""
        return tuple(_rows(self.name))

    def verdict(
        self,
        backend: str,
        version: str,
        *,
        dtype: str | None = None,
        device: str | None = None,
        variant: str | None = None,
    ) -> Support:
        """The verdict of the measurements. `dtype` may be a group ("float", "int"); one never measured is unknown.

        Without `device` a failure on only one TPU generation makes the verdict "depends".
        """
        return _verdict(self.name, backend, nearest(version), dtype, device, variant)

    def since(
        self, backend: str, dtype: str | None = None, *, device: str | None = None, variant: str | None = None
    ) -> str | None:
        """First version from which the function has worked, at least for some dtypes, up to the newest."""
        first: str | None = None
        for version in reversed(measured_versions()):
            if _speaking(backend, version, device)[0] is None:
                break
            verdict = self.verdict(backend, version, dtype=dtype, device=device, variant=variant)
            if verdict.status not in ("supported", "depends"):
                if first is not None and verdict.primitive is not None and verdict.outcome is SupportStatus.LOWER:
                    return self._refined(backend, verdict.primitive, version, first, device)
                break
            first = version
        return first

    def _refined(self, backend: str, primitive: str, broken: str, working: str, device: str | None) -> str:
        """The patch release that brought the primitive, where it alone was missing."""
        since = primitive_since(primitive, backend, device if device in SUBCORES else None)
        if since is not None and parse(broken) < parse(since) <= parse(working):
            return since
        return working

    def works_elsewhere(self, backend: str, version: str) -> tuple[OtherBackend, ...]:
        """Other backends on which the function works at this version, and since when."""
        found = []
        for other in ("tpu", "triton", "mosaic_gpu"):
            if other == backend:
                continue
            status = self.verdict(other, version).status
            since = self.since(other)
            if status in ("supported", "depends") and since is not None:
                found.append(OtherBackend(other, since, status))
        return tuple(found)

    def was_compiled(self, version: str, dtype: str, device: str | None) -> bool:
        """Whether this dtype was compiled for TPU at this version; else a verdict is based on lowering."""
        index, _ = _speaking("tpu", version)
        if index is None:
            return False
        at = tables.functions()["dtypes"].index(dtype)
        targets = [target for target in _targets("tpu", device, index) if _compiled(target, index)]
        return any(
            _outcomes(_row(self.name, variant, target, index))[at][3] != "-"
            for target in targets
            for variant in self.variants
        )

    def primitives(self, version: str) -> tuple[str, ...]:
        """Primitives that the function is made of at this version."""
        index = position(version, measured_versions()) or 0
        return tuple((histories.at(tables.ingredients().get(self.name), index) or "").split())


def devices_at(version: str) -> tuple[str, ...]:
    """The TPUs of which there are verdicts of their own at a known version."""
    index, _ = _speaking("tpu", version)
    return () if index is None else _devices(index)


def _devices(index: int) -> tuple[str, ...]:
    return tuple(device for device in TPU_DEVICES if device in _ALWAYS or _compiled(f"tpu:{device}", index))


def _targets(backend: str, device: str | None, index: int) -> tuple[str, ...]:
    """Rows of the table that apply to this backend and device, at the measured version with this index."""
    if backend == "tpu":
        if device is None:
            return tuple(f"tpu:{name}" for name in _devices(index))
        return (f"tpu:{device}",) if device in (*_devices(index), *SUBCORES) else ("tpu",)
    if backend == "mosaic_gpu":
        return (f"{backend}:{device}",) if device in SEMANTICS else (backend,)
    if backend == "triton":
        return ("triton",) if device == "rocm" else ("triton:h200",)
    return (backend,)


def _compiled(target: str, index: int) -> bool:
    return index in tables.functions()["compiled"].get(target, [])


@functools.cache
def _rows(name: str) -> dict[str, int]:
    return rows_of(tables.functions(), name)


def _row(name: str, variant: str, target: str, index: int) -> tuple[int, ...] | None:
    """Outcome numbers by dtype at the measured version with this index; None if nothing was measured."""
    return tables.cells().find(_rows(name)[variant], target, index)


def _at(name: str, variant: str, target: str, index: int) -> list[_Outcome]:
    """Outcomes by dtype; without a compilation for the device, that of lowering."""
    only_lowered = target.startswith("mosaic_gpu") or target.partition(":")[2] in SUBCORES
    general = target if only_lowered else target.partition(":")[0]
    lowered = _outcomes(_row(name, variant, general, index))
    if target == general:
        return lowered
    at = index
    if target.startswith("triton:"):
        # Run with one version only, whose result holds for later ones that lower.
        at = max((i for i in tables.functions()["compiled"].get(target, []) if i <= index), default=-1)
    if at < 0 or not _compiled(target, at):
        return _between(lowered, name, variant, target, index)
    run = _outcomes(_row(name, variant, target, at))
    return [_over(before, after, at == index) for before, after in zip(lowered, run, strict=True)]


def _between(lowered: list[_Outcome], name: str, variant: str, target: str, index: int) -> list[_Outcome]:
    """What lowers, and compiles neither with the last release before that was compiled nor with the next: nor here."""
    compiled = tables.functions()["compiled"].get(target, [])
    older, newer = [i for i in compiled if i < index], [i for i in compiled if i > index]
    if not target.startswith("tpu:") or not older or not newer:
        return lowered
    sides = (_outcomes(_row(name, variant, target, max(older))), _outcomes(_row(name, variant, target, min(newer))))
    return [
        after if here[0] is SupportStatus.OK and {before[0], after[0]} <= _NOT_COMPILED else here
        for here, before, after in zip(lowered, *sides, strict=True)
    ]


def _over(lowered: _Outcome, run: _Outcome, same_version: bool) -> _Outcome:
    """The run's outcome where it is more specific than the lowering's."""
    if run[3] == "-":
        return lowered
    if same_version:
        return run
    return run if lowered[0] is SupportStatus.OK and run[0] in _RUN else lowered


_NOT_COMPILED = frozenset({SupportStatus.COMPILE, SupportStatus.ABORT})
# Outcomes that only running or compiling can have, not lowering.
_RUN = frozenset({SupportStatus.COMPILE, SupportStatus.ABORT, SupportStatus.WRONG})


def _outcomes(row: tuple[int, ...] | None) -> list[_Outcome]:
    data = tables.functions()
    if row is None:
        return [(*_UNKNOWN, "-")] * len(data["dtypes"])
    found: list[_Outcome] = []
    for number in row:
        letter, primitive, message = parts_of(data["outcomes"][number])
        if letter == "l" and message is None and primitive is not None:
            message = f"no lowering rule for the primitive `{primitive}`"
        found.append((LETTERS.get(letter, SupportStatus.UNKNOWN), primitive, message, letter))
    return found


def _speaking(backend: str, version: str, device: str | None = None) -> tuple[int | None, int | None]:
    """Index of the measured version for a known one, and of the next if it is between two."""
    measured = measured_versions()
    indices: Sequence[int] = range(len(measured))
    if backend == "mosaic_gpu":
        indices = tables.functions()["compiled"].get(backend, [])
    elif device in SUBCORES:
        indices = tables.functions()["compiled"].get(f"{backend}:{device}", [])
    older = [index for index in indices if parse(measured[index]) <= parse(version)]
    newer = [index for index in indices if parse(measured[index]) > parse(version)]
    if not older:
        return None, None
    between = measured[older[-1]] != version and bool(newer)
    return older[-1], newer[0] if between else None


def _missing(primitive: str, backend: str, version: str, device: str | None) -> bool:
    """Whether no core (TPU) or semantics (Mosaic GPU) that was tried has a rule for the primitive."""
    known = SUBCORES if backend == "tpu" else SEMANTICS
    tried = (device,) if device in known else SEMANTICS if backend == "mosaic_gpu" else (None,)
    return all(primitive_supported(primitive, backend, version, core) is False for core in tried)


@functools.lru_cache(maxsize=1024)
def _verdict(
    name: str, backend: str, version: str, dtype: str | None, device: str | None, variant: str | None
) -> Support:
    wanted = dtypes_named(dtype)
    cells = tuple(
        cell
        for cell in _cells(name, backend, version, device)
        if cell.dtype in wanted and (variant is None or cell.variant == variant)
    )
    index = _speaking(backend, version, device)[0] or 0
    compiled = device not in SUBCORES and any(_compiled(target, index) for target in _targets(backend, device, index))
    return verdict_of(cells, measured_versions()[index], compiled)


@functools.cache
def _cells(name: str, backend: str, version: str, device: str | None) -> tuple[Measurement, ...]:
    """Every case of a function on a backend at a known version; one case for each device where several apply."""
    data: dict[str, Any] = tables.functions()
    index, after = _speaking(backend, version, device)
    if index is None:
        return ()
    exact = measured_versions()[index] == version
    targets = _targets(backend, device, index)
    only_lowered = targets == ("tpu",)
    cells = []
    for variant in _rows(name):
        for target in targets:
            here = _at(name, variant, target, index)
            later = _at(name, variant, target, after) if after is not None else None
            for number, dtype in enumerate(data["dtypes"]):
                outcome, primitive, message, letter = here[number]
                if letter == "-":
                    continue
                if outcome.fails and not exact:
                    # Away from measured versions only a primitive that is still missing is certain,
                    # or a failure on both sides.
                    certain = letter == "l" and primitive is not None and _missing(primitive, backend, version, device)
                    if not certain and not (later is not None and later[number][0].fails):
                        outcome, primitive, message = _UNKNOWN
                elif only_lowered and outcome is SupportStatus.OK:
                    outcome = SupportStatus.UNKNOWN
                cells.append(Measurement(variant, dtype, outcome, primitive, message))
    return tuple(cells)


def status(name: str, backend: str, version: str, dtype: str | None = None, device: str | None = None) -> str:
    """Status alone, without the details of a verdict; "unknown" for functions that were not measured."""
    if function(name) is None:
        return "unknown"
    wanted = dtypes_named(dtype)
    return status_of(cell for cell in _cells(name, backend, nearest(version), device) if cell.dtype in wanted)


def unmeasured(version: str) -> bool:
    """Whether the version is between measured ones, so that its lower neighbour is used."""
    return nearest(version) not in measured_versions() or version not in known_versions()


def provenance() -> str:
    """One sentence on how the verdicts were made."""
    data = tables.functions()
    measured = measured_versions()
    libtpu = tables.versions()["libtpu"]
    mosaic = measured[min(data["compiled"]["mosaic_gpu"])]
    parts = [
        f"measured by lowering tiny kernels with jax {measured[0]} to {measured[-1]} for triton and tpu, "
        f"from {mosaic} on for mosaic-gpu in both lowering semantics"
    ]
    newest_compiled = {
        target.partition(":")[2]: measured[max(indices)]
        for target, indices in data["compiled"].items()
        if target.startswith("tpu:") and target[4:] in TPU_DEVICES and indices
    }
    sparse = data["compiled"].get(f"tpu:{SUBCORES[0]}", [])
    if sparse:
        parts.append(f"lowered for the subcores of SparseCores with jax {' and '.join(measured[i] for i in sparse)}")
    if newest_compiled:
        devices = ", ".join(sorted(newest_compiled))
        version = max(newest_compiled.values(), key=parse)
        parts.append(f"compiled with libtpu (up to {libtpu[version]}) for {devices}")
    for target, indices in data["compiled"].items():
        if target == "triton:h200" and indices:
            parts.append(f"run on an NVIDIA H200 with jax {measured[max(indices)]}")
    return "; ".join(parts)
