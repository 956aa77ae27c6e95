"""A conversation as token ids, in which every answer stays the tokens it was decoded as.

An answer read back from its text may become other tokens than the model wrote: its cached rows
would be worthless, and the model would read a history that it never wrote. So the template is
rendered with a mark in the place of each answer, and the answer's own tokens are put there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from medusa_core.errors import RequestError, TemplateError, TokenizerError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, ReasoningFormat, Role
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.models.text.name_guard import NameGuard

Render = Callable[[Sequence[ChatMessage]], str]
_MARK = "\ue0a7{}\ue0a8"  # of the private use area: no text means anything by it


@dataclass(frozen=True, slots=True)
class Transcript:
    """What the target reads before it writes.

    Attributes:
        prompt_ids: The conversation, up to where the answer begins.
        given_ids: Tokens of the answer that are given already; it goes on behind them.
        next_id: The token that followed them in the answer they are taken from, if any.
        answers: Where tokens of answers lie in `token_ids`: from, to. Empty where the template
            doesn't show them as they were written.
        prompt: The conversation as text; empty where it is given as tokens.
    """

    prompt_ids: list[int]
    given_ids: list[int]
    next_id: int | None
    answers: tuple[tuple[int, int], ...] = ()
    prompt: str = ""

    def opens_reasoning(self, tags: ReasoningFormat) -> bool:
        """Whether the prompt ends within the model's reasoning.

        Args:
            tags: The model's format.
        """
        return bool(tags.start) and self.prompt.rstrip().endswith(tags.start)

    @property
    def token_ids(self) -> list[int]:
        """All that is to be read."""
        return self.prompt_ids + self.given_ids


def transcribe(
    messages: Sequence[ChatMessage],
    keep_tokens: int | None,
    target: Target,
    thinks: bool | None = None,
    tools: tuple[str, ...] = (),
) -> Transcript:
    """The token ids of a conversation, however long it is.

    Args:
        messages: The turns; an assistant's message at the end is an answer to go on with.
        keep_tokens: How many tokens of that answer to keep; None for all.
        target: Its tokenizer and template are used.
        thinks: Whether to think before the answer; None for the template's usual.
        tools: Functions that the model may call, as in `Generate`.

    Raises:
        RequestError: There is nothing to answer.
        ModelError: The template or the tokenizer can't serve.
    """
    goes_on = bool(messages) and messages[-1].role is Role.ASSISTANT
    turns = messages[:-1] if goes_on else messages
    if not _asks(turns):
        raise RequestError("There is nothing to answer.", "Write a message first.")
    read = _read(turns, target, thinks, tools)
    prompt_ids, answers = _prompt_ids(read, target)
    prefix_ids = _written_ids(messages[-1], target) if goes_on else []
    kept = _keep(prefix_ids, messages[-1], keep_tokens, target)
    if kept:
        answers = (*answers, (len(prompt_ids), len(prompt_ids) + len(kept)))
    next_id = prefix_ids[len(kept)] if len(kept) < len(prefix_ids) else None
    transcript = Transcript(prompt_ids, kept, next_id, answers, read.text)
    _check_ids(transcript.token_ids, target)
    return transcript


def transcript_of(token_ids: Sequence[int], target: Target) -> Transcript:
    """A prompt that is given as tokens, which stay as they are.

    Raises:
        RequestError: A token is none of the target's.
    """
    vocab_size = target.config.vocab_size
    foreign = next((one for one in token_ids if not 0 <= one < vocab_size), None)
    if foreign is not None:
        raise RequestError(
            f"Token {foreign} is none of the model's {vocab_size}.",
            "Token ids belong to one model: look them up again after changing it.",
        )
    return Transcript(list(token_ids), [], None)


def _asks(turns: Sequence[ChatMessage]) -> bool:
    """Is there something to answer? A tool's result may be empty, a user's message may not."""
    answerable = (turn for turn in reversed(turns) if turn.content.strip() or not _is_system(turn))
    last = next(answerable, None)
    if last is None or last.role is Role.ASSISTANT:
        return False
    return last.role is Role.TOOL or bool(last.content.strip())


def _is_system(turn: ChatMessage) -> bool:
    return turn.role is Role.SYSTEM


class _Read(NamedTuple):
    """A conversation as the template takes it.

    Attributes:
        turns: Its messages.
        guarded: The same, names of special tokens in them guarded.
        render: Renders messages.
        guard: What guards them.
    """

    turns: tuple[ChatMessage, ...]
    guarded: tuple[ChatMessage, ...]
    render: Render
    guard: NameGuard

    @property
    def text(self) -> str:
        """The prompt as text."""
        return self.guard.without(self.render(self.guarded))


def _read(
    turns: Sequence[ChatMessage], target: Target, thinks: bool | None, tools: tuple[str, ...]
) -> _Read:
    """Find the form in which the template shows all of a conversation."""
    template = target.template
    texts = () if template.continues_text else turns
    guard = NameGuard(texts, tools, target.tokenizer, template.reasoning)
    render = partial(template.render, thinks=thinks, tools=tuple(map(guard.tool, tools)))

    def guarded(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
        names = tuple(map(guard.message, messages))
        tags = tuple(map(guard.message_with_reasoning, messages))
        is_same = names == tags or guard.without(render(names)) == guard.without(render(tags))
        return names if is_same else tags

    def prompt(messages: Sequence[ChatMessage]) -> str:
        return guard.without(render(guarded(messages)))

    fitting = template.conversations.fit(turns, prompt, bool(tools), template.reasoning)
    return _Read(fitting, guarded(fitting), render, guard)


def _keep(
    prefix_ids: list[int], answer: ChatMessage, keep_tokens: int | None, target: Target
) -> list[int]:
    if keep_tokens is None:
        # What comes behind the end of an answer is no part of it.
        return (
            prefix_ids[:-1] if prefix_ids and prefix_ids[-1] in target.eos_token_ids else prefix_ids
        )
    if not 0 <= keep_tokens <= len(prefix_ids) or tuple(prefix_ids) != answer.token_ids:
        raise RequestError(
            f"The answer can't be taken up again at token {keep_tokens}.",
            "Its tokens belong to another model or to another text: ask again instead.",
        )
    return prefix_ids[:keep_tokens]


def _prompt_ids(read: _Read, target: Target) -> tuple[list[int], tuple[tuple[int, int], ...]]:
    """The turns' tokens, and where the answers among them lie."""
    # An answer stays the tokens it was decoded as.
    written = {
        index: _written_ids(message, target)
        for index, message in enumerate(read.turns)
        if message.token_ids and not message.tool_calls and message.role is Role.ASSISTANT
    }
    segments = _segments(read.guarded, written, read.render)
    tokenizer = target.tokenizer
    within = tokenizer.encode_within if target.template.continues_text else tokenizer.encode
    token_ids: list[int] = []
    answers = []
    for segment, index in zip(segments, (*written, None), strict=True):
        encode = within if token_ids else tokenizer.encode_prompt
        token_ids += read.guard.encode(segment, encode, tokenizer.encode_within)
        answer = [] if index is None else written[index]
        if answer and answer[-1] in target.eos_token_ids:
            answer = answer[:-1]  # the template ends its answers itself
        if answer:
            answers.append((len(token_ids), len(token_ids) + len(answer)))
        token_ids += answer
    return token_ids, tuple(answers)


