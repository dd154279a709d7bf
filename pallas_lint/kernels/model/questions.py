"""What may be asked about the file under analysis: the kinds of questions that its memo knows, and how each goes on."""

from __future__ import annotations

NAMED = "named"  # name: the pieces that may bind it at the top level
WHEN = "when"  # name, moment: how often it has been bound by then
MEMBER = "member"  # class's piece, name: the pieces that may bind it there
MEMBERS = "members"  # class's piece: all that stand in it
OWNER = "owner"  # piece: the one of the class that it stands in
GUARDING = "guarding"  # the pieces of the top level that ask about jax versions
MET = "met"  # launching node: the launches met there so far
CROWDED = "crowded"  # launching node: whether earlier runs met so many launches there that no more are judged
