"""Set-up of the process before anything else is imported."""

import atexit
import gc
import os
import sys


def drop_cwd_from_path() -> None:
    """Take off the import path what `python -m` puts first on it: the current folder, the project to be linted.

    A file `json.py` or `pygls.py` in there would be run in place of the real one. `-P`, `-I` and PYTHONSAFEPATH keep it
    off from the beginning, also from what Python itself imports before this.
    """
    safe = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    try:
        current = os.getcwd()  # noqa: PTH109  pathlib is not imported yet
    except OSError:  # it has been removed
        current = ""
    if not safe and sys.path and sys.path[0] in ("", current):
        del sys.path[0]


def tune_gc() -> None:
    """Have Python look for garbage less often.

    Judging makes millions of objects that live for one file: looking every 700 of them, as Python does unasked, costs
    a quarter of the time. Young objects are looked at when a few files have been judged: most are garbage by then, and
    the fewer get older, the rarer is a look at all that is kept.
    """
    gc.set_threshold(200_000, 20, 50)


def tune_gc_of_server() -> None:
    """Tune garbage collection for a process that runs for days: rarer than Python's, often enough for edits.

    What an edit replaces has been looked at before, and only full collections find it. The server looks in pauses; a
    few dozen edits of a large file without one make as much of it as is alive, which is what calls for one, too. Looks
    at what has come since the last are many and short: an edit that meets a long one takes twice as long. What is there
    at the start stays.
    """
    gc.freeze()
    gc.set_threshold(50_000, 1, 5)


def skip_gc_at_exit() -> None:
    """Have Python end without looking for garbage once more: memory goes as a whole, and a tenth of a run with it."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
