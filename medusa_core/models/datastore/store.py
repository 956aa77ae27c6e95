"""Database of a model's earlier answers: an SQLite file, made with the first answer.

Deleted answers leave no bytes on disk: SQLite overwrites them, and the WAL is truncated.
"""

from __future__ import annotations

import logging
import secrets
import sys
from array import array
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.system.storage.database import Database, Migration, open_database

log = logging.getLogger(__name__)

SUFFIX = ".db"
_BUSY_S = 1.0  # longest wait for another process

# Numbers are random: a number that was used again would be taken for the deleted answer.
_VERSION_1 = """
CREATE TABLE answers (
    number INTEGER PRIMARY KEY,
    conversation TEXT NOT NULL,
    used INTEGER NOT NULL,
    start INTEGER NOT NULL,
    tokens BLOB NOT NULL
) STRICT;
CREATE INDEX answers_by_conversation ON answers (conversation);
CREATE INDEX answers_by_use ON answers (used);
"""
_MIGRATIONS: tuple[Migration, ...] = (_VERSION_1,)


class AnswerText(NamedTuple):
    """An answer and the context before it.

    Attributes:
        number: Its key.
        start: Number of context tokens at its beginning.
        token_ids: Context and answer. int32
    """

    number: int
    start: int
    token_ids: array[int]


class AnswerStore:
    """The earlier answers of one model.

    Attributes:
        path: Its file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database: Database | None = None
        self._seen = -1

    @property
    def exists(self) -> bool:
        """Whether there is a database."""
        return self._database is not None or self.path.exists()

    def has_changed(self) -> bool:
        """Whether another connection changed the database since the last call.

        Raises:
            StorageError: The database can't be read.
        """
        if not self.exists:
            return False
        row = self._open().row("PRAGMA data_version")
        before, self._seen = self._seen, -1 if row is None else int(row[0])
        return before != self._seen

    def numbers(self) -> frozenset[int]:
        """Return the keys of all answers.

        Raises:
            StorageError: The database can't be read.
        """
        return frozenset(number for (number,) in self._open().rows("SELECT number FROM answers"))

    def num_tokens(self) -> int:
        """Return the number of tokens of all answers.

        Raises:
            StorageError: The database can't be read.
        """
        row = self._open().row("SELECT coalesce(sum(length(tokens)), 0) FROM answers")
        return 0 if row is None else int(row[0]) // array("i").itemsize

    def conversations(self) -> frozenset[str]:
        """Return the ids of the answers' conversations.

        Raises:
            StorageError: The database can't be read.
        """
        rows = self._open().rows("SELECT DISTINCT conversation FROM answers")
        return frozenset(name for (name,) in rows)

    def answers(self, known: Collection[int], vocab_size: int) -> list[AnswerText]:
        """Return the answers, least recently used first; invalid ones are deleted.

        Args:
            known: Keys of answers to leave out.
            vocab_size: Size of the model's vocabulary.

        Raises:
            StorageError: The database can't be read.
        """
        rows = self._open().each("SELECT number, start, tokens FROM answers ORDER BY used")
        wanted = [
            _unpacked(number, start, tokens, vocab_size)
            for number, start, tokens in rows
            if number not in known
        ]
        invalid = [one.number for one in wanted if not one.token_ids]
        if invalid:
            log.warning("deleting %d invalid answers in %s", len(invalid), self.path)
            self.delete(invalid)
        return [one for one in wanted if one.token_ids]

    def add(self, conversation_id: str, start: int, token_ids: array[int]) -> int | None:
        """Insert an answer, or count an equal one of the same conversation as used.

        Returns:
            Its key; None if the conversation has the same answer already, which counts as used.

        Raises:
            StorageError: The database can't be written.
        """
        database, tokens = self._open(), _little_endian(token_ids).tobytes()
        known = database.row(
            "SELECT number FROM answers WHERE conversation = ? AND tokens = ?",
            *(conversation_id, tokens),
        )
        if known is not None:
            self.use((int(known[0]),))
            return None
        number = secrets.randbits(62)
        database.write(
            "INSERT INTO answers (number, conversation, used, start, tokens) VALUES"
            " (?, ?, (SELECT coalesce(max(used), 0) + 1 FROM answers), ?, ?)",
            *(number, conversation_id, start, tokens),
        )
        return number

    def use(self, numbers: Iterable[int]) -> None:
        """Mark answers as used: drafts from them were accepted.

        Raises:
            StorageError: The database can't be written.
        """
        database = self._open()
        with database.transaction():
            database.write_many(
                "UPDATE answers SET used = (SELECT max(used) + 1 FROM answers) WHERE number = ?",
                [(number,) for number in numbers],
            )

    def least_used(self, num_tokens: int) -> list[int]:
        """Return the least recently used answers that have at least `num_tokens` together.

        Raises:
            StorageError: The database can't be read.
        """
        found: list[int] = []
        rows = self._open().each("SELECT number, length(tokens) FROM answers ORDER BY used")
        for number, nbytes in rows:
            if num_tokens <= 0:
                break
            found.append(number)
            num_tokens -= nbytes // array("i").itemsize
        return found

    def delete(self, numbers: Sequence[int]) -> None:
        """Delete answers by their keys.

        Raises:
            StorageError: The database can't be written.
        """
        database = self._open()
        with database.transaction():
            database.write_many(
                "DELETE FROM answers WHERE number = ?", [(number,) for number in numbers]
            )

    def forget(self, conversation_ids: Collection[str] | None) -> None:
        """Delete the answers of conversations, None for all, so that no byte remains on disk.

        Raises:
            StorageError: The database can't be written.
            RequestError: A damaged copy of the file, which may contain them, can't be deleted.
        """
        if not self.exists:
            return
        database = self._open()
        with database.transaction():
            if conversation_ids is None:
                database.write("DELETE FROM answers")
            else:
                database.write_many(
                    "DELETE FROM answers WHERE conversation = ?",
                    [(name,) for name in conversation_ids],
                )
        database.checkpoint(truncates=True)
        self._remove_copies()

    def close(self) -> None:
        """Close the database; may be called twice."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self) -> Database:
        """Open the database on first use."""
        if self._database is None:
            self._database = open_database(self.path, _MIGRATIONS, busy_s=_BUSY_S)
            if self._database.notice:
                log.warning("%s", self._database.notice)
        return self._database

    def _remove_copies(self) -> None:
        """Delete backups and damaged copies, which could contain deleted answers."""
        for ending in ("damaged-*", "backup-*"):
            for copy in self.path.parent.glob(f"{self.path.name}.{ending}"):
                try:
                    copy.unlink(missing_ok=True)
                except OSError as error:
                    raise RequestError(
                        tr("{0} can't be deleted: {1}.", copy, error.strerror or error),
                        "It may hold what was deleted: remove it yourself.",
                    ) from error


def _unpacked(number: int, start: int, tokens: bytes, vocab_size: int) -> AnswerText:
    """Decode an answer; its tokens are empty if they are invalid."""
    token_ids = array("i")
    token_ids.frombytes(tokens[: len(tokens) // token_ids.itemsize * token_ids.itemsize])
    token_ids = _little_endian(token_ids)
    fits = bool(token_ids) and min(token_ids) >= 0 and max(token_ids) < vocab_size
    fits = fits and 0 <= start < len(token_ids)
    return AnswerText(number, start, token_ids if fits else array("i"))


def _little_endian(token_ids: array[int]) -> array[int]:
    """Return a copy of an int32 array in little-endian byte order."""
    swapped = array("i", token_ids)
    if sys.byteorder == "big":
        swapped.byteswap()
    return swapped
