"""PAL309 hallucinated-api."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint import compat
from pallas_lint.api import Context, Example, Finding, Fix, Rule, Severity, Use
from pallas_lint.checker.api_names import PALLAS, ApiName, known_prefix
from pallas_lint.compat.versions import UnknownVersionError, parse
from pallas_lint.fixes.migration import Migration, short

_MODULES = (PALLAS, f"{PALLAS}.tpu", f"{PALLAS}.triton", f"{PALLAS}.mosaic_gpu", f"{PALLAS}.tpu_sc")


class HallucinatedApi(Rule):
    """A name that no jax release ever had in that Pallas module.

    Pallas is spread over several modules and young enough that code written from memory, by people or by language
    models, has names that sound right and are not there: `pl.Function`, `pltpu.vmem`, `pl.VMEM` (it is
    `pltpu.VMEM`), `pltpu.BlockSpec` (it is `pl.BlockSpec`). The result is an `AttributeError` where the name is used,
    for a kernel at its first launch.

    The name is looked for in every release that is known, 0.4.35 and later, each imported and listed: one that
    only the target lacks is a case for removed-api or not-yet-api.

    ## How to fix

    Use the real name. Where one looks like it, in the same module or under the same name in another Pallas module,
    the finding names it.

    ## Fix safety

    Unsafe: the nearest name is a guess at what was meant.

    ## Known limits

    Only names of Pallas modules are checked, not those of `jnp` and `lax`, and not attributes of objects. Where the
    target is newer than the newest known release the finding is a warning: the name may be new. Silent where the
    name's absence is handled or guarded, and for names with a leading underscore.

    ## References

    - jax releases 0.4.35 to 0.12.0.1, each imported and its public names listed.
    """

    code = "PAL309"
    name = "hallucinated-api"
    severity = Severity.ERROR
    fix = "unsafe"
    invalid = (
        Example(
            """
            scratch = [pl.VMEM((8, 128), "float32")]  #!-
            spec = pltpu.BlockSpec((8, 128), lambda i: (i, 0))  #!-
            rows = pl.program_idx(0)  #!-
            scratch = [pltpu.VMEM((8, 128), "float32")]  #+
            spec = pl.BlockSpec((8, 128), lambda i: (i, 0))  #+
            rows = pl.program_id(0)  #+
            """,
        ),
        Example(
            """
            from jax.experimental import pallas as pl

            class Scale(pl.Function):  #!
                axes = ("i",)
            """,
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import tpu as pltpu

            rows = pl.program_id(0)
            new = getattr(pltpu, "NotThereYet", None)
            if hasattr(pl, "some_name"):
                pl.some_name()
            """
        ),
        Example(
            """
            from jax.experimental import pallas as pl

            def kernel(x_ref, o_ref):
                o_ref[...] = pl.load(x_ref, ...)
            """
        ),
    )

    def check_use(self, use: Use, context: Context) -> Iterator[Finding]:
        if not use.name.startswith(f"{PALLAS}.") or compat.replacement(use.name) is not None:
            return
        parts = use.name.split(".")
        length = known_prefix(parts)
        module = ".".join(parts[:length])
        if length == len(parts) or not compat.known_module(module) or parts[length].startswith("_"):
            return
        name = f"{module}.{parts[length]}"
        beyond = len(parts) - length - 1
        if compat.api(name) is not None or (not use.imported and beyond >= use.spelled.count(".")):
            return
        if not context.analysis.guards.reached_in(use, context.versions):
            return
        node = use.without(beyond) if not use.imported else use.node
        spelled = ".".join(use.spelled.split(".")[: use.spelled.count(".") + 1 - beyond])
        near = _nearest(module, parts[length], context)
        found = ", ".join(f"`{short(candidate)}`" for candidate in near)
        fix = self._fix(use, name, spelled, near, context)
        yield context.finding(
            use.span_of(node),
            f"no jax release has `{spelled}`",
            help=f"did you mean {found}?" if near else f"no name of `{module}` looks like it",
            severity=Severity.WARNING if _is_newer(context) else Severity.ERROR,
            fixes=[fix] if fix is not None else [],
        )

    @staticmethod
    def _fix(use: Use, name: str, spelled: str, near: list[str], context: Context) -> Fix | None:
        history = compat.api(near[0]) if near else None
        if history is None or use.imported:
            return None
        node = use.without(len(use.name.split(".")) - len(name.split(".")))
        migration = Migration(ApiName(use, name, history, node, spelled), context)
        written = migration.spell(near[0])
        if written is None:
            return None
        return context.unsafe(f"write `{written[0]}`", migration.edit(node, written[0]), *written[1])


def _nearest(module: str, name: str, context: Context) -> list[str]:
    """The same name in another Pallas module, then names of this module that look like it."""
    version = context.versions[-1]
    elsewhere = [f"{other}.{name}" for other in _MODULES if other != module and name in compat.names_in(other, version)]
    alike = [f"{module}.{other}" for other in compat.nearest_names(module, name, version)]
    exact = [other for other in alike if other.rpartition(".")[2].lower() == name.lower()]
    return [*exact, *elsewhere, *(other for other in alike if other not in exact)][:3]


def _is_newer(context: Context) -> bool:
    """Whether the configured version is newer than all known ones."""
    try:
        return not context.assumed and parse(context.jax.text) > parse(compat.newest())
    except UnknownVersionError:
        return False  # a range: its known releases count
