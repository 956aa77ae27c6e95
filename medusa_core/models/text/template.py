"""Conversations to prompts, by a model's own chat template."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from medusa_core.errors import TemplateError
from medusa_core.messages import (
    ChatMessage,
    ReasoningFormat,
    Role,
    ThinkingSwitch,
    ToolCallFormat,
)
from medusa_core.models.text.conversation_fit import ConversationFit
from medusa_core.models.text.known_templates import is_shipped
from medusa_core.models.text.raw_text import RawText
from medusa_core.models.text.reasoning_formats import learn_reasoning
from medusa_core.models.text.rendering import Rendering
from medusa_core.models.text.template_process import TemplateProcess
from medusa_core.models.text.tool_calls.learn import learn_tool_call_format
from medusa_core.models.text.tool_calls.writing import omitted_format, with_written_calls
from medusa_core.models.text.turns import TemplateTurn, tool_as_json, turn_as_json, turns_of
from medusa_core.models.text.written_template import WrittenTemplate

_NUM_KEPT = 64  # openings of the turns of a conversation or two


class ChatTemplate:
    """A compiled chat template.

    Attributes:
        continues_text: It asks for answers, not for more of the text.
        source: The template itself.
        conversations: Rewrites conversations so that the template shows all of them.
    """

    continues_text = False

    def __init__(self, source: str, special_tokens: dict[str, str]) -> None:
        """Compile a template; a foreign one in a process of its own.

        Raises:
            TemplateError: It doesn't parse, or is out of bounds.
        """
        kind = Rendering if is_shipped(source) else TemplateProcess
        rendering = kind(source, special_tokens)
        self._rendering = rendering
        self._can_switch = bool(rendering.switch)
        self.source = source
        omitted = omitted_format(source)

        def render(
            turns: tuple[TemplateTurn, ...],
            opens_answer: bool,
            thinks: bool | None,
            tools: tuple[str, ...],
            _: datetime.date,
        ) -> str:
            # Texts are guarded by now, so that marks of calls are special tokens here.
            written = turns if omitted is None else [with_written_calls(t, omitted) for t in turns]
            messages, functions = list(map(turn_as_json, written)), list(map(tool_as_json, tools))
            return rendering.render(messages, opens_answer, thinks, functions)

        # Each turn of a conversation renders the openings of all earlier ones again.
        self._kept = kept = lru_cache(maxsize=_NUM_KEPT)(render)

        def probe(messages: Sequence[ChatMessage], tools: tuple[str, ...]) -> str:
            return kept(turns_of(messages), True, None, tools, datetime.date.today())

        self.conversations = ConversationFit(probe)

    @cached_property
    def reasoning(self) -> ReasoningFormat:
        """How it sets reasoning apart from the answer, without the ids of tokens."""
        return learn_reasoning(self._rendering.render, self.source)

    @cached_property
    def tool_calls(self) -> ToolCallFormat:
        """How its models write calls of functions."""

        def render(turns: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
            return self.render(turns, opens, tools=tools)

        return learn_tool_call_format(render, self.source, self.reasoning.response_ends)

    @cached_property
    def thinking(self) -> ThinkingSwitch:
        """What it does about thoughts before the answer."""
        opening = (ChatMessage(Role.USER, "a"),)

        def opens(thinks: bool | None) -> bool:
            try:
                prompt = self.render(opening, thinks=thinks).rstrip()
                return bool(self.reasoning.start) and prompt.endswith(self.reasoning.start)
            except TemplateError:  # which the first message will tell
                return False

        return ThinkingSwitch(self._can_switch, opens(None), opens(True))

    def render(
        self,
        messages: Sequence[ChatMessage],
        opens_answer: bool = True,
        thinks: bool | None = None,
        tools: tuple[str, ...] = (),
    ) -> str:
        """The prompt of a conversation.

        Args:
            messages: The turns, oldest first.
            opens_answer: End with the marker that asks for the assistant's answer.
            thinks: Whether to think before the answer; None for what the template takes for usual.
                Templates that know no such choice don't mind.
            tools: Functions that the model may call, as in `Generate`.

        Raises:
            TemplateError: The template refuses the conversation or fails.
        """
        # By text alone: hashing the answers' tokens would take longer than all else here.
        # The date takes part: a template may write it.
        turns = turns_of(messages)
        switch = thinks if self._can_switch else None
        text = self._kept(turns, opens_answer, switch, tools, datetime.date.today())
        _check_characters(text)
        return text


Template = ChatTemplate | RawText


def open_template(written: WrittenTemplate, knows: Callable[[str], bool]) -> Template:
    """The template that a model's files hold.

    Models that have none but are known (Vicuna, Llama 2) get the one they were trained on; all
    others are base models, which go on with a text.

    Args:
        written: What the files say.
        knows: Whether a text is one token of the model's tokenizer.

    Raises:
        TemplateError: It doesn't parse.
    """
    source = written.source_or_known(knows)
    return RawText() if source is None else ChatTemplate(source, written.tokens)


def _check_characters(text: str) -> None:
    """Refuse what no tokenizer reads."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TemplateError(
            f"The prompt holds half a character (U+{ord(text[error.start]):04X}).",
            "Take it out of the message, or mend the model's chat_template.jinja.",
        ) from error
