"""Print the commands of a README's `sh` blocks, one a line: expected exit status, tab, command."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def commands(text: str) -> list[tuple[int, str]]:
    """Expected status and command, in order. A comment `# exit status N` says what is expected, else it is 0."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            command, _, comment = line.partition(" #")
            if command.strip() and not command.startswith("#"):
                status = re.search(r"exit status (\d+)", comment)
                found.append((int(status[1]) if status else 0, command.strip()))
    return found


if __name__ == "__main__":
    listed = commands(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if not listed:
        sys.exit("no commands found")
    for status, command in listed:
        print(status, command, sep="\t")
