"""Targets of a kernel: backends with their device generations, and the jax versions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pallas_lint.compat import ranges
from pallas_lint.finding import LintError
from pallas_lint.records import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pallas_lint.config.environment import Evidence

Backend = Literal["tpu", "triton", "mosaic_gpu"]
Core = Literal["tensor", "sparse"]

# As written on the command line -> (backend, device generations it can be narrowed to).
TARGETS: dict[str, tuple[Backend, tuple[str, ...]]] = {
    "tpu": ("tpu", ("v4", "v5e", "v5p", "v6e", "tpu7x", "tpu8i", "tpu8t")),
    "triton": ("triton", ("cuda", "rocm")),
    "mosaic-gpu": ("mosaic_gpu", ("sm90", "sm100")),
}
_CORES: dict[str, Core | None] = {"": None, "tc": None, "sc": "sparse"}  # of a TPU, as in "tpu:v6e/sc"
_MAX_VERSION_LENGTH = 1000  # characters of a version or a range: Python takes long over numbers of many digits


class TargetError(ValueError):
    """A target that names no backend or no device generation of it."""


class JaxVersionError(ValueError):
    """A jax version or range that cannot be judged."""


@frozen
class Target:
    """One backend, or one device generation of it. `core`: "sparse" for SparseCores; None: the usual core."""

    backend: Backend
    device: str | None = None
    core: Core | None = None

    def __str__(self) -> str:
        name = self.backend.replace("_", "-")
        return (f"{name}:{self.device}" if self.device else name) + ("/sc" if self.core == "sparse" else "")


def chips_of(targets: Iterable[Target]) -> tuple[str, ...]:
    """The TPUs among targets; empty where one is a TPU of any generation."""
    devices = [target.device for target in targets if target.backend == "tpu"]
    return tuple(dict.fromkeys(device for device in devices if device is not None)) if None not in devices else ()


@frozen
class InferredBackend:
    """The backend of a launch that names none, and the reason: "the project's 14 other kernels are"."""

    backend: Backend
    reason: str


@frozen
class JaxVersions:
    """The jax versions for which findings must hold: one, or those of a range."""

    versions: tuple[str, ...]  # known versions, old to new; never empty
    exact: bool  # one version, not a range
    assumed: bool  # no version is known, the newest known one is taken
    source: str  # where it came from, for people: "from uv.lock", "--jax-version"
    text: str  # as written: "0.10.2", ">=0.8,<0.11"
    note: str | None = None  # what the reader must know: "jax 0.10.9 is not known; judged as 0.10.2"
    libtpu: str | None = None  # its version, from the same source as jax's; None: unknown, or several
    problem: LintError | None = None  # with the file that should have the version and cannot be read

    @property
    def newest(self) -> str:
        return self.versions[-1]

    @property
    def oldest(self) -> str:
        return self.versions[0]


def all_targets_and_cores() -> tuple[str, ...]:
    """The targets, and the SparseCores of those that have any, as `--target` and the settings take them."""
    from pallas_lint.compat.chips import SPARSE

    return (*all_targets(), *(f"tpu{device}/sc" for device in ("", *(f":{name}" for name in SPARSE))))


def all_targets() -> tuple[str, ...]:
    """Every target, without its cores."""
    return tuple(
        spelling
        for name, (_, devices) in TARGETS.items()
        for spelling in (name, *(f"{name}:{device}" for device in devices))
    )


def parse_target(text: str) -> Target:
    """The target that `text` ("tpu", "mosaic-gpu:sm90", "tpu:v6e/sc") names.

    Raises TargetError with the nearest real one.
    """
    place, _, core = text.strip().lower().partition("/")
    name, _, device = place.partition(":")
    known = TARGETS.get(name.replace("_", "-"))
    if known is None:
        raise TargetError(f"unknown target '{text}'{_nearest(text, all_targets_and_cores())}")
    backend, devices = known
    if core not in _CORES or (core and backend != "tpu"):
        raise TargetError(f"unknown core '{core}' in target '{text}': a TPU has tc and sc, as in tpu:v6e/sc")
    if device and device not in devices:
        raise TargetError(f"unknown device '{device}' in target '{text}': {backend} has {', '.join(devices)}")
    return Target(backend, device or None, _CORES[core])


def whole_chip(target: Target) -> Target:
    """The target without a core, where each launch has its own: the probe runs all that a function launches."""
    return evolve(target, core=None)


def without_unknown_devices(jax: JaxVersions, targets: Sequence[Target]) -> JaxVersions:
    """The versions, with a note on the targets of which some of them have no device: there, nothing is judged."""
    from pallas_lint.compat.chips import CHIPS, knowing

    notes = []
    for target in targets:
        having = knowing(target.device, jax.versions)
        if len(having) < len(jax.versions):
            since = CHIPS[target.device or ""].since
            what = f"judged from {having[0]} on" if having else "nothing is judged for it"
            notes.append(f"jax {jax.oldest} has no {target.device}, which came with {since}: {what}")
    return evolve(jax, note="; ".join(filter(None, (jax.note, *notes)))) if notes else jax


def resolve_jax_version(
    setting: str,
    folder: Path,
    python: str | None = None,
    *,
    set_by: str = "--jax-version",
    isolated: bool = False,
) -> JaxVersions:
    """The versions that `setting` ("auto", "0.10.2", ">=0.8,<0.11") means for code in `folder`.

    `auto` looks at the project's environment (that of the interpreter `python` where given), its lock file
    and its requirements, without running anything; `isolated` looks at nothing but `python`. Raises
    JaxVersionError for a version too old to be known, a range without known versions, or text that is
    neither.
    """
    setting = setting.strip()
    if setting != "auto":
        return _resolved(setting, set_by)
    from pallas_lint import compat
    from pallas_lint.config import environment

    evidence, problem = None, None
    try:
        evidence = environment.find_jax(folder, python, isolated=isolated)
        if evidence is not None:
            return _found(evidence)
    except environment.UnreadableError as error:
        problem = LintError(str(error.path), error.message)
    except ValueError as error:
        if evidence is None or evidence.file is None:
            raise
        problem = LintError(str(evidence.file), f"the jax version in it cannot be read: {error}")
    newest = compat.newest()
    return JaxVersions((newest,), exact=True, assumed=True, source="newest known", text=newest, problem=problem)


def _found(evidence: Evidence) -> JaxVersions:
    """The versions that a project's files name. Raises ValueError for text that is no version."""
    from pallas_lint import compat

    if any(len(spec) > _MAX_VERSION_LENGTH for spec in evidence.specs):
        raise JaxVersionError(f"it has more than {_MAX_VERSION_LENGTH} characters")
    if evidence.exact:
        found = _exact(evidence.text, evidence.source, lenient=True)
        return evolve(found, note=evidence.note or found.note, libtpu=evidence.libtpu)
    allowed = {version for specifier in evidence.specs for version in compat.versions_in(specifier)}
    versions = tuple(version for version in compat.known_versions() if version in allowed)
    note = evidence.note
    if not versions:
        versions = (compat.newest(),)
        note = f"no known jax version satisfies {evidence.text} ({evidence.source}); judged as {compat.newest()}"
    return JaxVersions(
        versions,
        exact=False,
        assumed=False,
        source=evidence.source,
        text=evidence.text,
        note=note,
        libtpu=evidence.libtpu,
    )


