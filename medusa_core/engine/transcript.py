"""Render and tokenize a conversation; answers keep the token ids that were decoded.

Tokenizing an answer's text again may give other tokens than the model generated: its KV rows could
not be reused, and the model would see a history that it didn't write. So the template is rendered
with a marker in place of each answer, and the answer's own tokens are inserted there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from medusa_core.chats.tool_calls.whole import parse_answer
from medusa_core.errors import RequestError, TemplateError, TokenizerError
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, ReasoningFormat, Role, ToolCall, ToolCallFormat
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.models.text.name_guard import NameGuard
from medusa_core.models.text.template_messages import arguments_of

Render = Callable[[Sequence[ChatMessage]], str]
_MARKER = "\ue0a7{}\ue0a8"  # private use area: texts have no use for it


@dataclass(frozen=True, slots=True)
class Transcript:
    """A tokenized prompt.

    Attributes:
        prompt_ids: Tokens of the conversation, up to the start of the answer.
        given_ids: First tokens of the answer, if a partial answer is continued.
        next_id: The token after `given_ids` in that answer, if any.
        answers: Ranges (start, stop) of answers in `token_ids`; empty if the template doesn't
            reproduce them verbatim.
        prompt: The rendered prompt; empty if it was given as tokens.
    """

    prompt_ids: list[int]
    given_ids: list[int]
    next_id: int | None
    answers: tuple[tuple[int, int], ...] = ()
    prompt: str = ""

    def opens_reasoning(self, tags: ReasoningFormat) -> bool:
        """Whether the prompt ends with the start tag of the model's reasoning."""
        return bool(tags.start) and self.prompt.rstrip().endswith(tags.start)

    @property
    def token_ids(self) -> list[int]:
        """The prompt and the given tokens: everything that is prefilled."""
        return self.prompt_ids + self.given_ids


def transcribe(
    messages: Sequence[ChatMessage],
    keep_tokens: int | None,
    target: Target,
    thinks: bool | None = None,
    tools: tuple[str, ...] = (),
) -> Transcript:
    """Render and tokenize a conversation of any length.

    Args:
        messages: The conversation; an assistant's message at the end is an answer to continue.
        keep_tokens: Number of tokens of that answer to keep; None for all.
        target: The target, whose tokenizer and template are used.
        thinks: Whether to reason before the answer; None for the template's default.
        tools: Functions that the model may call, as in `Generate`.

    Raises:
        RequestError: There is nothing to answer.
        ModelError: The template or the tokenizer fails.
    """
    continues = bool(messages) and messages[-1].role is Role.ASSISTANT
    turns = messages[:-1] if continues else messages
    if not _has_question(turns):
        raise RequestError("There is nothing to answer.", "Write a message first.")
    as_decoded = tuple(_with_written_calls(turn, target, tools) for turn in turns)
    fitted = _fit_template(as_decoded, target, thinks, tools)
    prompt_ids, answers = _prompt_ids(fitted, target)
    if not answers and as_decoded != tuple(turns):
        # The template writes something else there, such as no reasoning: it writes the calls, too.
        fitted = _fit_template(turns, target, thinks, tools)
        prompt_ids, answers = _prompt_ids(fitted, target)
    answer_ids = decoded_ids(messages[-1], target) if continues else []
    kept = _continued_ids(answer_ids, messages[-1], keep_tokens, target)
    if kept:
        answers = (*answers, (len(prompt_ids), len(prompt_ids) + len(kept)))
    next_id = answer_ids[len(kept)] if len(kept) < len(answer_ids) else None
    transcript = Transcript(prompt_ids, kept, next_id, answers, fitted.prompt)
    _check_ids(transcript.token_ids, target)
    return transcript


def transcript_of(token_ids: Sequence[int], target: Target) -> Transcript:
    """Make the transcript of a prompt that is given as tokens.

    Raises:
        RequestError: A token isn't in the target's vocabulary.
    """
    vocab_size = target.config.vocab_size
    foreign = next((one for one in token_ids if not 0 <= one < vocab_size), None)
    if foreign is not None:
        raise RequestError(
            tr("Token {0} is none of the model's {1}.", foreign, vocab_size),
            "Token ids belong to one model: look them up again after changing it.",
        )
    return Transcript(list(token_ids), [], None)


def _has_question(turns: Sequence[ChatMessage]) -> bool:
    """Whether there is something to answer: a tool's result may be empty, a user's text may not."""
    last = next(
        (turn for turn in reversed(turns) if turn.text.strip() or turn.role is not Role.SYSTEM),
        None,
    )
    if last is None or last.role is Role.ASSISTANT:
        return False
    return last.role is Role.TOOL or bool(last.text.strip())


class _FittedTurns(NamedTuple):
    """A conversation in the form in which the template shows all of it.

    Attributes:
        turns: The messages.
        guarded: The messages with guarded names of special tokens.
        render: Renders messages.
        guard: Guards and restores names of special tokens.
    """

    turns: tuple[ChatMessage, ...]
    guarded: tuple[ChatMessage, ...]
    render: Render
    guard: NameGuard

    @property
    def prompt(self) -> str:
        """The rendered prompt."""
        return self.guard.without(self.render(self.guarded))


