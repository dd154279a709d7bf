"""Completion inside calls of Pallas functions: parameters of the project's jax, and what can be given for some."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.views.open_calls import assigned, items, surroundings, word_at_end
from pallas_lint.server.views.rule_completion import word_before

from pallas_lint import compat
from pallas_lint.checker.backend_failures import up_to
from pallas_lint.kernels.launches.dimension_semantics import WORDS
from pallas_lint.records import frozen
from pallas_lint.syntax.outline import outline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.server.views.open_calls import Argument, Bracket, Surroundings
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Position
    from pallas_lint.text.source import Source

_PALLAS = "jax.experimental.pallas"
# The default meaning of these names where no import at the top of the file binds them: it may be in a function.
_USUAL = {"pl": _PALLAS, "pltpu": f"{_PALLAS}.tpu"}
_SPACES = ("VMEM", "SMEM", "ANY", "HBM", "HOST", "CMEM", "VMEM_SHARED", "GMEM", "TMEM", "SEMAPHORE")
_SEMAPHORES = ("DMA", "REGULAR", "BARRIER")
_SHAPED = ("VMEM", "SMEM", "HBM", "VMEM_SHARED", "GMEM", "TMEM")  # are called with a shape and a dtype
_AXES = "ijklmn"
_MAX_AXES = len(_AXES)
_SCRATCH = ("scratch_shapes", "scratch_types")


def completions(
    source: Source, cursor: Position, version: str, codec: PositionCodec, *, snippets: bool
) -> list[lsp.CompletionItem]:
    """What can stand at the cursor in a call of a Pallas function, for one version of jax.

    `snippets`: whether the client can put its cursor into what is inserted.
    """
    around = surroundings(source, cursor)
    if around.in_comment or not around.around:
        return []
    place = _Place.of(source, around, version)
    if place is None:
        return []
    word = around.quoted if around.quoted is not None else word_at_end(around.before, ".")
    where = word_before(source, cursor, word, codec)
    return [each.item(number, where, snippets=snippets) for number, each in enumerate(_offers(place, word))]


def signature(source: Source, cursor: Position, version: str) -> lsp.SignatureHelp | None:
    """The parameters that a Pallas function takes in this jax, and the one at hand; None outside of such a call."""
    around = surroundings(source, cursor)
    place = _Place.of(source, around, version) if around.around and not around.in_comment else None
    known = compat.parameters(place.function, version) if place is not None else None
    if place is None or known is None:
        return None
    shown = [f"{name}=…" if name in known.keyword_only else name for name in known.names]
    label = f"{place.function.rpartition('.')[2]}({', '.join(shown)})"
    at = known.names.index(place.parameter) if place.parameter in known.names else None
    parameters = [lsp.ParameterInformation(label=each) for each in shown]
    described = lsp.SignatureInformation(label=label, documentation=f"jax {version}", parameters=parameters)
    return lsp.SignatureHelp(signatures=[described], active_signature=0, active_parameter=at)


@frozen
class _Offer:
    """Something that can stand at the cursor. `snippet` has places to go on typing."""

    text: str
    kind: lsp.CompletionItemKind
    detail: str
    snippet: str | None = None

    def item(self, number: int, where: lsp.Range, *, snippets: bool) -> lsp.CompletionItem:
        snippet = self.snippet if snippets else None
        return lsp.CompletionItem(
            label=self.text,
            kind=self.kind,
            detail=self.detail,
            sort_text=f"{number:03}",
            filter_text=self.text,
            insert_text_format=lsp.InsertTextFormat.Snippet if snippet is not None else None,
            text_edit=lsp.TextEdit(range=where, new_text=self.text if snippet is None else snippet),
        )


@frozen
class _Place:
    """A place in the call of a Pallas function: `parameter` is what is being given; None for the next argument."""

    function: str  # canonical
    parameter: str | None
    arguments: Sequence[Argument]  # those before, and that at the cursor
    inside: Bracket | None  # the tuple or list in the argument that the cursor stands in
    around: Surroundings
    aliases: dict[str, str]  # of modules and members of Pallas, as the file names them
    version: str

    @classmethod
    def of(cls, source: Source, around: Surroundings, version: str) -> _Place | None:
        """The place at a cursor; None where it is in no call of Pallas, or deeper than in a tuple of its arguments."""
        *outer, innermost = around.around
        call, inside = innermost, None
        if innermost.callee is None and outer and outer[-1].callee is not None:
            call, inside = outer[-1], innermost
        if call.callee is None:
            return None
        usual = {alias: module for alias, module in _USUAL.items() if re.search(rf"\b{alias}\b", source.text)}
        aliases = {**usual, **{each.name: each.target for _, each in outline(source).imports}}
        head, _, rest = call.callee.partition(".")
        function = f"{aliases.get(head, head)}.{rest}" if rest else aliases.get(head, head)
        if not function.startswith(_PALLAS):
            return None
        arguments = call.arguments(around.before)
        return cls(function, _parameter(function, arguments, version), arguments, inside, around, aliases, version)

    def named(self, module: str, name: str) -> str | None:
        """How the file names a member of a module of Pallas; None where it does not import that module."""
        alias = next((alias for alias, target in self.aliases.items() if target == module), None)
        return f"{alias}.{name}" if alias is not None and name in compat.names_in(module, self.version) else None

    @property
    def rank(self) -> int | None:
        """The rank of the grid that the call belongs to: of a call around it, else of all in the statement."""
        grids = [
            (bracket, rank)
            for bracket in self.around.brackets
            for argument in bracket.arguments(self.around.text)
            if argument.keyword == "grid" and (rank := self._rank_of(argument.text)) is not None
        ]
        ranks = {rank for bracket, rank in grids if bracket.holds(self.around.cursor)} or {rank for _, rank in grids}
        return ranks.pop() if len(ranks) == 1 else None

    def _rank_of(self, grid: str) -> int | None:
        """The rank of a grid as it is written: a tuple, the name of one, or a number."""
        name = grid.strip()
        if name.isdecimal():
            return 1
        written = [items(each) for each in (name, *(assigned(self.around.text, name) if name.isidentifier() else ()))]
        ranks = {len(axes) for axes in written if axes is not None and not any(each.startswith("*") for each in axes)}
        return ranks.pop() if len(ranks) == 1 else None

    @property
    def prefetched(self) -> int:
        """How many operands are prefetched, which index maps get behind the indices of the grid."""
        given = {
            argument.text.strip()
            for bracket in self.around.brackets
            for argument in bracket.arguments(self.around.text)
            if argument.keyword == "num_scalar_prefetch"
        }
        number = given.pop() if len(given) == 1 else ""
        return int(number) if number.isdecimal() else 0


def _parameter(function: str, arguments: Sequence[Argument], version: str) -> str | None:
    """The parameter that the last argument is for; None where it has no name yet and stands for none by its place."""
    last = arguments[-1]
    if last.keyword is not None:
        return last.keyword
    known = compat.parameters(function, version)
    at = len(arguments) - 1
    if known is None or any(each.keyword for each in arguments) or at >= len(known.positional):
        return None
    return known.positional[at]


def _offers(place: _Place, word: str) -> Iterator[_Offer]:
    """What can stand there, the likeliest first."""
    quoted = place.around.quoted is not None
    if place.parameter == "dimension_semantics":
        yield from _semantics(place, quoted=quoted)
    if quoted:
        return
    if place.parameter == "memory_space":
        yield from _spaces(place)
    elif place.parameter in _SCRATCH and place.inside is not None:
        yield from _scratch(place)
    elif place.parameter == "index_map" and place.inside is None:
        yield from _index_maps(place)
    last = place.arguments[-1]
    if place.inside is None and last.keyword is None and last.text.strip() == word and "." not in word:
        yield from _parameters(place)


def _parameters(place: _Place) -> Iterator[_Offer]:
    known = compat.parameters(place.function, place.version)
    if known is None:
        return
    before = place.arguments[:-1]
    by_name = {each.keyword for each in before}
    by_place = known.positional[: sum(each.keyword is None for each in before)]
    left = [
        name
        for name in known.names
        if name not in by_name and name not in by_place and name not in known.positional_only
    ]
    for name in sorted(left, key=lambda name: name not in known.required):
        about = "required" if name in known.required else "parameter"
        yield _Offer(f"{name}=", lsp.CompletionItemKind.Field, f"{about}, jax {place.version}")


def _semantics(place: _Place, *, quoted: bool) -> Iterator[_Offer]:
    kind = lsp.CompletionItemKind.EnumMember
    words = [word for word, last in WORDS.items() if last is None or not up_to(last, place.version)]
    if place.inside is None:
        if not quoted and place.rank is not None:
            for word in words[:2]:
                listed = ", ".join([f'"{word}"'] * place.rank)
                yield _Offer(f"({listed}{',' * (place.rank == 1)})", kind, f"a grid of rank {place.rank}")
        return
    for word in words:
        yield _Offer(word if quoted else f'"{word}"', kind, "dimension semantics")
    for word in () if quoted else words:
        member = place.named(f"{_PALLAS}.tpu", word.upper())
        if member is not None:
            yield _Offer(member, kind, "dimension semantics")


def _spaces(place: _Place) -> Iterator[_Offer]:
    for module in dict.fromkeys(place.aliases.values()):
        for name in _SPACES:
            named = place.named(module, name) if module.startswith(_PALLAS) else None
            if named is not None:
                yield _Offer(named, lsp.CompletionItemKind.EnumMember, "memory space")


def _scratch(place: _Place) -> Iterator[_Offer]:
    for each in _spaces(place):
        if each.text.rpartition(".")[2] in _SHAPED:
            snippet = f"{each.text}((${{1:8}}, ${{2:128}}), ${{3:jnp.float32}})"
            yield _Offer(each.text, lsp.CompletionItemKind.Constructor, "scratch buffer", snippet)
    semaphores = place.named(f"{_PALLAS}.tpu", "SemaphoreType")
    for name in _SEMAPHORES if semaphores is not None else ():
        if name in compat.names_in(f"{_PALLAS}.tpu.SemaphoreType", place.version):
            yield _Offer(f"{semaphores}.{name}", lsp.CompletionItemKind.EnumMember, "semaphore")


def _index_maps(place: _Place) -> Iterator[_Offer]:
    """A function of as many indices as the grid has axes, with as many results as the block has dimensions."""
    rank, block = place.rank, items(place.arguments[0].text)
    if rank is None or rank > _MAX_AXES:
        return
    axes = [*_AXES[:rank]]
    prefetched = [f"s{number}_ref" for number in range(place.prefetched)]
    results = [*axes, *["0"] * len(block or ())][: len(block) if block else rank]
    comma = "," if len(results) == 1 else ""
    head = f"lambda {', '.join([*axes, *prefetched])}:" if rank or prefetched else "lambda:"
    stops = ", ".join(f"${{{at}:{result}}}" for at, result in enumerate(results, 1))
    yield _Offer(
        f"{head} ({', '.join(results)}{comma})",
        lsp.CompletionItemKind.Function,
        f"index map for a grid of rank {rank}",
        f"{head} ({stops}{comma})",
    )
