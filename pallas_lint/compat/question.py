"""Support queries in a user's words: `argsort bf16 tpu`, `sort v5e 0.10`, `jnp.c*`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from pallas_lint.compat.outcomes import DTYPES
from pallas_lint.compat.versions import known_versions, measured_versions, parse, versions_in
from pallas_lint.records import frozen

_FILLER = frozenset(
    "a an and are at be by can could do does for from have how i if in inside into is it its jax kernel kernels "
    "me my of on onto or our pallas possible run supported support supports that the there this to use used using "
    "we what when where which will with work works you".split()
)
_BACKENDS = {
    "tpu": ("tpu",), "tpus": ("tpu",), "triton": ("triton",), "rocm": ("triton",), "amd": ("triton",),
    "mi300": ("triton",),
    "gpu": ("triton", "mosaic_gpu"), "gpus": ("triton", "mosaic_gpu"), "cuda": ("triton", "mosaic_gpu"),
    "nvidia": ("triton", "mosaic_gpu"), "h100": ("triton", "mosaic_gpu"), "h200": ("triton", "mosaic_gpu"),
    "hopper": ("triton", "mosaic_gpu"), "sm90": ("mosaic_gpu",), "sm100": ("mosaic_gpu",), "b200": ("mosaic_gpu",),
    "blackwell": ("mosaic_gpu",), "mosaic-gpu": ("mosaic_gpu",), "mosaic_gpu": ("mosaic_gpu",), "mgpu": ("mosaic_gpu",),
}  # fmt: skip
_DEVICES = {
    "v4": "v4", "v5e": "v5e", "v5litepod": "v5e", "v5p": "v5p", "v6e": "v6e", "trillium": "v6e", "v7x": "tpu7x",
    "tpu7x": "tpu7x", "ironwood": "tpu7x", "lane": "lane", "warpgroup": "warpgroup", "rocm": "rocm", "amd": "rocm",
    "mi300": "rocm",
}  # fmt: skip
_CORES = {"sc": "sc_vector", "sparsecore": "sc_vector", "tc": ""}  # of a TPU, as in "tpu:v6e/sc"
_SHORT_MODULES = ("jnp", "lax", "pl", "pltpu", "plgpu")
_BACKEND_OF = {"lane": "mosaic_gpu", "warpgroup": "mosaic_gpu"}
_LONG = {
    "float32": "f32", "fp32": "f32", "single": "f32", "bfloat16": "bf16", "float16": "f16", "fp16": "f16",
    "half": "f16", "int32": "i32", "int": "i32", "int8": "i8", "uint32": "u32", "boolean": "bool",
}  # fmt: skip
# Dtypes that were not measured, as people write them.
_OTHER_DTYPES = re.compile(
    r"f(?:loa)?t?p?8(?:_?e\dm\d\w*)?|f64|float64|fp64|double|[iu]4|u?int4|u8|uint8|[iu]16|u?int16|[iu]64|u?int64"
    r"|c64|complex64|f4\w*|float4\w*|f8\w*|float8\w*"
)
_CLAUSE = r"(?:[<>]=?|[!~=]=)\s*\d[\d.]*"
_RANGE = re.compile(rf"(?:jax\s*)?({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)")
# Code that contains a name: a call with its arguments, an update, a type with its shape.
_IN_CODE = (
    (re.compile(r"(?<!\w)\w+\.at\[[^\[\]]*\]\."), "at."),
    (re.compile(r"(?<=\w)\([^()]*\)"), " "),
    (re.compile(r"\b([a-z]+\d\w*)\[[\d, ]*\]"), r"\1"),
    (re.compile(r"\bmosaic[ _]gpu\b", re.IGNORECASE), "mosaic-gpu"),
)
_VERSION = re.compile(r"(?:jax|v)?[=<>]*(\d+\.\d+(?:\.\d+)*)")


@frozen
class Question:
    """`names`: what it is about. `devices`: TPU generations, or semantics of Mosaic GPU. `forms`: words for how."""

    names: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is nothing but a name."""
        return not (self.dtypes or self.backends or self.devices or self.versions or self.forms)


