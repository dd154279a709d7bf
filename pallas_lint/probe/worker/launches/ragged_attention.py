"""Arguments that are assumed of attention over a cache or packed sequences, of recurrences over them, and of what
writes to such a cache: lengths of sequences and of slices, how many there are, and which pages and states they have.

They are recognised by the names of the parameters, which the libraries share (jax, MaxText, sglang-jax, tokamax,
tpu-inference).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ...cost.scalar_operands import Case

ASSUMED = (
    "lengths of sequences are not known, and taken to be the longest that the cache has room for, each page used once; "
    "the range begins with sequences of their new tokens alone"
)
ASSUMED_PACKED = (
    "lengths of packed sequences are not known, and taken to be equal; the range goes to one sequence of all tokens"
)
ASSUMED_SLICES = (
    "how many slices of the cache are written is not known: all that there is room for, of equal lengths, are assumed; "
    "the range begins with one slice"
)
ASSUMED_STATES = (
    "lengths of sequences are not known, and taken to be equal, of as many sequences as there is room for, each with a "
    "state of its own; the range goes to a single sequence"
)
_OF_A_CACHE = re.compile(r"paged?_attention|ragged_(?:mqa|mha|gqa|attention)")
_PACKED = re.compile(r"varlen_attention")
_UPDATE = re.compile(r"kv_cache_update")
_RECURRENCE = re.compile(r"gdn|gated_delta_rule|recurrent_scan|causal_conv1d")
_OF_PAGES = {"queries", "lengths", "pages", "begins"}  # roles that only attention over a cache has all of
_ROLES = {
    "queries": re.compile(r"q|quer(?:y|ies)|ql?_nope"),
    "lengths": re.compile(r"kv_lens|seq_lens|context_lens|lengths"),
    "pages": re.compile(r"page_indices|block_tables?|page_tables?"),
    "begins": re.compile(r"cu_q_lens"),
    "kv_begins": re.compile(r"cu_kv_lens"),
    "kinds": re.compile(r"distribution"),
    "count": re.compile(r"num_seqs"),
    "cache": re.compile(r"kv_cache|kv_pages|kv_cache_fused"),
    "split_cache": re.compile(r"cache_kv"),  # of which a page's tokens have two dimensions
    "k_cache": re.compile(r"k_pages|key_cache"),  # of which the first dimension is that of heads
    "keys": re.compile(r"k|keys?"),  # of sequences, not in pages
    "packed_begins": re.compile(r"cu_seqlens|query_start_loc"),
    "tokens": re.compile(r"q|x|(?:mixed_)?qkv"),  # of all sequences, by the first dimension
    "states": re.compile(r"state_indices"),
    "continued": re.compile(r"has_initial_state"),
    "new": re.compile(r"new_kv"),
    "slices": re.compile(r"slices"),  # of each where it begins in the cache and among the new ones, and its length
    "slice_count": re.compile(r"num_(?:kv_update_)?slices"),
}


def assumed(equation: Any, inner: Any, values: list[Any], case: Case) -> tuple[list[Any], str] | None:
    """The operands of a call of such a function, those that are not known filled in, and what was assumed; None for
    other functions, or where nothing is to be assumed. `inner`: its jaxpr."""
    called = str(equation.params.get("name", ""))
    names = getattr(getattr(getattr(inner, "jaxpr", inner), "debug_info", None), "arg_names", None) or ()
    shapes = [tuple(getattr(atom.aval, "shape", ())) for atom in equation.invars]
    if len(names) != len(shapes):
        return None
    at = {role: number for number, name in enumerate(names) for role, known in _ROLES.items()
          if known.fullmatch(str(name))}  # fmt: skip
    kind = next((kind for kind in _KINDS if kind.search(called)), _OF_A_CACHE if at.keys() >= _OF_PAGES else None)
    if kind is None:
        return None
    make, why = _KINDS[kind]
    made = make(_AttentionCall(called, at, shapes, values, case))
    wanted = {at[role]: value for role, value in made.items() if role in at and values[at[role]] is None}
    types = {number: getattr(equation.invars[number].aval, "dtype", None) for number in wanted}
    if not wanted or any(wanted[number].shape != shapes[number] for number in wanted):
        return None
    return [wanted[at].astype(types[at]) if at in wanted else value for at, value in enumerate(values)], why


@dataclass(frozen=True)
class _AttentionCall:
    """A call of a function. `at`: the numbers of its operands by role."""

    name: str
    at: dict[str, int]
    shapes: list[tuple[int, ...]]
    values: list[Any]
    case: Case

    def shape(self, role: str) -> tuple[int, ...]:
        """The shape of an operand; empty where there is none."""
        return self.shapes[self.at[role]] if role in self.at else ()

    def known(self, role: str, otherwise: Any) -> Any:
        value = self.values[self.at[role]] if role in self.at else None
        return otherwise if value is None else value


def _of_a_cache(call: _AttentionCall) -> dict[str, Any]:
    """The values of all roles in attention over a cache, as far as others are not known; none where its form is not."""
    import numpy as np

    if not call.shape("queries") or len(call.shape("lengths")) != 1 or (room := _room(call)) is None:
        return {}
    pages, page, each = room
    sequences, tokens = call.shape("lengths")[0], call.shape("queries")[0]
    begins = call.known("begins", np.arange(sequences + 1) * tokens // sequences)
    new = np.maximum(np.diff(begins), 1)
    lengths = call.known("lengths", new if call.case == "least" else np.maximum(new, each * page))
    decoding = sequences if tokens == sequences else 0
    table = call.shape("pages")
    return {
        "lengths": lengths,
        "pages": np.arange(math.prod(table)).reshape(table) % pages,
        "begins": begins,
        "kv_begins": np.concatenate([[0], np.cumsum(-(-lengths // page) * page)]),
        "kinds": np.asarray([decoding, decoding, sequences]),
        "count": np.asarray([sequences]),
    }


def _room(call: _AttentionCall) -> tuple[int, int, int] | None:
    """Pages of the cache, tokens of one, and pages of a sequence; None for a cache of another form.

    What is not in pages is one page for each sequence.
    """
    (sequences,) = call.shape("lengths")
    if "pages" not in call.at:
        keys = call.shape("keys")
        return (sequences, keys[1], 1) if len(keys) >= 3 and keys[0] == sequences else None
    cache = call.shape("cache") or call.shape("split_cache") or call.shape("k_cache")[1:]
    if len(cache) < 3 or not 0 < sequences <= cache[0]:  # or of pages that sequences share
        return None
    each = min(math.prod(call.shape("pages")), cache[0]) // sequences
    split = len(cache) == 4 and ("mla" in call.name or "split_cache" in call.at)
    return cache[0], math.prod(cache[1:3]) if split else cache[1], max(each, 1)


def _packed(call: _AttentionCall) -> dict[str, Any]:
    """The values of all roles in attention within sequences that lie behind each other."""
    import numpy as np

    if not call.shape("queries") or len(call.shape("packed_begins")) != 1:
        return {}
    tokens, room = call.shape("queries")[0], call.shape("packed_begins")[0] - 1
    count = call.known("count", np.asarray([1 if call.case == "most" else room]))
    sequences = max(int(np.ravel(count)[0]), 1)
    equal = np.minimum(np.arange(room + 1) * tokens // sequences, tokens)
    return {"count": count, "packed_begins": np.where(equal > 0, tokens, 0) if call.case == "most" else equal}


def _slices(call: _AttentionCall) -> dict[str, Any]:
    """The values of all roles where new keys and values are written to a cache, slice by slice."""
    import numpy as np

    new, slices, cache = call.shape("new"), call.shape("slices"), call.shape("cache")
    leading = {3: 1, 5: 2}.get(len(new))  # dimensions of tokens, or of pages and of tokens in each
    if leading is None or len(cache) != len(new) or len(slices) != 2 or slices[0] != 3 or not slices[1]:
        return {}
    tokens, room = (math.prod(shape[:leading]) for shape in (new, cache))
    count = call.known("slice_count", np.asarray([1 if call.case == "least" else slices[1]]))
    length = max(tokens // slices[1], 1)
    number = np.arange(slices[1])
    lengths = np.where(number < np.ravel(count)[0], length, 0)
    begins = [number * length % max(size - length + 1, 1) for size in (room, tokens)]
    return {"slice_count": count, "slices": np.stack([*begins, lengths])}


def _recurrence(call: _AttentionCall) -> dict[str, Any]:
    """The values of all roles where sequences behind each other go through a state, which each has already."""
    import numpy as np

    if not call.shape("tokens") or len(call.shape("states")) != 1 or len(call.shape("kinds")) != 1:
        return {}
    tokens, room = call.shape("tokens")[0], call.shape("states")[0]
    decoding = tokens <= room  # a token each
    sequences = max(min(tokens, room), 1) if call.case == "likely" else 1
    number = np.minimum(np.arange(room + 1), sequences)
    begins = call.known("packed_begins", number if decoding else number * tokens // sequences)
    kinds = [sequences if decoding else 0] * (call.shape("kinds")[0] - 1)
    return {
        "packed_begins": begins,
        "states": np.arange(room),
        "kinds": np.asarray([*kinds, sequences]),
        "lengths": np.diff(begins) + 1,  # with a token before
        "continued": np.ones(room, bool),
    }


_KINDS = {
    _OF_A_CACHE: (_of_a_cache, ASSUMED),
    _PACKED: (_packed, ASSUMED_PACKED),
    _UPDATE: (_slices, ASSUMED_SLICES),
    _RECURRENCE: (_recurrence, ASSUMED_STATES),
}
