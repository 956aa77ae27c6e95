"""Answers while they are written, and how they end."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.chats.history.answer_rows import done_text
from medusa_core.chats.history.messages import Messages
from medusa_core.chats.history.packing import (
    pack_steps,
    unpack_steps,
)
from medusa_core.chats.history.part import clean
from medusa_core.chats.history.records import (
    AnswerState,
    Stored,
)
from medusa_core.messages import GenerationDone, StepDone, shown_text


class Answers(Messages):
    """What comes step by step."""

    def begin_answer(self, message: Stored) -> None:
        """Add an answer that is written from now on; the user is there then.

        Raises:
            RequestError: The conversation or the parent isn't here any more, or the message is.
            StorageError: It can't be written.
        """
        assert message.answer is not None
        with self._database.transaction():
            self._add(message)

    def name_model(self, message_id: str, model: str, model_key: str) -> None:
        """Say which model writes an answer.

        Args:
            message_id: The answer.
            model: Name for people.
            model_key: Its folder or id.

        Raises:
            RequestError: The answer isn't here any more.
            StorageError: It can't be written.
        """
        with self._database.transaction():
            self._database.write(
                "UPDATE answers SET model = ?, model_key = ? WHERE message = ?",
                *(clean(model), clean(model_key), self._message(message_id)),
            )

    def append_steps(self, message_id: str, steps: Sequence[StepDone]) -> None:
        """Keep the next steps of an answer that is being written.

        Raises:
            RequestError: The answer isn't here any more.
            StorageError: They can't be written.
        """
        if not steps:
            return
        packed = pack_steps(steps)
        with self._database.transaction():
            self._database.write(
                "INSERT INTO steps (message, packed) VALUES (?, ?)",
                *(self._message(message_id), packed),
            )

    def finish_answer(
        self,
        message_id: str,
        text: str,
        done: GenerationDone | None,
        state: AnswerState,
    ) -> None:
        """Keep how an answer ended.

        Args:
            message_id: The answer.
            text: All of it.
            done: Its figures; None if it was cut or failed.
            state: How it ended.

        Raises:
            RequestError: The answer isn't here any more.
            StorageError: It can't be written.
        """
        with self._database.transaction():
            number = self._message(message_id)
            self._finish(number, text, done, state)
            row = self._database.row("SELECT conversation FROM messages WHERE number = ?", number)
            assert row is not None
            self._touch(row[0])

    def _finish(
        self,
        number: int,
        text: str,
        done: GenerationDone | None,
        state: AnswerState,
    ) -> None:
        self._database.write("UPDATE messages SET text = ? WHERE number = ?", clean(text), number)
        self._database.write(
            "UPDATE answers SET state = ?, done = ? WHERE message = ?",
            *(state.value, done_text(done), number),
        )
        self._index(number, text)

    def cut_unfinished(self) -> None:
        """Answers that were being written when the program ended keep what was appended of them.

        Raises:
            StorageError: They can't be read or written.
        """
        unfinished = self._database.rows("SELECT message FROM answers WHERE state = 'streaming'")
        for (number,) in unfinished:
            packs = self._database.rows(
                "SELECT packed FROM steps WHERE message = ? ORDER BY number", number
            )
            text = shown_text(unpack_steps(pack for (pack,) in packs))
            with self._database.transaction():
                self._finish(number, text, None, AnswerState.CUT)
