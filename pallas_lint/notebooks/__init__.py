"""Notebooks and Markdown files, which hold Python among other things."""

from __future__ import annotations

MARKDOWN = (".md", ".markdown")  # endings of Markdown files
