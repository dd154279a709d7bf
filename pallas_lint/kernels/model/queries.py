"""The kinds of queries on the file under analysis that cache entries may depend on, with their arguments."""

from __future__ import annotations

NAMED = "named"  # name: the pieces and imports that may bind it at the top level
IMPORTS = "imports"  # the import statements, what they bind, and after which of them another one is added
BOUND = "bound"  # piece: the names in it that imports bind, with their targets
SPELLING = "spelling"  # canonical name: how it is written by the file's imports
EARLY_IMPORTS = "early imports"  # the versions of jax that do not have yet what the file imports
WHEN = "when"  # name, program point: how often it has been bound by then
MENTIONS = "mentions"  # name: the number of pieces that mention it, the one that binds it included
GLOBAL = "global"  # name: whether a function binds it, by a `global` statement, or changes it in place
REGISTERED = "registered"  # name of a function: the pieces that `@name.register` registers with it
MEMBER = "member"  # class's piece, name: the pieces that may bind it there
MEMBERS = "members"  # class's piece: all pieces in it
OWNER = "owner"  # piece: the piece of the class around it
GUARDING = "guarding"  # the top-level pieces that test jax versions
MET = "met"  # launching node: the launches found there so far
CROWDED = "crowded"  # launching node: whether earlier runs found so many launches there that no more are checked
