"""Rule selection: selectors of the configuration, then of the command line; the narrower wins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pallas_lint.records import frozen

_WHOLE = 1 + len("PAL000")  # how narrow a whole code is


@frozen
class Layer:
    """The selection of one source. `select` None keeps the result of the layers before it."""

    select: tuple[str, ...] | None = None
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def enabled(layers: Iterable[Layer], *, preview: bool = False) -> frozenset[str]:
    """The codes that the layers come to, from the rules on by default; a later `select` starts afresh.

    Rules in preview are among them with `preview`, or where a selector is their whole code or name.
    """
    from pallas_lint.ruleset.registry import all_rules

    layers = [layer for layer in layers if layer != Layer()]
    rules = all_rules()
    hidden = frozenset(code for code, info in rules.items() if not preview and info.preview)
    chosen: frozenset[str] = frozenset()
    if not layers or layers[0].select is None:
        chosen = frozenset(code for code, info in rules.items() if not info.opt_in) - hidden
    for layer in layers:
        wanted = (*(layer.select or ()), *layer.extend)
        start = chosen if layer.select is None else frozenset()
        named = codes_of(*(selector for selector in wanted if specificity(selector) == _WHOLE))
        chosen = start | _narrower(wanted, layer.ignore) - (hidden - named)
        chosen -= _narrower(layer.ignore, wanted, ties=True)
    return chosen


def codes_of(*selectors: str) -> frozenset[str]:
    """The codes that selectors (all of them valid) stand for."""
    return frozenset(code for selector in selectors for code in _resolved(selector))


def specificity(selector: str) -> int:
    """How narrow a selector is: a name is as narrow as a whole code."""
    if selector.upper() == "ALL":
        return 1
    return 1 + len(selector) if re.fullmatch(r"(?i)PA?L?\d{0,3}", selector) else _WHOLE


def _narrower(selectors: Iterable[str], against: Sequence[str], *, ties: bool = False) -> frozenset[str]:
    """The codes `selectors` name more specifically than `against` does, or with `ties` as specifically."""
    rival: dict[str, int] = {}
    for selector in against:
        for code in _resolved(selector):
            rival[code] = max(rival.get(code, 0), specificity(selector))
    return frozenset(
        code
        for selector in selectors
        for code in _resolved(selector)
        if specificity(selector) >= rival.get(code, 0) + (0 if ties else 1)
    )


@lru_cache(maxsize=256)
def _resolved(selector: str) -> frozenset[str]:
    from pallas_lint.ruleset.registry import resolve

    return resolve(selector)
