"""Manual pages, written from the commands' own help: `python -m installer.manual DIR`.

It imports the program, so the environment's Python runs it.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from app.__main__ import parser as window_parser
from medusa_core import __version__
from medusa_core.__main__ import COMMANDS
from medusa_core.cli.program import CommandEntry, program_of_commands

_COMMAND_LINE = """\
Chats, answers and trains with language models in a terminal, serves them to other programs,
and looks after those on this computer.
.B medusa
.I COMMAND
.B \\-\\-help
prints one command's part of this page."""
_WINDOW = """\
Opens the window. Where it is open already, it comes to the front, and loads the model if one
is named."""
_EXIT_STATUS = """\
0: done. 1: failed, and the reason was printed. 2: wrong arguments. 3: a batch was paused.
130: stopped by the user."""
_ENVIRONMENT = {
    "MEDUSA_HOME": "A folder that holds all files of the user, instead of those below.",
}
_FILES = {
    "~/.config/medusa-chat": "Settings and presets.",
    "~/.local/share/medusa-chat": "Conversations, heads and what drafts learned.",
    "~/.local/share/medusa-chat-program": "The program's environment; it may be deleted.",
    "~/.local/state/medusa-chat": "Downloads, the window's place, logs.",
    "~/.cache/medusa-chat": "Measured times and quantized models; it may be deleted.",
}


def medusa_page() -> str:
    """Return `medusa.1`: all commands with their options."""
    commands = dict(COMMANDS)
    parser = program_of_commands("medusa", "", commands, tuple(commands))
    body = [
        _head("medusa", "language models on this computer, made fast by Medusa decoding"),
        ".SH SYNOPSIS\n.B medusa\n.I COMMAND\n[\\fIOPTIONS\\fR]",
        f".SH DESCRIPTION\n{_COMMAND_LINE}",
        ".SH COMMANDS",
        *_commands(commands, _below(parser)),
        *_foot("medusa-chat"),
    ]
    return "\n".join(body) + "\n"


def window_page() -> str:
    """Return `medusa-chat.1`: the window's options."""
    parser = window_parser()
    body = [
        _head("medusa-chat", "a window to chat with language models on this computer"),
        ".SH SYNOPSIS\n.B medusa\\-chat\n[\\fIOPTIONS\\fR] [\\fIMODEL\\fR]",
        f".SH DESCRIPTION\n{_WINDOW}",
        ".SH OPTIONS",
        *_arguments(parser),
        *_foot("medusa"),
    ]
    return "\n".join(body) + "\n"


def _head(name: str, does: str) -> str:
    title = f'.TH {name.upper()} 1 "" "Medusa Chat {__version__}" "User Commands"'
    return f"{title}\n.SH NAME\n{_text(name)} \\- {_text(does)}"


def _foot(other: str) -> Iterator[str]:
    yield f".SH EXIT STATUS\n{_text(_EXIT_STATUS)}"
    yield ".SH ENVIRONMENT"
    yield from _table(_ENVIRONMENT)
    yield ".SH FILES"
    yield from _table(_FILES)
    yield f".SH SEE ALSO\n.BR {_text(other)} (1)"


def _table(rows: Mapping[str, str]) -> Iterator[str]:
    for name, words in rows.items():
        yield f".TP\n\\fB{_text(name)}\\fR\n{_text(words)}"


def _commands(
    commands: Mapping[str, CommandEntry], parsers: Mapping[str, argparse.ArgumentParser]
) -> Iterator[str]:
    for name, entry in commands.items():
        yield f'.SS "medusa {name}"\n{_text(parsers[name].description or entry.does)}'
        yield from _arguments(parsers[name])


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Return the arguments of a parser and of its commands."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._HelpAction):
            continue
        words = formatter._expand_help(action) if action.help else ""
        yield f".TP\n\\fB{_text(formatter._format_action_invocation(action))}\\fR\n{_text(words)}"
    for within in _below(parser).values():
        yield f'.SS "{_text(within.prog)}"\n{_text(within.description or "")}'
        yield from _arguments(within)


def _below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _text(words: str) -> str:
    """Escape words so that roff takes them literally."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-")
    lines = (f"\\&{line}" if line[:1] in ".'" else line for line in escaped.splitlines())
    return "\n".join(lines)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for page_name, page in (("medusa", medusa_page()), ("medusa-chat", window_page())):
        (folder / f"{page_name}.1").write_text(page, encoding="utf-8")
