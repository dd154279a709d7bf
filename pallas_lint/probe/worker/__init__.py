"""The probe's worker: runs in the user's interpreter, needs nothing but the standard library and jax.

It is started by the path of `main.py` and imports its own modules under a private package name, so that neither a
file of the workspace can stand in for one of them, nor one of them for a module of the user's.
"""
