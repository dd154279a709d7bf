"""Rewrites of old Pallas calls for which a new name is not enough: `pl.load(ref, idx)` is `ref[idx]`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.checker.api_names import PALLAS, ApiName, api_name, prefixes
from pallas_lint.fixes.migration import Migration, index, operand, value
from pallas_lint.kernels.model.values import Func, options
from pallas_lint.syntax.bindings import text_of
from pallas_lint.syntax.search import holding

if TYPE_CHECKING:
    from collections.abc import Callable

    import tree_sitter

    from pallas_lint.finding import Edit, Fix
    from pallas_lint.syntax.uses import Keyword

    Rewrite = Callable[[Migration], "Fix | None"]

# Keys of the nested parameter dictionaries that jax took up to 0.6.0, and the module of each one's dataclass.
_BACKENDS = {
    "mosaic": f"{PALLAS}.tpu",
    "mosaic_tpu": f"{PALLAS}.tpu",
    "triton": f"{PALLAS}.triton",
    "mosaic_gpu": f"{PALLAS}.mosaic_gpu",
}
# The keys under which jax 0.6.1 to 0.8 took a dataclass each.
BY_BACKEND = frozenset(("mosaic_tpu", "triton", "mosaic_gpu"))
_OLD_PARAMS = {
    "tpu": "TPUCompilerParams",
    "triton": "TritonCompilerParams",
    "mosaic_gpu": "GPUCompilerParams",
}


def _arguments(migration: Migration, *names: str) -> dict[str, tree_sitter.Node] | None:
    """The call's arguments by parameter name; None where they are not all known, or have a name not listed."""
    use = migration.name.use
    if use.call is None or use.splat or len(use.positional) > len(names):
        return None
    given = dict(zip(names, use.positional, strict=False))
    for keyword in use.keywords:
        given[keyword.name] = keyword.node
    return given


def _has_comment(node: tree_sitter.Node) -> bool:
    return any(found.type == "comment" for found in holding(node, b"#"))


def _absent(given: dict[str, tree_sitter.Node], *known: str) -> bool:
    """Whether nothing but `known` is given, `mask=None` and its like aside."""
    return all(name in known or text_of(node) == "None" for name, node in given.items())


def _load(migration: Migration) -> Fix | None:
    given = _arguments(migration, "x_ref_or_view", "idx")
    call = migration.name.use.call
    if given is None or call is None or "x_ref_or_view" not in given or "idx" not in given or _has_comment(call):
        return None
    ref = operand(given["x_ref_or_view"])
    if _absent(given, "x_ref_or_view", "idx"):
        text = f"{ref}[{index(given['idx'])}]"
        return migration.context.safe(f"read `{ref}[...]`", migration.edit(call, text))
    return _backend_call(migration, "load", given, [])


def _store(migration: Migration) -> Fix | None:
    given = _arguments(migration, "x_ref_or_view", "idx", "val")
    call = migration.name.use.call
    if given is None or call is None or not {"x_ref_or_view", "idx", "val"} <= set(given) or _has_comment(call):
        return None
    if _absent(given, "x_ref_or_view", "idx", "val"):
        if call.parent is None or call.parent.type != "expression_statement" or len(call.parent.children) != 1:
            return None
        ref = operand(given["x_ref_or_view"])
        text = f"{ref}[{index(given['idx'])}] = {value(given['val'])}"
        return migration.context.safe(f"assign `{ref}[...]`", migration.edit(call, text))
    return _backend_call(migration, "store", given, ["val"])


