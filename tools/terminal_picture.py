"""A picture of what a command prints in a terminal, for the README: `terminal_picture.py FILE.svg COMMAND ...`."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 132


def main() -> None:
    file, *command = sys.argv[1:]
    ran = subprocess.run([*command, "--color", "always"], capture_output=True, text=True, check=False)
    console = Console(record=True, width=WIDTH, force_terminal=True, file=io.StringIO())
    console.print(Text.assemble(("$ ", "bold green"), shlex.join(command)))
    console.print(Text.from_ansi(ran.stdout), soft_wrap=True)
    picture = console.export_svg(title="pallas-lint")
    # The fonts of the reader's machine: nothing is fetched.
    picture = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    Path(file).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
