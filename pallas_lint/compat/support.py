"""All that is known of a function, a name or a primitive, as plain data; and what a query may mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint import compat

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PALLAS = "jax.experimental.pallas"
_PREFIXES: dict[str, tuple[str, ...]] = {
    "jnp": ("jax.numpy",),
    "np": ("jax.numpy",),
    "lax": ("jax.lax",),
    "nn": ("jax.nn",),
    "jnn": ("jax.nn",),
    "jr": ("jax.random",),
    "random": ("jax.random",),
    "jsp": ("jax.scipy",),
    "special": ("jax.scipy.special",),
    "pl": (PALLAS,),
    "pltpu": (f"{PALLAS}.tpu",),
    "plsc": (f"{PALLAS}.tpu_sc",),
    "pltriton": (f"{PALLAS}.triton",),
    # People call both GPU modules plgpu: only their import tells.
    "plgpu": (f"{PALLAS}.mosaic_gpu", f"{PALLAS}.triton"),
}
_MODULES = ("jax.numpy", "jax.lax", "jax.nn", "jax.scipy.special", "jax.random", "jax")
PALLAS_MODULES = tuple(PALLAS + part for part in ("", ".tpu", ".triton", ".mosaic_gpu", ".tpu_sc", ".fuser"))
BACKENDS = ("tpu", "triton", "mosaic_gpu")


def candidates(query: str) -> list[tuple[str, str]]:
    """(kind, canonical name) of everything the query may mean, the likeliest first."""
    text = query.strip().strip("`").removesuffix("()")
    found: list[tuple[str, str]] = []
    for name in _spellings(text):
        kinds = _kinds(name)
        found.extend((kind, name) for kind in kinds if (kind, name) not in found)
    return found


def _spellings(text: str) -> list[str]:
    """Canonical names that the text may stand for."""
    names = [text, f"operator:{text}"]
    head, dot, rest = text.partition(".")
    if dot and head in _PREFIXES:
        names += [f"{module}.{rest}" for module in _PREFIXES[head]]
    if not dot:
        modules = (*PALLAS_MODULES, *_MODULES)
        names += [f"{module}.{text}" for module in modules]
        names += [f"{kind}:{text}" for kind in ("method", "builtin", "index")]
    elif head not in ("jax", *_PREFIXES):
        # A method (`x.sum`) or an update (`x.at[i].set`, typed as at.set).
        names += [f"method:{rest}", f"index:{text}"]
    return names


def _kinds(name: str) -> list[str]:
    kinds = []
    if compat.function(name) is not None:
        kinds.append("function")
    elif (compat.api(name) is not None and "." in name) or compat.replacement(name) is not None:
        kinds.append("api")
    if "." not in name and ":" not in name and compat.known_primitive(name):
        kinds.append("primitive")
    return kinds


def nearest(query: str) -> list[str]:
    """Known names that look like the query."""
    text = query.strip().lower()
    last = text.rpartition(".")[2]
    pool: dict[str, str] = {}
    for name in (*compat.function_names(), *compat.primitive_names()):
        pool.setdefault(name.rpartition(".")[2].lower(), name)
    for module in PALLAS_MODULES:
        for version in (compat.oldest(), compat.newest()):
            for name in sorted(compat.names_in(module, version)):
                pool.setdefault(name.lower(), f"{module}.{name}")
    import difflib

    return [short(pool[name]) for name in difflib.get_close_matches(last, pool, n=3, cutoff=0.6)]


def short(name: str) -> str:
    """The name as people write it: jnp.cumsum, pl.load, %."""
    for prefix, modules in (
        ("pltpu", _PREFIXES["pltpu"]),
        ("plsc", _PREFIXES["plsc"]),
        ("plgpu", (f"{PALLAS}.mosaic_gpu",)),
        ("pltriton", _PREFIXES["pltriton"]),
        ("pl", _PREFIXES["pl"]),
        ("jnp", _PREFIXES["jnp"]),
        ("lax", _PREFIXES["lax"]),
    ):
        for module in modules:
            if name.startswith(module + "."):
                return f"{prefix}.{name[len(module) + 1 :]}"
    return name.removeprefix("operator:")


def describe(kind: str, name: str, backends: Sequence[str], versions: Sequence[str]) -> dict[str, Any]:
    """Everything known about one match, as plain data."""
    if kind == "function":
        return _function(name, backends, versions)
    if kind == "primitive":
        return _primitive(name, backends)
    return _api(name, versions)


def _function(name: str, backends: Sequence[str], versions: Sequence[str]) -> dict[str, Any]:
    support = compat.function(name)
    assert support is not None
    columns = tuple(versions) or compat.measured_versions()
    shown: dict[str, Any] = {}
    for backend in backends:
        newest = support.verdict(backend, columns[-1])
        shown[backend] = {
            "dtypes": {
                dtype: [_status(support, backend, version, dtype) for version in columns] for dtype in compat.DTYPES
            },
            "status": newest.status,
            "since": support.since(backend),
            "primitive": newest.primitive,
            "message": newest.message if newest.outcome.fails else None,
            "outcome": newest.outcome.value,
            "fails_for": _failures(newest),
            "compiled": newest.compiled,
            "instead": list(compat.substitutes(name, backend)),
        }
    history = compat.api(name)
    return {
        "kind": "function",
        "name": name,
        "versions": list(columns),
        "backends": shown,
        "primitives": list(support.primitives(columns[-1])),
        "api": _api(name, versions) if history is not None and PALLAS in name else None,
        "source": compat.provenance(),
    }


def _status(support: compat.FunctionSupport, backend: str, version: str, dtype: str) -> str:
    """The verdict's status; "lowers" where no TPU compiler was asked whether that is enough."""
    status = support.verdict(backend, version, dtype=dtype).status
    if status == "supported" and backend == "tpu" and not support.was_compiled(version, dtype):
        return "lowers"
    return status


