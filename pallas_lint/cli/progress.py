"""What is being done, on a terminal: one line that comes and goes; nothing where nobody watches."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def shown(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function to call with what is being done now."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("starting") as status:
        yield lambda text: status.update(escape(text))
