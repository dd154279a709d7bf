"""Texts: the only place where files are read and written, and what a source is made of."""