def _failures(verdict: compat.Support) -> list[str]:
    """Which cases fail, where only some do: variants by dtype, shortened."""
    if verdict.status != "depends":
        return []
    by_variant: dict[str, list[str]] = {}
    for cell in verdict.cells:
        if cell.outcome.fails:
            dtypes = by_variant.setdefault(cell.variant, [])
            if cell.dtype not in dtypes:
                dtypes.append(cell.dtype)
    every = {variant: {c.dtype for c in verdict.cells if c.variant == variant} for variant in by_variant}
    return [
        f"{variant} ({'every dtype' if set(dtypes) == every[variant] else ', '.join(dtypes)})"
        for variant, dtypes in by_variant.items()
    ]


def _api(name: str, versions: Sequence[str]) -> dict[str, Any]:
    history = compat.api(name)
    replacement = compat.replacement(name)
    found: dict[str, Any] = {"kind": "api", "name": name}
    if history is not None:
        found.update(
            added=None if history.since_first else history.added,
            deprecated=history.deprecated,
            removed=history.removed,
            message=history.message,
            spans=[list(span) for span in history.spans()],
            status={version: history.status(version) for version in versions},
            parameters=_parameters(name),
        )
    if replacement is not None:
        found["replacement"] = {
            "new": replacement.new,
            "how": replacement.how,
            "safe": replacement.safe,
            "note": replacement.note,
            "source": replacement.source,
        }
    return found


def _parameters(name: str) -> list[dict[str, Any]]:
    """Parameters where they changed: since which version, all of them, what came and went."""
    changes: list[dict[str, Any]] = []
    before: tuple[str, ...] | None = None
    for version in compat.known_versions():
        taken = compat.parameters(name, version)
        names = (*taken.names, *(["**"] if taken.accepts_any else [])) if taken is not None else None
        if names is None or names == before:
            continue
        changes.append(
            {
                "since": version,
                "names": list(names),
                "added": [n for n in names if before is not None and n not in before],
                "gone": [n for n in before or () if n not in names],
            }
        )
        before = names
    return changes


def _primitive(name: str, backends: Sequence[str]) -> dict[str, Any]:
    versions = compat.known_versions()
    registries = []
    for backend in backends:
        for core in compat.cores(backend):
            held = [compat.primitive_supported(name, backend, version, core) for version in versions]
            if any(has is not None for has in held):
                registries.append({"backend": backend, "core": core, "spans": _spans(versions, held)})
    return {"kind": "primitive", "name": name, "registries": registries}


def _spans(versions: Sequence[str], held: Iterable[bool | None]) -> list[list[str | None]]:
    spans: list[list[str | None]] = []
    before = False
    for version, has in zip(versions, held, strict=True):
        if has and not before:
            spans.append([version, None])
        elif before and not has:
            spans[-1][1] = version
        before = bool(has)
    return spans
