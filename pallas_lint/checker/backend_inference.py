"""Inference of a launch's backend from the other launches of its file, its words, its project, and the requirements.

Of 257 launch sites in code that was not used for tuning, 60 are in files that import `pallas` alone. The evidence then
is the company they keep: the file's other launches, else words of its code that belong to one platform, else the other
kernels of the project, else what the project requires. Where kernels for TPU and for GPU live together nothing is
inferred.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.config.targets import InferredBackend
from pallas_lint.kernels.analysis.project_text import is_project_file, project_files, project_folder
from pallas_lint.kernels.launches.backend import leaves_backend_open
from pallas_lint.kernels.model.launch_forms import FORMS
from pallas_lint.kernels.model.values import CallResult
from pallas_lint.records import define, field, frozen
from pallas_lint.text import files, paths
from pallas_lint.text.quick_patterns import starting_word

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pallas_lint.config.settings import Settings
    from pallas_lint.config.targets import Backend
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.run.project import Project
    from pallas_lint.text.source import Source

    Named = Mapping[Backend, int]  # the backends that a file imports, each with the number of its launches

_MAX_FILES = 10_000  # of a project that are looked at: 0.2 ms each
_IMPORTS = re.compile(
    rb"jax\.experimental\.pallas(?:\.|\s+import\s+(?:\(\s*)?(?:\w+(?:\s+as\s+\w+)?\s*,\s*)*)"
    rb"(tpu|tpu_sc|triton|gpu|mosaic_gpu)\b"
    rb"|jax\._src\.pallas\.(mosaic|triton|mosaic_gpu)\b"
)
_BACKEND: dict[bytes, Backend] = {
    b"tpu": "tpu",
    b"tpu_sc": "tpu",
    b"triton": "triton",
    b"gpu": "triton",  # up to 0.4.34
    b"mosaic_gpu": "mosaic_gpu",
    b"mosaic": "tpu",
}
_LAUNCHES = {word.encode(): re.compile(rf"{starting_word(word)}\s*\(".encode()) for word in FORMS.words}

_GPU = "gpu"  # a platform with two backends: the jax version decides which a launch without parameters is for
# Requirements, in whatever syntax they are written.
_EXTRAS = r"[^\[\]\n]{0,200}"
_TABLE = r"\{[^{}\n]*"
_REQUIRED = {
    "tpu": re.compile(rf"\bjax\s*\[{_EXTRAS}\btpu\b{_EXTRAS}\]|\blibtpu\b(?:-nightly\b)?|\bjax\s*=\s*{_TABLE}\"tpu\""),
    _GPU: re.compile(
        rf"\bjax(?:lib)?\s*\[{_EXTRAS}\b(?:cuda|rocm){_EXTRAS}\]|\bjax-(?:cuda|rocm)\d*-(?:plugin|pjrt)\b"
        rf"|\bjax[-_]triton\b|\bjax\s*=\s*{_TABLE}\"(?:cuda|rocm)[^\"\n]*\""
    ),
}
_LOCKED = {
    "tpu": re.compile(r"(?m)^name = \"libtpu(?:-nightly)?\""),
    _GPU: re.compile(r"(?m)^name = \"(?:jax-(?:cuda|rocm)\d*-(?:plugin|pjrt)|jax-triton)\""),
}
# Words of code that runs on one platform alone.
_SETS_PLATFORM = r"\b(?:JAX_PLATFORMS|jax_platforms|jax_platform_name)[\"']\]?(?:, ?| ?= ?)[\"']"
_WORDS = {
    "tpu": re.compile(
        rf"{_SETS_PLATFORM}tpu\b|"
        r"_vmem(?:_ref)?\b|\b(?:TPU_ACCELERATOR_TYPE|LIBTPU_INIT_ARGS)\b|\bxla_tpu_|\bplatform=[\"']tpu[\"']"
        r"|\bjax\.devices\([\"']tpu[\"']\)"
    ),
    _GPU: re.compile(
        rf"(?m){_SETS_PLATFORM}(?:gpu|cuda|rocm)\b|\bCUDA_VISIBLE_DEVICES[\"']\] ?= ?[\"']\d|"
        r"^(?:import|from) (?:triton|jax_triton)\b|\.cuda\(\)|\bxla_gpu_|\bplatform=[\"'](?:gpu|cuda)[\"']"
        r"|\bjax\.devices\([\"'](?:gpu|cuda)[\"']\)"
    ),
}
_COMMENT = re.compile(r"(?m)(?:^|\s)#.*")


@frozen
class BackendEvidence:
    """A project's evidence of backends: how many launches are in files that import each, and what it requires."""

    launches: tuple[tuple[Backend, int], ...]
    required: tuple[tuple[str, str], ...]  # (platform, as it is written)


