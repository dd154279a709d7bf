"""Checks of one file: the context that rules get, the targets and jax versions in question, summaries of launches."""
