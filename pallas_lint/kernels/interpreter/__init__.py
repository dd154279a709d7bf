"""The abstract interpreter: statements, expressions, modules, calls."""
