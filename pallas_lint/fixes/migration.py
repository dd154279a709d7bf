"""Migration of uses of old jax names to their replacements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.checker.api_names import PALLAS, api_name, prefixes
from pallas_lint.finding import Edit, Fix, Position, Span
from pallas_lint.records import define
from pallas_lint.syntax.bindings import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tree_sitter

    from pallas_lint.checker.api_names import ApiName
    from pallas_lint.checker.context import Context
    from pallas_lint.compat import ApiReplacement
    from pallas_lint.syntax.uses import Use

# What a module is called where a file that does not import it needs it; the second name where the first is taken.
_ALIASES = {
    PALLAS: ("pl", "pallas"),
    f"{PALLAS}.tpu": ("pltpu", "pallas_tpu"),
    f"{PALLAS}.triton": ("plgpu", "pltriton"),
    f"{PALLAS}.mosaic_gpu": ("plgpu", "plmgpu"),
    "jax.numpy": ("jnp", "jax_numpy"),
}
_SIMPLE = frozenset({"identifier", "attribute", "subscript", "call", "parenthesized_expression", "tuple", "list"})


@define
class Migration:
    """The rewriting of one use, for all checked versions."""

    name: ApiName
    context: Context

    # -- names -----------------------------------------------------------------------------------------------------

    def replaced(self, replacement: ApiReplacement) -> Fix | None:
        """The new name in place of the old one, with its import."""
        new = replacement.new
        if new is None or replacement.how not in ("rename", "move") or not self.available(new):
            return None
        if self.name.use.imported:
            edits = self._import_replaced(new)
        else:
            edits = self._attribute_replaced(new)
        if not edits:
            return None
        title = f"write `{new.rpartition('.')[2]}`" if replacement.how == "rename" else f"use `{short(new)}`"
        make = self.context.safe if replacement.safe else self.context.unsafe
        return make(title, *edits)

    def available(self, name: str) -> bool:
        """Whether every checked version has `name`."""
        return compat.available(name, self.context.versions)

    def _attribute_replaced(self, new: str) -> list[Edit]:
        spelled = self.spell(new)
        if spelled is None:
            return []
        text, imports = spelled
        return self._with_alias_gone(text) or [self.edit(self.name.node, text), *imports]

    def _with_alias_gone(self, text: str) -> list[Edit] | None:
        """Edits of all uses of the alias that also remove its import; None where a use has to stay."""
        use = self.name.use
        alias = use.alias
        if not all(self._may_go(name) for name in use.names_under_alias):
            return None
        imports = [other for other in use.others if other.imported and other.binds == alias]
        if text.split(".", 1)[0] == alias or len(imports) != 1 or alias not in self.context.module.imported:
            return None
        edits: list[Edit] = []
        for other in use.others:
            if other.imported or other.alias != alias:
                continue
            name = api_name(other)
            known = None if name is None else compat.replacement(name.name, version=self.context.versions[-1])
            if name is None or known is None or not known.safe or known.new is None or not self.available(known.new):
                return None
            spelled = Migration(name, self.context).spell(known.new)
            if spelled is None or spelled[0].split(".", 1)[0] == alias:
                return None
            edits += [edit for edit in (self.edit(name.node, spelled[0]), *spelled[1]) if edit not in edits]
        removed = self.statement_removed(imports[0])
        return None if removed is None else [*edits, removed]

    def _may_go(self, name: str) -> bool:
        """Whether something that a dotted name goes through has a replacement."""
        version = self.context.versions[-1]
        return any(compat.replacement(prefix, version=version) is not None for prefix in prefixes(name))

    def statement_removed(self, imported: Use) -> Edit | None:
        """Take an imported name out of its statement, or the statement with its lines."""
        statement = imported.statement
        assert statement is not None
        if len(statement.children_by_field_name("name")) > 1:
            parent = imported.node.parent
            return self._item_removed(
                statement, parent if parent is not None and parent.type == "aliased_import" else imported.node
            )
        source, span = self.context.module.source, imported.span_of(statement)
        lines = source.lines(span.start.line, span.end.line)
        if lines.strip() != text_of(statement).strip():
            return None
        end = Position(span.end.line + 1, 1)
        return Edit(Span(span.path, Position(span.start.line, 1), end), "")

    def _import_replaced(self, new: str) -> list[Edit]:
        """`from m import old` becomes `from n import new`; uses of the name follow where it has no alias."""
        use = self.name.use
        statement = use.statement
        module, _, member = new.rpartition(".")
        if statement is None or self.name.name != use.name:
            return []
        if statement.type == "import_statement":
            return [self.edit(use.node, new)] if use.binds is not None else []
        bound = use.binds or ""
        # `import gpu as gpu` binds a name of its own just as well.
        aliased = use.node.parent is not None and use.node.parent.type == "aliased_import"
        was_module = statement.child_by_field_name("module_name")
        if was_module is None:
            return []
        edits = [] if aliased else self._renamed(bound, member)
        if edits is None:
            # Uses that cannot all be followed keep the name that they have.
            edits, aliased = [], True
        text = f"{member} as {bound}" if aliased and member != bound else member
        item = use.node.parent if use.node.parent is not None and use.node.parent.type == "aliased_import" else use.node
        if module == text_of(was_module):
            return [self.edit(item, text), *edits]
        items = statement.children_by_field_name("name")
        if len(items) == 1:
            return [self.edit(was_module, module), self.edit(item, text), *edits]
        line = self.name.use.span_of(statement).start
        indent = " " * (line.column - 1)
        start = Position(line.line, line.column)
        added = Edit(Span(self.context.module.source.path, start, start), f"from {module} import {text}\n{indent}")
        return [added, self._item_removed(statement, item), *edits]

    def _renamed(self, bound: str, member: str) -> list[Edit] | None:
        """Edits that rename each use of an imported name; None where another binding of the new name is in the way."""
        if bound == member:
            return []
        use = self.name.use
        if any(other.imported and other.binds == member for other in use.others):
            return None
        edits = []
        for other in use.others:
            if other.imported or not (other.name == use.name or other.name.startswith(f"{use.name}.")):
                continue
            if other.spelled.split(".", 1)[0] != bound:
                continue
            edits.append(self.edit(other.without(other.spelled.count(".")), member))
        return edits

    def _item_removed(self, statement: tree_sitter.Node, item: tree_sitter.Node) -> Edit:
        """Take one of several imported names out, with one comma."""
        items = statement.children_by_field_name("name")
        at = next(index for index, other in enumerate(items) if other.id == item.id)
        span = self.name.use.span_of
        if at + 1 < len(items):
            return Edit(Span(span(item).path, span(item).start, span(items[at + 1]).start), "")
        return Edit(Span(span(item).path, span(items[at - 1]).end, span(item).end), "")

    # -- spelling --------------------------------------------------------------------------------------------------

    def spell(self, name: str) -> tuple[str, tuple[Edit, ...]] | None:
        """The spelling of a canonical name at the use, and the import that it needs."""
        owner, _, member = name.rpartition(".")
        bound = self._bound()
        for alias, target in bound.items():
            if owner in (target, self._moved(target)):
                return f"{alias}.{member}", ()
        parent, _, inner = owner.rpartition(".")
        if compat.api(owner) is not None and not compat.known_module(owner):  # a member of a class
            spelled = self.spell(owner)
            return None if spelled is None else (f"{spelled[0]}.{member}", spelled[1])
        if bound.get("jax") == "jax" and parent == "jax":
            return f"jax.{inner}.{member}", ()
        if owner == "jax":
            return None
        taken = set(bound) | set(self.context.module.imported)
        free = [alias for alias in _ALIASES.get(owner, ()) if alias not in taken]
        if not free:
            return None
        statement = f"from {parent} import {inner} as {free[0]}"
        if owner == "jax.numpy":
            statement = f"import jax.numpy as {free[0]}"
        return f"{free[0]}.{member}", (self.context.import_edit(statement, self.context.module),)

    def _moved(self, module: str) -> str | None:
        """What a module is called now, where its import must be rewritten anyway."""
        history = compat.api(module)
        if history is None or all(history.present_in(version) for version in self.context.versions):
            return None
        known = compat.replacement(module)
        return None if known is None else known.new

    def backend_module(self) -> str | None:
        """The one backend's module that the file imports; None for none or several."""
        backends = (f"{PALLAS}.tpu", f"{PALLAS}.triton", f"{PALLAS}.mosaic_gpu")
        imported = {use.name for use in self.name.use.others if use.imported}
        modules = {name for name in (*imported, *map(self._moved, imported)) if name in backends}
        # `from jax.experimental.pallas.triton import CompilerParams` shows it as well.
        modules |= {owner for name in imported if (owner := name.rpartition(".")[0]) in backends}
        return modules.pop() if len(modules) == 1 else None

    def _bound(self) -> dict[str, str]:
        """The meaning of imported names at the use."""
        self.context.module.record_imports()
        found: dict[str, str] = {}
        scope = self.name.use.scope
        while scope is not None:
            for alias, target in scope.names.items():
                if alias not in found and target is not None:
                    found[alias] = target
            scope = scope.parent
        return found

    # -- edits -----------------------------------------------------------------------------------------------------

    def edit(self, node: tree_sitter.Node, text: str) -> Edit:
        return Edit(self.name.use.span_of(node), text)

    def keyword_removed(self, keyword: tree_sitter.Node) -> Edit:
        """Take an argument out, with one comma and the space around it."""
        return argument_removed(keyword, self.name.use)


