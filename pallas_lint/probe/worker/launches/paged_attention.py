"""Arguments that are assumed of attention over a cache in pages: lengths of sequences, and which pages they have.

They are recognised by the names of the parameters, which the libraries share (jax, tpu-inference, sglang-jax).
"""

from __future__ import annotations

import re
from typing import Any

from ...cost.handed_on import Case

ASSUMED = (
    "lengths of sequences are not known, and taken to fill their pages, each of which is used once; the range begins "
    "with sequences of their new tokens alone"
)
_NAME = re.compile(r"paged_attention")
_ROLES = {
    "lengths": re.compile(r"kv_lens|seq_lens|context_lens|lengths"),
    "pages": re.compile(r"page_indices|block_tables?|page_tables?"),
    "begins": re.compile(r"cu_q_lens"),
    "kv_begins": re.compile(r"cu_kv_lens"),
    "kinds": re.compile(r"distribution"),
    "count": re.compile(r"num_seqs"),
    "cache": re.compile(r"kv_cache|cache_kv|kv_pages|kv_cache_fused"),
    "k_cache": re.compile(r"k_pages"),
}


def assumed(equation: Any, inner: Any, values: list[Any], case: Case) -> list[Any] | None:
    """The operands of a call of such a function, those that are not known filled in; None for other functions, or
    where nothing is to be assumed. `inner`: its jaxpr."""
    if not _NAME.search(str(equation.params.get("name", ""))):
        return None
    names = getattr(getattr(getattr(inner, "jaxpr", inner), "debug_info", None), "arg_names", None) or ()
    at = {role: number for number, name in enumerate(names) for role, known in _ROLES.items()
          if known.fullmatch(str(name))}  # fmt: skip
    shapes = [tuple(getattr(atom.aval, "shape", ())) for atom in equation.invars]
    if len(names) != len(shapes) or "lengths" not in at or "pages" not in at or not {"cache", "k_cache"} & at.keys():
        return None
    if shapes[at["lengths"]][0] > _cache(at, shapes)[0]:
        return None  # of another layout, or of pages that sequences share
    made = _made(at, shapes, values, case, split="mla" in str(equation.params["name"]))
    wanted = {at[role]: value for role, value in made.items() if role in at and values[at[role]] is None}
    types = {number: getattr(equation.invars[number].aval, "dtype", None) for number in wanted}
    if not wanted or any(wanted[number].shape != shapes[number] for number in wanted):
        return None
    return [wanted[number].astype(types[number]) if number in wanted else value for number, value in enumerate(values)]


def _made(
    at: dict[str, int], shapes: list[tuple[int, ...]], values: list[Any], case: Case, *, split: bool
) -> dict[str, Any]:
    """The values of all roles, as far as others are not known. `split`: a page's tokens have two dimensions."""
    import numpy as np

    sequences, tokens = shapes[at["lengths"]][0], shapes[0][0]
    cache = _cache(at, shapes)
    page = int(np.prod(cache[1:3])) if split and len(cache) == 4 else cache[1]
    table = shapes[at["pages"]]
    each = max(min(int(np.prod(table)) // sequences, cache[0] // sequences), 1)  # pages of a sequence
    begins = _or(values, at.get("begins"), np.arange(sequences + 1) * tokens // sequences)
    new = np.maximum(np.diff(begins), 1)
    lengths = _or(values, at["lengths"], new if case == "least" else np.maximum(new, each * page))
    paged = np.concatenate([[0], np.cumsum(-(-lengths // page) * page)])
    decoding = sequences if tokens == sequences else 0
    return {
        "lengths": lengths,
        "pages": np.arange(int(np.prod(table))).reshape(table) % cache[0],
        "begins": begins,
        "kv_begins": paged,
        "kinds": np.asarray([decoding, decoding, sequences]),
        "count": np.asarray([sequences]),
    }


def _cache(at: dict[str, int], shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The dimensions of the cache: its pages, and their tokens."""
    return shapes[at["cache"]] if "cache" in at else shapes[at["k_cache"]][1:]  # heads are first there


def _or(values: list[Any], number: int | None, otherwise: Any) -> Any:
    return otherwise if number is None or values[number] is None else values[number]
