"""`medusa history`: export, import and check conversations."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from medusa_core.chats.history.exchange.export import (
    FileKind,
    export,
)
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import History
from medusa_core.errors import ConversationFileError
from medusa_core.system.user_folders import places

_KINDS = {f".{kind.value}": kind for kind in FileKind} | {".htm": FileKind.HTML}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `history`; each sets its function as `run`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    out = commands.add_parser("export", help="write conversations: FILE.json, FILE.md or FILE.html")
    out.add_argument("file", type=Path, metavar="FILE")
    out.add_argument(
        "--id", action="append", dest="ids", help="only this conversation (default: all)"
    )
    out.set_defaults(run=run_export)

    take = commands.add_parser(
        "import", help="import conversations of Medusa Chat, ChatGPT, LM Studio or OpenAI's API"
    )
    take.add_argument("files", type=Path, nargs="+", metavar="FILE")
    take.set_defaults(run=run_import)

    check = commands.add_parser("check", help="check files without importing them, or the history")
    check.add_argument("files", type=Path, nargs="*", metavar="FILE")
    check.set_defaults(run=run_check)

    for command in (out, take, check):
        command.add_argument(
            "--history",
            type=Path,
            default=places().history,
            help="history file (default: the user's own)",
        )


def run_export(args: argparse.Namespace) -> int:
    """Export conversations."""
    kind = _KINDS.get(args.file.suffix.lower())
    if kind is None:
        raise ConversationFileError(
            f"{args.file.name} doesn't say what to write.", "Name it .json, .md or .html."
        )
    history = _open(args.history)
    try:
        written = export(history, args.file, kind, args.ids)
    finally:
        history.close()
    print(f"{written.num_conversations} conversations written to {args.file}")
    if written.num_damaged:
        print(f"without steps that are damaged, of {written.num_damaged} answers")
    return 0


def run_import(args: argparse.Namespace) -> int:
    """Import conversations."""
    history = _open(args.history)
    try:
        for path in args.files:
            with ConversationFile(path) as file:
                # In short transactions, so that other programs can write meanwhile.
                counts = asyncio.run(history.import_in_thread(file))
            print(f"{path}: {counts.num_new} new, {counts.num_known} known already")
            _print_refused(file)
    finally:
        history.close()
    return 0


def run_check(args: argparse.Namespace) -> int:
    """Check files; without files, the history."""
    num_refused = 0
    for path in args.files:
        with ConversationFile(path) as found:
            print(f"{path}: {found.num_conversations} conversations")
            _print_refused(found)
            num_refused += found.num_refused
    if args.files:
        return 1 if num_refused else 0
    history = _open(args.history)
    try:
        problems = history.problems()
        infos = history.conversations() + history.conversations(in_trash=True)
    finally:
        history.close()
    num_messages = sum(info.num_messages for info in infos)
    print(f"{args.history}: {len(infos)} conversations, {num_messages} messages")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


def _print_refused(file: ConversationFile) -> None:
    """Print which conversations of a file can't be read."""
    if file.num_refused:
        print(f"  {file.num_refused} not:")
    for reason in file.reasons:
        print(f"  {reason}")


def _open(path: Path) -> History:
    """Open the history and print problems with it."""
    history = History(path)
    if history.notice:
        print(history.notice)
    return history