def argument_removed(argument: tree_sitter.Node, use: Use) -> Edit:
    """Take an argument out of its call, with one comma and the space around it."""
    span = use.span_of
    before, after = argument.prev_sibling, argument.next_sibling
    path = span(argument).path
    if after is not None and after.type == ",":
        following = after.next_sibling
        if following is not None and following.is_named and following.type != "comment":
            return Edit(Span(path, span(argument).start, span(following).start), "")
    if before is not None and before.type == ",":
        return Edit(Span(path, span(before).start, span(argument).end), "")
    if after is not None and after.type == ",":
        end = after.next_sibling
        last = end is not None and end.start_point.row > after.end_point.row
        if last and before is not None and before.type == "comment":
            return Edit(Span(path, span(before).end, span(after).end), "")  # with its line
        return Edit(Span(path, span(argument).start, span(after).end), "")
    return Edit(span(argument), "")


def advice(replacement: ApiReplacement) -> str:
    """What to write instead of an old name or keyword, and why, in words for a finding's help."""
    new, note = replacement.new, replacement.note
    if new is None or replacement.how == "manual":
        return note
    spelled = short(new) if "." in new else new
    if spelled in note or new in note:
        return note
    return f"{'use' if '.' in new else 'pass'} `{spelled}`: {note}"


