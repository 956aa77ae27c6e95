"""Learn the reasoning format of a chat template by rendering synthetic conversations."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from medusa_core.errors import TemplateError
from medusa_core.messages import NO_REASONING, THINK_TAGS, ReasoningFormat
from medusa_core.models.text.tokenizer import Tokenizer

RenderTurns = Callable[[Sequence[Mapping[str, Any]], bool, bool | None], str]

_MOST_S = 2.0
_QUESTION, _REASONING, _ANSWER = "zqquestion", "zqreasoning", "zqanswer"
_TAG = re.compile(r"<[^<>\s][^<>\n]{0,40}>|\[/?[A-Z][A-Z_ ]{1,40}\]")
_NAMED_TAG = re.compile(r"<(\w[\w:.-]{1,40})>")
_MOST_TAG_CHARS = 100
_USER = {"role": "user", "content": _QUESTION}
_FIELDS = dict.fromkeys(("reasoning_content", "reasoning", "thinking", "thought"), _REASONING)
_CALL = {
    "id": "call00000",
    "type": "function",
    "function": {"name": _ANSWER, "arguments": {"a": "b"}},
}
# An assistant's turn with reasoning, in the forms in which templates take it.
_ANSWERS: tuple[dict[str, Any], ...] = (
    {"content": _ANSWER, **_FIELDS},
    {
        "content": [
            {"type": "thinking", "thinking": _REASONING},
            {"type": "text", "text": _ANSWER},
        ]
    },
    {
        "content": {
            "blocks": [
                {"type": "thoughts", "text": _REASONING},
                {"type": "response", "text": _ANSWER},
            ]
        }
    },
    {"content": "", "tool_calls": [_CALL], **_FIELDS},
)
# What rendering doesn't show: texts of the template, and the format of its models.
_KNOWN: tuple[tuple[tuple[str, ...], ReasoningFormat], ...] = (
    (
        ("<|channel|>", "analysis", "<|message|>"),
        ReasoningFormat(
            "<|channel|>analysis<|message|>",
            "<|end|>",
            "<|start|>assistant",
            ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
        ),
    ),
    (
        ("<|START_THINKING|>",),
        ReasoningFormat(
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            responses=("<|START_RESPONSE|>", "<|START_TEXT|>"),
            response_ends=("<|END_RESPONSE|>", "<|END_TEXT|>"),
        ),
    ),
    (
        ("[BEGIN FINAL RESPONSE]",),
        ReasoningFormat(
            "Here are my reasoning steps:",
            "[BEGIN FINAL RESPONSE]",
            response_ends=("[END FINAL RESPONSE]",),
        ),
    ),
    (
        ("Here is my thought process:", "Here is my response:"),
        ReasoningFormat("Here is my thought process:", "Here is my response:"),
    ),
    (
        ("between <think></think>", "between <response></response>"),
        ReasoningFormat(responses=("<response>",), response_ends=("</response>",)),
    ),
    (("[THINK]", "[/THINK]"), ReasoningFormat("[THINK]", "[/THINK]")),
    (("<|inner_prefix|>",), ReasoningFormat("<|inner_prefix|>", "<|inner_suffix|>")),
    (("<|channel>thought", "<channel|>"), ReasoningFormat("<|channel>thought", "<channel|>")),
    (
        ("<|open|>", "<|close|>", "<|sep|>", "think", "response"),
        ReasoningFormat(
            "<|open|>think<|sep|>",
            "<|close|>think<|sep|>",
            responses=("<|open|>response<|sep|>",),
            response_ends=("<|close|>response<|sep|>", "<|close|>message<|sep|>"),
        ),
    ),
)


def learn_reasoning(render: RenderTurns, source: str) -> ReasoningFormat:
    """Learn the reasoning format of a template; `NO_REASONING` if it neither shows nor names any.

    Args:
        render: Renders messages, with or without the generation prompt, thinking or not; raises
            `TemplateError` where the template refuses.
        source: The template's source.
    """
    for texts, known in _KNOWN:
        if all(text in source for text in texts):
            return known
    prompts = _Prompts(render)
    openings = [prompts.after_question([_USER], True, thinks) for thinks in (None, True, False)]
    found = [opening for opening in openings if opening]
    for answer in _ANSWERS:
        for thinks in (None, True):
            written = prompts.after_question(
                [_USER, {"role": "assistant", **answer}], False, thinks
            )
            learned = _format_of(written, found)
            if learned is not None:
                return learned
    default = THINK_TAGS if any(tag in source for tag in THINK_TAGS.tags) else NO_REASONING
    return next(_named_formats(found, source), default)


def with_token_ids(tags: ReasoningFormat, tokenizer: Tokenizer) -> ReasoningFormat:
    """Return the format with the token ids of those parts of its tags that are tokens.

    A vocabulary with tokens for `<think>` tags belongs to a reasoning model, even if its template
    shows no reasoning. Without them the same characters are text: an answer may quote them.
    """
    if not tags.start and all(tokenizer.token_id(tag) is not None for tag in THINK_TAGS.tags):
        tags = THINK_TAGS
    names = {part for tag in tags.tags for part in (tag, *_TAG.findall(tag))}
    ids = ((tokenizer.token_id(name), name) for name in sorted(names))
    return tags._replace(tokens=tuple((number, name) for number, name in ids if number is not None))


class _Prompts:
    """Renders prompts within a time limit; refused or late ones are empty texts."""

    def __init__(self, render: RenderTurns) -> None:
        self._render = render
        self._end_s = time.monotonic() + _MOST_S

    def after_question(
        self, messages: Sequence[Mapping[str, Any]], opens_answer: bool, thinks: bool | None
    ) -> str:
        """Render messages; return the text after the question."""
        if time.monotonic() > self._end_s:
            return ""
        try:
            text = self._render(messages, opens_answer, thinks)
        except TemplateError:
            return ""
        return text.rpartition(_QUESTION)[2]


def _format_of(written: str, openings: Sequence[str]) -> ReasoningFormat | None:
    """Derive the format from a rendered turn; None if it has no reasoning before the answer.

    Args:
        written: The rendered text after the question.
        openings: Generation prompts, some of which may open the reasoning.
    """
    before, found, rest = written.partition(_REASONING)
    between, answers, behind = rest.partition(_ANSWER)
    if not found or not answers or not between.strip():
        return None
    start = _start_of(before, openings)
    end, header, response = _split_between(between.strip(), openings)
    first = _TAG.match(behind.strip())
    ends = (first.group(),) if response and first is not None else ()
    learned = ReasoningFormat(start, end, header, (response,) if response else (), ends)
    is_sound = start and end and start != end
    return learned if is_sound and all(map(_is_tag, learned.tags)) else None


def _start_of(lead: str, openings: Sequence[str]) -> str:
    """Return the start tag: the text before the reasoning that a generation prompt lacks.

    If every generation prompt opens the reasoning, it is the last tag that tells this prompt from
    the others.
    """
    bare = [one.rstrip() for one in openings if lead.startswith(one.rstrip())]
    longer = [lead[len(one) :].strip() for one in bare]
    if shortest := min(filter(None, longer), key=len, default=""):
        return shortest
    text = lead.rstrip()
    others = [one.rstrip() for one in openings if one.rstrip() != text]
    for place in sorted((tag.start() for tag in _TAG.finditer(text)), reverse=True):
        start = text[place:]
        if not any(one.endswith(start) for one in others):
            return start
    return ""


def _split_between(between: str, openings: Sequence[str]) -> tuple[str, str, str]:
    """Split the text between reasoning and answer: end tag, message header, response tag."""
    bare = min(openings, key=len, default="").rstrip()
    for tag in _TAG.finditer(bare):
        header = bare[tag.start() :]
        end, found, response = between.partition(header)
        if found and end.strip():
            return end.strip(), header, response.strip()
    first = _TAG.match(between)
    if first is None:
        return "", "", ""
    rest = between[first.end() :].strip()
    is_tag = _TAG.fullmatch(rest) is not None and rest != f"<{_ANSWER}>"
    return first.group(), "", rest if is_tag else ""


def _named_formats(openings: Sequence[str], source: str) -> Iterator[ReasoningFormat]:
    """Yield formats of paired tags, such as `<reason>`, with which a generation prompt ends."""
    for opening in openings:
        for name in _NAMED_TAG.findall(opening)[-1:]:
            start, end = f"<{name}>", f"</{name}>"
            is_last = opening.rstrip().endswith((start, end))
            if is_last and start in source and end in source:
                yield ReasoningFormat(start, end)


def _is_tag(text: str) -> bool:
    """Whether a text is short enough for a tag and contains no probe text."""
    sentinels = (_QUESTION, _REASONING, _ANSWER)
    return len(text) <= _MOST_TAG_CHARS and not any(one in text for one in sentinels)
