"""The probe: traces a kernel, interprets it, lowers and compiles it, without its device.

This side never imports jax and never runs the user's code: it sends requests to a worker in the user's own interpreter
(`worker/`), reads its events, and turns them into findings and reports like those of the static rules.
"""
