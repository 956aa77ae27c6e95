"""Read a file of conversations in a sandboxed process."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from medusa_core.chats.history.exchange.import_worker import MEMORY_BYTES, ReadResult
from medusa_core.chats.history.exchange.our_json import Json
from medusa_core.errors import ConversationFileError
from medusa_core.i18n import text_from_json, tr
from medusa_core.system.sandbox.worker import WorkerErrors, WorkerProcess

_MOST_S = 10.0
_MODULE = "medusa_core.chats.history.exchange.import_worker"
_HINT = tr("Export fewer conversations at once, or choose another file.")


class ConversationFile:
    """Validated conversations of a file, ready for import; must be closed.

    Attributes:
        num_conversations: Number of conversations.
        num_refused: Number of conversations that can't be read.
        reasons: Reasons of the first of these, a sentence each.
    """

    def __init__(self, path: Path, most_s: float = _MOST_S) -> None:
        """Read a file, in any thread.

        Args:
            path: JSON of this program, ChatGPT's export (a ZIP or its JSON), a conversation of LM
                Studio, or messages in the form of OpenAI's API.
            most_s: Timeout in seconds.

        Raises:
            ConversationFileError: The file can't be read, has no readable conversation, or takes
                too much time or memory.
        """
        # The reader unlinks the file before it writes, so that a kill leaves no text on disk.
        self._lines = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed with the file
            encoding="ascii", mode="r", prefix="medusa-import-", delete=False
        )
        try:
            result = _read(path, Path(self._lines.name), most_s)
        except BaseException:
            self.close()
            raise
        self.num_conversations, self.num_refused = result.num_conversations, result.num_refused
        self.reasons = [text_from_json(reason) for reason in result.reasons]

    def __iter__(self) -> Iterator[Json]:
        """Yield the conversations as JSON of `conversations-4.json`."""
        self._lines.seek(0)
        for line in self._lines:
            yield json.loads(line)

    def __enter__(self) -> ConversationFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary file; safe to call twice."""
        self._lines.close()
        Path(self._lines.name).unlink(missing_ok=True)


def _read(path: Path, lines: Path, most_s: float) -> ReadResult:
    """Let the sandboxed process write the conversations to a temporary file."""
    if not path.is_file():
        raise ConversationFileError(tr("There is no file {0}.", path), "Choose another one.")
    with closing(WorkerProcess(_MODULE, _errors(path.name), MEMORY_BYTES)) as worker:
        worker.start()
        answer = worker.request({"path": str(path.resolve()), "output": str(lines)}, most_s)
    if "error" in answer:
        raise ConversationFileError(
            tr("{0}: {1}", path.name, text_from_json(answer["error"])),
            text_from_json(answer["hint"]),
        )
    return ReadResult(**answer)


def _errors(name: str) -> WorkerErrors:
    """Make the errors of reading a file."""
    return WorkerErrors(
        start=lambda error: ConversationFileError(
            tr("No process can be started to read {0}: {1}.", name, error),
            "Close other programs and try again.",
        ),
        memory=lambda: ConversationFileError(
            tr("{0} takes too much memory to be read.", name), _HINT
        ),
        time=lambda seconds: ConversationFileError(
            tr("{0} couldn't be read within {1:.0f} seconds.", name, seconds), _HINT
        ),
        end=lambda: ConversationFileError(tr("{0} broke the process that reads it.", name), _HINT),
    )
