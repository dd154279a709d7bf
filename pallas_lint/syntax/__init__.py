"""Text to syntax: an error-tolerant outline of a file, and nodes for the pieces that matter."""

from pallas_lint.syntax.outline import Outline, outline, parses
from pallas_lint.syntax.piece import Piece, Site

__all__ = ["Outline", "Piece", "Site", "outline", "parses"]
