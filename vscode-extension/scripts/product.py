"""Writes what the extension knows of pallas-lint without asking a server: the schemas of settings, targets, rules.

    python vscode-extension/scripts/product.py [--check]

Run with pallas-lint installed. With `--check` nothing is written; the exit status is 1 where something is not current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pallas_lint.compat import known_versions
from pallas_lint.config.settings import schema
from pallas_lint.config.targets import all_targets
from pallas_lint.ruleset.registry import all_rules

EXTENSION = Path(__file__).resolve().parent.parent


def files() -> dict[str, Any]:
    """What is written, by path in the extension's folder."""
    settings = schema()
    definitions = settings.pop("definitions")
    return {
        "schemas/settings.schema.json": {**settings, "definitions": definitions},
        "schemas/pyproject.schema.json": {
            "$schema": settings.pop("$schema"),
            "title": "pallas-lint in pyproject.toml",
            "type": "object",
            "properties": {"tool": {"type": "object", "properties": {"pallas-lint": settings}}},
            "definitions": definitions,
        },
        "src/product.json": {
            "targets": list(all_targets()),
            "jaxVersions": list(known_versions()),
            "rules": [{"code": rule.code, "name": rule.name} for rule in all_rules().values()],
        },
    }


def main() -> int:
    stale = []
    for name, content in files().items():
        path = EXTENSION / name
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if stale:
        print(*stale, sep="\n")
    return int(bool(stale) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
