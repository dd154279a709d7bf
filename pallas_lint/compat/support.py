"""Support data of a function, a name or a primitive, as plain data; and the possible meanings of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pallas_lint import compat
from pallas_lint.compat.forms import in_words
from pallas_lint.compat.functions import SEMANTICS, SUBCORES, devices_at
from pallas_lint.compat.outcomes import verdict_of
from pallas_lint.text.wording import listed

PALLAS = "jax.experimental.pallas"
_PREFIXES: dict[str, tuple[str, ...]] = {
    "jnp": ("jax.numpy",),
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
    # Both GPU modules are imported as plgpu: only the import distinguishes them.
    "plgpu": (f"{PALLAS}.mosaic_gpu", f"{PALLAS}.triton"),
}
# Modules whose functions run on the host, or in another framework, and what is used in a kernel instead of them.
FOREIGN = {"numpy": "jax.numpy", "np": "jax.numpy", "onp": "jax.numpy", "torch": "jax.numpy", "tf": "jax.numpy",
           "scipy": "jax.scipy", "math": "jax.numpy", "cupy": "jax.numpy", "tl": f"{PALLAS}.triton"}  # fmt: skip
_MODULES = ("jax.numpy", "jax.lax", "jax.nn", "jax.scipy.special", "jax.random", "jax")
# Spellings of functions without a name; and the kinds of the rest, by their prefix.
_WRITTEN = {
    "index:get": "x[0:n]",
    "index:dynamic": "x[i]",
    "index:array": "x[indices]",
    "index:mask": "x[mask]",
    "index:newaxis": "x[None]",
    "index:reversed": "x[::-1]",
    "index:strided": "x[::2]",
    "kernel:identity": "load and store",
    "kernel:constant": "NumPy constants",
    "operator:neg": "-x",
    "method:T": "x.T",
    "method:mT": "x.mT",
}
_FORMS = {"operator": "{}", "builtin": "{}()", "method": "x.{}()", "index": "x.at[i].{}()"}
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
    """Canonical names that the text may mean."""
    names = [text, f"operator:{text}", *(name for name, written in _WRITTEN.items() if written == text)]
    head, dot, rest = text.partition(".")
    if dot and head in _PREFIXES:
        names += [f"{module}.{rest}" for module in _PREFIXES[head]]
    if not dot:
        modules = (*PALLAS_MODULES, *_MODULES)
        names += [f"{module}.{text}" for module in modules]
        names += [f"{kind}:{text}" for kind in ("method", "builtin", "index")]
    elif head not in ("jax", *_PREFIXES, *FOREIGN):
        # A method (`x.sum`) or an update (`x.at[i].set`, typed as at.set).
        names += [f"method:{rest}", f"index:{text}", f"index:{rest.replace('at[i].', 'at.')}"]
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
    # Of `jnp` before `lax`: it is what most people write.
    for name in (*sorted(compat.function_names(), reverse=True), *compat.primitive_names()):
        pool.setdefault(name.rpartition(".")[2].lower(), name)
    for module in PALLAS_MODULES:
        for version in (compat.oldest(), compat.newest()):
            for name in sorted(compat.names_in(module, version)):
                pool.setdefault(name.lower(), f"{module}.{name}")
    import difflib

    return [short(pool[name]) for name in difflib.get_close_matches(last, pool, n=3, cutoff=0.66)]


def short(name: str) -> str:
    """The name as people write it: jnp.cumsum, pl.load, %, x.sum(), x.at[i].add()."""
    kind, _, rest = name.partition(":")
    if name in _WRITTEN or kind in _FORMS:
        return _WRITTEN.get(name) or _FORMS[kind].format(rest.removeprefix("at."))
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
    return name


def describe(
    kind: str, name: str, backends: Sequence[str], versions: Sequence[str], devices: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything known about one match, as plain data; of functions on these devices, or in these semantics."""
    if kind == "function":
        return _function(name, backends, versions, devices)
    if kind == "primitive":
        return _primitive(name, backends)
    return _api(name, versions)