def _backend_call(
    migration: Migration, function: str, given: dict[str, tree_sitter.Node], further: list[str]
) -> Fix | None:
    """`plgpu.load(ref.at[idx], mask=...)`: the backend's own function, where the file shows the backend."""
    module = migration.backend_module()
    call = migration.name.use.call
    if module is None or call is None or not migration.available(f"{module}.{function}"):
        return None
    parameters = compat.parameters(f"{module}.{function}", migration.context.versions[-1])
    spelled = migration.spell(f"{module}.{function}")
    positional = {"x_ref_or_view", "idx", *further}
    if parameters is None or spelled is None or not all(parameters.accepts(n) for n in set(given) - positional):
        return None
    ref = f"{operand(given['x_ref_or_view'])}.at[{index(given['idx'])}]"
    parts = [ref, *(text_of(given[name]) for name in further)]
    parts += [f"{name}={text_of(node)}" for name, node in given.items() if name not in positional]
    edit = migration.edit(call, f"{spelled[0]}({', '.join(parts)})")
    return migration.context.unsafe(f"call `{spelled[0]}`", edit, *spelled[1])


def _swap(migration: Migration) -> Fix | None:
    """A swap whose old value is not used is a store."""
    return _store(migration)


def _dot(migration: Migration) -> Fix | None:
    given = _arguments(migration, "a", "b", "trans_a", "trans_b", "allow_tf32", "precision")
    call = migration.name.use.call
    if given is None or call is None or not {"a", "b"} <= set(given) or _has_comment(call):
        return None
    if migration.backend_module() == f"{PALLAS}.triton" and migration.available(f"{PALLAS}.triton.dot"):
        spelled = migration.spell(f"{PALLAS}.triton.dot")
        if spelled is not None:
            edit = migration.edit(migration.name.node, spelled[0])
            return migration.context.safe(f"call `{spelled[0]}`", edit, *spelled[1])
    sides = []
    for side in ("a", "b"):
        flag = text_of(given.get(f"trans_{side}")) or "False"
        if flag not in ("True", "False"):
            return None
        text = operand(given[side])
        sides.append(f"{text}.T" if flag == "True" else text_of(given[side]))
    spelled = migration.spell("jax.numpy.dot")
    accumulate = migration.spell("jax.numpy.float32")
    if spelled is None or accumulate is None:
        return None
    parts = [*sides, f"preferred_element_type={accumulate[0]}"]
    precision = text_of(given.get("precision")) or "None"
    tf32 = text_of(given.get("allow_tf32")) or "None"
    if tf32 != "None":
        level = migration.spell("jax.lax.Precision.HIGH" if tf32 == "True" else "jax.lax.Precision.HIGHEST")
        if tf32 not in ("True", "False") or level is None or level[1]:
            return None
        precision = level[0]
    if precision != "None":
        parts.append(f"precision={precision}")
    edit = migration.edit(call, f"{spelled[0]}({', '.join(parts)})")
    return migration.context.unsafe("use `jnp.dot`", edit, *spelled[1])


def _checks_enabled(migration: Migration) -> Fix | None:
    """`pl.debug_checks_enabled()` is the value of the context manager."""
    call, use = migration.name.use.call, migration.name.use
    spelled = migration.spell(f"{PALLAS}.enable_debug_checks")
    if call is None or use.positional or use.keywords or use.splat or spelled is None:
        return None
    if not migration.available(f"{PALLAS}.enable_debug_checks"):
        return None
    edit = migration.edit(call, f"{spelled[0]}.value")
    return migration.context.safe(f"read `{spelled[0]}.value`", edit, *spelled[1])


def _repeat(migration: Migration) -> Fix | None:
    given = _arguments(migration, "x", "repeats", "axis")
    call = migration.name.use.call
    if given is None or call is None or set(given) != {"x", "repeats", "axis"} or _has_comment(call):
        return None
    spelled = migration.spell("jax.numpy.concatenate")
    if spelled is None:
        return None
    text = f"{spelled[0]}([{text_of(given['x'])}] * {operand(given['repeats'])}, axis={text_of(given['axis'])})"
    return migration.context.unsafe(
        "lay the copies out with `jnp.concatenate`", migration.edit(call, text), *spelled[1]
    )


REWRITES: dict[str, Rewrite] = {
    f"{PALLAS}.load": _load,
    f"{PALLAS}.store": _store,
    f"{PALLAS}.swap": _swap,
    f"{PALLAS}.dot": _dot,
    f"{PALLAS}.debug_checks_enabled": _checks_enabled,
    f"{PALLAS}.tpu.repeat": _repeat,
}


