"""PAL311 dimension-semantics-length."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Const, Context, Example, Finding, Fix, Launch, Rule, Seq, Severity, Value, nodes
from pallas_lint.checker.backend_failures import up_to
from pallas_lint.kernels.grid.blocks import grid_of
from pallas_lint.kernels.launches.dimension_semantics import WORDS, declared_semantics, semantics_site
from pallas_lint.text.wording import count_of


class DimensionSemanticsLength(Rule):
    """`dimension_semantics` that do not fit the grid, or a word in them that Mosaic does not know.

    There is one entry for each axis of the grid: "parallel", "arbitrary", and "core_parallel" and "subcore_parallel"
    in newer releases, in lower case, or a member of `pltpu.GridDimensionSemantics`. Interpret mode looks at none of it;
    lowering for TPU refuses another number (`Length of grid does not match length of dimension semantics`, before 0.8
    `Must have dimension semantics for each dimension of the grid`) and other words (`Unable to parse attribute`). A
    lone string is taken for a sequence of letters.

    ## How to fix

    Give one word for each axis, in the order of the grid. An axis along which something is carried (an accumulator, a
    running maximum) is "arbitrary".

    ## Fix safety

    Safe for a word in upper case. For one that is misspelled the nearest word is offered: unsafe.

    ## Known limits

    Silent where the number of axes or of words is not seen, and in pipelines. Launches that certainly run in interpret
    mode are left alone.

    ## References

    - jax, `_src/pallas/mosaic/lowering.py`, and the `DimensionSemantics` of Mosaic's dialect.
    - Lowered for TPU with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1: other numbers and
      other words are refused by all; "core_parallel" by 0.4.35 and 0.5.3, "subcore_parallel" by these and 0.6.2; None
      among the words passes everywhere.
    """

    code = "PAL311"
    name = "dimension-semantics-length"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 2),
                    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
                    out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),  #!
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("PARALLEL",)),  #!-
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),  #+
                )(x)
            """,
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def run(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 2),
                    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
                    out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", pltpu.ARBITRARY)),
                )(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if not launch.form.is_over_blocks or not launch.is_pallas or launch.interpret:
            return
        declared, grid = declared_semantics(launch), grid_of(launch)
        if isinstance(declared, Const) and isinstance(declared.value, str):
            site, _ = semantics_site(launch, 0)
            yield context.finding(
                site,
                "`dimension_semantics` is one string: its letters are taken for the axes",
                help=f'write a tuple: `("{declared.value}",)`',
                certain=launch.path.certain,
            )
            return
        if not isinstance(declared, Seq) or declared.open:
            return
        if grid is not None and grid.rank != len(declared.items):
            site, _ = semantics_site(launch, 0)
            yield context.finding(
                site,
                f"`dimension_semantics` has {count_of(len(declared.items), 'word')} for a grid of rank {grid.rank}",
                help="give one for each axis of the grid, in its order",
                certain=launch.path.certain,
            )
            return
        for axis, word in enumerate(declared.items):
            yield from _word(axis, word, launch, context)


def _word(axis: int, word: Value, launch: Launch, context: Context) -> Iterator[Finding]:
    if not isinstance(word, Const) or not isinstance(word.value, str):
        return
    spelled: str = word.value

    def fails(version: str) -> bool:
        last = WORDS.get(spelled, version)
        return last is not None and up_to(last, version)

    versions = context.failing(fails)
    if not versions:
        return
    always = context.everywhere(fails)
    site, own = semantics_site(launch, axis)
    known = [each for each in WORDS if each != spelled]
    import difflib

    near = difflib.get_close_matches(spelled.lower(), known, n=1)
    fixes: list[Fix] = []
    if near and own is not None and isinstance(own.node, nodes.SimpleString) and spelled not in WORDS:
        edit = context.replace(own, f"{own.node.quote}{near[0]}{own.node.quote}")
        make = context.safe if near[0] == spelled.lower() else context.unsafe
        fixes.append(make(f'write "{near[0]}"', edit))
    yield context.finding(
        own or site,
        f'"{spelled}" is no dimension semantics' + ("" if always else f" in jax {context.spelled_versions(versions)}"),
        help='the words are "parallel" and "arbitrary", since 0.6 "core_parallel", since 0.7 "subcore_parallel"',
        certain=launch.path.certain,
        only_in=() if always else versions,
        fixes=fixes,
    )
