"""Export conversations to a file."""

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
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import replace_file
from medusa_core.system.files.disk_errors import disk_errors


class FileKind(str, Enum):
    """Format of an exported file."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"


class Exported(NamedTuple):
    """Result of an export.

    Attributes:
        num_conversations: Number of exported conversations.
        num_damaged: Number of answers with damaged steps, which JSON leaves out.
    """

    num_conversations: int
    num_damaged: int = 0


class HtmlPage(NamedTuple):
    """Conversations as an HTML page.

    Attributes:
        title: Title of the page.
        num_conversations: Number of conversations.
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
    """Write conversations to a file, atomically.

    JSON has everything; Markdown and HTML have the path that was shown last.

    Args:
        kind: Format of the file.
        conversation_ids: Ids of conversations; None for all outside the trash.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
        RequestError: A conversation was deleted.
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
    """Return the HTML page of `export`, with another style sheet.

    Args:
        conversation_ids: Ids of conversations; None for all outside the trash.
        style: The style sheet.

    Raises:
        StorageError: The history can't be read.
        RequestError: A conversation was deleted.
    """
    infos = _infos(history, conversation_ids)
    return HtmlPage(_title_of(infos), "".join(_text(history, infos, Html(style))), len(infos))


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file atomically, readable by the user alone.

    Raises:
        ConversationFileError: The file can't be written.
    """
    with disk_errors(ConversationFileError, path, tr("Choose another folder, or make space.")):
        replace_file(path, pieces)


async def export_gently(
    history: History,
    path: Path,
    kind: FileKind,
    conversation_ids: Sequence[str] | None = None,
) -> Exported:
    """Export in a thread, with its own connection; see `export`.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
        RequestError: A conversation was deleted.
    """

    def work() -> Exported:
        """Export with a connection of this thread."""
        with closing(history.another()) as other:
            return export(other, path, kind, conversation_ids)

    if history.is_saved:
        return await asyncio.to_thread(work)
    return export(history, path, kind, conversation_ids)


def _json(history: History, infos: Sequence[ConversationInfo], damaged: set[str]) -> Iterator[str]:
    """Yield a line per conversation, so that importers can read a large file in pieces."""
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
    """Yield conversations as Markdown or HTML."""
    yield writer.head(_title_of(infos))
    for number, info in enumerate(infos):
        if number:
            yield writer.between
        yield writer.conversation(info, history.messages(info.id))
    yield writer.foot


def _title_of(infos: Sequence[ConversationInfo]) -> str:
    """Return the title of a file: that of its only conversation, or a general one."""
    return infos[0].title if len(infos) == 1 else "Conversations"


def _infos(
    history: History, conversation_ids: Sequence[str] | None
) -> tuple[ConversationInfo, ...]:
    """Return the conversations to export; None for all."""
    if conversation_ids is None:
        return history.conversations()
    return tuple(map(history.conversation, conversation_ids))
