"""Settings given as command line options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.config.settings import Overrides

if TYPE_CHECKING:
    import argparse


def from_options(options: argparse.Namespace) -> Overrides:
    """The settings that options of linting or of `config` state."""
    values: dict[str, Any] = {}
    if options.target:
        values["target"] = options.target
    for key in ("jax-version", "fail-on"):
        value = getattr(options, key.replace("-", "_"))
        if value is not None:
            values[key] = value
    for key in ("select", "extend-select", "ignore"):
        lists = getattr(options, key.replace("-", "_"))
        if lists is not None:
            values[key] = [word for words in lists for word in words]
    if options.preview is not None:
        values["preview"] = options.preview
    if options.shapes is not None:
        values["shapes"] = str(Path(options.shapes).absolute()) if options.shapes else ""
    config = Path(options.config).absolute() if options.config else None
    # A file named is read even where --isolated keeps from looking for one.
    return Overrides(values, python=options.python, isolated=options.isolated, config_file=config)
