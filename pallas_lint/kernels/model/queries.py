"""The kinds of queries on the file under analysis that cache entries may depend on, with their arguments."""

from __future__ import annotations

NAMED = "named"  # name: the pieces that may bind it at the top level
WHEN = "when"  # name, program point: how often it has been bound by then
MENTIONS = "mentions"  # name: the number of pieces that mention it, the one that binds it included
GLOBAL = "global"  # name: whether a function binds it, by a `global` statement
MEMBER = "member"  # class's piece, name: the pieces that may bind it there
MEMBERS = "members"  # class's piece: all pieces in it
OWNER = "owner"  # piece: the piece of the class around it
GUARDING = "guarding"  # the top-level pieces that test jax versions
MET = "met"  # launching node: the launches found there so far
CROWDED = "crowded"  # launching node: whether earlier runs found so many launches there that no more are checked
