"""PAL902 lowering-error."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class LoweringError(Rule):
    """A backend has no way to express the kernel: jax's own lowering refuses it.

    Lowering turns the traced kernel into the backend's language: Mosaic's for TPU, Triton's or Mosaic GPU's for GPU. It
    needs no device, and what it refuses can run on none. The message is jax's, at the line whose operation it is about.
    Errors that a rule is about come under that rule's code: a primitive without lowering is PAL101.

    ## How to fix

    `pallas-lint support NAME` lists on which backends and in which versions a function lowers, and what to use instead.

    ## Known limits

    What lowers may still not compile (PAL903).

    ## References

    - Places are exact for every failure tried on nine releases, 0.4.35 to 0.12.0, for TPU and Triton.
    """

    code = "PAL902"
    name = "lowering-error"
    severity = Severity.ERROR
    probe_only = True
