"""Names of the variants in which functions were measured, and the words that select them in a query."""

from __future__ import annotations

import re

# Variant in the data → in words. What the recipes of `tools/measure` do.
_WORDS = {
    "plain": "of whole blocks",
    "scalar": "of scalars",
    "vector": "of one-dimensional arrays",
    "vectors": "of one-dimensional arrays",
    "arrays": "of two arrays",
    "matrix": "of a matrix",
    "constant": "with a constant",
    "scalar_constant": "of a scalar and a constant",
    "scalar_compared": "of scalars, compared with a constant",
    "compared": "compared with a constant",
    "selected": "and `jnp.where` on it",
    "value": "with a value",
    "square": "of a square block",
    "cube": "to the third power",
    "root": "to the power of one half",
    "inverse": "to the power of minus one",
    "reciprocal": "to the power of minus one",
    "integer": "to an integer power",
    "all": "over all axes",
    "both": "over both axes",
    "keepdims": "with keepdims=True",
    "drop": "with keepdims=False",
    "rows": "of rows",
    "row": "of a row",
    "column": "of a column",
    "columns": "of columns",
    "lanes": "along lanes",
    "lane": "of one lane",
    "element": "of one element",
    "int": "at an integer",
    "dynamic": "at an index known only at run time",
    "first": "in front",
    "last": "at the end",
    "middle": "in the middle",
    "leading": "of leading dimensions",
    "tile": "of a tile",
    "tiles": "of tiles",
    "flat": "to one dimension",
    "split_rows": "that splits the rows",
    "split_lanes": "that splits the lanes",
    "halve_lanes": "that halves the lanes",
    "mask_row": "of a mask, as a row",
    "mask_column": "of a mask, as a column",
    "batch": "with batch dimensions",
    "transposed": "with a transposed operand",
    "stride": "with a stride",
    "start": "with a start",
    "list": "of a list",
    "lower": "with a lower bound only",
    "infinite": "of infinity",
    "approximate": "with approximate=True",
    "exact": "with approximate=False",
    "unstable": "with is_stable=False",
    "clip": 'with mode="clip"',
    "fill": 'with mode="fill"',
    "along": "along an axis",
    "static": "with static bounds",
    "unrolled": "with unroll=True",
    "index": "with the index used",
    "carry": "with a carry only",
    "xs": "with xs",
    "added": "with something added",
    "dtype": "with a dtype",
    "iota": "with an iota",
    "numpy_array": "of a numpy array",
    "numpy_scalar": "of a numpy scalar",
    "pallas_key": "with a key that the kernel receives",
}
_AXIS = re.compile(r"(?P<what>axis|in_bounds|one_tile)(?P<axis>\d)(?P<drop>_drop)?")
_PRODUCT = re.compile(r"(?P<one>[nt])(?P<other>[nt])_(?P<sum>\w+)")
_LETTERS = {"n": "plain", "t": "transposed"}


def in_words(variant: str) -> str:
    """ "axis0_drop" → "axis=0, keepdims=False"; dtypes to which something converts are "to f16"."""
    axis = _AXIS.fullmatch(variant)
    if axis is not None:
        more = {"in_bounds": ", indices in bounds", "one_tile": ", within one tile"}.get(axis["what"], "")
        return f"axis={axis['axis']}{more}{', keepdims=False' if axis['drop'] else ''}"
    product = _PRODUCT.fullmatch(variant)
    if product is not None:
        return f"{_LETTERS[product['one']]} times {_LETTERS[product['other']]}, in {product['sum']}"
    if variant.startswith("preferred_"):
        return f"with preferred_element_type {variant.removeprefix('preferred_')}"
    if variant.startswith("ij_"):
        return f"of {variant.replace('_', ',')}"
    return _WORDS.get(variant, f"to {variant.removeprefix('scalar_')}")


def is_selected_by(variant: str, words: tuple[str, ...]) -> bool:
    """Whether words such as "batch", "axis" and "1", "keepdims" mean this variant."""
    spelled = {*re.findall(r"\w+", in_words(variant).lower()), variant}
    wanted = [word.lower().replace("=", " ").split() for word in words]
    flat = [part for parts in wanted for part in parts]
    numbers = [part for part in flat if part.isdecimal()]
    named = [part for part in flat if not part.isdecimal()]
    return bool(named) and any(part in spelled for part in named) and all(number in spelled for number in numbers)
