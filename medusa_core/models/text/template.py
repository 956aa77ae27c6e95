"""Render conversations as prompts, with a model's own chat template."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from medusa_core.errors import TemplateError
from medusa_core.i18n import tr
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
from medusa_core.models.text.template_messages import (
    TemplateMessage,
    message_as_json,
    strip_token_ids,
    tool_as_json,
)
from medusa_core.models.text.template_process import TemplateProcess
from medusa_core.models.text.tool_calls.learn import learn_tool_call_format
from medusa_core.models.text.tool_calls.writing import omitted_format, with_written_calls
from medusa_core.models.text.written_template import WrittenTemplate

_CACHE_SIZE = 64  # prompts: openings of the turns of a conversation or two


class ChatTemplate:
    """A compiled chat template.

    Attributes:
        continues_text: False: prompts ask for answers.
        source: Source of the template.
        conversations: Rewrites conversations so that prompts contain all messages.
    """

    continues_text = False

    def __init__(self, source: str, special_tokens: dict[str, str]) -> None:
        """Compile a template; one that isn't shipped in a process of its own.

        Raises:
            TemplateError: It doesn't parse, or exceeds a limit.
        """
        kind = Rendering if is_shipped(source) else TemplateProcess
        rendering = kind(source, special_tokens)
        self._rendering = rendering
        self._can_switch = bool(rendering.switch)
        self.source = source
        omitted = omitted_format(source)

        def render(
            messages: tuple[TemplateMessage, ...],
            opens_answer: bool,
            thinks: bool | None,
            tools: tuple[str, ...],
            _: datetime.date,
        ) -> str:
            """Render messages whose names of special tokens are guarded; cached."""
            # Names in messages are guarded already, so the markers of calls become special tokens.
            if omitted is not None:
                messages = tuple(with_written_calls(one, omitted) for one in messages)
            shown, functions = list(map(message_as_json, messages)), list(map(tool_as_json, tools))
            return rendering.render(shown, opens_answer, thinks, functions)

        # Each turn of a conversation renders the openings of all earlier turns again.
        self._cached = cached = lru_cache(maxsize=_CACHE_SIZE)(render)

        def probe(messages: Sequence[ChatMessage], tools: tuple[str, ...]) -> str:
            """Render a synthetic conversation, to learn which form the template accepts."""
            return cached(strip_token_ids(messages), True, None, tools, datetime.date.today())

        self.conversations = ConversationFit(probe)

    @cached_property
    def reasoning(self) -> ReasoningFormat:
        """The reasoning format, without token ids."""
        return learn_reasoning(self._rendering.render, self.source)

    @cached_property
    def tool_calls(self) -> ToolCallFormat:
        """How the model writes tool calls, learned from the template."""

        def render(messages: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
            """Render a synthetic conversation with tools."""
            return self.render(messages, opens, tools=tools)

        return learn_tool_call_format(render, self.source, self.reasoning.response_ends)

    @cached_property
    def thinking(self) -> ThinkingSwitch:
        """Whether reasoning can be switched, and its default."""
        opening = (ChatMessage(Role.USER, "a"),)

        def starts_reasoning(thinks: bool | None) -> bool:
            """Whether the generation prompt opens the reasoning."""
            try:
                prompt = self.render(opening, thinks=thinks).rstrip()
                return bool(self.reasoning.start) and prompt.endswith(self.reasoning.start)
            except TemplateError:  # the first real message raises it again
                return False

        return ThinkingSwitch(self._can_switch, starts_reasoning(None), starts_reasoning(True))

    def render(
        self,
        messages: Sequence[ChatMessage],
        opens_answer: bool = True,
        thinks: bool | None = None,
        tools: tuple[str, ...] = (),
    ) -> str:
        """Render a conversation to a prompt with guarded names of special tokens.

        Args:
            opens_answer: Whether to end with the generation prompt.
            thinks: Whether to reason before the answer; None for the template's default. Ignored
                by templates without a switch.
            tools: Functions that the model may call, as in `Generate`.

        Raises:
            TemplateError: The template refuses the conversation or fails.
        """
        # The cache's key has no token ids: hashing those of answers would take longer than all
        # else. It has the date, which templates may write.
        plain = strip_token_ids(messages)
        switch = thinks if self._can_switch else None
        text = self._cached(plain, opens_answer, switch, tools, datetime.date.today())
        _check_characters(text)
        return text


Template = ChatTemplate | RawText


def open_template(written: WrittenTemplate, knows: Callable[[str], bool]) -> Template:
    """Compile a model's chat template.

    Well-known models without one (Vicuna, Llama 2) get the template they were trained with; all
    others are base models, which continue a text.

    Args:
        written: The template and its tokens, as in the model's files.
        knows: Whether a text is one token of the model.

    Raises:
        TemplateError: It doesn't parse.
    """
    source = written.source_or_known(knows)
    return RawText() if source is None else ChatTemplate(source, written.tokens)


def _check_characters(text: str) -> None:
    """Refuse prompts with unpaired surrogates, which no tokenizer can read."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TemplateError(
            tr("The prompt holds half a character (U+{0:04X}).", ord(text[error.start])),
            "Take it out of the message, or mend the model's chat_template.jinja.",
        ) from error