@define(eq=False)
class ProjectEvidence:
    """Evidence of backends in the files of projects. Each file is read once, and again only when it has changed."""

    _named: dict[Path, dict[Path, Named]] = field(factory=dict)  # by the project's folder
    _required: dict[Path, tuple[tuple[str, str], ...]] = field(factory=dict)

    def of(self, folder: Path, overlay: Mapping[Path, Source]) -> BackendEvidence:
        """The evidence in a project; `overlay` (file -> text) goes before what is on disk."""
        known = self._named.get(folder)
        if known is None:
            known = {file: named for file in project_files(folder, _MAX_FILES) if (named := _named_on_disk(file))}
            self._named[folder] = known
        open_now = {
            file: backends_named(source.text.encode("utf-8", "surrogatepass"))
            for file, source in overlay.items()
            if is_project_file(folder, file)
        }
        launches: dict[Backend, int] = {}
        for named in {**known, **open_now}.values():
            for backend, count in named.items():
                launches[backend] = launches.get(backend, 0) + count
        if folder not in self._required:
            self._required[folder] = _required(folder)
        return BackendEvidence(tuple(sorted(launches.items())), self._required[folder])

    def forget(self, file: Path) -> None:
        """A file has changed on disk."""
        for folder, known in self._named.items():
            if is_project_file(folder, file):
                known.pop(file, None)
                if named := _named_on_disk(file):
                    known[file] = named

    def forget_requirements(self) -> None:
        """Files with a project's requirements may have changed."""
        self._required.clear()


def backends_named(data: bytes) -> Named:
    """The backends whose modules a file with these bytes imports, each with the number of launches in the file."""
    if b"pallas" not in data:
        return {}
    named = {_BACKEND[match[1] or match[2]] for match in _IMPORTS.finditer(data)}
    if not named:
        return {}
    return dict.fromkeys(named, sum(len(call.findall(data)) for word, call in _LAUNCHES.items() if word in data))


def _named_on_disk(file: Path) -> Named:
    try:
        return backends_named(files.read(file))
    except OSError:
        return {}


def _required(folder: Path) -> tuple[tuple[str, str], ...]:
    from pallas_lint.config.environment import LOCK_FILES, requirement_texts

    found: dict[str, str] = {}
    for name, text in requirement_texts(folder):
        patterns = _LOCKED if name in LOCK_FILES else _REQUIRED
        if found and patterns is _LOCKED:
            break  # a lock file has what is required, and the dependencies of that
        for platform, pattern in patterns.items():
            match = pattern.search(_COMMENT.sub("", text))
            if match is not None:
                requirement = match[0].removeprefix('name = "').removesuffix('"') if patterns is _LOCKED else match[0]
                found.setdefault(platform, requirement)
    return tuple(sorted(found.items()))


def infer_backends(analysis: Analysis, settings: Settings, project: Project) -> dict[Launch, InferredBackend]:
    """The inferred backends of the module's launches that name none; none where targets are configured."""
    if settings.target:
        return {}
    unnamed = [launch for launch in analysis.launches if _is_unnamed(launch)]
    if not unnamed:
        return {}
    versions = settings.jax.versions
    beside = [launch.backend for launch in analysis.launches if launch.backend is not None]
    if beside:
        others = "the file's other launch is" if len(beside) == 1 else f"the file's {len(beside)} other launches are"
        found = InferredBackend(beside[0], others) if len(set(beside)) == 1 else None
    else:
        found = _of_words(analysis, versions) or _of_project(analysis, project, versions)
    if found is None:
        return {}
    default = _default(versions)
    return {launch: found for launch in unnamed if found.backend in ("tpu", default) or not leaves_backend_open(launch)}


def _is_unnamed(launch: Launch) -> bool:
    """Whether nothing names a backend; parameters of an unknown class may, so that none is presumed."""
    if not (launch.form.is_over_blocks and launch.is_pallas and launch.backend is None and launch.evidence is None):
        return False
    params = launch.argument("compiler_params")
    return not isinstance(params, CallResult) or params.function == "builtins.dict"


def _of_words(analysis: Analysis, versions: tuple[str, ...]) -> InferredBackend | None:
    text = _COMMENT.sub("", analysis.module.source.text)
    found = [(platform, match[0]) for platform, words in _WORDS.items() if (match := words.search(text)) is not None]
    if len(found) != 1:
        return None
    platform, word = found[0]
    meant: Backend | None = "tpu" if platform == "tpu" else _default(versions)
    return None if meant is None else InferredBackend(meant, f"the file has `{word}`")


def _of_project(analysis: Analysis, project: Project, versions: tuple[str, ...]) -> InferredBackend | None:
    file = analysis.module.file
    if file is None or not paths.exists(file):
        return None
    folder = project_folder(file)
    analysis.module.graph.touched.add(folder)
    evidence = project.evidence(folder)
    if len(evidence.launches) == 1:
        ((backend, count),) = evidence.launches
        return InferredBackend(backend, _others(count))
    if evidence.launches or len(evidence.required) != 1:
        return None
    ((platform, requirement),) = evidence.required
    meant: Backend | None = "tpu" if platform == "tpu" else _default(versions)
    return None if meant is None else InferredBackend(meant, f"the project requires `{requirement}`")


def _others(count: int) -> str:
    if count == 0:
        return "the project imports no other backend"
    return "the project's other kernel is" if count == 1 else f"the project's {count} other kernels are"


def _default(versions: tuple[str, ...]) -> Backend | None:
    """The default backend of a `pallas_call` on CUDA, if these versions agree on it."""
    from pallas_lint.compat.versions import cuda_default

    found = {cuda_default(version) for version in versions}
    return found.pop() if len(found) == 1 else None
