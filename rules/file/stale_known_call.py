"""PAL003 stale-known-call."""

from __future__ import annotations

from pallas_lint.api import Example, Rule, Severity


class StaleKnownCall(Rule):
    """A recorded call, or a probe comment, for a function that is gone or takes no such arguments any more.

    Rules judge a launcher with the shapes that its calls have: those in the shapes file, in tests and in
    `# pallas-lint: probe(...)` comments. A call whose function was renamed, moved or lost a parameter has no effect any
    more: it is left out, and its shapes are not known. Parameters are matched by name; a new one is simply
    not known.

    ## How to fix

    Record again (`pytest --pallas-lint --pallas-lint-record`, or `pallas-lint probe --capture --record -- COMMAND`), or
    take the entry or comment out.

    ## Known limits

    What a call passes is not compared with what the function makes of it: an array of another rank may well raise.
    """

    code = "PAL003"
    name = "stale-known-call"
    severity = Severity.INFO
    # Reported when the calls are run.
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            # pallas-lint: probe(f32[8,128], block=8)  #!
            def double(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2

            # pallas-lint: probe(f32[8,128])
            def double(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """
        ),
    )
