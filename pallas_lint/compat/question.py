"""What somebody asks of the data, in their own words: `argsort bf16 tpu`, `sort v5e 0.10`, `jnp.c*`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.compat.outcomes import DTYPES
from pallas_lint.compat.versions import known_versions, parse
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FILLER = frozenset(
    "a an and are at be by can could do does for from have how i if in inside into is it its jax kernel kernels "
    "me my of on onto or our pallas possible run supported support supports that the there this to use used using "
    "we what when where which will with work works you".split()
)
_BACKENDS = {
    "tpu": ("tpu",), "tpus": ("tpu",), "triton": ("triton",), "rocm": ("triton",), "amd": ("triton",),
    "gpu": ("triton", "mosaic_gpu"), "gpus": ("triton", "mosaic_gpu"), "cuda": ("triton", "mosaic_gpu"),
    "nvidia": ("triton", "mosaic_gpu"), "h100": ("triton", "mosaic_gpu"), "h200": ("triton", "mosaic_gpu"),
    "hopper": ("triton", "mosaic_gpu"), "sm90": ("mosaic_gpu",), "sm100": ("mosaic_gpu",), "b200": ("mosaic_gpu",),
    "blackwell": ("mosaic_gpu",), "mosaic-gpu": ("mosaic_gpu",), "mosaic_gpu": ("mosaic_gpu",), "mgpu": ("mosaic_gpu",),
}  # fmt: skip
_DEVICES = {
    "v4": "v4", "v5e": "v5e", "v5litepod": "v5e", "v5p": "v5p", "v6e": "v6e", "trillium": "v6e", "v7x": "tpu7x",
    "tpu7x": "tpu7x", "ironwood": "tpu7x", "lane": "lane", "warpgroup": "warpgroup",
}  # fmt: skip
_LONG = {
    "float32": "f32", "fp32": "f32", "single": "f32", "bfloat16": "bf16", "float16": "f16", "fp16": "f16",
    "half": "f16", "int32": "i32", "int": "i32", "int8": "i8", "uint32": "u32", "boolean": "bool",
}  # fmt: skip
# Dtypes that were not measured, as people write them.
_OTHER_DTYPES = re.compile(
    r"f(?:loa)?t?p?8(?:_?e\dm\d\w*)?|f64|float64|fp64|double|[iu]4|u?int4|u8|uint8|[iu]16|u?int16|[iu]64|u?int64"
    r"|c64|complex64|f4\w*|float4\w*|f8\w*|float8\w*"
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
    """The question in `words`; `is_name` tells whether something is known under a word."""
    tokens = [token for token in re.split(r"[\s,]+", " ".join(words).strip()) if token]
    if len(tokens) == 1:
        return _of_one(_bare(tokens[0]), is_name)
    found: dict[str, list[str]] = {name: [] for name in ("names", "dtypes", "backends", "devices", "versions", "forms")}
    for token in map(_bare, tokens):
        word = token.lower()
        target, _, device = word.partition(":")
        version = _VERSION.fullmatch(word)
        if word in _FILLER or not word:
            continue
        if target in _BACKENDS and (not device or device in _DEVICES or device in _BACKENDS):
            found["backends"] += _BACKENDS[target]
            found["devices"] += [_DEVICES[device]] if device in _DEVICES else []
        elif word in _DEVICES:
            found["devices"].append(_DEVICES[word])
            found["backends"].append("mosaic_gpu" if word in ("lane", "warpgroup") else "tpu")
        elif version is not None and known(version[1]) is not None:
            found["versions"].append(known(version[1]) or "")
        elif dtype_named(word) is not None:
            found["dtypes"].append(dtype_named(word) or "")
        elif "." in token or "*" in token or (not found["names"] and is_name(token)):
            found["names"].append(token)
        else:
            found["forms"].append(word)
    if not found["names"] and found["forms"]:  # a name that nobody knows: what is like it can be told
        found["names"] = [found["forms"].pop(0)]
    return Question(**{name: tuple(dict.fromkeys(values)) for name, values in found.items()})


def _of_one(word: str, is_name: Callable[[str], bool]) -> Question:
    dtype = dtype_named(word.lower())
    if dtype is not None and not (is_name(word) and "." in word):
        return Question(dtypes=(dtype,))
    return Question(names=(word,))


def _bare(token: str) -> str:
    """Without what stands around it in a sentence; operators are made of such."""
    if re.search(r"[\w*]", token) is None:
        return token
    return token.strip("`\"'").rstrip("?!;").removesuffix("()").strip("`\"'")


def dtype_named(word: str) -> str | None:
    """ "bfloat16" → "bf16"; one that was not measured is its own name; None for what is no dtype."""
    word = word.removeprefix("jnp.").removeprefix("dtype:")
    short = _LONG.get(word, word)
    return short if short in DTYPES or _OTHER_DTYPES.fullmatch(word) else None


def known(version: str) -> str | None:
    """The known release; of an unfinished number the newest of that line."""
    wanted = parse(version)
    line = [each for each in known_versions() if parse(each)[: len(wanted)] == wanted]
    return version if version in line else line[-1] if line else None