def replacing(migration: Migration) -> Fix | None:
    """The fix of one use of an old name, in the checked versions."""
    if migration.name.use.imported and migration.name.name in REWRITES:
        return _import_and_uses(migration)
    rewrite = REWRITES.get(migration.name.name)
    made = rewrite(migration) if rewrite is not None else None
    replacement = compat.replacement(migration.name.name, version=migration.context.versions[-1])
    if made is None:
        return None if replacement is None else migration.replaced(replacement)
    return _without_alias(migration, made) or made


def _without_alias(migration: Migration, made: Fix) -> Fix | None:
    """A fix of all uses of the alias that also removes its import; None where a use has to stay."""
    use = migration.name.use
    alias = use.alias
    if not all(any(prefix in REWRITES for prefix in prefixes(name)) for name in use.names_under_alias):
        return None
    imports = [other for other in use.others if other.imported and other.binds == alias]
    others = [other for other in use.others if not other.imported and other.alias == alias]
    if len(imports) != 1 or alias not in migration.context.module.imported or alias == use.spelled:
        return None
    fixes = []
    for other in others:
        name = api_name(other)
        rewrite = None if name is None else REWRITES.get(name.name)
        fix = rewrite(Migration(name, migration.context)) if name is not None and rewrite is not None else None
        if fix is None or any(re.search(rf"\b{alias}\b", edit.text) for edit in fix.edits):
            return None
        fixes.append(fix)
    edits: list[Edit] = []
    for fix in fixes:
        edits += [edit for edit in fix.edits if edit not in edits]
    removed = migration.statement_removed(imports[0])
    if removed is None or _overlap(edits):
        return None
    safe = all(fix.applicability == "safe" for fix in fixes)
    return (migration.context.safe if safe else migration.context.unsafe)(made.title, *edits, removed)


def _overlap(edits: list[Edit]) -> bool:
    """Whether one edit is inside another: the calls of rewritten functions are nested."""
    spans = [edit.span for edit in edits]
    return any(a != b and a.start <= b.start and b.end <= a.end for a in spans for b in spans)


def _import_and_uses(migration: Migration) -> Fix | None:
    """`from ... import load`: every use is rewritten, and the name is no longer imported."""
    use = migration.name.use
    bound = use.binds
    if use.statement is None or bound is None or use.statement.type != "import_from_statement":
        return None
    edits: list[Edit] = []
    safe = True
    for other in use.others:
        if other.imported or other.spelled.split(".", 1)[0] != bound:
            continue
        if other.spelled != bound or other.name != use.name or other.call is None:
            return None
        name = ApiName(other, use.name, migration.name.history, other.node, other.spelled)
        made = REWRITES[use.name](Migration(name, migration.context))
        if made is None:
            return None
        safe &= made.applicability == "safe"
        edits += [edit for edit in made.edits if edit not in edits]
    removed = migration.statement_removed(use)
    if removed is None or not edits or _overlap(edits):
        return None
    make = migration.context.safe if safe else migration.context.unsafe
    return make("rewrite every use, and drop the import", *edits, removed)


# -- keywords --------------------------------------------------------------------------------------------------------


def _params_class(migration: Migration, module: str) -> str | None:
    """The parameters dataclass of a backend that every checked version has."""
    old = f"{module}.{_OLD_PARAMS[module.rpartition('.')[2]]}"
    return next((name for name in (f"{module}.CompilerParams", old) if migration.available(name)), None)


