"""Retrieves passages of documents before a prompt is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.chat.calls import AnswerRun
from app.engine.loaded_model import LoadedModel
from app.state.documents import DocumentsState, PendingRetrieval
from medusa_core.chats.conversation import Conversation, Turn
from medusa_core.messages import Overflow

if TYPE_CHECKING:
    from app.state.documents import OnRetrieved

# The context of a model that isn't loaded yet, or whose endpoint doesn't tell it.
_LEAST_CONTEXT = 4_096
_BYTES_PER_TOKEN = 3  # as `medusa_core.documents.retrieval` estimates


class PassageRetrieval:
    """Retrieves the passages for new prompts of conversations that have collections.

    Attributes:
        documents: The collections.
        inherited: Returns the ids of the collections that a conversation (its id) has from its
            folder.
    """

    def __init__(self, documents: DocumentsState, loaded_model: LoadedModel) -> None:
        self.documents = documents
        self.inherited: Callable[[str], tuple[str, ...]] = lambda _id: ()
        self._loaded_model = loaded_model

    def collections_of(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the ids of all collections of a conversation, its folder's included."""
        own, inherited = conversation.collections, self.inherited(conversation.session_id)
        return tuple(dict.fromkeys((*inherited, *own)))

    def is_needed(self, conversation: Conversation, turn: Turn) -> bool:
        """Whether a turn waits for passages: its prompt is new, and there are collections.

        A prompt is new, too, if the program ended before its answer began.
        """
        has_answer = any(one.text for one in turn.prompt.answers if one is not turn.answer)
        is_new = not has_answer and not turn.prompt.passages and turn.answer.given is None
        is_first_round = len(turn.answer.rounds) == 1
        has_documents = self.documents.is_available and bool(self.collections_of(conversation))
        return is_new and is_first_round and has_documents

    def begin(self, run: AnswerRun, on_end: OnRetrieved) -> PendingRetrieval:
        """Begin to retrieve the passages for an answer to the last turn of its conversation."""
        from medusa_core.api import passage_room  # imports numpy, which takes time at start

        conversation = run.conversation
        *earlier, last = conversation.turns
        # The model reads no prompt without an answer, such as one that was stopped at once.
        read = [one for one in earlier if one.answer.messages(keeps_reasoning=False)] + [last]
        fixed = (*(one.text for one in run.system), *(one.tool.as_text for one in run.tools))
        num_fixed = sum(len(text.encode("utf-8", "replace")) for text in fixed)
        loaded = self._loaded_model.status.loaded
        context_tokens = (loaded.context_tokens if loaded is not None else 0) or _LEAST_CONTEXT
        if last.answer.settings.overflow is not Overflow.STOP:
            # Earlier ones may be left out of the prompt.
            read = _within(context_tokens, read, num_fixed)
        return self.documents.retrieve(
            self.collections_of(conversation),
            [one.prompt.text for one in conversation.turns],
            [passage for one in read for passage in one.prompt.passages],
            passage_room(context_tokens, num_fixed + sum(map(_num_bytes, read))),
            max((one.number for one in conversation.passages), default=0) + 1,
            on_end,
        )


def _num_bytes(turn: Turn) -> int:
    """Return the length of a turn's prompt and answer, the results of its calls included."""
    messages = (turn.prompt.message, *turn.answer.messages(keeps_reasoning=False))
    return sum(len(one.text.encode("utf-8", "replace")) for one in messages)


def _within(context_tokens: int, turns: list[Turn], num_fixed: int) -> list[Turn]:
    """Return the last turns that fit half of a context, which is never cut; the last one always.

    Args:
        context_tokens: The context.
        turns: All turns.
        num_fixed: Bytes of the system prompt and the tools.
    """
    first, num_bytes = len(turns) - 1, num_fixed + _num_bytes(turns[-1])
    while first > 0:
        num_bytes += _num_bytes(turns[first - 1])
        if num_bytes > context_tokens * _BYTES_PER_TOKEN // 2:
            break
        first -= 1
    return turns[first:]
