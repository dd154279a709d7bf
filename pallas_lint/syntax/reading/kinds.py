"""tree-sitter's node kinds as numbers: each look at a kind's name makes a new string, six times as slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pallas_lint.syntax.parser import parser

_T = TypeVar("_T")


def kind(word: str) -> int:
    """What tree-sitter calls `word`: a kind of node or, where none is called so, a token."""
    language = parser().language
    assert language is not None
    found = language.id_for_node_kind(word, True) or language.id_for_node_kind(word, False)
    if not found:
        raise ValueError(word)
    return found


def by_kind(table: Mapping[str, _T]) -> dict[int, _T]:
    return {kind(word): what for word, what in table.items()}


ASSIGNMENT = kind("assignment")
ASYNC = kind("async")
AS_PATTERN = kind("as_pattern")
ATTRIBUTE = kind("attribute")
AUGMENTED_ASSIGNMENT = kind("augmented_assignment")
AWAIT = kind("await")
BAR = kind("|")
BINARY_OPERATOR = kind("binary_operator")
BOOLEAN_OPERATOR = kind("boolean_operator")
BRACKET = kind("[")
CALL = kind("call")
CASE_PATTERN = kind("case_pattern")
COLON = kind(":")
COMMA = kind(",")
COMMENT = kind("comment")
COMPARISON_OPERATOR = kind("comparison_operator")
COMPLEX_PATTERN = kind("complex_pattern")
CONDITIONAL_EXPRESSION = kind("conditional_expression")
CONSTRAINED_TYPE = kind("constrained_type")
DEFAULT_PARAMETER = kind("default_parameter")
DICTIONARY_SPLAT = kind("dictionary_splat")
DICTIONARY_SPLAT_PATTERN = kind("dictionary_splat_pattern")
DOTTED_NAME = kind("dotted_name")
DOUBLE_STAR = kind("**")
ELSE_CLAUSE = kind("else_clause")
EQUALS = kind("=")
EXCEPT_CLAUSE = kind("except_clause")
EXPRESSION_LIST = kind("expression_list")
FINALLY = kind("finally")
FOR = kind("for")
FORMAT_EXPRESSION = kind("format_expression")
FORMAT_SPECIFIER = kind("format_specifier")
FROM = kind("from")
FUNCTION_DEFINITION = kind("function_definition")
FUTURE = kind("__future__")
GENERATOR_EXPRESSION = kind("generator_expression")
GENERIC_TYPE = kind("generic_type")
IDENTIFIER = kind("identifier")
IF_CLAUSE = kind("if_clause")
INTERPOLATION = kind("interpolation")
KEYWORD_ARGUMENT = kind("keyword_argument")
KEYWORD_PATTERN = kind("keyword_pattern")
KEYWORD_SEPARATOR = kind("keyword_separator")
LAMBDA = kind("lambda")
LIST_SPLAT = kind("list_splat")
LIST_SPLAT_PATTERN = kind("list_splat_pattern")
MINUS = kind("-")
NAMED_EXPRESSION = kind("named_expression")
NOT_OPERATOR = kind("not_operator")
PARENTHESIS = kind("(")
PARENTHESIZED_EXPRESSION = kind("parenthesized_expression")
POSITIONAL_SEPARATOR = kind("positional_separator")
RELATIVE_IMPORT = kind("relative_import")
SEMICOLON = kind(";")
SLICE = kind("slice")
SPLAT_PATTERN = kind("splat_pattern")
SPLAT_TYPE = kind("splat_type")
STAR = kind("*")
SUBSCRIPT = kind("subscript")
TYPE = kind("type")
TYPED_DEFAULT_PARAMETER = kind("typed_default_parameter")
TYPED_PARAMETER = kind("typed_parameter")
TYPE_CONVERSION = kind("type_conversion")
TYPE_PARAMETER = kind("type_parameter")
UNARY_OPERATOR = kind("unary_operator")
UNDERSCORE = kind("_")
UNION_TYPE = kind("union_type")
WILDCARD_IMPORT = kind("wildcard_import")
YIELD = kind("yield")