def read(words: Iterable[str], is_name: Callable[[str], bool]) -> Question:
    """The question in `words`; `is_name`: whether there is data under a word.

    Raises ValueError for a release, or a range, of which none is known.
    """
    text = " ".join(words).strip()
    for pattern, instead in _IN_CODE:
        text = pattern.sub(instead, text)
    within = _RANGE.search(text)
    found: dict[str, list[str]] = {name: [] for name in ("names", "dtypes", "backends", "devices", "versions", "forms")}
    if within is not None:
        text = text[: within.start()] + " " + text[within.end() :]
        releases = versions_in(within[1].replace(" ", ""))
        found["versions"] += [release for release in releases if release in measured_versions()] or releases[-1:]
    tokens = _joined([_bare(token) for token in re.split(r"[\s,]+", text) if token], is_name)
    if len(tokens) == 1 and within is None:
        return _of_one(tokens[0], is_name)
    for token in tokens:
        word, _, core = token.lower().partition("/")
        if core in _CORES or word == "sparsecore":
            found["backends"].append("tpu")
            found["devices"] += filter(None, [_CORES.get(core or word)])
        target, _, device = word.partition(":")
        version = _VERSION.fullmatch(word)
        if word in _FILLER or not word:
            continue
        if target in _BACKENDS and (not device or device in _DEVICES or device in _BACKENDS):
            found["backends"] += _BACKENDS[target]
            found["devices"] += [_DEVICES[key] for key in (device, word) if key in _DEVICES]
        elif word in _DEVICES:
            found["devices"].append(_DEVICES[word])
            found["backends"].append(_BACKEND_OF.get(word, "tpu"))
        elif version is not None:
            found["versions"].append(known(version[1]))
        elif dtype_named(word) is not None:
            found["dtypes"].append(dtype_named(word) or "")
        elif "." in token or "*" in token or (not found["names"] and is_name(token)):
            found["names"].append(token)
        else:
            found["forms"].append(word)
    if not found["names"] and found["forms"]:  # an unknown name: similar ones can be listed
        found["names"] = [found["forms"].pop(0)]
    return Question(**{name: tuple(dict.fromkeys(values)) for name, values in found.items()})


def _of_one(word: str, is_name: Callable[[str], bool]) -> Question:
    if word.lower() in _BACKENDS or word.lower() in _DEVICES:
        return Question(backends=_BACKENDS.get(word.lower(), (_BACKEND_OF.get(word.lower(), "tpu"),)))
    dtype = dtype_named(word.lower())
    if dtype is not None and not (is_name(word) and "." in word):
        return Question(dtypes=(dtype,))
    return Question(names=(word,))


def _joined(tokens: list[str], is_name: Callable[[str], bool]) -> list[str]:
    """Words that are one name, written apart: `take along axis`, `jnp cumsum`."""
    for count in (3, 2):
        for at in range(len(tokens) - count + 1):
            those = tokens[at : at + count]
            if not all(word.isidentifier() for word in those):
                continue
            name = "_".join(those)
            if is_name(name):
                return [*tokens[:at], name, *tokens[at + count :]]
    for at, (module, name) in enumerate(pairwise(tokens)):
        if module in _SHORT_MODULES and name.isidentifier():
            return [*tokens[:at], f"{module}.{name}", *tokens[at + 2 :]]
    return tokens


def _bare(token: str) -> str:
    """Without punctuation of a sentence around it; operators consist of such characters."""
    if re.search(r"[\w*]", token) is None:
        return token
    return token.strip("`\"'").rstrip("?!;").removesuffix("()").strip("`\"'")


def dtype_named(word: str) -> str | None:
    """ "bfloat16" → "bf16"; one that was not measured is its own name; None for what is not a dtype."""
    word = word.removeprefix("jnp.").removeprefix("dtype:")
    short = _LONG.get(word, word)
    return short if short in DTYPES or _OTHER_DTYPES.fullmatch(word) else None


def known(version: str) -> str:
    """The known release; of an unfinished number the newest of that line. Raises ValueError."""
    wanted, releases = parse(version), known_versions()
    line = [release for release in releases if parse(release)[: len(wanted)] == wanted]
    if not line:
        raise ValueError(f"no release {version} of jax is known: they are {releases[0]} to {releases[-1]}")
    return version if version in line else line[-1]
