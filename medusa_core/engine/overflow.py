"""Which part of a conversation the model reads where the whole is too long.

Where messages are left out, everything behind them moves, and the model must read it anew. So a cut
goes down to half of the context at once, and the turns that follow keep it: it is found by going
through the conversation turn by turn, as it grew, and depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from medusa_core.engine.transcript import Transcript, transcribe, transcript_of
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Cut, GenerateSettings, Overflow, Role

_LEFT_AFTER_CUT = 0.5  # of the context: what is left is read again, so it should last for turns
_LEAST_ROOM = 1 / 8  # of the context, for an answer
_BEGINNING = 1 / 4  # of the context, which `middle` keeps
_SURELY_TOO_LONG = 1.25  # of the context, by estimate: then the whole needn't be counted exactly


class Fitted(NamedTuple):
    """What the model is to read.

    Attributes:
        messages: The messages that it reads.
        transcript: Their tokens.
        num_tokens: Tokens of the whole conversation; an estimate where it is far too long.
        cut: What is left out, or None.
    """

    messages: tuple[ChatMessage, ...]
    transcript: Transcript
    num_tokens: int
    cut: Cut | None


def fit(
    messages: Sequence[ChatMessage],
    keep_tokens: int | None,
    target: Target,
    settings: GenerateSettings,
    context_tokens: int = 0,
    tools: tuple[str, ...] = (),
) -> Fitted:
    """Fit a conversation into the context; one that fits is read as it is.

    Args:
        messages: The turns; an assistant's message at the end is an answer to go on with.
        keep_tokens: How many tokens of that answer to keep; None for all.
        target: Its tokenizer and template are used.
        settings: The policy and the longest answer.
        context_tokens: The share of the context that it gets; 0 for all of it.
        tools: Functions that the model may call, as in `Generate`.

    Raises:
        RequestError: There is nothing to answer, or even the least that is read is too long.
        ModelError: The template or the tokenizer can't serve.
    """
    limit = context_tokens or target.config.context_tokens
    policy = settings.overflow
    turns = None if policy is Overflow.STOP else _Turns(messages, target, tools)
    if turns is None or turns.num_tokens <= _SURELY_TOO_LONG * limit:
        whole = transcribe(messages, keep_tokens, target, settings.thinks, tools)
        num_tokens = len(whole.token_ids)
        if num_tokens + _least_room(messages, settings, limit) <= limit:
            return Fitted(tuple(messages), whole, num_tokens, None)
    else:
        num_tokens = turns.num_tokens
    if turns is None:
        raise _too_long(num_tokens, target, limit, is_whole=True)
    return _cut(turns, keep_tokens, target, settings, limit, num_tokens)


def _least_room(messages: Sequence[ChatMessage], settings: GenerateSettings, limit: int) -> int:
    """What must be left; an answer that is gone on with keeps what it was asked with."""
    goes_on = messages[-1].role is Role.ASSISTANT
    return 1 if goes_on or settings.overflow is Overflow.STOP else _room(limit)


def _room(limit: int) -> int:
    """What a new answer is to have, at least; one limit for all, or each would have its own cut."""
    return max(1, int(limit * _LEAST_ROOM))


def _cut(
    turns: _Turns,
    keep_tokens: int | None,
    target: Target,
    settings: GenerateSettings,
    limit: int,
    num_tokens: int,
) -> Fitted:
    least = _least_room(turns.messages, settings, limit)
    head = turns.head(limit * _BEGINNING) if settings.overflow is Overflow.MIDDLE else 0
    first = turns.first_kept(head, limit - _room(limit), limit * _LEFT_AFTER_CUT)
    last = max(0, len(turns.exchanges) - 1)
    while True:
        kept = turns.kept(head, first)
        transcript = transcribe(kept, keep_tokens, target, settings.thinks, turns.tools)
        num_read = len(transcript.token_ids)
        if num_read + least <= limit or (first == last and head == 0):
            break
        # The estimate was too low; or the beginning and the last message are too long together.
        first, head = (first + 1, head) if first < last else (last, head - 1)
    if num_read >= limit:
        raise _too_long(num_read, target, limit, is_whole=False)
    left_out = len(turns.messages) - len(kept)
    cut = Cut(left_out, max(0, num_tokens - num_read)) if left_out else None
    return Fitted(kept, transcript, num_tokens, cut)


class _Turns:
    """A conversation as exchanges, each a question and what answered it, and their lengths.

    Attributes:
        messages: All messages.
        exchanges: All but what stands before the first of them.
        tools: Functions that the model may call.
    """

    def __init__(
        self, messages: Sequence[ChatMessage], target: Target, tools: tuple[str, ...]
    ) -> None:
        self.messages, self.tools = tuple(messages), tools
        starts = _starts(self.messages)
        begin = starts[0] if starts else len(self.messages)
        self._system = self.messages[:begin]
        ends = [*starts, len(self.messages)]
        self.exchanges = [self.messages[a:b] for a, b in pairwise(ends)]
        questions = [_num_asking(exchange) for exchange in self.exchanges]
        parts = list(zip(self.exchanges, questions, strict=True))
        self._question_lengths = [_length(exchange[:count], target) for exchange, count in parts]
        self._answered = [_length(exchange[count:], target) for exchange, count in parts]
        self._once, each = _frame(self._system, target, tools) if self.exchanges else (0, 0)
        pairs = zip(self._question_lengths, self._answered, strict=True)
        self._before = [0, *accumulate(question + answer + each for question, answer in pairs)]

    @property
    def num_tokens(self) -> int:
        """Tokens of all, by estimate."""
        last = len(self.exchanges) - 1
        return self._size(0, 0, last) + self._answered[last] if self.exchanges else 0

    def head(self, most: float) -> int:
        """How many exchanges from the beginning on have at most so many tokens."""
        fitting = [count for count, size in enumerate(self._before) if self._once + size <= most]
        return max(0, min(len(fitting), len(self.exchanges)) - 1)

    def first_kept(self, head: int, most: float, wanted: float) -> int:
        """The first exchange behind the gap.

        Args:
            head: Exchanges before the gap.
            most: Tokens from which on something must go.
            wanted: Tokens that are then left.
        """
        first, last = head, len(self.exchanges) - 1
        for now in range(head, last + 1):
            # What is gone on with, or comes again, has been read with its question.
            is_over = self._size(head, first, now) > most
            while is_over and first < now and self._size(head, first, now) > wanted:
                first += 1
        return first

    def kept(self, head: int, first: int) -> tuple[ChatMessage, ...]:
        """The messages before and behind the gap."""
        exchanges = (*self.exchanges[:head], *self.exchanges[first:])
        return (*self._system, *(message for exchange in exchanges for message in exchange))

    def _size(self, head: int, first: int, now: int) -> int:
        """Tokens of a prompt that asks exchange `now`, with a gap from `head` to `first`."""
        before = self._before
        return self._once + before[head] + before[now] - before[first] + self._question_lengths[now]


def _starts(messages: Sequence[ChatMessage]) -> list[int]:
    """Where exchanges begin: with a user's message, or the system messages right before it.

    The system messages at the start of the conversation belong to no exchange, unless there is
    nothing else to answer.
    """
    asking = [i for i, message in enumerate(messages) if message.role in (Role.USER, Role.SYSTEM)]
    users = (i for i in asking if messages[i].role is Role.USER)
    first = next(users, asking[-1] if asking else 0)
    return [
        i for i in asking if i == first or (i > first and messages[i - 1].role is not Role.SYSTEM)
    ]


def _num_asking(exchange: Sequence[ChatMessage]) -> int:
    """How many messages of an exchange are the question."""
    answers = (i for i, one in enumerate(exchange) if one.role in (Role.ASSISTANT, Role.TOOL))
    return next(answers, len(exchange))


def _length(messages: Sequence[ChatMessage], target: Target) -> int:
    return sum(
        len(message.token_ids) or len(target.tokenizer.encode(message.content))
        for message in messages
    )


def _frame(
    system: tuple[ChatMessage, ...], target: Target, tools: tuple[str, ...]
) -> tuple[int, int]:
    """What the template adds once, the system prompt included, and for each exchange."""
    user, answer = ChatMessage(Role.USER, "a"), ChatMessage(Role.ASSISTANT, "a")
    one = len(transcribe((*system, user), None, target, None, tools).token_ids)
    two = len(transcribe((*system, user, answer, user), None, target, None, tools).token_ids)
    letter = len(target.tokenizer.encode("a"))
    return one - letter, max(0, two - one - 2 * letter)


def fit_prompt(token_ids: Sequence[int], target: Target, context_tokens: int) -> Fitted:
    """A prompt that is given as tokens; nothing of it is ever left out.

    Raises:
        RequestError: It is too long, or a token is none of the target's.
    """
    transcript = transcript_of(token_ids, target)
    if len(token_ids) >= context_tokens:
        raise _too_long(len(token_ids), target, context_tokens, is_whole=True)
    return Fitted((), transcript, len(token_ids), None)


def _too_long(num_tokens: int, target: Target, limit: int, *, is_whole: bool) -> RequestError:
    whole = target.config.context_tokens
    what = "This chat" if is_whole else "The last message alone"
    if limit == whole:
        hint = (
            "Shorten the message, start a new chat, or let the oldest messages go (Context, in the "
            "chat's settings)."
            if is_whole
            else "Shorten it, or load the model with a longer context."
        )
    else:
        hint = (
            f"Answers that are written at once share the context of {whole:,} tokens: shorten the "
            "message, or load the model with a longer context."
        )
    return RequestError(
        f"{what} needs {num_tokens:,} tokens; {target.name}'s limit is {limit:,} with its answer.",
        hint,
        num_tokens=num_tokens,
        context_tokens=limit,
    )