def device_of(backend: str, devices: Sequence[str], version: str) -> str | None:
    """Which of the devices, or lowering semantics, is this backend's; None where that is not one.

    A TPU counts only with a release that was compiled for it: elsewhere all that were stand in for it.
    """
    known = {"tpu": devices_at(version), "triton": ("rocm",), "mosaic_gpu": SEMANTICS}[backend]
    own = [device for device in devices if device in known]
    if backend == "tpu" and SUBCORES[0] in devices:
        return SUBCORES[0]
    return own[0] if len(own) == 1 else None


def _note(name: str, backend: str, devices: Sequence[str], version: str) -> str:
    """A note on the data of a backend; empty where none is needed."""
    home = next((each for each, module in _HOMES.items() if name.startswith(f"{PALLAS}.{module}.")), backend)
    if home != backend:
        return f"it is a function of {home.replace('_', '-')} kernels"
    compiled = devices_at(version)
    others = [device for device in devices if device.startswith(("v", "tpu")) and device not in compiled]
    if backend == "tpu" and SUBCORES[0] in devices:
        return _on_subcores(name, version)
    if backend == "tpu" and others:
        return f"the compiler was run for {listed(compiled)}, not for {', '.join(others)}"
    support = compat.function(name)
    if backend == "tpu" and support is not None and device_of(backend, devices, version) is None:
        return _generations(support, version)
    if backend == "mosaic_gpu" and support is not None and device_of(backend, devices, version) is None:
        either = {device: support.verdict(backend, version, device=device).status for device in SEMANTICS}
        if set(either.values()) >= {"supported", "unsupported"} or (
            "depends" in either.values() and len(set(either.values())) > 1
        ):
            words = {"supported": "it works", "unsupported": "it does not", "depends": "in some forms", "unknown": "?"}
            parts = (f"in {each.capitalize()} semantics {words[status]}" for each, status in either.items())
            return f"{', '.join(parts)} (Warpgroup is the default from jax 0.11 on)"
    return ""


def _on_subcores(name: str, version: str) -> str:
    """A note that it is about SparseCores, and the verdict of their scalar subcores."""
    support = compat.function(name)
    status = "unknown" if support is None else support.verdict("tpu", version, device=SUBCORES[1]).status
    words = {"supported": "yes", "unsupported": "no", "depends": "in some forms", "unknown": "not measured"}
    return f"on the scalar subcore of a SparseCore: {words[status]}"


def _generations(support: compat.FunctionSupport, version: str) -> str:
    """The dtypes that one generation of TPUs takes and another does not."""
    return "; ".join(f"{', '.join(dtypes)} {where}" for where, dtypes in generations(support, version).items())


def generations(support: compat.FunctionSupport, version: str) -> dict[str, list[str]]:
    """ "on v6e, not on v4, v5e" → the dtypes that are supported on some generations and unsupported on others."""
    devices = devices_at(compat.nearest(version))
    by_verdict: dict[tuple[str, ...], list[str]] = {}
    for dtype in compat.DTYPES:
        answers = tuple(support.verdict("tpu", version, dtype=dtype, device=device).status for device in devices)
        if {"supported", "unsupported"} <= set(answers):
            by_verdict.setdefault(answers, []).append(dtype)
    found: dict[str, list[str]] = {}
    for those, dtypes in by_verdict.items():
        takes, refuses = (
            ", ".join(device for device, status in zip(devices, those, strict=True) if status == wanted)
            for wanted in ("supported", "unsupported")
        )
        found.setdefault(f"on {takes}, not on {refuses}", []).extend(dtypes)
    return found


