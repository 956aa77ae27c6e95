"""Save answers while they are generated, and at their end."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.chats.answer_text import AnswerText, text_spans
from medusa_core.chats.history.answer_rows import (
    done_text,
    reasoning_format_text,
    reasoning_of,
    spans_text,
)
from medusa_core.chats.history.call_rows import CALL_COLUMNS, row_of_call
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
from medusa_core.chats.reasoning import AnswerSpans, answer_text
from medusa_core.chats.rounds import CallState, RoundCall
from medusa_core.messages import THINK_TAGS, GenerationDone, ReasoningFormat, StepDone


class Answers(Messages):
    """Part of the history that saves answers."""

    def begin_answer(self, message: Stored) -> None:
        """Add a round that is about to be generated, after its prompt or the round before.

        Raises:
            RequestError: Conversation or parent were deleted, or the message exists already.
            StorageError: The database can't be written.
        """
        assert message.answer is not None
        with self._database.transaction():
            self._add(message)

    def name_model(self, message_id: str, model: str, model_key: str) -> None:
        """Set the model of an answer.

        Args:
            message_id: Id of the answer.
            model: Display name of the model.
            model_key: Folder or id of the model.

        Raises:
            RequestError: The answer was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            self._database.write(
                "UPDATE answers SET model = ?, model_key = ? WHERE message = ?",
                *(clean(model), clean(model_key), self._message(message_id)),
            )

    def set_reasoning(
        self, message_id: str, reasoning: ReasoningFormat, begins_inside: bool
    ) -> None:
        """Set the reasoning format of an answer.

        Args:
            message_id: Id of the answer.
            reasoning: Reasoning format of the model.
            begins_inside: Whether the prompt ends with the start tag.

        Raises:
            RequestError: The answer was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            self._database.write(
                "UPDATE answers SET reasoning = ?, begins_inside = ? WHERE message = ?",
                *(reasoning_format_text(reasoning), begins_inside, self._message(message_id)),
            )

    def append_steps(self, message_id: str, steps: Sequence[StepDone]) -> None:
        """Save the next steps of an answer.

        Raises:
            RequestError: The answer was deleted.
            StorageError: The database can't be written.
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
        calls: Sequence[RoundCall] = (),
    ) -> None:
        """Save the end of a round.

        Args:
            message_id: Id of the answer.
            text: The whole text.
            done: Figures of the answer; None if it was cut or failed.
            state: Final state.
            spans: Spans of the text that are reasoning or answer; None if unknown.
            calls: Tool calls of the round.

        Raises:
            RequestError: The answer was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._message(message_id)
            self._finish(number, text, done, state, spans)
            self._add_calls(number, calls)
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
        """Write text, figures, state and spans of an ended answer."""
        self._database.write("UPDATE messages SET text = ? WHERE number = ?", clean(text), number)
        self._database.write(
            "UPDATE answers SET state = ?, done = ?, spans = ? WHERE message = ?",
            *(state.value, done_text(done), spans_text(spans), number),
        )
        self._index(number, answer_text(text, text_spans(text) if spans is None else spans))

    def save_call(self, message_id: str, place: int, call: RoundCall) -> None:
        """Save the state of a call, before it is run and at its end.

        Args:
            message_id: Id of its round.
            place: Index of the call in the round.
            call: The call, with its result if it has ended.

        Raises:
            RequestError: The answer was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._message(message_id)
            self._database.write(
                f"UPDATE calls SET ({CALL_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?)"
                " WHERE message = ? AND place = ?",
                *(*row_of_call(call), number, place),
            )
            self._database.write("DELETE FROM images WHERE message = ? AND call = ?", number, place)
            if call.result is not None:
                self._add_images(number, place, call.result.content)

    def is_requested(self, message_id: str, place: int) -> bool:
        """Return whether a call waits for a decision; another program may have run it.

        Args:
            message_id: Id of its round.
            place: Index of the call in the round.

        Raises:
            StorageError: The database can't be read.
        """
        decided = self._database.row(
            "SELECT 1 FROM calls JOIN messages ON messages.number = calls.message"
            " WHERE messages.id = ? AND calls.place = ? AND calls.state <> ?",
            *(message_id, place, CallState.REQUESTED.value),
        )
        return decided is None

    def cut_unfinished(self) -> None:
        """End the answers of a killed program with the steps that were saved.

        No call of it runs again: one that ran is interrupted, an approved one needs approval again.

        Raises:
            StorageError: The database can't be read or written.
        """
        unfinished = self._database.rows(
            "SELECT message, begins_inside, reasoning FROM answers WHERE state = 'streaming'"
        )
        for number, begins_inside, reasoning in unfinished:
            packs = self._database.rows(
                "SELECT packed FROM steps WHERE message = ? ORDER BY number", number
            )
            steps = unpack_steps(pack for (pack,) in packs)
            tags = reasoning_of(reasoning)
            content = AnswerText(tags or THINK_TAGS, bool(begins_inside))
            content.append(*steps)
            content.finish()
            spans = None if tags is None else tuple(content.spans)
            with self._database.transaction():
                self._finish(number, content.text, None, AnswerState.CUT, spans)
        with self._database.transaction():
            self._database.write(
                "UPDATE calls SET"
                " state = CASE state WHEN 'running' THEN 'interrupted' ELSE 'requested' END,"
                " approval = CASE state WHEN 'running' THEN approval ELSE '' END"
                " WHERE state IN ('approved', 'running')"  # as the index `calls_under_way` has it
            )
