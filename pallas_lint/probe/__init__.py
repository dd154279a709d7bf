"""The probe: what a kernel does when it is traced, run without its device, lowered and compiled.

This side never imports jax and never runs the user's code: it asks a worker in the user's own interpreter
(`worker/`), reads what that tells, and turns it into findings and reports like those of the static rules.
"""
