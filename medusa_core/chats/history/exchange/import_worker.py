"""The process in which a file from elsewhere is read.

It hears which file, writes its conversations as JSON lines into another, and says how many.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile, ZipFile, is_zipfile

import fastjsonschema

from medusa_core.chats.history.exchange.foreign import (
    from_chatgpt,
    from_lm_studio,
    is_chatgpt,
    is_lm_studio,
    unknown,
)
from medusa_core.chats.history.exchange.grown import in_order
from medusa_core.chats.history.exchange.our_json import (
    Json,
    conversation_validator,
)
from medusa_core.chats.history.exchange.pieces import JsonPieces
from medusa_core.errors import ConversationFileError
from medusa_core.system.sandbox.channel import (
    limit_process,
    open_channel,
)

MEMORY_BYTES = 500 << 20
MOST_OUTPUT_BYTES = 1 << 30
_ARCHIVED = re.compile(r"(.*/)?conversations(-\d+)?\.json")
_TOO_LARGE = "The file is too large to be read."


def main() -> int:
    """Read one file."""
    with open_channel() as channel:
        limit_process(MEMORY_BYTES, MOST_OUTPUT_BYTES)
        channel.send(ready=True)
        request = channel.receive()
        try:
            answer: dict[str, Any] = {
                "count": _read(Path(request["path"]), Path(request["output"]))
            }
        except ConversationFileError as error:
            answer = {"error": error.message, "hint": error.hint}
        except MemoryError:
            answer = {"error": _TOO_LARGE, "hint": "Export fewer conversations at once."}
        except RecursionError:
            answer = {"error": "The file is nested too deeply.", "hint": "Export it again."}
        except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            # An archive that is damaged, packed in an odd way or locked by a password.
            answer = {"error": f"The archive can't be read: {error}.", "hint": "Unpack it first."}
        except OSError as error:
            answer = {"error": f"The file can't be read: {error.strerror or error}.", "hint": ""}
        channel.send(**answer)
    return 0


def _read(path: Path, output: Path) -> int:
    count = 0
    with output.open("w", encoding="ascii") as out:
        if os.name == "posix":  # elsewhere an open file keeps its name
            output.unlink()
        for file in _files_of(path):
            for conversation in conversations_of(JsonPieces(file), path.name):
                out.write(_line(conversation))
                count += 1
    return count


def _line(conversation: Json) -> str:
    try:
        return json.dumps(conversation, allow_nan=False) + "\n"
    except ValueError as error:
        raise ConversationFileError(
            "The file holds a number beyond all bounds.", "It was changed: export it again."
        ) from error


def _files_of(path: Path) -> Iterator[TextIO]:
    """The file, or what of an archive holds conversations: so ChatGPT's export arrives."""
    if not is_zipfile(path):
        with path.open(encoding="utf-8-sig") as file:
            yield file
        return
    with ZipFile(path) as archive:
        names = [name for name in archive.namelist() if _ARCHIVED.fullmatch(name)]
        if not names:
            raise unknown()
        for name in sorted(names):
            with archive.open(name) as raw, TextIOWrapper(raw, encoding="utf-8-sig") as file:
                yield file


def conversations_of(pieces: JsonPieces, file_name: str) -> Iterator[Json]:
    """All conversations of a file, checked.

    Raises:
        ConversationFileError: One of them can't be read.
    """
    check = conversation_validator()
    for raw in pieces:
        conversation = raw if pieces.is_ours else _translated(raw, file_name)
        try:
            check(conversation)
        except fastjsonschema.JsonSchemaValueException as error:
            what = error.message.replace("data", "conversation", 1)[:200]
            raise ConversationFileError(
                f"The file is no valid one: {what}.",
                "It was changed after it was written: export it again.",
            ) from error
        ordered = in_order(conversation["messages"], conversation["title"])
        yield {**conversation, "messages": ordered}


def _translated(raw: Any, file_name: str) -> Json:
    if is_chatgpt(raw):
        return from_chatgpt(raw)
    if is_lm_studio(raw):
        return from_lm_studio(raw, file_name)
    raise unknown()
