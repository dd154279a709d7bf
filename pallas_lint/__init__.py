"""pallas-lint: a linter for JAX Pallas kernels."""

__version__ = "0.1.0"