def _segments(
    turns: Sequence[ChatMessage], written: dict[int, list[int]], render: Render
) -> list[str]:
    """What the template writes before, between and behind the turns in `written`.

    Empties `written` if the template doesn't show these turns as they are.
    """
    text = render(turns)
    marks = {index: _MARK.format(index) for index in written}
    marked = [
        message._replace(content=marks.get(index, message.content))
        for index, message in enumerate(turns)
    ]
    segments = _split(render(marked), marks.values())
    if len(segments) != len(marks) + 1 or not _shows(text, segments, [turns[i] for i in marks]):
        written.clear()
        return [text]
    if not marks:
        return segments
    last = len(marks) - 1
    # Many templates put a space or a line break before an answer that they did not write
    # when they asked for it: the model read the latter. Where the first and the last answer have
    # the same space there, so have the others: each would cost a rendering.
    ends = {_space(_opening(n, marks, marked, render), segments[n]) for n in {0, last}}
    for place in range(len(marks)):
        if len(ends) == 1:
            ((here, question),) = ends
        else:
            here, question = _space(_opening(place, marks, marked, render), segments[place])
        text = segments[place].rstrip()
        if here is not None and segments[place] == text + here:
            segments[place] = text + question
    return segments


def _opening(
    place: int, marks: dict[int, str], marked: Sequence[ChatMessage], render: Render
) -> str:
    """What the template wrote between the answer before this one and where this one begins."""
    indices = list(marks)
    before = marked[: indices[place]]
    try:
        opened = render(before) if before else ""
    except TemplateError:  # it may refuse a beginning: one without a user, say
        return ""
    return opened.rpartition(marks[indices[place - 1]])[2] if place else opened


