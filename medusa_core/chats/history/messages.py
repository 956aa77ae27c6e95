"""The append-only tree of messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.history.answer_rows import (
    ANSWER_COLUMNS,
    answer_of,
    row_of,
)
from medusa_core.chats.history.call_rows import (
    CALL_COLUMNS,
    PASSAGE_COLUMNS,
    call_of,
    content_of,
    images_of,
    row_of_call,
    row_of_passage,
)
from medusa_core.chats.history.folding import fold
from medusa_core.chats.history.part import (
    HistoryPart,
    clean,
)
from medusa_core.chats.history.records import (
    AnswerState,
    Stored,
    StoredAnswer,
)
from medusa_core.chats.reasoning import answer_text
from medusa_core.chats.rounds import RoundCall
from medusa_core.errors import RequestError
from medusa_core.messages import (
    THINK_TAGS,
    Content,
    ImagePart,
    PassagePart,
    Role,
    content_passages,
)

_PlacedImage = tuple[int, ImagePart]


class Messages(HistoryPart):
    """The part of the history that stores messages."""

    def messages(self, conversation_id: str) -> tuple[Stored, ...]:
        """Return all messages of a conversation, on all paths, in the order of creation.

        An unfinished answer has the text of the steps so far.

        Raises:
            RequestError: The conversation was deleted.
            StorageError: The history can't be read.
        """
        with self._database.snapshot():
            return self._read_messages(conversation_id, self._conversation(conversation_id))

    def _read_messages(self, conversation_id: str, number: int) -> tuple[Stored, ...]:
        """Read all messages with attachments and answers in a few queries."""
        rows = self._database.rows(
            "SELECT m.number, m.id, p.id, m.role, m.text, m.created_s FROM messages AS m"
            " LEFT JOIN messages AS p ON p.number = m.parent"
            " WHERE m.conversation = ? ORDER BY m.number",
            number,
        )
        texts = {row[0]: row[4] for row in rows}
        attachments, images = self._attachments(number), self._images(number)
        passages = self._passages(number)
        answers = self._answers(number, texts, images)
        messages = []
        for key, name, parent, role, text, created_s in rows:
            answer, files = answers.get(key), tuple(attachments.get(key, ()))
            if not text and answer is not None and answer.state is AnswerState.STREAMING:
                text, answer = _partial_answer(answer)
            content = content_of(text, images.get((key, None), ()))
            content = (*passages.get(key, ()), *content)
            message = (name, conversation_id, parent, Role(role), content, created_s, files, answer)
            messages.append(Stored(*message))
        return tuple(messages)

    def _attachments(self, conversation: int) -> dict[int, list[Attachment]]:
        """Return the attachments of a conversation by message number."""
        found: dict[int, list[Attachment]] = defaultdict(list)
        for key, *values in self._database.rows(
            "SELECT a.message, a.name, a.media_type, a.text, a.num_bytes"
            " FROM messages AS m JOIN attachments AS a ON a.message = m.number"
            " WHERE m.conversation = ? ORDER BY a.number",
            conversation,
        ):
            found[key].append(Attachment(*values))
        return found

    def _passages(self, conversation: int) -> dict[int, list[PassagePart]]:
        """Return the passages of a conversation by message number."""
        found: dict[int, list[PassagePart]] = defaultdict(list)
        columns = ", ".join(f"p.{column}" for column in PASSAGE_COLUMNS.split(", "))
        for key, *values in self._database.rows(
            f"SELECT p.message, {columns}"
            " FROM messages AS m JOIN passages AS p ON p.message = m.number"
            " WHERE m.conversation = ? ORDER BY p.number",
            conversation,
        ):
            found[key].append(PassagePart(*values))
        return found

    def _images(self, conversation: int) -> dict[tuple[int, int | None], list[_PlacedImage]]:
        """Return the images of a conversation by message number, and place of a call or None."""
        found: dict[tuple[int, int | None], list[_PlacedImage]] = defaultdict(list)
        for key, call, position, media_type, data in self._database.rows(
            "SELECT i.message, i.call, i.position, i.media_type, b.data"
            " FROM messages AS m JOIN images AS i ON i.message = m.number"
            " JOIN blobs AS b ON b.number = i.blob"
            " WHERE m.conversation = ? ORDER BY i.number",
            conversation,
        ):
            found[key, call].append((position, ImagePart(media_type, data)))
        return found

    def _calls(
        self, conversation: int, images: dict[tuple[int, int | None], list[_PlacedImage]]
    ) -> dict[int, tuple[RoundCall, ...]]:
        """Return the tool calls of a conversation by message number."""
        found: dict[int, tuple[RoundCall, ...]] = {}
        for key, place, *row in self._database.rows(
            f"SELECT c.message, c.place, {CALL_COLUMNS}"
            " FROM messages AS m JOIN calls AS c ON c.message = m.number"
            " WHERE m.conversation = ? ORDER BY c.message, c.place",
            conversation,
        ):
            call = call_of(tuple(row), images.get((key, place), ()))
            found[key] = (*found.get(key, ()), call)
        return found

    def _answers(
        self,
        conversation: int,
        texts: dict[int, str],
        images: dict[tuple[int, int | None], list[_PlacedImage]],
    ) -> dict[int, StoredAnswer]:
        """Return the rounds of a conversation's answers by message number."""
        calls = self._calls(conversation, images)
        packs: dict[int, list[bytes]] = defaultdict(list)
        for key, pack in self._database.rows(
            "SELECT s.message, s.packed FROM messages AS m JOIN steps AS s ON s.message = m.number"
            " WHERE m.conversation = ? ORDER BY s.number",
            conversation,
        ):
            packs[key].append(pack)
        rows = self._database.rows(
            f"SELECT message, {ANSWER_COLUMNS} FROM answers"
            " WHERE message IN (SELECT number FROM messages WHERE conversation = ?)",
            conversation,
        )
        return {
            key: answer_of(tuple(row), texts[key], packs.get(key, ()), calls.get(key, ()))
            for key, *row in rows
        }

    def add_prompt(self, message: Stored) -> None:
        """Add a prompt or a system message, which becomes the leaf.

        Raises:
            RequestError: Conversation or parent were deleted, or the message exists already.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            self._add(message)

    def _add(self, message: Stored) -> None:
        """Insert a message after its parent and make it the leaf."""
        conversation = self._conversation(message.conversation_id)
        parent = None if message.parent_id is None else self._message(message.parent_id)
        number = self._insert(conversation, parent, message.id, message)
        self._touch(conversation, number)

    def _insert(self, conversation: int, parent: int | None, name: str, message: Stored) -> int:
        """Insert a message with attachments and answer; return its row number."""
        number = self._database.write(
            "INSERT INTO messages (id, conversation, parent, role, text, created_s)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            *(name, conversation, parent, message.role.value),
            *(clean(message.text), message.created_s),
        )
        self._database.write_many(
            "INSERT INTO attachments (message, name, media_type, text, num_bytes)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (number, clean(a.name), a.media_type, clean(a.text), a.num_bytes)
                for a in message.attachments
            ],
        )
        self._add_images(number, None, message.content)
        self._add_passages(number, content_passages(message.content))
        if message.answer is not None:
            self._add_answer(number, message.answer)
        self._index(number, answer_text(message.text, message.spans), message.attachments)
        return number

    def _add_answer(self, number: int, answer: StoredAnswer) -> None:
        """Insert a round of an answer with its packed steps and calls."""
        self._database.write(
            f"INSERT INTO answers (message, {ANSWER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(number, *row_of(answer)),
        )
        self._database.write_many(
            "INSERT INTO steps (message, packed) VALUES (?, ?)",
            [(number, pack) for pack in answer.packed_steps],
        )
        self._add_calls(number, answer.calls)

    def _add_calls(self, number: int, calls: Iterable[RoundCall]) -> None:
        """Insert the tool calls of a round."""
        for place, call in enumerate(calls):
            self._database.write(
                f"INSERT INTO calls (message, place, {CALL_COLUMNS})"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(number, place, *row_of_call(call)),
            )
            if call.result is not None:
                self._add_images(number, place, call.result.content)

    def _add_images(self, number: int, call: int | None, content: Content) -> None:
        """Insert the images of a message, or of the result of one of its calls."""
        for position, image in images_of(content):
            self._database.write(
                "INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
                *(image.digest, image.data),
            )
            self._database.write(
                "INSERT INTO images (message, call, position, media_type, blob)"
                " SELECT ?, ?, ?, ?, number FROM blobs WHERE digest = ?",
                *(number, call, position, clean(image.media_type), image.digest),
            )

    def set_passages(self, message_id: str, passages: Sequence[PassagePart]) -> None:
        """Replace the passages of a prompt by those that were retrieved for it.

        Raises:
            RequestError: The prompt was deleted.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            number = self._message(message_id)
            self._database.write("DELETE FROM passages WHERE message = ?", number)
            self._add_passages(number, passages)

    def _add_passages(self, number: int, passages: Iterable[PassagePart]) -> None:
        """Insert the passages of a prompt."""
        self._database.write_many(
            f"INSERT INTO passages (message, {PASSAGE_COLUMNS})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(number, *row_of_passage(passage)) for passage in passages],
        )

    def set_leaf(self, conversation_id: str, message_id: str) -> None:
        """Set the leaf of the path that the user sees.

        Raises:
            RequestError: Conversation or message were deleted, or don't belong together.
            StorageError: The database can't be written.
        """
        with self._database.transaction():
            conversation, number = self._conversation(conversation_id), self._message(message_id)
            row = self._database.row("SELECT conversation FROM messages WHERE number = ?", number)
            if row is None or row[0] != conversation:
                raise RequestError("The message belongs to another conversation.")
            self._database.write(
                "UPDATE conversations SET leaf = ? WHERE number = ?", number, conversation
            )

    def _touch(self, conversation: int, new_leaf: int | None = None) -> None:
        """Update the time of the last change, and move the conversation to the top."""
        now_s = self._clock()
        self._database.write(
            "UPDATE conversations SET changed_s = ?, place = ?, leaf = coalesce(?, leaf),"
            " num_messages = num_messages + ? WHERE number = ?",
            *(now_s, self._next_place(now_s), new_leaf, new_leaf is not None, conversation),
        )

    def _index(self, number: int, text: str, attachments: Iterable[Attachment] = ()) -> None:
        """Update a message's text and file names in the search index."""
        words = "\n".join((text, *(attachment.name for attachment in attachments)))
        self._database.write("DELETE FROM message_words WHERE rowid = ?", number)
        if words:
            self._database.write(
                "INSERT INTO message_words (rowid, words) VALUES (?, ?)", number, fold(clean(words))
            )


def _partial_answer(answer: StoredAnswer) -> tuple[str, StoredAnswer]:
    """Return the text of an unfinished answer, and the answer with reasoning spans."""
    content = AnswerText(answer.reasoning or THINK_TAGS, answer.begins_inside)
    content.append(*answer.steps)
    content.finish()
    if answer.reasoning is None:
        return content.text, answer
    return content.text, replace(answer, spans=tuple(content.spans))
