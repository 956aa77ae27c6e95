"""Fit conversations to a chat template: learned from probes, checked on every prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise

from medusa_core.errors import TemplateError
from medusa_core.i18n import tr
from medusa_core.messages import THINK_TAGS, ChatMessage, ReasoningFormat, Role, ToolCall
from medusa_core.models.text.conversation_form import Calls, ConversationForm, Systems
from medusa_core.models.text.presence import first_missing

_EXCERPT_CHARS = 40

# Words that no template holds: only a text that is unique can be missed.
_SYSTEMS, _USERS, _ANSWERS = (
    [ChatMessage(role, f"{role.value} probe {letter}q7") for letter in "abcd"]
    for role in (Role.SYSTEM, Role.USER, Role.ASSISTANT)
)
_CALLS = [
    ToolCall(
        f"call_probe_{letter}_0123456", f"probe_{letter}", f'{{"key_{letter}": "is {letter}"}}'
    )
    for letter in "xy"
]
_RESULTS = [
    ChatMessage(Role.TOOL, f"result of {call.name}", tool_name=call.name, call_id=call.call_id)
    for call in _CALLS
]
_TOOLS = tuple(
    json.dumps({"name": call.name, "description": "", "parameters": {"type": "object"}})
    for call in _CALLS
)
_SYSTEM_PROBE = (
    *(_SYSTEMS[0], _SYSTEMS[1], _USERS[0], _ANSWERS[0], _SYSTEMS[2], _USERS[1], _ANSWERS[1]),
    _SYSTEMS[3],
)
_NEIGHBOUR_PROBES = (
    (_USERS[0], _USERS[1], _ANSWERS[0], _ANSWERS[1], _USERS[2]),
    (_ANSWERS[0], _USERS[0]),
)


def _call_probe(text: str, num_calls: int, *, is_answered: bool = True) -> tuple[ChatMessage, ...]:
    """Make a probe: a conversation with an answer that calls functions."""
    answer = ChatMessage(Role.ASSISTANT, text, tool_calls=tuple(_CALLS[:num_calls]))
    end = (_ANSWERS[1], _USERS[1]) if is_answered else (_USERS[1],)
    return (_USERS[0], answer, *_RESULTS[:num_calls], *end)


# By the field of a form that they decide.
_CALL_PROBES = {
    "calls_with_text": _call_probe(_ANSWERS[0].text, 1),
    "parallel_calls": _call_probe("", 2),
    "calls_before_question": _call_probe("", 1, is_answered=False),
}


class ConversationFit:
    """Rewrites conversations for one template so that their prompts hold all texts in order.

    How the template treats later system messages, consecutive messages of one role and calls is
    found by rendering probes, when a conversation first contains one of these. So the form depends
    on the template alone, and the prompt of a longer conversation begins with that of the shorter
    one. Each prompt is still checked: if a text is missing, forms that change more are tried.
    """

    def __init__(self, render: Callable[[Sequence[ChatMessage], tuple[str, ...]], str]) -> None:
        """Learn nothing yet.

        Args:
            render: Renders messages, with functions that may be called.
        """
        self._render = render
        self._call_forms: dict[bool, ConversationForm] = {}

    def fit(
        self,
        messages: Sequence[ChatMessage],
        render: Callable[[Sequence[ChatMessage]], str],
        has_tools: bool,
        reasoning: ReasoningFormat = THINK_TAGS,
    ) -> tuple[ChatMessage, ...]:
        """Rewrite a conversation so that the template shows all of it.

        Args:
            render: Renders messages as the prompt will be rendered.
            has_tools: Whether the request offers functions.
            reasoning: Format of the reasoning in answers.

        Returns:
            The rewritten conversation.

        Raises:
            TemplateError: The template refuses the conversation in every form, or omits a message.
        """
        problem: TemplateError | None = None
        tried: list[tuple[ChatMessage, ...]] = []
        for form in self._find_form(messages, has_tools).alternatives():
            rewritten = form.apply(messages)
            if rewritten in tried:
                continue
            tried.append(rewritten)
            try:
                prompt = render(rewritten)
            except TemplateError as error:
                if not error.data.get("is_refusal"):
                    raise
                problem = problem or error
            else:
                # A template that writes nothing at all is told when there are no tokens.
                if not prompt or first_missing(rewritten, prompt, reasoning) is None:
                    return rewritten
                problem = problem or _left_out(messages, prompt, reasoning)
        assert problem is not None  # there is one form at least
        try:
            raise problem
        finally:
            # An error that its own frame holds would keep the model until garbage is collected.
            problem = None

    def _find_form(self, messages: Sequence[ChatMessage], has_tools: bool) -> ConversationForm:
        """Return the form for the features (system messages, calls, …) of a conversation."""
        roles = [message.role for message in messages]
        form = ConversationForm()
        if Role.TOOL in roles or any(message.tool_calls for message in messages):
            form = self._call_form(has_tools)
        if Role.SYSTEM in roles:
            form = form._replace(systems=self._systems)
        if form.systems or roles[:1] != [Role.USER] or _has_neighbours(roles):
            form = form._replace(merges=self._merges)
        return form

    @cached_property
    def _systems(self) -> Systems:
        """Which system messages the template renders, found by a probe on first use."""
        forms = [ConversationForm(one, self._merges) for one in Systems]
        return self._first_fitting(forms, [_SYSTEM_PROBE], ()).systems

    @cached_property
    def _merges(self) -> bool:
        """Whether consecutive messages of one role must be merged for the template."""
        forms = [ConversationForm(merges=merges) for merges in (False, True)]
        return self._first_fitting(forms, _NEIGHBOUR_PROBES, ()).merges

    def _call_form(self, has_tools: bool) -> ConversationForm:
        """Return the form for conversations with tool calls, found by probes and cached."""
        found = self._call_forms.get(has_tools)
        if found is None:
            tools = _TOOLS if has_tools else ()
            forms = [
                ConversationForm(
                    merges=self._merges,
                    calls=calls,
                    has_text_arguments=texts,
                    has_short_ids=short,
                )
                for calls in (Calls.KEPT, Calls.TEXT)
                for texts in (False, True)
                for short in (False, True)
            ]
            found = self._first_fitting(forms, [_call_probe("", 1)], tools)
            for name, probe in _CALL_PROBES.items():
                forms = [ConversationForm(**{**found._asdict(), name: calls}) for calls in Calls]
                found = self._first_fitting(forms, [probe], tools)
            self._call_forms[has_tools] = found
        return found

    def _first_fitting(
        self,
        forms: Sequence[ConversationForm],
        probes: Iterable[Sequence[ChatMessage]],
        tools: tuple[str, ...],
    ) -> ConversationForm:
        """Return the first form that renders all probes in full; the first of all if none does."""
        fitting = (
            form for form in forms if all(self._shows(form.apply(one), tools) for one in probes)
        )
        return next(fitting, forms[0])

    def _shows(self, messages: Sequence[ChatMessage], tools: tuple[str, ...]) -> bool:
        """Whether the rendered prompt contains the texts of all messages."""
        try:
            prompt = self._render(messages, tools)
        except TemplateError as error:
            if not error.data.get("is_refusal"):
                raise
            return False
        return first_missing(messages, prompt) is None


def _has_neighbours(roles: Sequence[Role]) -> bool:
    """Whether two consecutive messages have the same role."""
    return any(a is b for a, b in pairwise(roles))


def _left_out(
    messages: Sequence[ChatMessage], prompt: str, reasoning: ReasoningFormat
) -> TemplateError:
    """Make the error that quotes the first message missing from the prompt."""
    index = first_missing(messages, prompt, reasoning) or 0
    message = messages[index]
    text = message.text or next((call.name for call in message.tool_calls), "")
    excerpt = text if len(text) <= _EXCERPT_CHARS else f"{text[:_EXCERPT_CHARS]}…"
    return TemplateError(
        tr(
            "The chat template leaves out message {0} ({1}): {2}.",
            index + 1,
            message.role.value,
            repr(excerpt),
        ),
        "Put its text into the message before or after it, or choose another model.",
        is_refusal=True,
    )
