"""ACME101: launches without a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Example, Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.api import Context, Finding, Launch


class UnnamedLaunch(Rule):
    """`pallas_call` without `name`.

    In profiles and in compiler dumps the launch goes by the name of its kernel function, and ours are all called
    `kernel`.

    ## How to fix

    Pass `name="..."`.
    """

    code = "ACME101"
    name = "unnamed-launch"
    severity = Severity.WARNING
    url = "https://acme.example/pallas/ACME101"

    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + 1

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  #!
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] + 1

            def run(x):
                return pl.pallas_call(kernel, name="add_one", out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        # `open`: keywords come from a `**` that nobody can see into, and the name may be among them.
        if launch.kind == "pallas_call" and launch.is_pallas and not launch.open and launch.argument("name") is None:
            yield context.finding(launch.called_at, "the launch has no name", help='pass `name="..."`')
