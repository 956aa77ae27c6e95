"""One conversation, some or all as a file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from medusa_core.chats.history.exchange.for_people import (
    Html,
    Markdown,
)
from medusa_core.chats.history.exchange.our_json import (
    FORMAT,
    VERSION,
    conversation_as_json,
)
from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import ConversationInfo
from medusa_core.errors import ConversationFileError
from medusa_core.system.files.atomic_file import replace_file


class FileKind(str, Enum):
    """What a file of conversations is written as."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"


class Exported(NamedTuple):
    """What an export wrote.

    Attributes:
        num_conversations: Conversations that are in the file.
        num_damaged: Answers of which some steps can't be read any more: JSON leaves these out.
    """

    num_conversations: int
    num_damaged: int = 0


class HtmlPage(NamedTuple):
    """Conversations as one page.

    Attributes:
        title: Of the page.
        html: All of it.
        num_conversations: How many are on it.
    """

    title: str
    html: str
    num_conversations: int


def export(
    history: History,
    path: Path,
    kind: FileKind,
    conversation_ids: Sequence[str] | None = None,
) -> Exported:
    """Write conversations into a file; it is complete, or as it was before.

    JSON keeps everything; Markdown and HTML hold the path that was shown last.

    Args:
        history: Where they are.
        path: The file.
        kind: What it is written as.
        conversation_ids: Which ones; None for all that aren't in the trash.

    Returns:
        How many were written, and what could not.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
        RequestError: One of them isn't in the history any more.
    """
    infos = _infos(history, conversation_ids)
    damaged: set[str] = set()
    if kind is FileKind.JSON:
        pieces = _json(history, infos, damaged)
    else:
        pieces = _text(history, infos, Markdown() if kind is FileKind.MARKDOWN else Html())
    write_whole(path, (piece.encode("utf-8", "replace") for piece in pieces))
    return Exported(len(infos), len(damaged))


def export_page(history: History, conversation_ids: Sequence[str] | None, style: str) -> HtmlPage:
    """Conversations as the page that `export` writes, with a style sheet of the caller's.

    Args:
        history: Where they are.
        conversation_ids: Which ones; None for all that aren't in the trash.
        style: The style sheet.

    Raises:
        StorageError: The history can't be read.
        RequestError: One of them isn't in the history any more.
    """
    infos = _infos(history, conversation_ids)
    return HtmlPage(_title_of(infos), "".join(_text(history, infos, Html(style))), len(infos))


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that nobody else may read; it is complete, or as it was before.

    Raises:
        ConversationFileError: It can't be written.
    """
    try:
        replace_file(path, pieces)
    except OSError as error:
        raise ConversationFileError(
            f"{path} can't be written: {error.strerror or error}.",
            "Choose another folder, or make space.",
        ) from error


async def export_gently(
    history: History,
    path: Path,
    kind: FileKind,
    conversation_ids: Sequence[str] | None = None,
) -> Exported:
    """Do what `export` does in a thread, over a connection of its own; see there.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
        RequestError: One of them isn't in the history any more.
    """

    def work() -> Exported:
        with closing(history.another()) as other:
            return export(other, path, kind, conversation_ids)

    if history.is_saved:
        return await asyncio.to_thread(work)
    return export(history, path, kind, conversation_ids)


def _json(history: History, infos: Sequence[ConversationInfo], damaged: set[str]) -> Iterator[str]:
    """One conversation a line, so that large files can be read piece by piece."""
    folders = {folder.id: folder.name for folder in history.folders()}
    yield f'{{"format": "{FORMAT}", "version": {VERSION}, "conversations": ['
    for number, info in enumerate(infos):
        folder = None if info.folder_id is None else folders.get(info.folder_id)
        raw = conversation_as_json(
            info, folder, history.settings(info.id), history.messages(info.id), damaged
        )
        yield ("\n" if number == 0 else ",\n") + json.dumps(raw, ensure_ascii=False)
    yield "\n]}\n"


def _text(
    history: History, infos: Sequence[ConversationInfo], writer: Markdown | Html
) -> Iterator[str]:
    yield writer.head(_title_of(infos))
    for number, info in enumerate(infos):
        if number:
            yield writer.between
        yield writer.conversation(info, history.messages(info.id))
    yield writer.foot


def _title_of(infos: Sequence[ConversationInfo]) -> str:
    """What a file is called inside: after its only conversation, if there is but one."""
    return infos[0].title if len(infos) == 1 else "Conversations"


def _infos(
    history: History, conversation_ids: Sequence[str] | None
) -> tuple[ConversationInfo, ...]:
    if conversation_ids is None:
        return history.conversations()
    return tuple(map(history.conversation, conversation_ids))
