"""One conversation, some or all as a file."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from enum import Enum
from pathlib import Path

from medusa_core.errors import ConversationFileError
from medusa_core.history.exchange.for_people import Html, Markdown
from medusa_core.history.exchange.our_json import FORMAT, VERSION, conversation_as_json
from medusa_core.history.history import History
from medusa_core.history.records import ConversationInfo


class FileKind(str, Enum):
    """What a file of conversations is written as."""

    MARKDOWN = "md"
    JSON = "json"
    HTML = "html"


def export(
    history: History,
    path: Path,
    kind: FileKind,
    conversation_ids: Sequence[str] | None = None,
) -> int:
    """Write conversations into a file; it is complete, or as it was before.

    JSON keeps everything; Markdown and HTML hold the path that was shown last.

    Args:
        history: Where they are.
        path: The file.
        kind: What it is written as.
        conversation_ids: Which ones; None for all that aren't in the trash.

    Returns:
        How many were written.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
        RequestError: One of them isn't in the history any more.
    """
    infos = (
        history.conversations()
        if conversation_ids is None
        else tuple(map(history.conversation, conversation_ids))
    )
    pieces = _json(history, infos) if kind is FileKind.JSON else _text(history, infos, kind)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=".export-", delete=False
        ) as file:
            temporary = Path(file.name)
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ConversationFileError(
            f"{path} can't be written: {error.strerror or error}.",
            "Choose another folder, or make space.",
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return len(infos)


async def export_gently(
    history: History,
    path: Path,
    kind: FileKind,
    conversation_ids: Sequence[str] | None = None,
) -> int:
    """Do what `export` does in a thread, over a connection of its own; see there.

    Raises:
        ConversationFileError: The file can't be written.
        StorageError: The history can't be read.
        RequestError: One of them isn't in the history any more.
    """

    def work() -> int:
        with closing(history.another()) as other:
            return export(other, path, kind, conversation_ids)

    if history.is_kept:
        return await asyncio.to_thread(work)
    return export(history, path, kind, conversation_ids)


def _json(history: History, infos: Sequence[ConversationInfo]) -> Iterator[str]:
    """One conversation a line, so that large files can be read piece by piece."""
    folders = {folder.id: folder.name for folder in history.folders()}
    yield f'{{"format": "{FORMAT}", "version": {VERSION}, "conversations": ['
    for number, info in enumerate(infos):
        folder = None if info.folder_id is None else folders.get(info.folder_id)
        raw = conversation_as_json(
            info, folder, history.settings(info.id), history.messages(info.id)
        )
        yield ("\n" if number == 0 else ",\n") + json.dumps(raw, ensure_ascii=False)
    yield "\n]}\n"


def _text(history: History, infos: Sequence[ConversationInfo], kind: FileKind) -> Iterator[str]:
    writer = Markdown() if kind is FileKind.MARKDOWN else Html()
    yield writer.head
    for number, info in enumerate(infos):
        if number:
            yield writer.between
        yield writer.conversation(info, history.messages(info.id))
    yield writer.foot
