"""Where learned answers are kept: one SQLite file for each model, none before there is one.

A deleted answer leaves no byte: SQLite overwrites what is deleted, and the log is emptied.
"""

from __future__ import annotations

import logging
import secrets
import sys
from array import array
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from medusa_core.errors import RequestError
from medusa_core.models.datastore.answer_texts import AnswerText
from medusa_core.system.storage.database import (
    Database,
    Migration,
    open_database,
)

log = logging.getLogger(__name__)

SUFFIX = ".db"
_BUSY_S = 1.0  # an answer waits no longer for another program

# Numbers are drawn: one that was given back would be taken for the answer that had it.
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


class Store:
    """The answers of one model.

    Attributes:
        path: Its file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database: Database | None = None
        self._seen = -1

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept."""
        return self._database is not None or self.path.exists()

    def has_changed(self) -> bool:
        """Whether another program, or another part of this one, changed it since it was asked last.

        Raises:
            StorageError: It can't be read.
        """
        if not self.exists:
            return False
        row = self._open().row("PRAGMA data_version")
        before, self._seen = self._seen, -1 if row is None else int(row[0])
        return before != self._seen

    def numbers(self) -> frozenset[int]:
        """Names of all answers.

        Raises:
            StorageError: It can't be read.
        """
        return frozenset(number for (number,) in self._open().rows("SELECT number FROM answers"))

    def num_tokens(self) -> int:
        """Tokens of all answers.

        Raises:
            StorageError: It can't be read.
        """
        row = self._open().row("SELECT coalesce(sum(length(tokens)), 0) FROM answers")
        return 0 if row is None else int(row[0]) // array("i").itemsize

    def conversations(self) -> frozenset[str]:
        """Those that the answers belong to.

        Raises:
            StorageError: It can't be read.
        """
        rows = self._open().rows("SELECT DISTINCT conversation FROM answers")
        return frozenset(name for (name,) in rows)

    def answers(self, without: Collection[int], vocab_size: int) -> list[AnswerText]:
        """The answers, the longest unused first; what no such model can have said is deleted.

        Args:
            without: Names of those that aren't wanted.
            vocab_size: Tokens that the model knows.

        Raises:
            StorageError: It can't be read.
        """
        rows = self._open().each("SELECT number, start, tokens FROM answers ORDER BY used")
        wanted = [
            _unpacked(number, start, tokens, vocab_size)
            for number, start, tokens in rows
            if number not in without
        ]
        strange = [one.number for one in wanted if not one.token_ids]
        if strange:
            log.warning("%d answers in %s make no sense and are deleted", len(strange), self.path)
            self.delete(strange)
        return [one for one in wanted if one.token_ids]

    def add(self, conversation_id: str, start: int, token_ids: array[int]) -> int | None:
        """Keep an answer.

        Returns:
            Its number; None where the conversation has the same one already, which is used again.

        Raises:
            StorageError: It can't be written.
        """
        database, tokens = self._open(), _packed(token_ids)
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
        """Drafts out of these answers were right: they are dropped last.

        Raises:
            StorageError: It can't be written.
        """
        database = self._open()
        with database.transaction():
            database.write_many(
                "UPDATE answers SET used = (SELECT max(used) + 1 FROM answers) WHERE number = ?",
                [(number,) for number in numbers],
            )

    def least_used(self, num_tokens: int) -> list[int]:
        """The answers that have been unused for longest, as many as have so many tokens.

        Raises:
            StorageError: It can't be read.
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
        """Forget answers.

        Raises:
            StorageError: It can't be written.
        """
        database = self._open()
        with database.transaction():
            database.write_many(
                "DELETE FROM answers WHERE number = ?", [(number,) for number in numbers]
            )

    def forget(self, conversation_ids: Collection[str] | None) -> None:
        """Forget what conversations taught, None for all of them: no byte of it stays.

        Raises:
            StorageError: It can't be written.
            RequestError: A damaged copy of the file, which may hold it, can't be deleted.
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
        """Close the file; may be called again."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self) -> Database:
        if self._database is None:
            self._database = open_database(self.path, _MIGRATIONS, busy_s=_BUSY_S)
            if self._database.notice:
                log.warning("%s", self._database.notice)
        return self._database

    def _remove_copies(self) -> None:
        for ending in ("damaged-*", "backup-*"):
            for copy in self.path.parent.glob(f"{self.path.name}.{ending}"):
                try:
                    copy.unlink(missing_ok=True)
                except OSError as error:
                    raise RequestError(
                        f"{copy} can't be deleted: {error.strerror or error}.",
                        "It may hold what was deleted: remove it yourself.",
                    ) from error


def _packed(token_ids: array[int]) -> bytes:
    return _in_file_order(token_ids).tobytes()


def _unpacked(number: int, start: int, tokens: bytes, vocab_size: int) -> AnswerText:
    """An answer as it lies in the file; without tokens where it can't be the model's."""
    token_ids = array("i")
    token_ids.frombytes(tokens[: len(tokens) // token_ids.itemsize * token_ids.itemsize])
    token_ids = _in_file_order(token_ids)
    fits = bool(token_ids) and min(token_ids) >= 0 and max(token_ids) < vocab_size
    fits = fits and 0 <= start < len(token_ids)
    return AnswerText(number, start, token_ids if fits else array("i"))


def _in_file_order(token_ids: array[int]) -> array[int]:
    """The numbers with their low bytes first."""
    if sys.byteorder == "little":
        return token_ids
    turned = array("i", token_ids)
    turned.byteswap()
    return turned
