"""PAL701 removed-api."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.api import (
    Const,
    Context,
    Dictionary,
    Example,
    Finding,
    Fix,
    Launch,
    Rule,
    Severity,
    Site,
    Span,
    Use,
    nodes,
)
from pallas_lint.checker.api_names import PALLAS, api_name, because, keywords, positions, reached
from pallas_lint.compat.versions import parse
from pallas_lint.fixes.migration import Migration, advice, short
from pallas_lint.fixes.rewrites import (
    BY_BACKEND,
    KEYWORDS,
    block_spec_swapped,
    dictionary_params,
    loaded_index,
    replacing,
)
from pallas_lint.fixes.spread_keywords import spread_keywords
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from pallas_lint.checker.api_names import ApiName, KeywordHistory
    from pallas_lint.syntax.uses import Keyword


_LONG_GONE = 3  # minor releases


class RemovedApi(Rule):
    """A name, keyword, argument order or import path that the target jax no longer has.

    Pallas is experimental: names move between modules and go away within a few releases, without jax's
    usual three months. `pl.load` went in 0.9.0, `pltpu.TPUCompilerParams` in 0.7.2, `pltpu.repeat` in 0.10.2, `pl.dot`
    in 0.11.2. What is left is an `AttributeError`, `ImportError` or `TypeError` at import or at the first launch.

    What is there in which release was read off the releases themselves, each imported and listed: where the changelog
    differs (it has `TritonCompilerParams` go in 0.8.1; 0.7.2 has no such name), the release counts.

    Where no jax version is configured, the newest known one is assumed and the finding is an info, since the code works
    for an owner who pins an older jax, or a warning for what went three minor releases ago or earlier.
    `--jax-version`, a lock file or `requires` in pyproject.toml give it. Code behind
    `if jax.__version_info__ >= ...`, `hasattr(pltpu, ...)` and the like is checked for the versions that reach it.

    ## How to fix

    Most names have a new place, which the fix writes. `pl.load(ref, idx)` is `ref[idx]`, `pl.store(ref, idx, v)` is
    `ref[idx] = v`; with `mask=` they became the backend's own `load` and `store` on `ref.at[idx]`. A dictionary of
    backend parameters became the backend's dataclass.

    ## Fix safety

    Safe where the new name is the same object or does the same on the same arguments: renames, moves,
    `pl.load`/`pl.store` without mask, parameters dictionaries, the order of `BlockSpec`'s arguments. Unsafe where the
    text does not show a type that decides (`pl.dot` accumulates integers in int32 and floats in float32) or where
    the masked forms change hands.

    ## Known limits

    Silent where the missing name is handled (`try`, `suppress`, `getattr` with default), where a guard cannot be
    decided, and for names that the file itself puts into the module. Names in type annotations are not looked at. A
    run on the command line reports each name once, at the first place, with all the others; editors show every place.

    ## References

    - jax documentation, "Pallas Changelog".
    - jax releases 0.4.35 to 0.12.0.1, each imported and its public names listed.
    """

    code = "PAL701"
    name = "removed-api"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                x = pl.load(x_ref, (pl.ds(0, 8), slice(None)))  #!-
                pl.store(o_ref, (pl.ds(0, 8), slice(None)), x * 2)  #!-
                x = x_ref[pl.ds(0, 8), :]  #+
                o_ref[pl.ds(0, 8), :] = x * 2  #+
            """,
            jax="0.10.2",
        ),
        Example(
            """
            space = pltpu.ANY  #!-
            params = pltpu.TPUCompilerParams(vmem_limit_bytes=2**20)  #!-
            from jax.experimental import pallas as pl  #+
            #+
            space = pl.ANY  #+
            params = pltpu.CompilerParams(vmem_limit_bytes=2**20)  #+
            """,
            jax="0.10.2",
        ),
        Example(
            """
            from jax.experimental.pallas import gpu as plgpu  #!-
            from jax.experimental.pallas import triton as plgpu  #+

            def run(kernel, x):
                return pl.pallas_call(
                    kernel,
                    out_shape=x,
                    compiler_params=dict(triton=dict(num_warps=4)),  #!-
                    compiler_params=plgpu.CompilerParams(num_warps=4),  #+
                )(x)
            """,
            jax=">=0.8,<0.9",
        ),
        Example(
            """
            spec = pl.BlockSpec(lambda i: (i, 0), (8, 128))  #!-
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))  #+
            """,
            jax="0.6.2",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                o_ref[...] = pl.load(x_ref, (pl.ds(0, 8), slice(None)))
            """,
            jax="0.8.3",
        ),
        Example(
            """
            import jax
            from jax.experimental.pallas import tpu as pltpu

            if hasattr(pltpu, "CompilerParams"):
                Params = pltpu.CompilerParams
            else:
                Params = pltpu.TPUCompilerParams

            Old = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
            """,
            jax="0.10.2",
        ),
    )

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        name = api_name(use)
        if compat.api(use.name) is None:
            yield from self._never_known(use, context)
        if name is not None:
            yield from self._name(name, context)
        name = api_name(use, called=True)
        if name is None:
            return
        yield from self._keywords(name, context)
        yield from self._positions(name, context)
        yield from self._forms(name, context)

    def _name(self, name: ApiName, context: Context) -> Iterator[Finding]:
        history = name.history
        if all(history.present_in(version) for version in context.versions):
            return
        versions = reached(name, context)
        failing = tuple(version for version in versions if history.status(version) == "removed")
        if not failing:
            return
        gone = _gone(history.spans(), failing[0])
        replacement = compat.replacement(name.name, version=failing[-1])
        help_ = advice(replacement) if replacement is not None else history.message or ""
        fix = replacing(Migration(name, context))
        yield context.finding(
            name.use.span_of(name.node),
            f"`{name.spelled}` was removed in jax {gone}: {because(context, failing)}",
            help=help_.removesuffix("."),
            severity=_severity(gone, context),
            versions=failing,
            fixes=[fix] if fix is not None else [],
        )

    def _keywords(self, name: ApiName, context: Context) -> Iterator[Finding]:
        """One finding for all keywords of a call that went in the same release."""
        gone: dict[str | None, list[tuple[Keyword, tuple[str, ...]]]] = {}
        for keyword, history, failing in keywords(name, context):
            missing = _removed(keyword.name, name.name, history, failing)
            if missing:
                since = history.gone_since(missing[0]) if history.accepted else None
                gone.setdefault(since, []).append((keyword, missing))
        for since, found in gone.items():
            named = ", ".join(f"`{keyword.name}`" for keyword, _ in found)
            keyword, failing = found[0]
            when = f" since jax {since}" if since else ""
            replacement = compat.replacement(name.name, keyword.name)
            fix = self._keyword_fix(Migration(name, context), [keyword for keyword, _ in found])
            yield context.finding(
                keyword.span,
                f"`{name.spelled}` takes no {named}{when}: {because(context, failing)}",
                help=advice(replacement) if replacement is not None else "",
                severity=_severity(since, context) if since else Severity.ERROR,
                versions=failing,
                fixes=[fix] if fix is not None else [],
            )

    @staticmethod
    def _keyword_fix(migration: Migration, found: list[Keyword]) -> Fix | None:
        name, context = migration.name.name, migration.context
        if (name, found[0].name) == (f"{PALLAS}.mosaic_gpu.load", "idx"):
            index = loaded_index(migration)
            return None if index is None else index[1]
        special = KEYWORDS.get((name, found[0].name))
        if special is not None:
            return special(migration, found[0])
        edits = []
        for keyword in found:
            replacement = compat.replacement(name, keyword.name)
            if replacement is None or replacement.how != "keyword" or replacement.new is None:
                return None
            if not all(_takes(name, replacement.new, version) for version in context.versions):
                return None
            edits.append(context.replace(keyword.span, replacement.new))
        return context.safe("write the new keywords" if len(edits) > 1 else f"write `{edits[0].text}=`", *edits)

    @staticmethod
    def _positions(name: ApiName, context: Context) -> Iterator[Finding]:
        """More positional arguments than the callable takes now, though it took as many before."""
        use = name.use
        if use.call is None or not name.name.startswith(PALLAS) or name.node.id != use.node.id or not use.positional:
            return
        given = len(use.positional)
        taken = {version: positions(name.name, version) for version in context.versions}
        gone = [v for v in context.versions if (taken[v] or given) < given and _once(name.name, v, given)]
        failing = tuple(version for version in reached(name, context) if version in gone) if gone else ()
        if not failing:
            return
        limit = taken[failing[0]] or 0
        index = loaded_index(Migration(name, context)) if name.name == f"{PALLAS}.mosaic_gpu.load" else None
        fix = index[1] if index is not None else None
        yield context.finding(
            use.span_of(use.positional[limit]),
            f"`{name.spelled}` takes {count_of(limit, 'positional argument')} now: {because(context, failing)}",
            help="load `ref.at[idx]`" if index is not None else "",
            severity=Severity.INFO if context.assumed else Severity.ERROR,
            versions=failing,
            fixes=[fix] if fix is not None else [],
        )

    def _forms(self, name: ApiName, context: Context) -> Iterator[Finding]:
        """Ways of passing arguments that went: argument order, nested dictionaries."""
        if name.node.id != name.use.node.id:
            return
        if name.name == f"{PALLAS}.BlockSpec":
            found = block_spec_swapped(Migration(name, context))
            versions = context.analysis.guards.reached_in(name.use, context.versions) if found is not None else ()
            if found is not None and versions:
                node, fix = found
                yield context.finding(
                    name.use.span_of(node),
                    f"`{name.spelled}` takes the block shape first and the index map second, since jax 0.4.34",
                    help="swap the two arguments",
                    versions=versions,
                    fixes=[fix] if fix is not None else [],
                )
        if name.name == f"{PALLAS}.pallas_call":
            found_params = dictionary_params(Migration(name, context))
            if found_params is not None:
                node, fix, backend, since = found_params
                versions = context.analysis.guards.reached_in(name.use, context.versions)
                failing = tuple(v for v in versions if parse(v) >= since)
                if failing:
                    yield self._dictionary(name.use.span_of(node), fix, backend, since, failing, context)

    @staticmethod
    def _dictionary(
        place: Site | Span,
        fix: Fix | None,
        backend: str,
        since: tuple[int, ...],
        failing: tuple[str, ...],
        context: Context,
    ) -> Finding:
        release = "0.9.0" if since == (0, 9) else "0.6.1"
        return context.finding(
            place,
            f"`compiler_params` as a dictionary was removed in jax {release}: {because(context, failing)}",
            help=f"pass the dataclass of the backend, `{short(backend)}`",
            severity=_severity(release, context),
            versions=failing,
            fixes=[fix] if fix is not None else [],
        )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        """Keywords that come by `**options`, and a dictionary of parameters that comes by a variable."""
        for keyword in spread_keywords(launch, context):
            replacement = compat.replacement(keyword.callable, keyword.name)
            failing = _removed(keyword.name, keyword.callable, keyword.history, keyword.failing)
            if failing:
                since = keyword.history.gone_since(failing[0]) if keyword.history.accepted else None
                when = f" since jax {since}" if since else ""
                yield context.finding(
                    keyword.site,
                    f"`{keyword.spelled}` takes no `{keyword.name}`{when}: {because(context, failing)}",
                    help=advice(replacement) if replacement is not None else "",
                    severity=_severity(since, context) if since else Severity.ERROR,
                    versions=failing,
                )
        params = launch.argument("compiler_params")
        if launch.api != f"{PALLAS}.pallas_call" or not isinstance(params, Dictionary) or params.open:
            return
        node = launch.site.node
        given = node.keyword("compiler_params") if isinstance(node, nodes.Call) else None
        if given is None or not isinstance(given.value, nodes.Name | nodes.Attribute) or not params.items:
            return
        by_backend = all(
            isinstance(key, Const) and key.value in BY_BACKEND and not isinstance(value, Dictionary)
            for key, value in params.items
        )
        first = (0, 9) if by_backend else (0, 6, 1)
        failing = tuple(version for version in context.versions if parse(version) >= first)
        if failing:
            place = Site(launch.site.piece, given.value)
            yield self._dictionary(place, None, "CompilerParams", first, failing, context)

    def _never_known(self, use: Use, context: Context) -> Iterator[Finding]:
        """Names that were gone before the oldest jax that is known."""
        replacement = compat.replacement(use.name)
        if replacement is None or replacement.gone_before is None:
            return
        versions = context.analysis.guards.reached_in(use, context.versions)
        if versions:
            fixes = []
            kept = all(replacement.available_in(version) for version in context.versions)
            if replacement.how == "rename" and replacement.new is not None and not use.imported and kept:
                member = replacement.new.rpartition(".")[2]
                fixes = [context.safe(f"write `{member}`", context.replace(use.last, member))]
            yield context.finding(
                use.span,
                f"`{use.spelled}` was removed before jax {replacement.gone_before}",
                help=advice(replacement),
                versions=versions,
                fixes=fixes,
            )


def _removed(keyword: str, callable_: str, history: KeywordHistory, failing: tuple[str, ...]) -> tuple[str, ...]:
    """The versions that no longer take a keyword; it may have gone before the oldest known one."""
    replacement = compat.replacement(callable_, keyword)
    before = replacement is not None and replacement.gone_before is not None and not history.accepted
    return tuple(version for version in failing if before or history.status(version) == "removed")


def _severity(gone: str, context: Context) -> Severity:
    """An error; where the jax version is not known a warning if it went long ago, else an info."""
    if not context.assumed:
        return Severity.ERROR
    return Severity.WARNING if _minor(compat.newest()) - _minor(gone) >= _LONG_GONE else Severity.INFO


def _minor(version: str) -> int:
    """The number of a minor release: 9 of 0.9.0.1; 1.0 would come after all of 0.x."""
    major, minor = (*compat.parse(version), 0)[:2]
    return major * 1000 + minor


def _gone(spans: tuple[tuple[str, str | None], ...], version: str) -> str:
    """The release that took the name away before `version`."""
    known = compat.known_versions()
    ends = [end for _, end in spans if end is not None and known.index(end) <= known.index(version)]
    return ends[-1] if ends else version


def _once(callable_: str, version: str, given: int) -> bool:
    """Whether a version before this one took `given` positional arguments."""
    known = compat.known_versions()
    return any((positions(callable_, other) or 0) >= given for other in known[: known.index(version)])


def _takes(callable_: str, keyword: str, version: str) -> bool:
    parameters = compat.parameters(callable_, version)
    return parameters is not None and parameters.accepts(keyword)
