"""`medusa completion`: shell completion of commands, options and model names.

A shell's script calls `medusa completion words -- WORD...`, which prints the candidates for the
last word, one per line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from medusa_core.cli.program import CommandEntry, program_of_commands

_SCRIPTS = {
    "bash": """\
_medusa() {
    local IFS=$'\\n'
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    # bash takes a colon for the end of a word
    local typed="${COMP_LINE:0:COMP_POINT}"; typed="${typed##*[[:space:]]}"
    local lead="${typed%"${COMP_WORDS[COMP_CWORD]}"}"
    [[ ${COMP_WORDS[COMP_CWORD]} == : ]] && lead="$typed"
    [[ $typed == *:* ]] && words=("${words[@]:0:1}" "$typed")
    COMPREPLY=($(medusa completion words -- "${words[@]}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$lead"}")
}
complete -o default -F _medusa medusa
""",
    "zsh": """\
#compdef medusa
_medusa() {
    local -a found
    found=("${(@f)$(medusa completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n $found ]]; then compadd -- $found; else _files; fi
}
compdef _medusa medusa
""",
    "fish": """\
function __medusa_words
    set -l typed (commandline -opc) (commandline -ct)
    medusa completion words -- $typed[2..-1] 2>/dev/null
end
complete -c medusa -a '(__medusa_words)'
""",
}
_WORDS = "words"
# Arguments whose values are installed models.
_MODELS = ("model", "named_model", "name", "assistant")
ModelNames = Callable[[], Iterable[str]]


def add_completion_arguments(
    parser: argparse.ArgumentParser, commands: Mapping[str, CommandEntry]
) -> None:
    """Add the arguments of `completion`.

    Args:
        parser: Parser of the command.
        commands: All commands of the program.
    """
    parser.add_argument(
        "shell", choices=(*_SCRIPTS, _WORDS), metavar="SHELL", help="bash, zsh or fish"
    )
    parser.add_argument(
        "typed", nargs="*", default=[], metavar="WORD", help="for the shell's script"
    )
    parser.epilog = (
        "Put the script where your shell reads it: medusa completion bash >> ~/.bashrc; "
        "medusa completion zsh > a folder of $fpath, as _medusa; "
        "medusa completion fish > ~/.config/fish/completions/medusa.fish"
    )
    parser.set_defaults(run=run, commands=commands)


def run(args: argparse.Namespace) -> int:
    """Print a shell's script, or the candidates for the last word."""
    if args.shell != _WORDS:
        print(_SCRIPTS[args.shell], end="")
        return 0
    from medusa_core.hub.library.find import loadable_models

    for word in completed(args.commands, args.typed, loadable_models):
        print(word)
    return 0


def completed(
    commands: Mapping[str, CommandEntry], typed: Sequence[str], models: ModelNames
) -> list[str]:
    """Return the candidates for the last word.

    Args:
        commands: All commands of the program.
        typed: Words after the program's name; the last one is incomplete, and may be empty.
        models: Returns the names of installed models.
    """
    *before, prefix = typed or ("",)
    if not before:
        return [name for name in commands if name.startswith(prefix)]
    if before[0] not in commands:
        return []
    parser = _innermost(commands, before)
    option = parser._option_string_actions.get(before[-1])
    if option is not None and option.nargs != 0:
        found = _values(option, models)
    elif prefix.startswith("-"):
        found = list(parser._option_string_actions)
    else:
        positionals = [action for action in parser._actions if not action.option_strings]
        found = [value for action in positionals[:1] for value in _values(action, models)]
    return [word for word in found if word.startswith(prefix)]


def _innermost(
    commands: Mapping[str, CommandEntry], words: Sequence[str]
) -> argparse.ArgumentParser:
    """Return the parser of a command, or of its subcommand in the words so far."""
    name, *rest = words
    parser = _subparser(program_of_commands("medusa", "", dict(commands), (name,)), name)
    for word in rest:
        parser = _subparser(parser, word)
    return parser


def _subparser(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand; the parser itself if there is none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: argparse.ArgumentParser = action.choices.get(name, parser)
            return found
    return parser


def _values(action: argparse.Action, models: ModelNames) -> list[str]:
    """Return the candidates for an argument; none for numbers, texts and files."""
    choices: Any = action.choices
    if choices is not None:
        return [str(choice) for choice in choices]
    return list(models()) if action.dest in _MODELS else []
