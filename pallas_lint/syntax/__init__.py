"""Text to syntax: an error-tolerant outline of a file and libcst for the pieces that matter."""

from pallas_lint.syntax.outline import Outline, outline
from pallas_lint.syntax.piece import Piece, Site, SyntaxProblem

__all__ = ["Outline", "Piece", "Site", "SyntaxProblem", "outline"]