def _fit_template(
    turns: Sequence[ChatMessage], target: Target, thinks: bool | None, tools: tuple[str, ...]
) -> _FittedTurns:
    """Rewrite a conversation so that the template shows all of it."""
    template = target.template
    texts = () if template.continues_text else turns
    guard = NameGuard(texts, tools, target.tokenizer, template.reasoning)
    render = partial(template.render, thinks=thinks, tools=tuple(map(guard.tool, tools)))

    def guarded(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
        """Replace special tokens' names in messages; tags of reasoning only if needed."""
        names = tuple(map(guard.message, messages))
        tags = tuple(map(guard.message_with_reasoning, messages))
        is_same = names == tags or guard.without(render(names)) == guard.without(render(tags))
        return names if is_same else tags

    def prompt(messages: Sequence[ChatMessage]) -> str:
        """Render messages, with the names of special tokens restored."""
        return guard.without(render(guarded(messages)))

    fitting = template.conversations.fit(turns, prompt, bool(tools), template.reasoning)
    return _FittedTurns(fitting, guarded(fitting), render, guard)


def _continued_ids(
    answer_ids: list[int], answer: ChatMessage, keep_tokens: int | None, target: Target
) -> list[int]:
    """Tokens of a continued answer, up to `keep_tokens`; None for all but an EOS."""
    if keep_tokens is None:
        return (
            answer_ids[:-1] if answer_ids and answer_ids[-1] in target.eos_token_ids else answer_ids
        )
    if not 0 <= keep_tokens <= len(answer_ids) or tuple(answer_ids) != answer.token_ids:
        raise RequestError(
            tr("The answer can't be taken up again at token {0}.", keep_tokens),
            "Its tokens belong to another model or to another text: ask again instead.",
        )
    return answer_ids[:keep_tokens]


def _prompt_ids(
    fitted: _FittedTurns, target: Target
) -> tuple[list[int], tuple[tuple[int, int], ...]]:
    """Tokenize the turns; returns their tokens, and the ranges of answers among them."""
    decoded = {
        index: decoded_ids(message, target)
        for index, message in enumerate(fitted.turns)
        if message.token_ids and not message.tool_calls and message.role is Role.ASSISTANT
    }
    segments = _segments(fitted.guarded, decoded, fitted.render)
    tokenizer = target.tokenizer
    within = tokenizer.encode_within if target.template.continues_text else tokenizer.encode
    token_ids: list[int] = []
    answers = []
    for segment, index in zip(segments, (*decoded, None), strict=True):
        encode = within if token_ids else tokenizer.encode_prompt
        token_ids += fitted.guard.encode(segment, encode, tokenizer.encode_within)
        answer = [] if index is None else decoded[index]
        if answer and answer[-1] in target.eos_token_ids:
            answer = answer[:-1]  # the template ends its answers itself
        if answer:
            answers.append((len(token_ids), len(token_ids) + len(answer)))
        token_ids += answer
    return token_ids, tuple(answers)


def _segments(
    turns: Sequence[ChatMessage], decoded: dict[int, list[int]], render: Render
) -> list[str]:
    """The template's text before, between and after the answers in `decoded`.

    Clears `decoded` if the template doesn't reproduce these answers verbatim.
    """
    text = render(turns)
    marks = {index: _MARKER.format(index) for index in decoded}
    marked = [
        message.with_text(marks.get(index, message.text)) for index, message in enumerate(turns)
    ]
    segments = _split(render(marked), marks.values())
    if len(segments) != len(marks) + 1 or not _shows(text, segments, [turns[i] for i in marks]):
        decoded.clear()
        return [text]
    if not marks:
        return segments
    last = len(marks) - 1
    # Many templates write a space or a line break before an answer of the history that is not in
    # the generation prompt, after which the answer was decoded. If the first and the last answer
    # have the same space there, the others are taken to have it, too: each costs a rendering.
    ends = {_space(_opening(n, marks, marked, render), segments[n]) for n in {0, last}}
    for place in range(len(marks)):
        if len(ends) == 1:
            ((space, prompted),) = ends
        else:
            space, prompted = _space(_opening(place, marks, marked, render), segments[place])
        text = segments[place].rstrip()
        if space is not None and segments[place] == text + space:
            segments[place] = text + prompted
    return segments


def _opening(
    place: int, marks: dict[int, str], marked: Sequence[ChatMessage], render: Render
) -> str:
    """The generation prompt of an answer: the template's text since the answer before it."""
    indices = list(marks)
    before = marked[: indices[place]]
    try:
        opened = render(before) if before else ""
    except TemplateError:  # a template may refuse a beginning, such as one without a user's turn
        return ""
    return opened.rpartition(marks[indices[place - 1]])[2] if place else opened


def _space(opening: str, segment: str) -> tuple[str | None, str]:
    """Trailing whitespace of a segment and of the opening; (None, "") if their texts differ."""
    text = segment.rstrip()
    if opening.rstrip() != text:
        return None, ""
    return segment[len(text) :], opening[len(text) :]


def _split(text: str, marks: Iterable[str]) -> list[str]:
    """Split a text at markers, which must come in order."""
    parts: list[str] = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            return [*parts, before]
        parts.append(before)
    return [*parts, text]


def _shows(text: str, segments: Sequence[str], answers: Sequence[ChatMessage]) -> bool:
    """Whether the text is the segments with the answers between them, up to space at the ends."""
    at = 0
    for segment, answer in zip(segments, (*answers, None), strict=True):
        if not text.startswith(segment, at):
            return False
        at += len(segment)
        if answer is None:
            return at == len(text)
        forms = (answer.text, answer.text.lstrip(), answer.text.rstrip())
        fitting = [form for form in (*forms, answer.text.strip()) if text.startswith(form, at)]
        if not fitting:
            return False
        at += len(fitting[0])
    return False


def _with_written_calls(answer: ChatMessage, target: Target, tools: tuple[str, ...]) -> ChatMessage:
    """Return an answer with calls as the text that the model wrote.

    Returned unchanged if its tokens, which may be another model's, don't write its text and calls,
    or if the template accepts results after structured calls alone.
    """
    vocab_size = target.config.vocab_size
    shape = target.template.tool_calls if answer.tool_calls and answer.token_ids else None
    if shape is None or not shape.is_replayed:
        return answer
    if not all(0 <= token_id < vocab_size for token_id in answer.token_ids):
        return answer
    shape = shape.without_end(frozenset(_names_of(target.eos_token_ids, target)))
    described = [json.loads(tool) for tool in tools]
    known = {tool["name"] for tool in described}
    called = ({"name": call.name} for call in answer.tool_calls if call.name not in known)
    written = _with_markers(answer.token_ids, shape, target)
    said, calls = parse_answer(shape, (written,), (*described, *called))
    # White space around tags of reasoning is not part of a message's text.
    is_said = "".join(said.split()) == "".join(answer.text.split())
    if not is_said or _values(calls) != _values(answer.tool_calls):
        return answer
    text = target.tokenizer.decode(answer.token_ids)
    return ChatMessage(Role.ASSISTANT, text, answer.token_ids)


def _names_of(token_ids: Iterable[int], target: Target) -> list[str]:
    """Return the names of special tokens."""
    names = dict(target.tokenizer.special_tokens)
    return [names[token_id] for token_id in token_ids if token_id in names]


def _with_markers(token_ids: Sequence[int], shape: ToolCallFormat, target: Target) -> str:
    """Return the text of tokens with the special tokens that mark calls, which aren't text."""
    tokenizer = target.tokenizer
    markers = {
        token_id: name.encode()
        for token_id, name in tokenizer.special_tokens
        if name and any(name in text for text in shape.texts)
    }
    pieces = (markers.get(token_id) or tokenizer.bytes_of(token_id) for token_id in token_ids)
    return b"".join(pieces).decode("utf-8", "replace")


def _values(calls: Iterable[ToolCall]) -> list[tuple[str, object]]:
    """Return names and arguments of calls, to compare them."""
    return [(call.name, arguments_of(call)) for call in calls]


def decoded_ids(answer: ChatMessage, target: Target) -> list[int]:
    """Return an answer's decoded tokens as far as they match its text, and tokenize the rest.

    Of a message without such tokens all of the text is tokenized.
    """
    if not all(0 <= token_id < target.config.vocab_size for token_id in answer.token_ids):
        return target.tokenizer.encode(answer.text)  # another model's
    if target.tokenizer.writes(answer.token_ids, answer.text):
        return list(answer.token_ids)
    detokenizer = Detokenizer(target.tokenizer)
    wanted = answer.text.encode()
    num_kept, num_bytes, text = 0, 0, b""
    for index, token_id in enumerate(answer.token_ids, start=1):
        text += detokenizer.push(token_id)
        if not wanted.startswith(text):
            break
        if not detokenizer.is_open:
            num_kept, num_bytes = index, len(text)
    else:
        # The last character may be incomplete: it is shown as U+FFFD, or not at all.
        if wanted in (text, text + detokenizer.flush()):
            return list(answer.token_ids)
    rest = wanted[num_bytes:].decode()
    encode = target.tokenizer.encode_within if num_kept else target.tokenizer.encode
    return [*answer.token_ids[:num_kept], *encode(rest)]


def _check_ids(token_ids: Sequence[int], target: Target) -> None:
    """Check that the target can embed the tokens.

    Raises:
        ModelError: There are none, or the tokenizer belongs to another model.
    """
    if not token_ids:
        raise TemplateError(
            tr("The chat template of {0} writes nothing.", target.name), "Download the model again."
        )
    if min(token_ids) < 0 or max(token_ids) >= target.config.vocab_size:
        raise TokenizerError(
            tr(
                "The tokenizer gives token {0}, but {1} knows only {2}.",
                max(token_ids),
                target.name,
                target.config.vocab_size,
            ),
            "The tokenizer belongs to another model; download both again.",
        )
