"""Prompts of base models, which have no chat template: they continue the text."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.messages import DESCRIBED_JSON, NO_REASONING, NO_SWITCH, ChatMessage
from medusa_core.models.text.conversation_fit import ConversationFit


class RawText:
    """Joins all texts of a conversation, without anything between them; see `ChatTemplate`.

    Attributes:
        continues_text: True: nothing separates the turns.
        conversations: Writes tool calls as text.
        source: Empty.
        thinking: No switch.
        reasoning: Base models aren't trained to reason.
        tool_calls: A system message describes functions.
    """

    continues_text = True
    source = ""
    thinking = NO_SWITCH
    reasoning = NO_REASONING
    tool_calls = DESCRIBED_JSON

    def __init__(self) -> None:
        self.conversations = ConversationFit(lambda messages, _: self.render(messages))

    def render(
        self,
        messages: Sequence[ChatMessage],
        opens_answer: bool = True,
        thinks: bool | None = None,
        tools: tuple[str, ...] = (),
    ) -> str:
        """Join the texts of a conversation; the other arguments are ignored."""
        return "".join(message.text for message in messages)
