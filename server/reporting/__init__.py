"""Findings on their way to the client: as diagnostics, of documents and of whole folders."""
