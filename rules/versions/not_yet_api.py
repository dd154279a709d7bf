"""PAL703 not-yet-api."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.api import Context, Example, Finding, Launch, Rule, Severity, Use
from pallas_lint.checker.api_names import api_name, because, keywords, reached
from pallas_lint.fixes.spread_keywords import spread_keywords

if TYPE_CHECKING:
    from pallas_lint.checker.api_names import ApiName
    from pallas_lint.compat import ApiHistory


class NotYetApi(Rule):
    """A name or keyword that came in a newer jax than the oldest one the project supports.

    `pltpu.CompilerParams` came in 0.6.2, `pl.Element` in 0.6.1, `pl.kernel` in 0.8.1, its keyword `out_type=` in
    0.10.1. Under an older jax the module fails to import, or the launch raises a `TypeError`. A project that requires
    `jax>=0.6` and is only tested with the newest release finds out from its users.

    ## How to fix

    Raise the minimum in the project's requirements, or guard the use (`hasattr(pltpu, "CompilerParams")`,
    `jax.__version_info__ >= (0, 7)`) and keep the old spelling in the other branch.

    ## Known limits

    Silent where no jax version is configured, since the newest known one is assumed then; where the absence is handled
    or guarded; and for names newer than the newest known release. Of a range of versions that ends in newer ones than
    these, a run on the command line reports one place only, the one that needs the newest release: that is the
    effective minimum, and raising the declared one to it settles all others. What other rules find in versions below it
    is not reported then. Editors show every place.

    ## References

    - jax documentation, "Pallas Changelog".
    - jax releases 0.4.35 to 0.12.0.1, each imported and its public names and signatures listed.
    """

    code = "PAL703"
    name = "not-yet-api"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            params = pltpu.CompilerParams(vmem_limit_bytes=2**20)  #!
            """,
            jax="0.5.3",
        ),
        Example(
            """
            from jax.experimental import pallas as pl

            def launch(body, mesh, out):
                return pl.kernel(body, out_type=out, mesh=mesh)  #!
            """,
            jax=">=0.9,<0.12",
        ),
    )
    valid = (
        Example(
            """
            params = pltpu.CompilerParams(vmem_limit_bytes=2**20)
            """,
            jax="0.7.2",
        ),
        Example(
            """
            if jax.__version_info__ >= (0, 7, 0):
                Params = pltpu.CompilerParams
            else:
                Params = pltpu.TPUCompilerParams
            """,
            jax=">=0.5,<0.9",
        ),
    )

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        if context.assumed:
            return
        name = api_name(use)
        history = name.history if name is not None else None
        if name is not None and history is not None and self._is_early(history, context):
            failing = tuple(v for v in reached(name, context) if history.status(v) == "not-yet")
            if failing:
                having = [version for version in compat.known_versions() if history.present_in(version)]
                came, wanted = _first_with(having, failing, context)
                yield context.finding(
                    name.use.span_of(name.node),
                    f"`{name.spelled}` came in jax {came}: {because(context, failing)}",
                    help=f"require jax {wanted}, or keep the older spelling behind a version guard",
                    versions=failing,
                )
                return
        called = api_name(use, called=True)
        if called is not None:
            yield from self._keywords(called, context)

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        """Keywords that come by `**options`."""
        for keyword in () if context.assumed else spread_keywords(launch, context):
            missing = tuple(version for version in keyword.failing if keyword.history.status(version) == "not-yet")
            if missing:
                came, wanted = _first_with(keyword.history.accepted, missing, context)
                yield context.finding(
                    keyword.site,
                    f"`{keyword.spelled}` takes `{keyword.name}` from jax {came} on: {because(context, missing)}",
                    help=f"require jax {wanted}, or leave the keyword out for an older one",
                    versions=missing,
                )

    @staticmethod
    def _is_early(history: ApiHistory, context: Context) -> bool:
        return any(history.status(version) == "not-yet" for version in context.versions)

    @staticmethod
    def _keywords(name: ApiName, context: Context) -> Iterator[Finding]:
        for keyword, history, failing in keywords(name, context):
            missing = tuple(version for version in failing if history.status(version) == "not-yet")
            if missing:
                came, wanted = _first_with(history.accepted, missing, context)
                yield context.finding(
                    keyword.span,
                    f"`{name.spelled}` takes `{keyword.name}` from jax {came} on: {because(context, missing)}",
                    help=f"require jax {wanted}, or leave the keyword out for an older one",
                    versions=missing,
                )


def _first_with(having: Sequence[str], failing: tuple[str, ...], context: Context) -> tuple[str, str]:
    """The first version that has what the failing ones lack, and the one to require: of those the project allows."""
    known = compat.known_versions()
    later = [version for version in having if known.index(version) > known.index(failing[-1])]
    return later[0], next((version for version in later if version in context.jax.versions), later[0])
