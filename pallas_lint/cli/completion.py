"""`pallas-lint completion SHELL`: a script with which a shell completes commands, options and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.cli import terminal
from pallas_lint.cli.exit import OK
from pallas_lint.records import frozen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")


@frozen
class _Option:
    """One option: its spellings, what it is for, and what may follow it. None for `values`: it takes none."""

    spellings: tuple[str, ...]
    help: str
    values: tuple[str, ...] | None
    files: bool = False


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    terminal.write(f"{line}\n" for line in write(dict(_commands())))
    return OK


def _commands() -> Iterator[tuple[str, list[_Option]]]:
    """The options of each command; those of linting under the empty name."""
    from pallas_lint.cli.parser import parsers

    for command, parser in parsers().items():
        yield command, [_option(action) for action in parser._actions if action.option_strings]


def _option(action: argparse.Action) -> _Option:
    text = (action.help or "").replace("%%", "%")
    if action.nargs == 0:
        return _Option(tuple(action.option_strings), text, None)
    files = (action.metavar or "") in ("FILE", "INTERPRETER")
    values = tuple(map(str, action.choices)) if action.choices else _values(action.dest)
    return _Option(tuple(action.option_strings), text, values, files)


def _values(destination: str) -> tuple[str, ...]:
    """The choices of options for which argparse has none."""
    if destination == "target":
        from pallas_lint.config.targets import all_targets_and_cores

        return all_targets_and_cores()
    if destination in ("stage", "skip"):
        from pallas_lint.probe.session import COST, STAGES

        return (*STAGES, COST)
    if destination == "output_format":
        from pallas_lint.report import FORMATS

        return FORMATS
    if destination in ("select", "extend_select", "ignore"):
        return _selectors()
    return ()


def _selectors() -> tuple[str, ...]:
    from pallas_lint.ruleset.registry import all_rules

    return tuple(word for entry in all_rules().values() for word in (entry.code, entry.name))


def _arguments(command: str) -> tuple[str, ...]:
    """What a command is given besides options, where that is no file."""
    if command == "facts":
        return _values("target")
    return {"rule": _selectors(), "completion": SHELLS}.get(command, ())


_ON_FILES = ("", "probe", "config", "advisories")  # commands that are given files or folders


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _bash(commands: dict[str, list[_Option]]) -> Iterator[str]:
    names = [name for name in commands if name]
    yield "_pallas_lint() {"
    yield '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command="" word'
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield f'        case "$word" in {"|".join(names)}) command="$word"; break ;; esac'
    yield "    done"
    yield '    case "$command $previous" in'
    for command, options in commands.items():
        for option in options:
            patterns = "|".join(f"{_quoted(command)}\\ {spelling}" for spelling in option.spellings)
            if option.files:
                yield f'        {patterns}) COMPREPLY=($(compgen -f -- "$current")); return ;;'
            elif option.values:
                words = _quoted(" ".join(option.values))
                yield f'        {patterns}) COMPREPLY=($(compgen -W {words} -- "$current")); return ;;'
            elif option.values is not None:
                yield f"        {patterns}) return ;;"
    yield "    esac"
    yield '    case "$command" in'
    for command, options in commands.items():
        spellings = [spelling for option in options for spelling in option.spellings]
        given = _quoted(" ".join((*spellings, *_arguments(command), *([] if command else names))))
        files = ' $(compgen -f -- "$current")' if command in _ON_FILES else ""
        yield f'        {_quoted(command)}) COMPREPLY=($(compgen -W {given} -- "$current"){files}) ;;'
    yield "    esac"
    yield "}"
    yield "complete -o filenames -F _pallas_lint pallas-lint"


def _zsh(commands: dict[str, list[_Option]]) -> Iterator[str]:
    names = [name for name in commands if name]
    yield "#compdef pallas-lint"
    yield "_pallas_lint() {"
    yield "    local command word"
    yield '    for word in "${(@)words[2,CURRENT-1]}"; do'
    yield f'        case "$word" in {"|".join(names)}) command="$word"; break ;; esac'
    yield "    done"
    yield '    case "$command" in'
    for command, options in commands.items():
        specs = [_quoted(spec) for option in options for spec in _zsh_specs(option)]
        words = " ".join((*_arguments(command), *([] if command else names)))
        files = "_files" if command in _ON_FILES else ""
        # The command's own word comes first among those that are no options.
        given = [_quoted(f"*:argument:{{compadd -- {words}; {files or 'true'}}}")] if words or files else []
        yield f"        {_quoted(command)}) _arguments -s {' '.join((*specs, *given))} ;;"
    yield "    esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = "_pallas_lint" ]; then _pallas_lint "$@"; else compdef _pallas_lint pallas-lint; fi'


def _zsh_specs(option: _Option) -> Iterator[str]:
    help_text = option.help.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    for spelling in option.spellings:
        if option.values is None:
            yield f"*{spelling}[{help_text}]"
        elif option.files:
            yield f"*{spelling}[{help_text}]:file:_files"
        else:
            choices = " ".join(value.replace(":", "\\:") for value in option.values)
            yield f"*{spelling}[{help_text}]:value:({choices})" if choices else f"*{spelling}[{help_text}]:value: "


def _fish(commands: dict[str, list[_Option]]) -> Iterator[str]:
    names = " ".join(name for name in commands if name)
    none = f"not __fish_seen_subcommand_from {names}"
    yield f"complete -c pallas-lint -n {_quoted(none)} -a {_quoted(names)}"
    for command, options in commands.items():
        condition = f"__fish_seen_subcommand_from {command}" if command else none
        begin = f"complete -c pallas-lint -n {_quoted(condition)}"
        words = " ".join(_arguments(command))
        if command not in _ON_FILES:
            yield f"{begin} -f" + (f" -a {_quoted(words)}" if words else "")
        for option in options:
            flags = " ".join(
                f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in option.spellings
            )
            takes = "" if option.values is None else " -r -F" if option.files else " -x"
            choices = f" -a {_quoted(' '.join(option.values))}" if option.values else ""
            yield f"{begin} {flags}{takes}{choices} -d {_quoted(option.help)}"