def _backend(migration: Migration, keyword: Keyword) -> Fix | None:
    """`backend="triton"`: the class of the parameters names the backend."""
    use = migration.name.use
    argument = keyword.node.parent
    if argument is None:
        return None
    given = use.keyword("compiler_params")
    wanted = _BACKENDS.get(keyword.text.strip("\"'"))
    removed = migration.keyword_removed(argument)
    if keyword.text == "None":
        return migration.context.safe("drop `backend=None`", removed)
    if wanted is None or (use.splat and given is None):
        return None
    if given is not None:
        return migration.context.unsafe("drop `backend`: the parameters name it", removed)
    name = _params_class(migration, wanted)
    spelled = None if name is None else migration.spell(name)
    if spelled is None:
        return None
    edit = migration.edit(argument, f"compiler_params={spelled[0]}()")
    return migration.context.safe(f"write `compiler_params={spelled[0]}()`", edit, *spelled[1])


def _triton_number(migration: Migration, keyword: Keyword) -> Fix | None:
    """`num_warps=4, num_stages=2`: fields of the Triton parameters."""
    use = migration.name.use
    if use.keyword("compiler_params") is not None or use.keyword("backend") is not None or use.splat:
        return None
    name = _params_class(migration, f"{PALLAS}.triton")
    spelled = None if name is None else migration.spell(name)
    moved = [found for found in use.keywords if found.name in ("num_warps", "num_stages")]
    if spelled is None or keyword.node.parent is None:
        return None
    fields = ", ".join(f"{found.name}={found.text}" for found in moved)
    edits = [migration.edit(keyword.node.parent, f"compiler_params={spelled[0]}({fields})")]
    edits.extend(
        migration.keyword_removed(other.node.parent)
        for other in moved
        if other.name != keyword.name and other.node.parent is not None
    )
    return migration.context.safe(f"write `compiler_params={spelled[0]}(...)`", *edits, *spelled[1])


KEYWORDS: dict[tuple[str, str], Callable[[Migration, Keyword], Fix | None]] = {
    (f"{PALLAS}.pallas_call", "backend"): _backend,
    (f"{PALLAS}.pallas_call", "num_warps"): _triton_number,
    (f"{PALLAS}.pallas_call", "num_stages"): _triton_number,
}


# -- forms of arguments ----------------------------------------------------------------------------------------------


def dictionary_params(migration: Migration) -> tuple[tree_sitter.Node, Fix | None, str, tuple[int, ...]] | None:
    """`compiler_params=dict(mosaic=dict(...))`: the node, its rewriting, the dataclass to use, and gone since when.

    Up to jax 0.8 an empty dictionary is taken; one of plain fields never reached a backend.
    """
    keyword = migration.name.use.keyword("compiler_params")
    entries = None if keyword is None else _entries(keyword.node)
    if keyword is None or entries is None:
        return None
    if not entries:
        argument = keyword.node.parent
        fix = None
        if argument is not None and argument.type == "keyword_argument":
            fix = migration.context.safe("leave it out", migration.keyword_removed(argument))
        return keyword.node, fix, "CompilerParams", (0, 9)
    key, node = entries[0]
    inner = _entries(node)
    if inner is None and all(name in BY_BACKEND and _entries(held) is None for name, held in entries):
        fix = None  # the dataclasses by backend, taken up to jax 0.8
        if len(entries) == 1 and not _has_comment(keyword.node):
            fix = migration.context.safe("pass the dataclass itself", migration.edit(keyword.node, text_of(node)))
        return keyword.node, fix, f"{_BACKENDS[key]}.CompilerParams", (0, 9)
    module = _BACKENDS.get(key) if inner is not None else None
    if module is None or len(entries) > 1:
        inner, module = entries, _module_of_fields(migration, entries)
    if module is None:
        return keyword.node, None, "CompilerParams", (0, 6, 1)
    fix = None if inner is None or _has_comment(keyword.node) else _as_dataclass(migration, keyword.node, module, inner)
    return keyword.node, fix, f"{module}.CompilerParams", (0, 6, 1)


def _module_of_fields(migration: Migration, entries: list[tuple[str, tree_sitter.Node]]) -> str | None:
    """The one backend whose parameters have all these fields; of several the one that the file imports."""
    fitting = [module for module in dict.fromkeys(_BACKENDS.values()) if _all_have(migration, module, entries)]
    imported = migration.backend_module()
    if imported in fitting:
        return imported
    return fitting[0] if len(fitting) == 1 else None


