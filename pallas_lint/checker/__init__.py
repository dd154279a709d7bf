"""Checks of one file: the context that rules get, the targets and checked jax versions, summaries of launches."""
