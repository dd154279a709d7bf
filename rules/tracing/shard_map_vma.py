"""PAL507 shard-map-vma."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pallas_lint.api import NONE, CallResult, Context, Example, Finding, Fix, Launch, Rule, Severity, Site, Value, nodes
from pallas_lint.checker.backend_failures import within
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.library.sharding import is_checked
from pallas_lint.kernels.model.known_names import is_shape_struct
from pallas_lint.records import frozen
from pallas_lint.syntax.nesting import parent

if TYPE_CHECKING:
    from pallas_lint.kernels.model.frame import ShardingContext


_WORDS = ("vma", "manual_axis_type")


class ShardMapVma(Rule):
    """A launch under `jax.shard_map` whose outputs do not declare the mesh axes over which they vary.

    By default `shard_map` checks for every value over which axes of the mesh it may differ, and jax cannot infer that
    for the outputs of a kernel. So each `jax.ShapeDtypeStruct` in `out_shape` has to declare it: `vma=` from jax 0.6.2
    to 0.9, `manual_axis_type=` since 0.10.0. Without, tracing ends in "When `check_vma=True` on `jax.shard_map` ...
    must not be `None`", on every backend and in interpret mode. Up to 0.5.3 no launch passes the check, whatever its
    `out_shape`: "No replication rule for pallas_call". In 0.6.0 and 0.6.1 it depends on what the kernel computes.

    ## How to fix

    Give an output the axes of the operands that it is computed from: `jax.ShapeDtypeStruct(x.shape, x.dtype,
    vma=jax.typeof(x).vma)`, since jax 0.10 `manual_axis_type=jax.typeof(x).manual_axis_type`. Or do without the check:
    `check_vma=False` in `jax.shard_map`, `check_rep=False` in that of `jax.experimental.shard_map`.

    ## Fix safety

    Safe: the code could not run. Offered for a launch with one operand, which has a name.

    ## Known limits

    Arrays, and other values that are not written as `jax.ShapeDtypeStruct(...)`, pass: `out_shape=x` takes the axes of
    `x`. Silent where the text does not show the value of `check_vma`, or what lies between the `shard_map` and the
    launch. A launch of another module is reported where it is mapped.

    ## References

    - jax documentation, "Manual parallelism with shard_map".
    - 50 forms lowered for TPU with jax 0.4.35, 0.5.3, 0.6.0 to 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and
      0.12.0.1, as far as they have the names.
    """

    code = "PAL507"
    name = "shard-map-vma"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            from jax.sharding import PartitionSpec as P

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  #!-
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype, vma=jax.typeof(x).vma))(x)  #+

            def run(x, mesh):
                return jax.shard_map(double, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
            """,  # noqa: E501
            jax="0.9.2",
        ),
    )
    valid = (
        Example(
            """
            from jax.sharding import PartitionSpec as P

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

            def double_checked(x):
                axes = jax.typeof(x).vma
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype, vma=axes))(x)

            def run(x, mesh):
                x = jax.shard_map(double, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)
                return jax.shard_map(double_checked, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
            """,
            jax="0.9.2",
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        silence = _silence(launch, context)
        if silence is None:
            return
        if silence.keyword is None:
            where, message = launch.called_at, "`pallas_call` has no replication rule, which `shard_map` needs"
        else:
            where = silence.structs[0].site
            message = f"output has no `{silence.keyword}`, which the `shard_map` around needs"
        mapped = silence.shard_map.site, "mapped here"
        yield _finding(where, message, launch, silence, mapped, context, _fixes(launch, silence, context))

    def check_module(self, context: Context) -> Iterator[Finding]:
        """Launches in functions of other modules that this one maps."""
        for launch in context.analysis.outcome.effects.launches_elsewhere:
            silence = None if launch.path.expects_failure or launch.meant_to_fail else _silence(launch, context)
            if silence is None or silence.shard_map.site.piece.source is not context.module.source:
                continue
            word = f"`{silence.keyword}`" if silence.keyword else "replication rule"
            message = f"`shard_map` needs the {word} of the launch in `{launch.scope}`, which has none"
            where, related = silence.shard_map.site.callee, (launch.called_at, "the launch")
            yield _finding(where, message, launch, silence, related, context)


@frozen
class _Silence:
    """Outputs that do not declare enough, in these versions. `always`: in all that have such a `shard_map`."""

    sharding_context: ShardingContext
    shard_map: CallResult
    structs: tuple[CallResult, ...]
    versions: tuple[str, ...]
    always: bool

    @property
    def keyword(self) -> str | None:
        """What they would have to name; None where nothing helps."""
        return _keyword(self.versions[-1])

    @property
    def help(self) -> str:
        if self.keyword is None:
            return "pass `check_rep=False` to `shard_map`"
        return (
            f"write `{self.keyword}=jax.typeof(x).{self.keyword}` with an operand `x`, "
            "or pass `check_vma=False` to `shard_map`"
        )

    def since(self, context: Context) -> str:
        return "" if self.always else f" in jax {context.spelled_versions(self.versions)}"


def _finding(
    where: Site,
    message: str,
    launch: Launch,
    silence: _Silence,
    related: tuple[Site, str],
    context: Context,
    fixes: Sequence[Fix] = (),
) -> Finding:
    return context.finding(
        where,
        f"{message}{silence.since(context)}",
        help=silence.help,
        certain=silence.sharding_context.sure and launch.path.certain,
        only_in=() if silence.always else silence.versions,
        related=[related],
        fixes=fixes,
    )


def _silence(launch: Launch, context: Context) -> _Silence | None:
    if not launch.form.is_over_blocks or not launch.is_pallas:
        return None
    checked = [each for each in launch.result_calls.sharding_contexts if _is_checked(each)]
    sharding_context = min(checked, key=lambda each: not each.sure, default=None)
    if sharding_context is None or sharding_context.shard_map is None:
        return None
    shapes = launch.argument("out_shape")
    is_old = ".experimental." in sharding_context.shard_map.function
    structs = [] if shapes is None else _structs(shapes)
    # PAL701 or PAL703 report outputs that declare it with another release's names.
    silent = tuple(
        each for each in structs if not (each.open or {each.argument(word) for word in _WORDS} - {None, NONE})
    )

    def checks_vma(version: str) -> bool:
        # The first releases that need no rule for replication do not require `vma` yet: some kernels pass.
        return not within(version, "0.6.0", "0.6.1") and (is_old or within(version, "0.6.1"))

    def fails(version: str) -> bool:
        return checks_vma(version) and (_keyword(version) is None or bool(silent))

    versions = context.failing(fails)
    if not versions:
        return None
    always = context.everywhere(lambda version: fails(version) or not checks_vma(version))
    return _Silence(sharding_context, sharding_context.shard_map, silent, versions, always)


def _is_checked(sharding_context: ShardingContext) -> bool:
    return (
        sharding_context.shard_map is not None
        and not sharding_context.hidden
        and is_checked(sharding_context.shard_map) is True
    )


def _keyword(version: str) -> str | None:
    """What an output has to name; None where nothing helps."""
    if within(version, "0.10.0"):
        return "manual_axis_type"
    return "vma" if within(version, "0.6.0") else None


def _structs(shapes: Value) -> list[CallResult]:
    """The outputs that are written as shape structs."""
    return [leaf for leaf in tree_leaves(shapes) if is_shape_struct(leaf)]


def _fixes(launch: Launch, silence: _Silence, context: Context) -> list[Fix]:
    """The axes of the only operand, where every checked version has the keyword."""
    keyword = silence.keyword
    if (
        keyword is None
        or len(silence.structs) != 1
        or any(_keyword(version) != keyword for version in context.versions)
    ):
        return []
    call, struct = parent(launch.site), silence.structs[0].site
    if not isinstance(call, nodes.Call) or call.func is not launch.site.node or len(call.args) != 1:
        return []
    given, arguments = call.args[0], getattr(struct.node, "args", ())
    operand = given.value if not given.star and given.keyword is None else None
    if not isinstance(operand, nodes.Name) or not arguments or not launch.site.span.contains(struct.span):
        return []
    typeof, imports = context.spell("jax.typeof", context.module_of(struct))
    last = Site(struct.piece, arguments[-1].value)
    edit = context.replace(last, f"{last.code}, {keyword}={typeof}({operand.value}).{keyword}")
    return [context.safe(f"add the `{keyword}` of `{operand.value}`", edit, *imports)]