def _all_have(migration: Migration, module: str, entries: list[tuple[str, tree_sitter.Node]]) -> bool:
    name = _params_class(migration, module)
    known = [] if name is None else [compat.parameters(name, version) for version in migration.context.versions]
    return bool(known) and all(p is not None and all(p.accepts(field) for field, _ in entries) for p in known)


def _as_dataclass(
    migration: Migration, node: tree_sitter.Node, module: str, entries: list[tuple[str, tree_sitter.Node]]
) -> Fix | None:
    name = _params_class(migration, module)
    spelled = None if name is None else migration.spell(name)
    if spelled is None or not _all_have(migration, module, entries):
        return None
    fields = ", ".join(f"{field}={text_of(held)}" for field, held in entries)
    edit = migration.edit(node, f"{spelled[0]}({fields})")
    return migration.context.safe(f"write `{spelled[0]}(...)`", edit, *spelled[1])


def _entries(node: tree_sitter.Node) -> list[tuple[str, tree_sitter.Node]] | None:
    """Keys and values of `dict(a=1)` or `{"a": 1}`; None for anything else."""
    found: list[tuple[str, tree_sitter.Node]] = []
    if node.type == "call" and text_of(node.child_by_field_name("function")) == "dict":
        listed = node.child_by_field_name("arguments")
        children = listed.named_children if listed is not None else []
        key_field, kind = "name", "keyword_argument"
    elif node.type == "dictionary":
        children, key_field, kind = node.named_children, "key", "pair"
    else:
        return None
    for child in children:
        key, held = child.child_by_field_name(key_field), child.child_by_field_name("value")
        if child.type != kind or key is None or held is None:
            return None
        if kind == "pair" and key.type != "string":
            return None
        found.append((text_of(key).strip("\"'"), held))
    return found


def loaded_index(migration: Migration) -> tuple[tree_sitter.Node, Fix | None] | None:
    """The index of `plgpu.load(ref, idx)`, which goes into the ref, and its rewriting."""
    use = migration.name.use
    keyword = use.keyword("idx")
    place = keyword.node if keyword is not None else use.positional[1] if len(use.positional) > 1 else None
    if use.call is None or place is None:
        return None
    fix = None
    if use.positional and not use.splat:
        ref, argument = use.positional[0], place if keyword is None else place.parent
        if argument is not None:
            edits = (
                migration.edit(ref, f"{operand(ref)}.at[{index(place)}]"),
                migration.keyword_removed(argument),
            )
            fix = migration.context.safe("load `ref.at[idx]`", *edits)
    return place, fix


def block_spec_swapped(migration: Migration) -> tuple[tree_sitter.Node, Fix | None] | None:
    """A `BlockSpec` whose first argument certainly is a function: the node, and the arguments swapped."""
    use = migration.name.use
    if use.call is None or not use.positional:
        return None
    first = use.positional[0]
    if first.type != "lambda" and not _is_function(migration, first):
        return None
    if use.keyword("block_shape") is not None and len(use.positional) == 1 and use.keyword("index_map") is None:
        edit = migration.edit(first, f"index_map={text_of(first)}")
        return first, migration.context.safe("pass the index map by name", edit)
    if len(use.positional) != 2 or use.splat or use.keyword("index_map") is not None:
        return first, None
    second = use.positional[1]
    edits = (migration.edit(first, text_of(second)), migration.edit(second, text_of(first)))
    return first, migration.context.safe("swap block shape and index map", *edits)


def _is_function(migration: Migration, node: tree_sitter.Node) -> bool:
    """Whether a name is certainly a function where the spec is made."""
    call = migration.name.use.call
    if node.type != "identifier" or call is None:
        return False
    place = migration.name.use.span_of(call).start
    made = [spec for spec in migration.context.analysis.outcome.effects.specs_made if spec.site.span.start == place]
    return bool(made) and all(
        spec.args and all(isinstance(option, Func) for option in options(spec.args[0])) for spec in made
    )
