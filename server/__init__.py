"""The language server: translates between editors and the engine, and decides nothing.

Findings, fixes and suppressions are those of the command line; it never imports jax and never runs the code it shows.
"""