def installed_versions(jax: str, libtpu: str | None) -> JaxVersions:
    """The versions of an interpreter that ran code. Raises JaxVersionError for text that is no version."""
    return evolve(_exact(jax, "of the interpreter", lenient=True), libtpu=libtpu)


def check_jax_version(setting: str) -> None:
    """Raises JaxVersionError where `setting` can mean nothing."""
    if len(setting) > _MAX_VERSION_LENGTH:
        raise JaxVersionError(f"a jax version of more than {_MAX_VERSION_LENGTH} characters")
    if setting.strip() != "auto":
        _resolved(setting.strip(), "")


@lru_cache(maxsize=32)
def _resolved(setting: str, source: str) -> JaxVersions:
    from pallas_lint import compat

    if setting[:1].isdigit() and "," not in setting and "*" not in setting:
        return _exact(setting, source, lenient=False)
    try:
        versions = tuple(compat.versions_in(setting))
    except ValueError as error:
        raise JaxVersionError(
            f"'{setting}' is not a jax version: write auto, a version (0.10.2) or a range (>=0.8,<0.11)"
        ) from error
    if not versions:
        known = compat.known_versions()
        raise JaxVersionError(f"no known jax version is in '{setting}': known are {known[0]} to {known[-1]}")
    return JaxVersions(versions, exact=False, assumed=False, source=source, text=setting)


def _exact(version: str, source: str, *, lenient: bool) -> JaxVersions:
    from pallas_lint import compat

    if version not in compat.known_versions() and not _is_version(version):
        raise JaxVersionError(
            f"'{version}' is not a jax version: write auto, a version (0.10.2) or a range (>=0.8,<0.11)"
        )
    note: str | None
    try:
        known = compat.nearest(version)
    except ValueError as error:
        oldest = compat.known_versions()[0]
        message = f"jax {version} is older than {oldest}, the oldest version known"
        if not lenient:
            raise JaxVersionError(message) from error
        known, note = oldest, f"{message}; judged as {oldest}"
    else:
        unknown = f"jax {version} is not known; judged as {known}, the nearest below"
        note = None if known == version else unknown
    return JaxVersions((known,), exact=True, assumed=False, source=source, text=version, note=note)


def _is_version(text: str) -> bool:
    if ranges.numbers_of(text) is not None:
        return True
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _nearest(word: str, known: tuple[str, ...]) -> str:
    """ ", did you mean 'x'?", or the whole list where nothing is near."""
    import difflib

    near = difflib.get_close_matches(word.lower(), known, n=1)
    return f", did you mean '{near[0]}'?" if near else f": one of {', '.join(known)}"
