"""Pages of the documentation that are made from the program itself: rules, settings, support tables, upgrades."""

from __future__ import annotations

import functools
import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint import compat
from pallas_lint.cli.rule import markdown
from pallas_lint.compat import support
from pallas_lint.compat.advisories import advisories
from pallas_lint.compat.chips import CHIPS, LANES, SPARSE
from pallas_lint.config.settings import Settings, configurable, schema
from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pallas_lint.ruleset.registry import RuleEntry

_REPOSITORY = Path(__file__).resolve().parent.parent
_FAMILIES = {
    "PAL0": "The file itself",
    "PAL1": "What cannot be lowered",
    "PAL2": "Layout and memory",
    "PAL3": "Grid, specs and signatures",
    "PAL4": "Right results",
    "PAL5": "Tracing",
    "PAL6": "Checks that do not check",
    "PAL7": "API by version",
    "PAL8": "What it costs",
    "PAL9": "What the probe finds",
}
_BACKENDS = {"tpu": "TPU", "triton": "Triton", "mosaic_gpu": "Mosaic GPU"}
# What the page of functions begins with: what people look for.
_PRIORITY = """
jnp.sort jnp.argsort jnp.cumsum jnp.dot lax.dot_general jnp.exp jnp.where jnp.take jnp.take_along_axis lax.gather
lax.top_k jnp.argmax jnp.sum jnp.max jnp.tanh lax.erf jax.nn.softmax jax.nn.gelu lax.logistic lax.rsqrt jnp.power
jnp.einsum jnp.matmul jnp.transpose jnp.reshape jnp.concatenate jnp.pad jnp.roll pltpu.roll jnp.flip jnp.repeat
jnp.arange lax.broadcasted_iota jnp.astype lax.bitcast_convert_type lax.dynamic_slice lax.dynamic_update_slice
lax.fori_loop lax.while_loop lax.scan lax.cond lax.switch jax.random.uniform jnp.isnan jnp.clip
""".split()
_LETTERS = {"lowers": "l", "compiles": "c", "runs": "r", "some": "s", "no": "n", "no load": "x", "?": "?"}


