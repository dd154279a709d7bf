"""PAL901 trace-error."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class TraceError(Rule):
    """The function does not get as far as a kernel: Python raises while jax traces it.

    The message is jax's own, at the innermost line of the user's code that led there. Exceptions that a rule is about
    come under that rule's code: a captured array is PAL501, a Python condition on a traced value PAL502.

    ## How to fix

    See the message. With `-v` the probe shows the whole traceback.

    ## Known limits

    Arguments that do not fit the function are an error of the command, not a finding.

    ## References

    - Traced with jax 0.4.35 to 0.12.0; places come from the traceback.
    """

    code = "PAL901"
    name = "trace-error"
    severity = Severity.ERROR
    probe_only = True