def _space(opening: str, segment: str) -> tuple[str | None, str]:
    """Space at the end of a segment, and what stands for it in the opening; None for no match."""
    text = segment.rstrip()
    if opening.rstrip() != text:
        return None, ""
    return segment[len(text) :], opening[len(text) :]


def _split(text: str, marks: Iterable[str]) -> list[str]:
    """The parts of a text between the marks it holds, which must come in order."""
    parts: list[str] = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            return [*parts, before]
        parts.append(before)
    return [*parts, text]


def _shows(text: str, segments: Sequence[str], answers: Sequence[ChatMessage]) -> bool:
    """Is the text these segments with the answers between them, but for space at their ends?"""
    at = 0
    for segment, answer in zip(segments, (*answers, None), strict=True):
        if not text.startswith(segment, at):
            return False
        at += len(segment)
        if answer is None:
            return at == len(text)
        forms = (answer.content, answer.content.lstrip(), answer.content.rstrip())
        fitting = [form for form in (*forms, answer.content.strip()) if text.startswith(form, at)]
        if not fitting:
            return False
        at += len(fitting[0])
    return False


def _written_ids(answer: ChatMessage, target: Target) -> list[int]:
    """The tokens an answer was decoded as, as far as they still are its text; the rest anew."""
    if not all(0 <= token_id < target.config.vocab_size for token_id in answer.token_ids):
        return target.tokenizer.encode(answer.content)  # another model's
    if target.tokenizer.writes(answer.token_ids, answer.content):
        return list(answer.token_ids)
    detokenizer = Detokenizer(target.tokenizer)
    wanted = answer.content.encode()
    num_kept, num_bytes, text = 0, 0, b""
    for index, token_id in enumerate(answer.token_ids, start=1):
        text += detokenizer.push(token_id)
        if not wanted.startswith(text):
            break
        if not detokenizer.is_open:
            num_kept, num_bytes = index, len(text)
    else:
        # The last character may never have been finished: then it shows as U+FFFD, or not at all.
        if wanted in (text, text + detokenizer.flush()):
            return list(answer.token_ids)
    rest = wanted[num_bytes:].decode()
    encode = target.tokenizer.encode_within if num_kept else target.tokenizer.encode
    return [*answer.token_ids[:num_kept], *encode(rest)]


def _check_ids(token_ids: Sequence[int], target: Target) -> None:
    """Refuse what the target can't read.

    Raises:
        ModelError: The template wrote nothing, or the tokenizer belongs to another model.
    """
    if not token_ids:
        raise TemplateError(
            f"The chat template of {target.name} writes nothing.", "Download the model again."
        )
    if min(token_ids) < 0 or max(token_ids) >= target.config.vocab_size:
        raise TokenizerError(
            f"The tokenizer gives token {max(token_ids)}, but {target.name} knows only "
            f"{target.config.vocab_size}.",
            "The tokenizer belongs to another model; download both again.",
        )
