"""Arguments that are assumed of attention over a cache: lengths of sequences, and which of its pages they have.

They are recognised by the names of the parameters, which the libraries share (jax, MaxText, sglang-jax, tokamax,
tpu-inference).
"""

from __future__ import annotations

import math
import re
from typing import Any

from ...cost.handed_on import Case

ASSUMED = (
    "lengths of sequences are not known, and taken to be the longest that the cache has room for, each page used once; "
    "the range begins with sequences of their new tokens alone"
)
_NAME = re.compile(r"paged_attention|ragged_(?:mqa|mha|gqa|attention)")
_ROLES = {
    "queries": re.compile(r"q|quer(?:y|ies)|ql?_nope"),
    "lengths": re.compile(r"kv_lens|seq_lens|context_lens|lengths"),
    "pages": re.compile(r"page_indices|block_tables?|page_tables?"),
    "begins": re.compile(r"cu_q_lens"),
    "kv_begins": re.compile(r"cu_kv_lens"),
    "kinds": re.compile(r"distribution"),
    "count": re.compile(r"num_seqs"),
    "cache": re.compile(r"kv_cache|cache_kv|kv_pages|kv_cache_fused"),
    "k_cache": re.compile(r"k_pages"),  # of which the first dimension is that of heads
    "keys": re.compile(r"k|keys?"),  # of sequences, not in pages
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
    if len(names) != len(shapes) or not {"queries", "lengths"} <= at.keys() or len(shapes[at["lengths"]]) != 1:
        return None
    room = _room(at, shapes, split="mla" in str(equation.params["name"]))
    if room is None:
        return None
    made = _made(at, shapes, values, case, *room)
    wanted = {at[role]: value for role, value in made.items() if role in at and values[at[role]] is None}
    types = {number: getattr(equation.invars[number].aval, "dtype", None) for number in wanted}
    if not wanted or any(wanted[number].shape != shapes[number] for number in wanted):
        return None
    return [wanted[number].astype(types[number]) if number in wanted else value for number, value in enumerate(values)]


def _room(at: dict[str, int], shapes: list[tuple[int, ...]], *, split: bool) -> tuple[int, int, int] | None:
    """Pages of the cache, tokens of one, and pages of a sequence; None for a cache of another form.

    What is not in pages is one page for each sequence. `split`: a page's tokens have two dimensions.
    """
    (sequences,) = shapes[at["lengths"]]
    if "pages" not in at:
        keys = shapes[at["keys"]] if "keys" in at else ()
        return (sequences, keys[1], 1) if len(keys) >= 3 and keys[0] == sequences else None
    cache = shapes[at["cache"]] if "cache" in at else shapes[at["k_cache"]][1:] if "k_cache" in at else ()
    if len(cache) < 3 or not 0 < sequences <= cache[0]:  # or of pages that sequences share
        return None
    each = min(math.prod(shapes[at["pages"]]), cache[0]) // sequences
    return cache[0], math.prod(cache[1:3]) if split and len(cache) == 4 else cache[1], max(each, 1)


def _made(
    at: dict[str, int], shapes: list[tuple[int, ...]], values: list[Any], case: Case, pages: int, page: int, each: int
) -> dict[str, Any]:
    """The values of all roles, as far as others are not known."""
    import numpy as np

    sequences, tokens = shapes[at["lengths"]][0], shapes[at["queries"]][0]
    begins = _or(values, at.get("begins"), np.arange(sequences + 1) * tokens // sequences)
    new = np.maximum(np.diff(begins), 1)
    lengths = _or(values, at["lengths"], new if case == "least" else np.maximum(new, each * page))
    decoding = sequences if tokens == sequences else 0
    table = shapes[at["pages"]] if "pages" in at else ()
    return {
        "lengths": lengths,
        "pages": np.arange(math.prod(table)).reshape(table) % pages,
        "begins": begins,
        "kv_begins": np.concatenate([[0], np.cumsum(-(-lengths // page) * page)]),
        "kinds": np.asarray([decoding, decoding, sequences]),
        "count": np.asarray([sequences]),
    }


def _or(values: list[Any], number: int | None, otherwise: Any) -> Any:
    return otherwise if number is None or values[number] is None else values[number]
