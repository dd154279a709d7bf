"""The rules there are, by code: built-in ones and those of other packages. No module of a rule is imported for that."""

from __future__ import annotations

import importlib
import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from pallas_lint.finding import DOCS_URL
from pallas_lint.records import define, field
from pallas_lint.rules.registry import FORMER_NAMES, OPT_IN, PREVIEW, RULES
from pallas_lint.ruleset import plugins
from pallas_lint.ruleset.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.finding import Severity
    from pallas_lint.ruleset.rule import FixKind


class PluginError(Exception):
    """A rule of another package that cannot be used; the text is one clear sentence."""


@define(slots=False)
class RuleEntry:
    """A rule by its code and name; the class itself is imported for any other attribute."""

    code: str
    name: str
    module: str = field(repr=False)
    opt_in: bool = False  # only run when it is selected by code or name
    preview: bool = False  # only run with `preview`, or when it is selected by its whole code or name
    package: str | None = None  # which offers it; None for the built-in ones

    @cached_property
    def rule(self) -> type[Rule]:
        """Raises PluginError for a rule of another package that cannot be imported."""
        try:
            module = importlib.import_module(self.module)
        except Exception as error:
            if self.package is None:
                raise
            raise PluginError(
                f"rule {self.code} of {self.package} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Rule) and getattr(value, "code", "") == self.code:
                return value
        raise PluginError(f"rule {self.code} of {self.package}: {self.module} has no class with that code")

    @property
    def url(self) -> str:
        """The address of the rule's page; empty where a rule of another package has none."""
        return f"{DOCS_URL}{self.code}/" if self.package is None else self.rule.url

    @property
    def severity(self) -> Severity:
        return self.rule.severity

    @property
    def fix(self) -> FixKind | None:
        return self.rule.fix

    @property
    def summary(self) -> str:
        """The first line of the rule's page."""
        return self._text.partition("\n")[0].strip()

    def docs(self) -> str:
        """The rule's page as Markdown: what it is about, examples, and then the rest."""
        about, heading, rest = self._text.strip().partition("\n## ")
        parts = [about.strip()]
        for title, examples in (("Flagged", self.rule.invalid), ("Fine", self.rule.valid)):
            for example in examples[:2]:
                conditions = ", ".join(
                    part for part in (example.target, f"jax {example.jax}" if example.jax else None) if part
                )
                parts.append(
                    f"## {title}{f' ({conditions})' if conditions else ''}\n\n```python\n{_shown(example.code)}\n```"
                )
                if example.fixed is not None and title == "Flagged":
                    parts.append(f"## After the fix\n\n```python\n{_shown(example.fixed)}\n```")
        parts.append(f"{heading.strip()} {rest}".strip())
        return _ISSUES.sub(_linked, "\n\n".join(part for part in parts if part))

    @property
    def _text(self) -> str:
        import inspect  # only where a page is shown

        return inspect.cleandoc(self.rule.__doc__ or "")


_ISSUES = re.compile(r"(?<![/-])\bjax\s+issues?\s+\d{4,6}(?:(?:\s+\([^()]*\))?(?:,|\s+and)\s+\d{4,6})*")


def _linked(issues: re.Match[str]) -> str:
    """ "jax issues 24582 and 24292" with a link at each number."""
    return re.sub(r"\b\d{4,6}\b", r"[\g<0>](https://github.com/jax-ml/jax/issues/\g<0>)", issues[0])


def _shown(code: str) -> str:
    return code.replace("#!", "# <- here")


class UnknownRuleError(ValueError):
    """A selector that names no rule."""


@lru_cache(maxsize=1)
def all_rules() -> Mapping[str, RuleEntry]:
    """Every rule by code, those of other packages last; no rule module is imported."""
    own = {
        code: RuleEntry(code, name, f"pallas_lint.rules.{module}", code in OPT_IN, code in PREVIEW)
        for code, (name, module) in sorted(RULES.items())
    }
    others = [plugin for plugin in plugins.installed() if plugin.problem is None]
    return own | {each.code: RuleEntry(each.code, each.name, each.module, package=each.package) for each in others}


@lru_cache(maxsize=1024)
def codes_of(selector: str) -> frozenset[str]:
    """The codes that "PAL103", "PAL1", "mod-comparison" or "ALL" stand for; none for what names no rule."""
    rules = all_rules()
    wanted = FORMER_NAMES.get(selector.strip().lower(), selector.strip())
    if wanted.upper() == "ALL":
        return frozenset(rules)
    by_code = frozenset(code for code in rules if wanted and code.startswith(wanted.upper()))
    return by_code or frozenset(code for code, entry in rules.items() if entry.name == wanted.lower())


def resolve(selector: str) -> frozenset[str]:
    """As `codes_of`. Raises UnknownRuleError, with the nearest real selector, for what names no rule."""
    codes = codes_of(selector)
    if codes:
        return codes
    rules, wanted = all_rules(), selector.strip()
    words = [*rules, *(entry.name for entry in rules.values())]
    import difflib

    near = difflib.get_close_matches(wanted.lower(), [word.lower() for word in words], n=1)
    hint = next((f"; did you mean {word}?" for word in words if near and word.lower() == near[0]), "")
    raise UnknownRuleError(f"no rule is called {selector!r}{hint}")
