"""Filters findings: suppression comments, baselines, fingerprints."""
