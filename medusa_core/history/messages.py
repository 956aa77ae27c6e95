"""The tree of messages, which only grows, and answers while they are written."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from medusa_core.errors import RequestError
from medusa_core.files.database import Row
from medusa_core.history.folding import fold
from medusa_core.history.packing import (
    done_as_json,
    done_from_json,
    pack_steps,
    settings_as_json,
    settings_from_json,
    text_of,
    unpack_steps,
)
from medusa_core.history.part import Part, clean
from medusa_core.history.records import AnswerState, Stored, StoredAnswer, StoredAttachment
from medusa_core.messages import GenerateSettings, GenerationDone, Role, StepDone


class Messages(Part):
    """What was said."""

    def messages(self, conversation_id: str) -> tuple[Stored, ...]:
        """All messages of a conversation, on all paths, in the order they came.

        Raises:
            RequestError: The conversation isn't here any more.
            StorageError: The history can't be read.
        """
        number = self._conversation(conversation_id)
        rows = self._database.rows(
            "SELECT m.number, m.id, p.id, m.role, m.text, m.created_s FROM messages AS m"
            " LEFT JOIN messages AS p ON p.number = m.parent"
            " WHERE m.conversation = ? ORDER BY m.number",
            number,
        )
        texts = {row[0]: row[4] for row in rows}
        attachments = self._attachments(number)
        answers = self._answers(number, texts)
        return tuple(
            Stored(
                name,
                conversation_id,
                parent,
                Role(role),
                text,
                created_s,
                tuple(attachments.get(key, ())),
                answers.get(key),
            )
            for key, name, parent, role, text, created_s in rows
        )

    def _attachments(self, conversation: int) -> dict[int, list[StoredAttachment]]:
        found: dict[int, list[StoredAttachment]] = defaultdict(list)
        for key, *values in self._database.rows(
            "SELECT a.message, a.name, a.media_type, a.text, a.num_tokens, a.num_bytes"
            " FROM messages AS m JOIN attachments AS a ON a.message = m.number"
            " WHERE m.conversation = ? ORDER BY a.number",
            conversation,
        ):
            found[key].append(StoredAttachment(*values))
        return found

    def _answers(self, conversation: int, texts: dict[int, str]) -> dict[int, StoredAnswer]:
        packs: dict[int, list[bytes]] = defaultdict(list)
        for key, pack in self._database.rows(
            "SELECT s.message, s.packed FROM messages AS m JOIN steps AS s ON s.message = m.number"
            " WHERE m.conversation = ? ORDER BY s.number",
            conversation,
        ):
            packs[key].append(pack)
        rows = self._database.rows(
            "SELECT a.message, a.model, a.model_key, a.state, a.settings, a.done, a.plain_step_s"
            " FROM messages AS m JOIN answers AS a ON a.message = m.number"
            " WHERE m.conversation = ?",
            conversation,
        )
        return {row[0]: _answer(row[1:], texts[row[0]], packs.get(row[0], ())) for row in rows}

    def add_prompt(self, message: Stored) -> None:
        """Add a prompt or a system message; the user is there then.

        Raises:
            RequestError: The conversation or the parent isn't here any more, or the message is.
            StorageError: It can't be written.
        """
        with self._database.transaction():
            self._add(message)

    def begin_answer(self, message: Stored) -> None:
        """Add an answer that is written from now on; the user is there then.

        Raises:
            RequestError: The conversation or the parent isn't here any more, or the message is.
            StorageError: It can't be written.
        """
        assert message.answer is not None
        with self._database.transaction():
            self._add(message)

    def _add(self, message: Stored) -> None:
        conversation = self._conversation(message.conversation_id)
        parent = None if message.parent_id is None else self._message(message.parent_id)
        number = self._insert(conversation, parent, message.id, message)
        self._touch(conversation, number)

    def _insert(self, conversation: int, parent: int | None, name: str, message: Stored) -> int:
        """Write a message; returns its number."""
        number = self._database.write(
            "INSERT INTO messages (id, conversation, parent, role, text, created_s)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            *(name, conversation, parent, message.role.value),
            *(clean(message.text), message.created_s),
        )
        self._database.write_many(
            "INSERT INTO attachments (message, name, media_type, text, num_tokens, num_bytes)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [
                (number, clean(a.name), a.media_type, clean(a.text), a.num_tokens, a.num_bytes)
                for a in message.attachments
            ],
        )
        if message.answer is not None:
            self._add_answer(number, message.answer)
        self._index(number, message.text, message.attachments)
        return number

    def _add_answer(self, number: int, answer: StoredAnswer) -> None:
        done = None if answer.done is None else json.dumps(done_as_json(answer.done))
        self._database.write(
            "INSERT INTO answers (message, model, model_key, state, settings, done, plain_step_s)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(number, clean(answer.model), clean(answer.model_key), answer.state.value),
            *(json.dumps(settings_as_json(answer.settings)), done, answer.plain_step_s),
        )
        self._database.write_many(
            "INSERT INTO steps (message, packed) VALUES (?, ?)",
            [(number, pack) for pack in answer.packed_steps],
        )

    def append_steps(self, message_id: str, steps: Sequence[StepDone]) -> None:
        """Keep the next steps of an answer that is being written.

        Raises:
            RequestError: The answer isn't here any more.
            StorageError: They can't be written.
        """
        if steps:
            self._database.write(
                "INSERT INTO steps (message, packed) VALUES (?, ?)",
                *(self._message(message_id), pack_steps(steps)),
            )

    def finish_answer(
        self,
        message_id: str,
        text: str,
        done: GenerationDone | None,
        state: AnswerState,
        plain_step_s: float = 0.0,
    ) -> None:
        """Keep how an answer ended.

        Args:
            message_id: The answer.
            text: All of it.
            done: Its figures; None if it was cut or failed.
            state: How it ended.
            plain_step_s: Measured seconds of a plain step then; 0 if unknown.

        Raises:
            RequestError: The answer isn't here any more.
            StorageError: It can't be written.
        """
        number = self._message(message_id)
        with self._database.transaction():
            self._finish(number, text, done, state, plain_step_s)
            row = self._database.row("SELECT conversation FROM messages WHERE number = ?", number)
            assert row is not None
            self._touch(row[0])

    def _finish(
        self,
        number: int,
        text: str,
        done: GenerationDone | None,
        state: AnswerState,
        plain_step_s: float,
    ) -> None:
        self._database.write("UPDATE messages SET text = ? WHERE number = ?", clean(text), number)
        self._database.write(
            "UPDATE answers SET state = ?, done = ?, plain_step_s = ? WHERE message = ?",
            *(state.value, None if done is None else json.dumps(done_as_json(done))),
            *(plain_step_s, number),
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
            text = text_of(unpack_steps(pack for (pack,) in packs))
            with self._database.transaction():
                self._finish(number, text, None, AnswerState.CUT, 0.0)

    def set_leaf(self, conversation_id: str, message_id: str) -> None:
        """Remember which path of the tree the user sees, by its end.

        Raises:
            RequestError: One of them isn't here any more, or the message is of another one.
            StorageError: It can't be written.
        """
        conversation, number = self._conversation(conversation_id), self._message(message_id)
        row = self._database.row("SELECT conversation FROM messages WHERE number = ?", number)
        if row is None or row[0] != conversation:
            raise RequestError("The message belongs to another conversation.")
        self._database.write(
            "UPDATE conversations SET leaf = ? WHERE number = ?", number, conversation
        )

    def _touch(self, conversation: int, new_leaf: int | None = None) -> None:
        """Something was said now."""
        now_s = self._clock()
        self._database.write(
            "UPDATE conversations SET changed_s = ?, place = ?, leaf = coalesce(?, leaf),"
            " num_messages = num_messages + ? WHERE number = ?",
            *(now_s, self._next_place(now_s), new_leaf, new_leaf is not None, conversation),
        )

    def _index(self, number: int, text: str, attachments: Iterable[StoredAttachment] = ()) -> None:
        words = "\n".join((text, *(attachment.name for attachment in attachments)))
        self._database.write("DELETE FROM message_words WHERE rowid = ?", number)
        if words:
            self._database.write(
                "INSERT INTO message_words (rowid, words) VALUES (?, ?)", number, fold(clean(words))
            )


def _answer(row: Row, text: str, packs: Iterable[bytes]) -> StoredAnswer:
    model, model_key, state, settings, done, plain_step_s = row
    return StoredAnswer(
        model,
        model_key,
        AnswerState(state),
        _settings(settings),
        _done(done, text),
        plain_step_s,
        tuple(packs),
    )


def _settings(text: str) -> GenerateSettings:
    try:
        return settings_from_json(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        return GenerateSettings()


def _done(text: str | None, answer: str) -> GenerationDone | None:
    """Figures, unless they are damaged or those of another version."""
    if text is None:
        return None
    try:
        return done_from_json(json.loads(text), answer)
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
