"""Exit statuses of the command line, which do not change."""

from __future__ import annotations

# 0: nothing to complain about, 1: findings, 2: bad usage, bad settings, unreadable input or an internal
# error.
OK, FINDINGS, TROUBLE, INTERRUPTED = 0, 1, 2, 130
