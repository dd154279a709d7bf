"""PAL904 compiler-crash."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class CompilerCrash(Rule):
    """The compiler ends its own process instead of refusing the kernel.

    In a training job this takes the whole Python process along, with no traceback. The probe compiles in a process of
    its own, and looks for the culprit: it compiles again without one operation after the other until the compiler
    survives, and reports that operation's line.

    ## How to fix

    Write the operation in another way or in another dtype: on TPU v5e, for example, `jnp.argmax` along the lanes of
    bfloat16 values crashes, and of float32 values compiles.

    ## Known limits

    Where no single operation is to blame, the launch is reported. A compiler that was stopped because it took too long
    or too much memory is a warning.

    ## References

    - libtpu 0.0.50: `Operation not supported: kVectorMaxIndexReduceBf16` and a failed check in its layouts, 23 of 1,819
      small kernels that lower; libtpu 0.0.2 aborts on 31 of 1,491.
    """

    code = "PAL904"
    name = "compiler-crash"
    severity = Severity.ERROR
    probe_only = True