def generators() -> dict[str, Callable[[], str]]:
    """The functions that generate pages, by the path of the page."""
    return {
        "rules/index.md": lambda: "".join(_rule_index()),
        **{f"rules/{code}.md": functools.partial(_rule_page, entry) for code, entry in all_rules().items()},
        "settings.md": lambda: "".join(_settings_page(_template("settings"))),
        "upgrading.md": lambda: "".join(_upgrading(_template("upgrading"))),
        "chips.md": lambda: _chips(_template("chips")),
        "support.md": lambda: _template("support").replace("<!-- legend -->\n", "".join(_legend())),
        "changelog.md": lambda: (_REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"),
        "assets/support-data.js": lambda: f"window.pallasSupport = {json.dumps(_support(), separators=(',', ':'))};\n",
    }


def rules_in_navigation() -> list[Any]:
    """The rules' pages by family, for the navigation."""
    families = {
        title: [
            {f"{code} {rule.name}": f"rules/{code}.md"} for code, rule in all_rules().items() if code.startswith(prefix)
        ]
        for prefix, title in _FAMILIES.items()
    }
    return ["rules/index.md", *({title: pages} for title, pages in families.items())]


def _template(name: str) -> str:
    return (_REPOSITORY / "docs" / f"{name}.in.md").read_text(encoding="utf-8")


# -- rules -------------------------------------------------------------------------------------------------------------


def _rule_index() -> Iterator[str]:
    yield "# Rules\n\nEach code is one rule; its page has what goes wrong on the hardware, how to fix it, and when it "
    yield "is silent. *Safe* fixes keep every result or repair what could not run; a person must look at *unsafe* "
    yield "ones.\n"
    for prefix, title in _FAMILIES.items():
        yield f'\n## {prefix}xx {title}\n\n<ul class="rules" markdown>\n'
        for code, entry in all_rules().items():
            if code.startswith(prefix):
                severity, fix = entry.severity.value, f"<span>{entry.fix} fix</span>" if entry.fix else ""
                yield f'<li markdown><span class="facts" markdown>[{code}]({code}.md) `{entry.name}` '
                yield f'<span class="verdict {severity}">{severity}</span> {fix}</span>\n{entry.summary}</li>\n'
        yield "</ul>\n"


def _rule_page(entry: RuleEntry) -> str:
    severity = entry.severity.value
    marked = markdown(entry).replace(f"*{severity}, ", f'<span class="verdict {severity}">{severity}</span> *', 1)
    return _linked(marked, entry.code)


def _linked(text: str, own: str) -> str:
    """Codes of other rules become links, in prose only."""
    known = all_rules()

    def link(match: re.Match[str]) -> str:
        code = match[0]
        return code if code == own or code not in known else f"[{code}]({code}.md)"

    pieces = re.split(r"(```.*?```|`[^`]*`|\[[^\]]*\]\([^)]*\))", text, flags=re.DOTALL)
    return "".join(piece if number % 2 else re.sub(r"\bPAL\d{3}\b", link, piece) for number, piece in enumerate(pieces))


# -- settings ----------------------------------------------------------------------------------------------------------


def _settings_page(template: str) -> Iterator[str]:
    before, _, after = template.partition("<!-- keys -->\n")
    yield before
    described = schema()["properties"]
    defaults = Settings()
    for key, attribute in configurable().items():
        default = getattr(defaults, attribute.name)
        yield f"### `{key}` {{ #{key} }}\n\n{attribute.metadata['doc']}\n\n"
        yield f"Value: {_kind(described[key])}.  \nDefault: {_default(default)}\n\n"
    yield after


def _kind(described: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if "anyOf" in described:
        first, *others = described["anyOf"]
        if others == [{"type": "array", "items": first}]:
            return f"{_kind(first)}, or a list of these"
        return ", or ".join(map(_kind, described["anyOf"]))
    if "enum" in described:
        return "one of " + ", ".join(f"`{value}`" for value in described["enum"])
    if "$ref" in described:
        return "a rule, prefix of codes, or `ALL`" if described["$ref"].endswith("selector") else "a rule"
    match described.get("type"):
        case "array":
            return f"a list, each item {_kind(described['items'])}"
        case "object" if "properties" in described:
            return "a table of " + ", ".join(f"`{name}`" for name in described["properties"])
        case "object":
            inner = described.get("additionalProperties")
            keys = described.get("propertyNames")
            named = f" from {_kind(keys)}" if keys else ""
            return f"a table{named}" + (f" to {_kind(inner)}" if isinstance(inner, dict) else "")
        case list() as several:
            return " or ".join(f"{_article(each)} {each}" for each in several)
        case simple:
            return f"{_article(str(simple))} {simple}"


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _default(value: object) -> str:
    if value is None or value in ((), {}):
        return "none."
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value) + "."
    if isinstance(value, bool):
        return f"`{str(value).lower()}`."
    return f"`{getattr(value, 'value', value)}`."


# -- support -----------------------------------------------------------------------------------------------------------


def _legend() -> Iterator[str]:
    for word, meaning in support.LEGEND.items():
        yield f"{word}\n:   {meaning[0].upper()}{meaning[1:]}.\n\n"


@functools.cache
def _support() -> dict[str, Any]:
    """The compatibility data for the page that is searched in the browser."""
    backends = support.BACKENDS
    return {
        "oldest": compat.oldest(),
        "versions": list(compat.measured_versions()),
        "dtypes": list(compat.DTYPES),
        "words": {letter: word for word, letter in _LETTERS.items()},
        "backends": {name: _BACKENDS[name] for name in backends},
        "source": compat.provenance(),
        "functions": [_function(name, backends) for name in sorted(compat.function_names(), key=_place)],
        "apis": list(_apis()),
    }


def _place(name: str) -> tuple[int, bool, str]:
    """What people look for, other functions, operators."""
    short = support.short(name)
    return (
        _PRIORITY.index(short) if short in _PRIORITY else len(_PRIORITY),
        ":" in name,
        short,
    )


def _function(name: str, backends: tuple[str, ...]) -> dict[str, Any]:
    described = support.describe("function", name, backends, ())
    found: dict[str, Any] = {"name": support.short(name), "full": name, "primitives": described["primitives"], "on": {}}
    for backend, shown in described["backends"].items():
        rows = ["".join(_LETTERS[state] for state in row) for row in shown["states"].values()]
        if set("".join(rows)) == {"?"}:
            continue
        on: dict[str, Any] = {"rows": rows}
        if {row[-1] for row in rows} & {"n", "s"}:
            if shown["message"]:
                on["message"] = f"{shown['outcome']}: {shown['message']}"
            if shown["fails_for"]:
                on["fails"] = shown["fails_for"]
            if shown["instead"]:
                on["instead"] = shown["instead"]
        found["on"][backend] = on
    return found


def _apis() -> Iterator[dict[str, Any]]:
    """Names of the Pallas modules: since when, until when, and what to use instead."""
    for module in support.PALLAS_MODULES:
        names = {name for version in compat.known_versions() for name in compat.names_in(module, version)}
        for name in sorted(names):
            full = f"{module}.{name}"
            history = compat.api(full)
            if history is None:
                continue
            described = support.describe("api", full, (), ())
            found = {"name": support.short(full), "full": full, "spans": described["spans"]}
            if described["deprecated"]:
                found["deprecated"] = described["deprecated"]
            if described.get("message"):
                found["message"] = described["message"]
            if "replacement" in described:
                found["instead"] = described["replacement"]["note"]
            yield found


# -- chips -------------------------------------------------------------------------------------------------------------


def _chips(template: str) -> str:
    """What chips have, and what compiles on some of them only."""
    parts = {
        "memories": _table(
            ("", "VMEM", "default limit", "tile of 32 bits", "since jax"),
            (
                (name, format_bytes(chip.vmem), format_bytes(chip.default_vmem) if chip.default_vmem else "?",
                 f"{chip.sublanes} x {LANES}", chip.since or "")
                for name, chip in CHIPS.items()
            ),
        ),
        "sparse-cores": _table(
            ("", "cores", "vector subcores", "VMEM of each", "VMEM_SHARED of a core", "registers of 32, 16 and 8 bits"),
            (
                (name, chip.cores, f"{chip.subcores} a core", format_bytes(chip.vmem), format_bytes(chip.shared),
                 "; ".join(" or ".join(map(str, chip.shapes(width))) for width in (32, 16, 8)))
                for name, chip in SPARSE.items()
            ),
        ),
        "functions": _table(("function", "dtypes", ""), _by_chip()),
    }  # fmt: skip
    for name, text in parts.items():
        template = template.replace(f"<!-- {name} -->\n", text)
    return template.replace("<!-- version -->", compat.measured_versions()[-1])


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _by_chip() -> Iterator[tuple[str, str, str]]:
    """Functions of which some chips take dtypes that others refuse; those that fare alike in one row."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name in compat.function_names():
        found = compat.function(name)
        if found is not None:
            for where, dtypes in support.generations(found, compat.measured_versions()[-1]).items():
                alike.setdefault((", ".join(dtypes), where), []).append(support.short(name))
    for (dtypes, where), names in sorted(alike.items(), key=lambda row: (row[0][1], row[0][0])):
        yield ", ".join(f"`{name}`" for name in sorted(set(names))), dtypes, where


# -- upgrading ---------------------------------------------------------------------------------------------------------


def _advisories() -> Iterator[str]:
    yield "| versions | code | what happens | what to do | |\n|---|---|---|---|---|\n"
    for each in advisories():
        found = f"[{each.rule}](rules/{each.rule}.md) " if each.rule else ""
        reports = " ".join(f"[{number}]({url})" for number, url in enumerate(each.reports, start=1))
        versions = f"{each.package} {each.versions}"
        cells = (f"`{versions}`", each.code, each.effect, each.remedy, f"{found}{reports}")
        yield f"| {' | '.join(cells)} |\n"


def _upgrading(template: str) -> Iterator[str]:
    """For each minor release: what Pallas names went, came and were deprecated, and which functions changed."""
    template = template.replace("<!-- advisories -->\n", "".join(_advisories()))
    before, _, after = template.partition("<!-- versions -->\n")
    yield before
    versions = _minors()
    for old, new in reversed(list(itertools.pairwise(versions))):
        yield f"### From jax {old} to {new} {{ #jax-{new.replace('.', '-')} }}\n\n"
        yield from _changed_names(old, new)
        yield from _changed_functions(old, new)
    yield after


def _minors() -> list[str]:
    """The last known release of each minor line."""
    last: dict[tuple[int, ...], str] = {}
    for version in compat.known_versions():
        last[compat.parse(version)[:2]] = version
    return list(last.values())


def _changed_names(old: str, new: str) -> Iterator[str]:
    gone: list[str] = []
    came: list[str] = []
    deprecated: list[str] = []
    for module in support.PALLAS_MODULES:
        were, are = compat.names_in(module, old), compat.names_in(module, new)
        gone += [_gone(f"{module}.{name}") for name in sorted(were - are)]
        came += [f"`{support.short(f'{module}.{name}')}`" for name in sorted(are - were)]
        for name in sorted(were & are):
            history = compat.api(f"{module}.{name}")
            if history is not None and (history.status(old), history.status(new)) == ("present", "deprecated"):
                deprecated.append(_gone(f"{module}.{name}"))
    if gone:
        yield "**Gone**\n\n" + "".join(f"- {each}\n" for each in gone) + "\n"
    if deprecated:
        yield "**Deprecated**\n\n" + "".join(f"- {each}\n" for each in deprecated) + "\n"
    if came:
        yield f"**New**: {', '.join(came)}\n\n"


def _gone(name: str) -> str:
    instead = compat.replacement(name)
    return f"`{support.short(name)}`" + (f": {instead.note}" if instead is not None else "")


def _changed_functions(old: str, new: str) -> Iterator[str]:
    """Functions that work or fail otherwise than before, where both releases were measured."""
    measured = compat.measured_versions()
    if new not in measured:
        return
    earlier = [version for version in measured if compat.parse(version) <= compat.parse(old)]
    if not earlier:
        return
    since = earlier[-1]
    rows: list[str] = []
    for backend, title in _BACKENDS.items():
        pairs = {
            name: (compat.status(name, backend, since), compat.status(name, backend, new))
            for name in compat.function_names()
        }
        works = sorted(support.short(n) for n, (a, b) in pairs.items() if a == "unsupported" and b == "supported")
        fails = sorted(support.short(n) for n, (a, b) in pairs.items() if a == "supported" and b == "unsupported")
        if works:
            rows.append(f"- {title}, works now: {', '.join(f'`{name}`' for name in works)}\n")
        if fails:
            rows.append(f"- {title}, works no longer: {', '.join(f'`{name}`' for name in fails)}\n")
    if rows:
        yield f"**Functions in kernels** (measured at {since} and {new})\n\n" + "".join(rows) + "\n"
