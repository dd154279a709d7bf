"""PAL903 compile-error."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class CompileError(Rule):
    """The backend's compiler refuses what jax has lowered.

    For TPU the compiler is libtpu's Mosaic, which runs on any machine; for CUDA it is the one in jax's CUDA plugin,
    which compiles for a described GPU without having one. They know the limits that lowering does not: layouts, tiles,
    memory, what the hardware generation at hand can do. Messages such as "Not implemented" name an operation and its
    shape. Errors that a rule is about come under that rule's code: too much memory is PAL213, an unproven alignment
    PAL204.

    ## How to fix

    Look at the operation at the reported line: its shape, its dtype and its last two dimensions. Another form of it
    often compiles, and so does another dtype or a larger block.

    ## Known limits

    Needs libtpu, or jax's CUDA plugin, in the environment that is probed. The compiler's verdict holds for its own
    version and for the requested device generation.

    ## References

    - libtpu 0.0.2 to 0.0.50 with jax 0.4.35 to 0.12.0, for v4, v5e, v5p, v6e and tpu7x.
    """

    code = "PAL903"
    name = "compile-error"
    severity = Severity.ERROR
    probe_only = True
