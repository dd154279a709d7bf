"""Probes requested by the user: arguments, runs, and results of earlier ones."""
