"""The sandboxed process that reads an imported file.

It receives a path, writes the conversations as JSON lines to another file, and sends their number.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from zipfile import BadZipFile, ZipFile, is_zipfile

import fastjsonschema

from medusa_core.chats.history.exchange.foreign import (
    from_chatgpt,
    from_lm_studio,
    from_openai,
    is_chatgpt,
    is_lm_studio,
    is_openai,
    unknown,
    unknown_entry,
)
from medusa_core.chats.history.exchange.grown import in_order, refused_conversation
from medusa_core.chats.history.exchange.our_json import (
    Json,
    conversation_validator,
)
from medusa_core.chats.history.exchange.pieces import JsonPieces
from medusa_core.errors import ConversationFileError, UnknownKindError
from medusa_core.i18n import text_to_json, tr
from medusa_core.system.sandbox.channel import (
    limit_process,
    open_channel,
)

MEMORY_BYTES = 500 << 20
MOST_OUTPUT_BYTES = 1 << 30
_ARCHIVED = re.compile(r"(.*/)?conversations(-\d+)?\.json")
_TOO_LARGE = tr("The file is too large to be read.")
_MOST_REASONS = 20


def main() -> int:
    """Read one file."""
    with open_channel() as channel:
        limit_process(MEMORY_BYTES, MOST_OUTPUT_BYTES)
        channel.send(ready=True)
        request = channel.receive()
        try:
            counts = _read(Path(request["path"]), Path(request["output"]))
            answer: dict[str, Any] = counts._asdict()
        except ConversationFileError as error:
            answer = _refusal(error)
        except MemoryError:
            answer = _refusal(
                ConversationFileError(_TOO_LARGE, "Export fewer conversations at once.")
            )
        except RecursionError:
            answer = _refusal(
                ConversationFileError("The file is nested too deeply.", "Export it again.")
            )
        except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            # The archive is damaged, has an unknown compression or a password.
            problem = tr("The archive can't be read: {0}.", error)
            answer = _refusal(ConversationFileError(problem, "Unpack it first."))
        except OSError as error:
            problem = tr("The file can't be read: {0}.", error.strerror or error)
            answer = _refusal(ConversationFileError(problem))
        channel.send(**answer)
    return 0


def _refusal(error: ConversationFileError) -> dict[str, Any]:
    """The answer for a file that can't be read."""
    return {"error": text_to_json(error.message), "hint": text_to_json(error.hint)}


class ReadResult(NamedTuple):
    """Result of reading a file.

    Attributes:
        num_conversations: Number of conversations.
        num_refused: Number of conversations that can't be read.
        reasons: Reasons of the first of these, as `text_to_json` gives them.
    """

    num_conversations: int
    num_refused: int
    reasons: list[Any]


def _read(path: Path, output: Path) -> ReadResult:
    """Write the valid conversations of a file as JSON lines; invalid ones are collected."""
    count = 0
    refused: list[ConversationFileError] = []
    with output.open("w", encoding="ascii") as out:
        if os.name == "posix":  # other systems can't unlink an open file
            output.unlink()
        for file in _files_of(path):
            for line in lines_of(JsonPieces(file), path.name, refused):
                out.write(line)
                count += 1
    if refused and not count:
        known = (error for error in refused if not isinstance(error, UnknownKindError))
        raise next(known, unknown())
    reasons = [text_to_json(error.message) for error in refused[:_MOST_REASONS]]
    return ReadResult(count, len(refused), reasons)


def _files_of(path: Path) -> Iterator[TextIO]:
    """Open the file, or the files with conversations in an archive, such as ChatGPT's export."""
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


def lines_of(
    pieces: JsonPieces, file_name: str, refused: list[ConversationFileError]
) -> Iterator[str]:
    """Yield the valid conversations of a file as lines of JSON.

    Args:
        pieces: Values of the file.
        file_name: Name of the file.
        refused: Receives the error of each conversation that can't be read.

    Raises:
        ConversationFileError: The file is not valid JSON.
    """
    for raw in pieces:
        try:
            yield _checked_line(raw if pieces.is_ours else _translated(raw, file_name))
        except ConversationFileError as error:
            refused.append(error)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - one conversation must not cost all others
            refused.append(
                refused_conversation(raw, tr("it is built in another way ({0:.80})", repr(error)))
            )


def _checked_line(conversation: Json) -> str:
    """Validate a conversation, and return it as a line of JSON.

    Raises:
        ConversationFileError: It violates the schema, or its tree is inconsistent.
    """
    try:
        conversation_validator()(conversation)
        ordered = in_order(conversation["messages"], conversation["title"])
        return json.dumps({**conversation, "messages": ordered}, allow_nan=False) + "\n"
    except fastjsonschema.JsonSchemaValueException as error:
        what = error.message.replace("data", "conversation", 1)[:200]
        raise refused_conversation(conversation, tr("it isn't valid, as {0}", what)) from error
    except ValueError as error:
        raise refused_conversation(
            conversation, tr("it holds a number beyond all bounds")
        ) from error


def _translated(raw: Any, file_name: str) -> Json:
    """Convert a conversation of another program."""
    if is_chatgpt(raw):
        return from_chatgpt(raw)
    if is_lm_studio(raw):
        return from_lm_studio(raw, file_name)
    if is_openai(raw):
        return from_openai(raw)
    raise unknown_entry()
