"""Answers while they are written, and how they end."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.chats.history.answer_rows import (
    done_text,
    reasoning_format_text,
    reasoning_of,
    spans_text,
)
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
from medusa_core.chats.reasoning import AnswerSpans, answer_text, find_spans, text_spans
from medusa_core.messages import GenerationDone, ReasoningFormat, StepDone, shown_text


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

    def set_reasoning(
        self, message_id: str, reasoning: ReasoningFormat, begins_inside: bool
    ) -> None:
        """Say how the model that writes an answer sets reasoning apart.

        Args:
            message_id: The answer.
            reasoning: The model's format.
            begins_inside: The prompt opened the reasoning.

        Raises:
            RequestError: The answer isn't here any more.
            StorageError: It can't be written.
        """
        with self._database.transaction():
            self._database.write(
                "UPDATE answers SET reasoning = ?, begins_inside = ? WHERE message = ?",
                *(reasoning_format_text(reasoning), begins_inside, self._message(message_id)),
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
        spans: AnswerSpans | None = None,
    ) -> None:
        """Keep how an answer ended.

        Args:
            message_id: The answer.
            text: All of it.
            done: Its figures; None if it was cut or failed.
            state: How it ended.
            spans: Which of its text is reasoning; None where that isn't known.

        Raises:
            RequestError: The answer isn't here any more.
            StorageError: It can't be written.
        """
        with self._database.transaction():
            number = self._message(message_id)
            self._finish(number, text, done, state, spans)
            row = self._database.row("SELECT conversation FROM messages WHERE number = ?", number)
            assert row is not None
            self._touch(row[0])

    def _finish(
        self,
        number: int,
        text: str,
        done: GenerationDone | None,
        state: AnswerState,
        spans: AnswerSpans | None,
    ) -> None:
        self._database.write("UPDATE messages SET text = ? WHERE number = ?", clean(text), number)
        self._database.write(
            "UPDATE answers SET state = ?, done = ?, spans = ? WHERE message = ?",
            *(state.value, done_text(done), spans_text(spans), number),
        )
        self._index(number, answer_text(text, text_spans(text) if spans is None else spans))

    def cut_unfinished(self) -> None:
        """Answers that were being written when the program ended keep what was appended of them.

        Raises:
            StorageError: They can't be read or written.
        """
        unfinished = self._database.rows(
            "SELECT message, begins_inside, reasoning FROM answers WHERE state = 'streaming'"
        )
        for number, begins_inside, written in unfinished:
            packs = self._database.rows(
                "SELECT packed FROM steps WHERE message = ? ORDER BY number", number
            )
            steps = unpack_steps(pack for (pack,) in packs)
            text = shown_text(steps)
            tags = reasoning_of(written)
            spans = None if tags is None else find_spans(steps, text, tags, bool(begins_inside))
            with self._database.transaction():
                self._finish(number, text, None, AnswerState.CUT, spans)
