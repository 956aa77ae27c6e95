"""What the history holds. Plain data, for the screens too."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.history.packing import unpack_steps
from medusa_core.chats.reasoning import AnswerSpan, AnswerSpans, text_spans
from medusa_core.messages import (
    GenerateSettings,
    GenerationDone,
    ReasoningFormat,
    Role,
    StepDone,
)


class AnswerState(str, Enum):
    """How far an answer is."""

    STREAMING = "streaming"
    DONE = "done"
    CUT = "cut"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What is known of an answer besides its text.

    Attributes:
        model: Name of the model for people.
        model_key: Its folder or id, to know whether the same one is loaded.
        state: How far it is.
        settings: What it was asked for with.
        done: How it ended; None if it was cut or failed.
        packed_steps: Its steps as they lie in the file.
        begins_inside: Its prompt opened the reasoning.
        reasoning: How its model sets reasoning apart; None where that isn't known.
        spans: Which of its text is reasoning; None where that isn't known.
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

    @property
    def steps(self) -> tuple[StepDone, ...]:
        """Its steps, unpacked anew by each call: some 10 µs a step."""
        return unpack_steps(self.packed_steps)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message.

    Attributes:
        id: Its name.
        conversation_id: Where it belongs.
        parent_id: The message before it; None for a first one.
        role: Who speaks.
        text: What is said.
        created_s: When, in seconds since 1970.
        attachments: Files that belong to a prompt.
        answer: What is known of an answer; None for a prompt.
    """

    id: str
    conversation_id: str
    parent_id: str | None
    role: Role
    text: str
    created_s: float
    attachments: tuple[Attachment, ...] = ()
    answer: StoredAnswer | None = None

    @property
    def spans(self) -> AnswerSpans:
        """Which of its text is reasoning: of a prompt, nothing."""
        if self.role is not Role.ASSISTANT:
            return (AnswerSpan(0, len(self.text), False),)
        known = None if self.answer is None else self.answer.spans
        return text_spans(self.text) if known is None else known


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation without its messages.

    Attributes:
        id: Its name.
        title: For lists.
        has_own_title: The user named it.
        folder_id: The folder it lies in; None for none.
        is_pinned: It stays on top.
        created_s: When it began, in seconds since 1970.
        changed_s: When something was last said, by the clock of then.
        trashed_s: When it was put into the trash; None if it isn't there.
        leaf_id: The message at the end of the path that the user sees; None while it is empty.
        num_messages: Messages on all paths.
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
        id: Its name for the program.
        name: Its name for people.
    """

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A place where a search found something.

    Attributes:
        conversation_id: The conversation.
        message_id: The message; empty where the title was found.
        title: The conversation's title.
        snippet: The text around it.
        spans: Where the words are in the snippet: (first character, behind the last).
    """

    conversation_id: str
    message_id: str
    title: str
    snippet: str
    spans: tuple[tuple[int, int], ...]
