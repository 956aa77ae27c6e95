"""A conversation as token ids, in which every answer stays the tokens it was decoded as.

An answer read back from its text may become other tokens than the model wrote: its cached rows
would be worthless, and the model would read a history that it never wrote. So the template is
rendered with a mark in the place of each answer, and the answer's own tokens are put there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from medusa_core.errors import RequestError, TemplateError, TokenizerError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Role
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.models.text.turns import without_tools

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
    """

    prompt_ids: list[int]
    given_ids: list[int]
    next_id: int | None
    answers: tuple[tuple[int, int], ...] = ()

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
    if not turns or not _asks(turns[-1]):
        raise RequestError("There is nothing to answer.", "Write a message first.")
    render = partial(target.template.render, thinks=thinks, tools=tools)
    prompt_ids, answers = _prompt_ids(as_read(turns, target), target, render)
    prefix_ids = _written_ids(messages[-1], target) if goes_on else []
    kept = _keep(prefix_ids, messages[-1], keep_tokens, target)
    if kept:
        answers = (*answers, (len(prompt_ids), len(prompt_ids) + len(kept)))
    next_id = prefix_ids[len(kept)] if len(kept) < len(prefix_ids) else None
    transcript = Transcript(prompt_ids, kept, next_id, answers)
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


def _asks(turn: ChatMessage) -> bool:
    """Is there something to answer? A tool's result may be empty."""
    return turn.role is Role.TOOL or (turn.role is Role.USER and bool(turn.content.strip()))


def as_read(turns: Sequence[ChatMessage], target: Target) -> Sequence[ChatMessage]:
    """The turns as the template takes them.

    One that refuses a system prompt reads it first; one that knows no functions reads calls and
    results as text.
    """
    if not target.template.takes_tools:
        turns = without_tools(turns)
    if len(turns) < 2 or turns[0].role is not Role.SYSTEM or target.template.takes_system:
        return turns
    system, first, *others = turns
    if first.role is not Role.USER:
        return turns
    return (ChatMessage(Role.USER, f"{system.content}\n\n{first.content}"), *others)


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


def _prompt_ids(
    turns: Sequence[ChatMessage], target: Target, render: Render
) -> tuple[list[int], tuple[tuple[int, int], ...]]:
    """The turns' tokens, and where the answers among them lie."""
    written = {
        index: ids
        for index, message in enumerate(turns)
        if (ids := _own_ids(message, target)) is not None
    }
    segments = _segments(turns, written, render)
    tokenizer = target.tokenizer
    within = tokenizer.encode_within if target.template.continues_text else tokenizer.encode
    token_ids: list[int] = []
    answers = []
    for segment, index in zip(segments, (*written, None), strict=True):
        encode = within if token_ids else tokenizer.encode_prompt
        token_ids += encode(segment)
        answer = [] if index is None else written[index]
        if answer and answer[-1] in target.eos_token_ids:
            answer = answer[:-1]  # the template ends its answers itself
        if answer and index is not None and turns[index].role is Role.ASSISTANT:
            answers.append((len(token_ids), len(token_ids) + len(answer)))
        token_ids += answer
    return token_ids, tuple(answers)


def _own_ids(message: ChatMessage, target: Target) -> list[int] | None:
    """The tokens of a turn that aren't those of its text in the prompt; None where they are.

    An answer stays the tokens it was decoded as. Whoever writes the name of a special token writes
    text: else anybody whose text is read, such as a tool's, could end a turn and begin another.
    """
    if message.role is Role.ASSISTANT:
        is_written = bool(message.token_ids) and not message.tool_calls
        return _written_ids(message, target) if is_written else None
    tokenizer = target.tokenizer
    if target.template.continues_text or not tokenizer.names_special_token(message.content):
        return None
    return tokenizer.encode_literal(message.content)


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
    answers = [n for n, index in enumerate(marks) if turns[index].role is Role.ASSISTANT]
    if not answers:
        return segments
    # Many templates put a space or a line break before an answer that they did not write
    # when they asked for it: the model read the latter. Where the first and the last answer have
    # the same space there, so have the others: each would cost a rendering.
    ends = {
        _space(_opening(n, marks, marked, render), segments[n]) for n in {answers[0], answers[-1]}
    }
    for place in answers:
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
    opened = render(marked[: indices[place]])
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
