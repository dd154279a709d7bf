"""Results of support queries, as plain data."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pallas_lint import compat
from pallas_lint.compat import forms, support

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pallas_lint.compat.question import Question

_MODULES = {
    "jnp": "jax.numpy", "lax": "jax.lax", "nn": "jax.nn", "jnn": "jax.nn", "jr": "jax.random", "random": "jax.random",
    "special": "jax.scipy.special", "pl": support.PALLAS, "pltpu": f"{support.PALLAS}.tpu",
    "plgpu": f"{support.PALLAS}.mosaic_gpu", "pltriton": f"{support.PALLAS}.triton", "plsc": f"{support.PALLAS}.tpu_sc",
}  # fmt: skip
# Words of speech for what has another name.
_MEANT = {
    "print": f"{support.PALLAS}.debug_print", "popcount": "jax.lax.population_count", "if": "jax.lax.cond",
    "if_else": "jax.lax.cond", "for": "jax.lax.fori_loop", "for_loop": "jax.lax.fori_loop",
    "loop": "jax.lax.fori_loop", "while": "jax.lax.while_loop", "matrix_multiply": "jax.numpy.matmul",
    "matrix_multiplication": "jax.numpy.matmul", "mma": "jax.numpy.dot", "dot": "jax.numpy.dot",
    "condition": "jax.lax.cond", "convolution": "jax.lax.conv_general_dilated",
    "conv2d": "jax.lax.conv_general_dilated", "bool_reduce": "jax.numpy.any", "mask": "jax.numpy.where",
    "masked_load": f"{support.PALLAS}.triton.load", "masked_store": f"{support.PALLAS}.triton.store",
    "random_bits": f"{support.PALLAS}.tpu.prng_random_bits",
}  # fmt: skip
_LAUNCH = (
    "this is about the inside of a kernel; jax has no reverse-mode derivative of a launch: `pallas-lint rule PAL505`"
)
_INSIDE = {"jax.grad": _LAUNCH, "jax.value_and_grad": _LAUNCH, "jax.vjp": _LAUNCH, "grad": _LAUNCH}


def is_name(word: str) -> bool:
    """Whether something is known under a word, or it is written as a name."""
    known = word.lower() in _MEANT or bool(support.candidates(word)) or module_named(word) is not None
    return "." in word or "*" in word or known


def look_up(question: Question, backends: Sequence[str], versions: Sequence[str]) -> list[dict[str, Any]]:
    """The support data; empty where there is none. `backends` and `versions` limit it, empty for all."""
    backends = tuple(question.backends) or tuple(backends)
    versions = tuple(question.versions) or tuple(versions)
    found: list[dict[str, Any]] = []
    for name in question.names:
        found += _of_name(name, question, backends, versions)
    if not question.names:
        found += [_dtype(dtype, backends, versions) for dtype in question.dtypes]
    return found


def _of_name(name: str, question: Question, backends: Sequence[str], versions: Sequence[str]) -> list[dict[str, Any]]:
    if "*" in name and name.strip("*"):
        return _list(name, _matching(name), backends, versions)
    module = module_named(name)
    if module is not None:
        return _list(module, members(module), backends, versions)
    own, note = own_name(name)
    found = [
        support.describe(kind, each, backends, versions, question.devices) for kind, each in support.candidates(own)
    ]
    if not found and name.isidentifier():
        return _list(name, _with_word(name.lower()), backends, versions)
    if "." not in own:  # what is gone is hardly meant by a bare name, as `dot`
        found.sort(key=_is_gone)
    for match in found:
        if note:
            match["note"] = note
        if match["kind"] == "function":
            match["query"] = {
                "dtypes": [dtype for dtype in question.dtypes if dtype in compat.DTYPES],
                "unmeasured": [dtype for dtype in question.dtypes if dtype not in compat.DTYPES],
                "forms": _forms(match, question, backends),
            }
    return found


def own_name(name: str) -> tuple[str, str]:
    """The jax name for a function of another library or a common word, and a note on it."""
    meant = _MEANT.get(name.lower())
    if meant is not None:
        return meant, f"`{name}` is taken for `{support.short(meant)}`"
    if name in _INSIDE:
        return name, _INSIDE[name]
    head, _, rest = name.partition(".")
    module = support.FOREIGN.get(head) if rest else None
    if module is None:
        return name, ""
    last = rest.rpartition(".")[2]
    tried = [f"{module}.{rest}", f"jax.{rest}", *(f"{parent}.{last}" for parent in (module, "jax.nn", "jax.lax"))]
    own = next((candidate for candidate in tried if support.candidates(candidate)), tried[0])
    where = "of the host: no kernel can call it" if head not in ("torch", "tf", "tl") else "of another framework"
    return own, f"`{name}` is a function {where}; in a kernel use `{support.short(own)}`"


def module_named(word: str) -> str | None:
    """The module that a word names, as `jnp` or `jax.random`."""
    name = _MODULES.get(word, word)
    known = {*_MODULES.values(), "jax.scipy.special"}
    return name if name in known else None


def members(module: str) -> list[str]:
    """Canonical names of what a module has, of that which was measured or is a name of Pallas."""
    measured = [name for name in compat.function_names() if name.rpartition(".")[0] == module]
    if module in support.PALLAS_MODULES:
        named = (f"{module}.{name}" for name in compat.names_in(module, compat.newest()))
        return sorted({*measured, *named})
    return sorted(measured)


def _matching(pattern: str) -> list[str]:
    """Canonical names that a pattern with `*` fits, as people write them or in full."""
    every: Iterable[str] = (
        *compat.function_names(), *(name for module in support.PALLAS_MODULES for name in members(module)),
    )  # fmt: skip
    return sorted({name for name in every if fnmatchcase(support.short(name), pattern) or fnmatchcase(name, pattern)})


def _with_word(word: str) -> list[str]:
    """Canonical names of which a word is a part: `prng` of `prng_seed`."""
    every = {*compat.function_names(), *(name for module in support.PALLAS_MODULES for name in members(module))}
    return sorted(name for name in every if word in re.split(r"[.:_]", name.lower()))


def _is_gone(match: dict[str, Any]) -> bool:
    """Whether the newest jax of the query no longer has it."""
    history = compat.api(match["name"])
    versions = match.get("versions") or (compat.newest(),)
    return history is not None and history.status(versions[-1]) == "removed"


def _list(query: str, names: list[str], backends: Sequence[str], versions: Sequence[str]) -> list[dict[str, Any]]:
    if not names:
        return []
    version = versions[-1] if versions else compat.newest()
    members = []
    for name in names:
        function = compat.function(name)
        states = (
            {backend: function.verdict(backend, version).status for backend in backends} if function is not None else {}
        )
        members.append({"name": name, "status": states})
    return [{"kind": "list", "name": query, "version": version, "members": members}]


def _forms(match: dict[str, Any], question: Question, backends: Sequence[str]) -> dict[str, dict[str, str]]:
    """The status on each backend of the forms that the question names."""
    function = compat.function(match["name"])
    if function is None or not question.forms:
        return {}
    newest = compat.nearest(match["versions"][-1])
    measured = [dtype for dtype in question.dtypes if dtype in compat.DTYPES]
    dtype = measured[0] if len(measured) == 1 else None
    return {
        forms.in_words(variant): {
            backend: function.verdict(
                backend,
                newest,
                dtype=dtype,
                variant=variant,
                device=support.device_of(backend, question.devices, newest),
            ).status
            for backend in backends
        }
        for variant in function.variants
        if forms.is_selected_by(variant, question.forms)
    }


def _dtype(dtype: str, backends: Sequence[str], versions: Sequence[str]) -> dict[str, Any]:
    """Support for a dtype: whether blocks of it can be loaded, and how many functions take it."""
    version = versions[-1] if versions else compat.newest()
    found: dict[str, Any] = {"kind": "dtype", "name": dtype, "version": version, "measured": dtype in compat.DTYPES}
    if not found["measured"]:
        found["casts"] = [*_casts(dtype, backends, version)]
        return found
    found["backends"] = {}
    for backend in backends:
        statuses = [_function_status(name, backend, version, dtype) for name in compat.function_names()]
        found["backends"][backend] = {
            "loads": compat.can_copy(dtype, backend, None, version),
            "supported": sum(status in ("supported", "depends") for status in statuses),
            "unsupported": statuses.count("unsupported"),
        }
    return found


def _function_status(name: str, backend: str, version: str, dtype: str) -> str:
    function = compat.function(name)
    return "unknown" if function is None else function.verdict(backend, version, dtype=dtype).status


_CAST_TO = {"f8": "f8e4m3", "float8": "f8e4m3", "fp8": "f8e4m3", "i4": "i4", "int4": "i4"}


def _casts(dtype: str, backends: Sequence[str], version: str) -> Iterator[dict[str, Any]]:
    """What was tried of dtypes that no operand had: casts to them."""
    variant = next((each for name, each in _CAST_TO.items() if dtype.startswith(name)), None)
    astype = compat.function("method:astype")
    if variant is None or astype is None or variant not in astype.variants:
        return
    for backend in backends:
        status = astype.verdict(backend, version, variant=variant).status
        if status != "unknown":
            yield {"backend": backend, "status": status}
