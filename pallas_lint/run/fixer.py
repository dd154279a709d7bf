"""Fixes: chosen, merged, applied in rounds, checked by linting again, and only then written."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.finding import Finding, Fix, LintError
from pallas_lint.fixes.idle_imports import without_idle_imports
from pallas_lint.records import define, evolve, field, frozen
from pallas_lint.run.project import bounds_of
from pallas_lint.text import files
from pallas_lint.text.source import Replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pallas_lint.text.source import Source

MAX_ROUNDS = 10
SYNTAX_ERROR = "PAL001"


@frozen
class Plan:
    """What one round does: the fixes taken and the replacements they come to, per path."""

    taken: tuple[tuple[Finding, Fix], ...]
    replacements: Mapping[str, tuple[Replacement, ...]]


@define
class FixResult:
    """What fixing came to. Nothing is written yet."""

    sources: dict[str, Source]  # every source, with the changed text where there is one
    changed: dict[str, tuple[Source, Source]]  # path -> before, after
    findings: list[Finding]  # what is left
    fixed: Counter[str] = field(factory=Counter)  # code -> fixes applied
    groups: list[frozenset[str]] = field(factory=list)  # paths that must be written together
    problems: list[LintError] = field(factory=list)  # fixes refused


def choose(finding: Finding, *, unsafe: bool) -> Fix | None:
    """The fix to apply for a finding: its first safe one, else with `unsafe` its first."""
    safe = next((fix for fix in finding.fixes if fix.applicability == "safe"), None)
    return safe or (finding.fixes[0] if unsafe and finding.fixes else None)


def plan(
    candidates: Iterable[tuple[Finding, Fix]],
    sources: Mapping[str, Source],
    *,
    single: frozenset[str] = frozenset(),
) -> Plan:
    """The fixes that go together, first come first served: each whole or not at all.

    A fix is left for a later round where one of its edits overlaps one taken before; equal edits (two
    findings that add the same import) merge. A path in `single` gets one fix only. A fix of an unknown path
    is left out.
    """
    taken: list[tuple[Finding, Fix]] = []
    by_path: dict[str, set[Replacement]] = {}
    for finding, fix in candidates:
        wanted: dict[str, set[Replacement]] = {}
        if not fix.edits or any(edit.span.path not in sources for edit in fix.edits):
            continue
        for edit in fix.edits:
            source = sources[edit.span.path]
            start, end = source.offset(edit.span.start), source.offset(edit.span.end)
            text = with_newlines(edit.text, source.text, start)
            wanted.setdefault(edit.span.path, set()).add(Replacement(start, max(start, end), text))
        if any(path in single and by_path.get(path) for path in wanted):
            continue
        if all(_fits(replacements, by_path.get(path, set())) for path, replacements in wanted.items()):
            taken.append((finding, fix))
            for path, replacements in wanted.items():
                by_path.setdefault(path, set()).update(replacements)
    return Plan(tuple(taken), {path: tuple(sorted(found)) for path, found in by_path.items()})


def _fits(wanted: set[Replacement], present: set[Replacement]) -> bool:
    """Whether all of `wanted` can be applied with each other and with `present`."""
    if _collide(sorted(wanted)):
        return False
    return not _collide(sorted(wanted | present))


def _collide(ordered: Sequence[Replacement]) -> bool:
    """Whether two neighbours overlap, or start at one place so that their order would be a guess."""
    return any(second.start < first.end or second.start == first.start for first, second in itertools.pairwise(ordered))


def with_newlines(inserted: str, text: str, offset: int) -> str:
    """`inserted` with the line end and indentation that `text` has at `offset`: rules write `\\n` and spaces."""
    if "\n" not in inserted:
        return inserted
    if re.search(r"^\t", text, re.MULTILINE):
        inserted = _with_tabs(inserted, text, offset)
    if "\r" not in text:
        return inserted
    match = re.compile(r"\r\n|\n|\r").search(text, offset)
    found = match[0] if match else next(iter(re.findall(r"\r\n|\n|\r", text)[-1:]), "\n")
    return inserted.replace("\r\n", "\n").replace("\n", found)


def _with_tabs(inserted: str, text: str, offset: int) -> str:
    """`inserted` indented like the line at `offset`, which has a tab where the rule counted one column."""
    line = re.compile(r"[ \t]*").match(text, max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1)
    base = line[0] if line is not None else ""

    def deepened(lead: re.Match[str]) -> str:
        spaces = len(lead[0])
        if "\t" in lead[0] or spaces < len(base):
            return lead[0].replace("    ", "\t")
        deeper = spaces - len(base)  # columns: four a step, or one where the step was measured in this text
        return base + "\t" * (deeper // 4 or deeper)

    return re.sub(r"(?<=\n)[\t ]+(?=\S|\Z)", deepened, inserted)


def fix(
    sources: Mapping[str, Source],
    findings: Sequence[Finding],
    relint: Callable[[Mapping[str, Source], frozenset[str]], list[Finding]],
    *,
    unsafe: bool = False,
    difference: Callable[[Source, Source], str | None] | None = None,
) -> FixResult:
    """Apply what can be fixed until nothing is left to fix.

    `difference(before, after)` may return why a change of a source is wrong although it parses.

    `relint(sources, changed)` gives all findings for `sources`, of which those at the paths `changed` differ
    from the last call. A round after which a file that parsed no longer does is undone; its fixes are then
    tried one by one, and those that break the file (or are wrong) are refused and reported.
    """
    outcome = FixResult(dict(sources), {}, list(findings))
    refused: set[tuple[object, ...]] = set()
    single: frozenset[str] = frozenset()
    rounds, limit = 0, MAX_ROUNDS
    while True:
        candidates = [
            (finding, chosen)
            for finding in outcome.findings
            if (chosen := choose(finding, unsafe=unsafe)) is not None and _key(finding, chosen) not in refused
        ]
        planned = plan(candidates, outcome.sources, single=single)
        if not planned.taken:
            break
        if rounds == limit:
            codes = ", ".join(sorted({finding.code for finding, _ in planned.taken}))
            path = planned.taken[0][0].span.path
            outcome.problems.append(
                LintError(path, f"fixes did not settle after {limit} rounds ({codes}); left as they are")
            )
            break
        rounds += 1
        attempt = _attempt(outcome.sources, planned)
        if not attempt:
            # Every fix taken leaves its text as it is: applying it again would go on for ever.
            refused |= {_key(finding, chosen) for finding, chosen in planned.taken}
            continue
        after = relint({**outcome.sources, **attempt}, frozenset(attempt))
        reasons = _reasons_against(attempt, outcome, after, difference)
        if reasons:
            broken = frozenset(reasons)
            guilty = [(f, c) for f, c in planned.taken if any(edit.span.path in broken for edit in c.edits)]
            if len(guilty) == 1 or broken <= single:
                refused |= {_key(finding, chosen) for finding, chosen in guilty}
                outcome.problems += [_refusal(finding, chosen, reasons) for finding, chosen in guilty]
            single |= broken
            limit += len(guilty)
            relint(outcome.sources, frozenset(attempt))  # the callback's own state goes back too
            continue
        _commit(outcome, planned, attempt, after)
    _tidy(outcome, relint)
    return outcome


def _reasons_against(
    attempt: Mapping[str, Source],
    outcome: FixResult,
    after: Iterable[Finding],
    difference: Callable[[Source, Source], str | None] | None,
) -> dict[str, str]:
    """Why changes must not stay, by path: the file no longer parses, or `difference` has a reason."""
    broken = _broken(after) - _broken(outcome.findings)
    reasons: dict[str, str] = {}
    for path, source in attempt.items():
        if path in broken:
            reasons[path] = "it would break the file"
        elif difference is not None and (reason := difference(outcome.sources[path], source)) is not None:
            reasons[path] = reason
    return reasons


def _tidy(outcome: FixResult, relint: Callable[[Mapping[str, Source], frozenset[str]], list[Finding]]) -> None:
    """Take out the imports that were used before the fixes and are not any more."""
    tidied = {}
    for path, (before, after) in outcome.changed.items():
        # What does not parse may use them too.
        kept = Path(path).name == "__init__.py" or after.problems
        text = after.text if kept else without_idle_imports(before.text, after.text)
        if text != after.text:
            tidied[path] = after.edited(_line_changes(after.text, text))
    if tidied:
        findings = relint({**outcome.sources, **tidied}, frozenset(tidied))
        _commit(outcome, Plan((), {}), tidied, findings)


def _line_changes(before: str, after: str) -> Iterator[Replacement]:
    """The lines that differ, as replacements in `before`."""
    import difflib

    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, old))]
    for kind, first, last, from_line, to_line in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield Replacement(starts[first], starts[last], "".join(new[from_line:to_line]))


def _attempt(sources: Mapping[str, Source], planned: Plan) -> dict[str, Source]:
    """The sources that the plan changes."""
    changed: dict[str, Source] = {}
    for path, replacements in planned.replacements.items():
        before = sources[path]
        after = before.edited(replacements)
        if after.text != before.text:
            changed[path] = after
    return changed


def _commit(outcome: FixResult, planned: Plan, attempt: Mapping[str, Source], after: list[Finding]) -> None:
    for path, source in attempt.items():
        first = outcome.changed[path][0] if path in outcome.changed else outcome.sources[path]
        outcome.changed[path] = (first, source)
        if first.text == source.text:
            del outcome.changed[path]
    outcome.sources.update(attempt)
    outcome.findings = list(after)
    outcome.fixed.update(finding.code for finding, _ in planned.taken)
    for _, chosen in planned.taken:
        _join(outcome.groups, frozenset(edit.span.path for edit in chosen.edits))


def _join(groups: list[frozenset[str]], paths: frozenset[str]) -> None:
    """Add `paths` as a group, merged with those that share a path with it."""
    touching = [group for group in groups if group & paths]
    groups[:] = [group for group in groups if not group & paths]
    groups.append(paths.union(*touching))


def _broken(findings: Iterable[Finding]) -> set[str]:
    return {finding.span.path for finding in findings if finding.code == SYNTAX_ERROR}


def _key(finding: Finding, chosen: Fix) -> tuple[object, ...]:
    """What makes a fix the same one in the next round, where lines may have moved."""
    edits = tuple((edit.span.path, edit.text, edit.span.start.column) for edit in chosen.edits)
    return (finding.code, finding.span.path, finding.message, finding.span.start.column, edits)


def _refusal(finding: Finding, chosen: Fix, reasons: Mapping[str, str]) -> LintError:
    reason = next(reasons[edit.span.path] for edit in chosen.edits if edit.span.path in reasons)
    return LintError(
        finding.span.path,
        f"the fix of {finding.code} ({chosen.title}) was not applied: {reason}",
        finding.span.start.line,
    )


def unified_diff(before: Source, after: Source, shown: Callable[[str], str] = str) -> Iterator[str]:
    """The change as a unified diff that `patch` takes, line by line; of a notebook, one for each cell.

    `shown` makes the names of the files safe to print; their text is what it is.
    """
    import difflib

    for (name, old), (_, new) in zip(before.parts, after.parts, strict=True):
        # Cut at \n only: str.splitlines also cuts at form feeds and other characters that end no line for patch.
        lines, changed = (re.findall(r"[^\n]+\n?|\n", text) for text in (old, new))
        for line in difflib.unified_diff(lines, changed, shown(name), shown(name)):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def write(
    changed: Mapping[str, tuple[Source, Source]], groups: Sequence[frozenset[str]], cwd: Path
) -> tuple[set[str], list[LintError]]:
    """Write the changed sources: (paths written, what went wrong).

    Files of one group are all written or none.
    """
    written: set[str] = set()
    errors: list[LintError] = []
    grouped = [sorted(group & set(changed)) for group in groups]
    rest = [[path] for path in changed if not any(path in group for group in grouped)]
    for paths in (group for group in (*grouped, *rest) if group):
        failed = _write_group({path: changed[path] for path in paths}, cwd)
        if failed is None:
            written.update(paths)
        else:
            errors.append(failed)
            errors += [
                evolve(failed, path=path, message=f"not written, since {failed.path} could not be")
                for path in paths
                if path != failed.path
            ]
    return written, errors


def _write_group(changed: Mapping[str, tuple[Source, Source]], cwd: Path) -> LintError | None:
    """Write all of these files or none; the error if it is none."""
    drafts: list[files.Draft] = []
    done: list[tuple[files.Draft, bytes]] = []  # with the bytes before
    shown = ""
    try:
        for shown, (before, after) in changed.items():
            # A source file may be a link, and stays one; but it is not written outside of the project.
            inside = Path(os.path.realpath(bounds_of(cwd / shown, cwd)))
            real = files.linked_file(cwd / shown, inside)
            drafts.append(files.draft(real, after.data, inside))
            if files.read(real) != before.data:
                raise files.RefusedFile("it was changed by someone else meanwhile")
        for shown, draft in zip(changed, drafts, strict=True):
            draft.put()
            done.append((draft, changed[shown][0].data))
    except (OSError, UnicodeEncodeError) as error:
        for draft, old in done:
            files.write(draft.file, old, None)
        return LintError(shown, f"cannot write the fixed file: {_reason(error)}")
    finally:
        for draft in drafts:
            draft.drop()
    return None


def _reason(error: OSError | UnicodeEncodeError) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"its encoding {error.encoding} cannot hold {error.object[error.start : error.end]!r}"
    return error.strerror or str(error)