def _function(
    name: str, backends: Sequence[str], versions: Sequence[str], devices: Sequence[str] = ()
) -> dict[str, Any]:
    support = compat.function(name)
    assert support is not None
    columns = tuple(versions) or compat.measured_versions()
    shown: dict[str, Any] = {}
    for backend in backends:
        device = device_of(backend, devices, compat.nearest(columns[-1]))
        newest = support.verdict(backend, columns[-1], device=device)
        lost = [dtype for dtype in compat.DTYPES if not compat.can_copy(dtype, backend, device, columns[-1])]
        telling = _without(newest, lost)
        shown[backend] = {
            "dtypes": {
                dtype: [_status(support, backend, version, dtype, device) for version in columns]
                for dtype in compat.DTYPES
            },
            "states": {
                dtype: [_state(support, backend, version, dtype, device) for version in columns]
                for dtype in compat.DTYPES
            },
            "unloadable": lost,
            "device": device,
            "note": _note(name, backend, devices, columns[-1]),
            "measured_at": newest.measured_at,
            "status": newest.status,
            "since": support.since(backend, device=device),
            "primitive": telling.primitive,
            "message": telling.message if telling.outcome.fails else None,
            "outcome": telling.outcome.value,
            "fails_for": _failures(newest, lost),
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


def _without(verdict: compat.Support, lost: Sequence[str]) -> compat.Support:
    """The verdict without dtypes that cannot even be loaded, where others fail too: those are more informative."""
    cells = tuple(cell for cell in verdict.cells if cell.dtype not in lost)
    rest = verdict_of(cells, verdict.measured_at, verdict.compiled)
    return rest if rest.outcome.fails else verdict


# The evidence behind "supported", which means the same on every backend.
LEGEND = {
    "lowers": "jax lowers it, and no compiler was run",
    "compiles": "the device's compiler takes it, too",
    "runs": "it ran on an H200 with jax 0.11.2, with the right numbers, and lowers here",
    "some": "in some forms, or on some devices, only",
    "no": "in no form that was tried",
    "no load": "blocks of this dtype cannot be loaded",
    "?": "not measured",
}
_HOMES = {"tpu": "tpu", "triton": "triton", "mosaic_gpu": "mosaic_gpu"}  # backend → the module of its own functions
_RAN_SINCE = {"triton": "0.11.2"}  # on an H200


def _state(support: compat.FunctionSupport, backend: str, version: str, dtype: str, device: str | None) -> str:
    """A word of LEGEND."""
    status = support.verdict(backend, version, dtype=dtype, device=device).status
    if status == "unknown":
        return "?"
    if status == "unsupported":
        return "no" if compat.can_copy(dtype, backend, device, version) else "no load"
    if status == "depends":
        return "some"
    if backend in _RAN_SINCE and device is None and compat.parse(version) >= compat.parse(_RAN_SINCE[backend]):
        return "runs"
    compiled = backend == "tpu" and device not in SUBCORES and support.was_compiled(version, dtype, device)
    return "compiles" if compiled else "lowers"


def _status(support: compat.FunctionSupport, backend: str, version: str, dtype: str, device: str | None = None) -> str:
    """The verdict's status; "lowers" where it was not compiled for TPU."""
    status = support.verdict(backend, version, dtype=dtype, device=device).status
    if status == "supported" and backend == "tpu" and not support.was_compiled(version, dtype, device):
        return "lowers"
    return status


def _failures(verdict: compat.Support, lost: Sequence[str]) -> list[str]:
    """Which cases fail, where only some do: forms by dtype, dtypes that are `lost` anyway left out."""
    if verdict.status != "depends":
        return []
    by_variant: dict[str, list[str]] = {}
    for cell in verdict.cells:
        if cell.outcome.fails and cell.dtype not in lost:
            dtypes = by_variant.setdefault(cell.variant, [])
            if cell.dtype not in dtypes:
                dtypes.append(cell.dtype)
    every = {variant: {c.dtype for c in verdict.cells if c.variant == variant} for variant in by_variant}
    return [
        f"{in_words(variant)} ({'every dtype' if set(dtypes) == every[variant] else ', '.join(dtypes)})"
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
