"""PAL906 nan-produced."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class NanProduced(Rule):
    """The kernel makes NaN or infinity out of finite operands.

    The probe runs the kernel in interpret mode on random operands, and again with memory that was never written set to
    zero: what is not finite then is the kernel's own arithmetic. `checkify` names the first operation and its line.

    ## How to fix

    Guard the operation: `jnp.where` around a division by zero needs a safe divisor too, a softmax over rows that may be
    masked entirely a finite mask value (PAL417).

    ## Known limits

    Random operands may be outside what a kernel is for. Where it gives finite results for operands between 0.5 and 2,
    the finding is only an info: a logarithm of negative numbers is not a mistake of the kernel.

    ## References

    - `jax.experimental.checkify`: through a `pallas_call` it works to jax 0.9; from 0.10 on the probe gives it the
      plain HLO that interpret mode is made of.
    """

    code = "PAL906"
    name = "nan-produced"
    severity = Severity.WARNING
    probe_only = True
