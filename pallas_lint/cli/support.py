"""`pallas-lint support QUERY`: can I use this in a kernel, where, and since when?"""

from __future__ import annotations

import difflib
import json
import sys
from typing import TYPE_CHECKING, Any

from pallas_lint import compat
from pallas_lint.cli import TROUBLE, terminal

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
_PALLAS_MODULES = tuple(PALLAS + part for part in ("", ".tpu", ".triton", ".mosaic_gpu", ".tpu_sc", ".fuser"))
BACKENDS = ("tpu", "triton", "mosaic_gpu")
_WORDS = {"supported": "yes", "unsupported": "no", "depends": "some", "lowers": "lowers", "unknown": "?"}


def run(
    query: str,
    *,
    output_format: str = "full",
    target: str | Sequence[str] | None = None,
    jax_version: str | None = None,
) -> int:
    """Print what is known about `query`; the exit status is 2 if that is nothing."""
    try:
        versions = compat.versions_in(jax_version) if jax_version and jax_version != "auto" else ()
    except ValueError as error:
        return terminal.fail(str(error))
    names = candidates(query)
    if not names:
        close = nearest(query)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        terminal.say(f"nothing is known about `{query}`{hint}")
        return TROUBLE
    backends = _backends(target)
    matches = [describe(kind, name, backends, versions) for kind, name in names]
    if output_format == "json":
        print(json.dumps({"version": 1, "query": query, "matches": matches}, indent=2))
    else:
        _print(matches)
    return 0


def _backends(target: str | Sequence[str] | None) -> tuple[str, ...]:
    if not target:
        return BACKENDS
    wanted = [target] if isinstance(target, str) else list(target)
    chosen = {text.partition(":")[0].replace("-", "_") for text in wanted}
    return tuple(backend for backend in BACKENDS if backend in chosen) or BACKENDS


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
        modules = (*_PALLAS_MODULES, *_MODULES)
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
    for module in _PALLAS_MODULES:
        for version in (compat.oldest(), compat.newest()):
            for name in sorted(compat.names_in(module, version)):
                pool.setdefault(name.lower(), f"{module}.{name}")
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


def _failures(verdict: compat.Verdict) -> list[str]:
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


def _print(matches: list[dict[str, Any]]) -> None:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, soft_wrap=not terminal, width=None if terminal else 140)
    for number, match in enumerate(matches):
        if number:
            console.print()
        if match["kind"] == "function":
            _print_function(console, match)
        elif match["kind"] == "primitive":
            _print_primitive(console, match)
        else:
            _print_api(console, match)


def _print_function(console: Any, match: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.print(f"[bold]{escape(short(match['name']))}[/bold]  {escape(match['name'])}")
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("backend")
    table.add_column("dtype")
    for version in match["versions"]:
        table.add_column(version, justify="center", no_wrap=True)
    for backend, shown in match["backends"].items():
        groups: dict[tuple[str, ...], list[str]] = {}
        for dtype, row in shown["dtypes"].items():
            groups.setdefault(tuple(row), []).append(dtype)
        for number, (row, dtypes) in enumerate(groups.items()):
            if all(status == "unknown" for status in row) and len(groups) > 1:
                continue
            cells = [_cell(status) for status in row]
            table.add_row("" if number else _dashed(backend), " ".join(dtypes), *cells)
    console.print(table)
    for backend, shown in match["backends"].items():
        console.print(f"[bold]{_dashed(backend)}[/bold]: {escape(_sentence(shown, match['versions'][-1]))}")
        if shown["fails_for"]:
            listed = "; ".join(shown["fails_for"][:8])
            more = "; …" if len(shown["fails_for"]) > 8 else ""
            console.print(f"  fails for: {escape(listed)}{more}")
        if shown["status"] in ("unsupported", "depends"):
            for instead in shown["instead"]:
                console.print(f"  instead: {escape(instead)}")
    if match["primitives"]:
        console.print(f"[dim]primitives: {' '.join(match['primitives'])}[/dim]")
    console.print(f"[dim]{escape(match['source'])}[/dim]")
    if match["api"] is not None:
        _print_api(console, match["api"])


def _cell(status: str) -> str:
    colour = {"supported": "green", "unsupported": "red", "depends": "yellow"}.get(status, "dim")
    return f"[{colour}]{_WORDS[status]}[/{colour}]"


def _dashed(backend: str) -> str:
    return backend.replace("_", "-")


def _sentence(shown: dict[str, Any], version: str) -> str:
    """One line about one backend."""
    since = shown["since"]
    if shown["status"] == "unknown":
        return "not measured"
    if shown["status"] == "supported":
        return f"works in jax {version}" + (f", since {since}" if since != compat.oldest() else "")
    reason = shown["message"] or shown["outcome"]
    if shown["status"] == "depends":
        return f"works in jax {version} for some dtypes and shapes; else it {shown['outcome']}: {reason}"
    return f"{shown['outcome']} in jax {version}: {reason}"


def _print_primitive(console: Any, match: dict[str, Any]) -> None:
    from rich.markup import escape

    console.print(f"[bold]{escape(match['name'])}[/bold]  primitive")
    for registry in match["registries"]:
        where = _dashed(registry["backend"]) + (f" {registry['core']}" if registry["core"] else "")
        spans = ", ".join(_span(first, end) for first, end in registry["spans"]) or "never"
        console.print(f"  {where:<26} {spans}")
    console.print("[dim]a lowering rule that is there may still refuse dtypes and shapes[/dim]")


def _span(first: str, end: str | None) -> str:
    since = "always" if first == compat.oldest() else f"since {first}"
    return since if end is None else f"{first} until before {end}"


def _print_api(console: Any, match: dict[str, Any]) -> None:
    from rich.markup import escape

    console.print(f"[bold]{escape(short(match['name']))}[/bold]  {escape(match['name'])}")
    if "spans" in match:
        came = f"since {match['added']}" if match["added"] else f"there in {compat.oldest()}, the oldest version known"
        parts = [came]
        if match["deprecated"]:
            parts.append(f"deprecated since {match['deprecated']}")
        if match["removed"]:
            parts.append(f"removed in {match['removed']}")
        if len(match["spans"]) > 1:
            gaps = ", ".join(_span(first, end) for first, end in match["spans"])
            parts.append(f"it came and went: {gaps}")
        console.print("  " + escape("; ".join(parts)))
        for version, status in match["status"].items():
            console.print(f"  jax {version}: {status}")
        if match["message"]:
            console.print(f"  jax says: {escape(match['message'])}")
    replacement = match.get("replacement")
    if replacement is not None:
        new = f"{short(replacement['new'])}: " if replacement["new"] else ""
        console.print(f"  [green]instead[/green]: {escape(new + replacement['note'])}")
        console.print(f"  [dim]{escape(replacement['source'])}[/dim]")
    for number, change in enumerate(match.get("parameters", [])):
        if number == 0:
            console.print(f"  parameters in {change['since']}: {escape(', '.join(change['names']))}")
            continue
        what = [*(f"+{n}" for n in change["added"]), *(f"-{n}" for n in change["gone"])]
        console.print(f"  {change['since']}: {escape(' '.join(what) or 'order changed')}")
