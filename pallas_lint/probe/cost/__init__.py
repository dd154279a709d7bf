"""The cost of a kernel on a TPU, from the compiler's own schedule: no device is needed, nor jax.

`prediction.predict` is the way in. Nothing but the standard library is imported here, and the rest by relative names:
the probe's worker, which runs in the user's interpreter, has it too.
"""
