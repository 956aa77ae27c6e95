"""Records of the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from medusa_core.chats.answer_text import text_spans
from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.history.packing import unpack_steps
from medusa_core.chats.reasoning import AnswerSpan, AnswerSpans
from medusa_core.chats.rounds import RoundCall
from medusa_core.messages import (
    Content,
    GenerateSettings,
    GenerationDone,
    ReasoningFormat,
    Role,
    StepDone,
    content_text,
)


class AnswerState(str, Enum):
    """State of an answer."""

    STREAMING = "streaming"
    DONE = "done"
    CUT = "cut"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A round of an answer without its text.

    Attributes:
        model: Display name of the model.
        model_key: Folder or id of the model, to compare it with the loaded one.
        state: State of the answer.
        settings: Generation settings.
        done: Final event; None if the answer was cut or failed.
        packed_steps: Steps as stored.
        begins_inside: Whether the prompt ends with the start tag of reasoning.
        reasoning: Reasoning format of the model; None if unknown.
        spans: Spans of the text that are reasoning or answer; None if unknown.
        calls: Tool calls of the round.
    """

    model: str
    model_key: str
    state: AnswerState = AnswerState.STREAMING
    settings: GenerateSettings = field(default_factory=GenerateSettings)
    done: GenerationDone | None = None
    packed_steps: tuple[bytes, ...] = ()
    begins_inside: bool = False
    reasoning: ReasoningFormat | None = None
    spans: AnswerSpans | None = None
    calls: tuple[RoundCall, ...] = ()

    @property
    def steps(self) -> tuple[StepDone, ...]:
        """Steps of the answer, unpacked at each access: some 10 µs per step."""
        return unpack_steps(self.packed_steps)


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored message of a conversation, on any branch: a prompt, or a round of an answer.

    Attributes:
        id: Id of the message.
        conversation_id: Id of its conversation.
        parent_id: Id of the message before it; None for a first one. That of a later round of an
            answer is the round before.
        role: Role of the message.
        content: Text, images and passages of the message.
        created_s: Unix time of its creation in seconds.
        attachments: Attachments of a prompt.
        answer: Data of an answer; None for a prompt.
    """

    id: str
    conversation_id: str
    parent_id: str | None
    role: Role
    content: Content
    created_s: float
    attachments: tuple[Attachment, ...] = ()
    answer: StoredAnswer | None = None

    @property
    def text(self) -> str:
        """Text of the message."""
        return content_text(self.content)

    @property
    def calls(self) -> tuple[RoundCall, ...]:
        """Tool calls of a round."""
        return () if self.answer is None else self.answer.calls

    @property
    def spans(self) -> AnswerSpans:
        """Reasoning spans of the text; a prompt has no reasoning."""
        if self.role is not Role.ASSISTANT:
            return (AnswerSpan(0, len(self.text), False),)
        known = None if self.answer is None else self.answer.spans
        return text_spans(self.text) if known is None else known


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation without its messages.

    Attributes:
        id: Id of the conversation.
        title: Title in lists.
        has_own_title: Whether the user set the title.
        folder_id: Id of its folder; None for none.
        is_pinned: Whether it is pinned to the top.
        created_s: Unix time of its creation in seconds.
        changed_s: Unix time of its last message in seconds.
        trashed_s: Unix time at which it was put into the trash; None outside the trash.
        leaf_id: Id of the last message of the path that the user sees; None for none.
        num_messages: Number of messages on all paths.
    """

    id: str
    title: str
    has_own_title: bool
    folder_id: str | None
    is_pinned: bool
    created_s: float
    changed_s: float
    trashed_s: float | None
    leaf_id: str | None
    num_messages: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of conversations.

    Attributes:
        id: Id of the folder.
        name: Name of the folder.
    """

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A result of a search.

    Attributes:
        conversation_id: Id of the conversation.
        message_id: Id of the message; empty for a match in the title.
        title: Title of the conversation.
        snippet: Text around the match.
        spans: Spans (start, end) of the words in the snippet.
    """

    conversation_id: str
    message_id: str
    title: str
    snippet: str
    spans: tuple[tuple[int, int], ...]