def short(name: str) -> str:
    """`pl.load` for `jax.experimental.pallas.load`: as kernels usually spell it."""
    owner, _, member = name.rpartition(".")
    for module, (alias, *_) in _ALIASES.items():
        if owner == module:
            return f"{alias}.{member}"
        if (
            owner.startswith(f"{module}.")
            and owner.count(".") == module.count(".") + 1
            and owner.split(".")[-1][:1].isupper()
        ):
            return f"{alias}.{owner.rpartition('.')[2]}.{member}"
    return name.removeprefix("jax.experimental.pallas.") if name.startswith(f"{PALLAS}.") else name


def operand(node: tree_sitter.Node) -> str:
    """The text of an expression where a postfix (`[...]`, `.T`) or an operator follows it."""
    text = text_of(node)
    return text if node.type in _SIMPLE else f"({text})"


def value(node: tree_sitter.Node) -> str:
    """The text of an expression at the end of a statement: in parentheses where it runs over lines."""
    text = text_of(node)
    bracketed = node.type in ("parenthesized_expression", "tuple", "list", "dictionary", "call", "subscript")
    return f"({text})" if "\n" in text and not bracketed else text


def index(node: tree_sitter.Node) -> str:
    """The text of an index between brackets."""
    if node.type != "tuple" or not node.named_children:
        return _index_part(node)
    if any(child.type == "list_splat" for child in node.named_children):
        return text_of(node)  # `ref[*idx, :]` is not Python before 3.11
    parts = [_index_part(child) for child in node.named_children]
    return ", ".join(parts)


def _index_part(node: tree_sitter.Node) -> str:
    text = text_of(node)
    return ":" if text == "slice(None)" else text


def arguments(node: tree_sitter.Node | None) -> Sequence[tree_sitter.Node]:
    """The elements of an argument list."""
    return () if node is None else node.named_children
