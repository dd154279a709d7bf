"""PAL702 deprecated-api."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.api import Context, Example, Finding, Rule, Severity, Use
from pallas_lint.checker.api_names import PALLAS, api_name, reached
from pallas_lint.compat.versions import parse
from pallas_lint.fixes.migration import Migration, advice
from pallas_lint.fixes.rewrites import loaded_index, replacing

if TYPE_CHECKING:
    from pallas_lint.checker.api_names import ApiName


class DeprecatedApi(Rule):
    """A name that the target jax still has, with a `DeprecationWarning`, and that a later one takes away.

    Pallas deprecates for about two releases: `pl.load` warned from 0.7.1 and was gone in 0.9.0, `pltpu.ANY` from
    0.8.2 to 0.10.0, `pltpu.repeat` from 0.9.1 to 0.10.2. Python shows the warning once, and not at all where the name
    is used in an imported module under the default filters, so that the removal comes as a surprise.

    Since when a name warns was read off the releases' own deprecation tables; the finding also names which release
    takes it away where one that is known already has.

    ## How to fix

    Use the new name. The fix is offered where every checked jax version has it: in a project that supports
    jax 0.6 and 0.8 at once, a name that came in 0.7 is no replacement.

    ## Fix safety

    As for removed-api: safe where the new name does the same on the same arguments, unsafe otherwise.

    ## Known limits

    Deprecated keywords are known for Pallas where jax announces them (`plgpu.load(ref, idx)`), other behaviour that
    only warns when the code runs is not.

    ## References

    - jax documentation, "Pallas Changelog".
    - The `_deprecations` tables of the modules of jax 0.4.35 to 0.12.0.1.
    """

    code = "PAL702"
    name = "deprecated-api"
    severity = Severity.WARNING
    fix = "safe"
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                o_ref[...] = pl.load(x_ref, (pl.ds(0, 8),))  #!-
                o_ref[...] = x_ref[pl.ds(0, 8)]  #+
            """,
            jax="0.8.3",
        ),
        Example(
            """
            spec = pl.BlockSpec(memory_space=pltpu.ANY)  #!-
            spec = pl.BlockSpec(memory_space=pl.ANY)  #+
            """,
            jax="0.9.2",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                o_ref[...] = pl.load(x_ref, ...)
            """,
            jax="0.6.2",
        ),
        Example(
            """
            spec = pl.BlockSpec(memory_space=pl.ANY)
            """,
            jax="0.12.0",
        ),
    )

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        name = api_name(use)
        if name is None:
            return
        if name.history.deprecated is not None:
            yield from self._name(name, context)
        if name.name == f"{PALLAS}.mosaic_gpu.load":
            yield from self._index(name, context)

    @staticmethod
    def _name(name: ApiName, context: Context) -> Iterator[Finding]:
        history = name.history
        if not any(history.status(version) == "deprecated" for version in context.versions):
            return
        versions = reached(name, context)
        failing = tuple(version for version in versions if history.status(version) == "deprecated")
        if not failing or any(history.status(version) == "removed" for version in versions):
            return
        replacement = compat.replacement(name.name, version=context.versions[-1])
        until = f" and removed in {history.removed}" if history.removed is not None else ""
        help_ = advice(replacement) if replacement is not None else history.message or ""
        fix = replacing(Migration(name, context))
        yield context.finding(
            name.use.span_of(name.node),
            f"`{name.spelled}` is deprecated since jax {history.deprecated}{until}",
            help=help_.removesuffix("."),
            only_in=failing,
            fixes=[fix] if fix is not None else [],
        )

    @staticmethod
    def _index(name: ApiName, context: Context) -> Iterator[Finding]:
        """`plgpu.load(ref, idx)`: the index goes into the ref since 0.11.0."""
        found = loaded_index(Migration(name, context))
        if found is None:
            return
        place, fix = found
        failing = tuple(version for version in reached(name, context) if (0, 11) <= parse(version) < (0, 12))
        if failing:
            yield context.finding(
                name.use.span_of(place),
                f"the index of `{name.spelled}` is deprecated since jax 0.11.0 and removed in 0.12.0",
                help="load `ref.at[idx]`",
                only_in=failing,
                fixes=[fix] if fix is not None else [],
            )
