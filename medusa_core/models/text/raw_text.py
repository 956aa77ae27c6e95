"""Prompts without a chat template: a base model goes on with the text as it stands."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.messages import DESCRIBED_JSON, NO_REASONING, NO_SWITCH, ChatMessage
from medusa_core.models.text.conversation_fit import ConversationFit


class RawText:
    """What a base model reads in the place of a rendered template: all texts, end to end.

    Attributes:
        continues_text: The target goes on with the text: nothing is put between the turns.
        conversations: All that is written stays, calls as text.
        source: There is no template.
        thinking: Such a model isn't told whether to think.
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
        """The text of a conversation, with nothing added.

        Args:
            messages: The turns, oldest first.
            opens_answer: Changes nothing: no marker asks for an answer.
            thinks: Changes nothing.
            tools: Change nothing.
        """
        return "".join(message.content for message in messages)
