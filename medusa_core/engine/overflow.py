"""Context overflow: choose the messages of a long conversation that fit into the context.

Dropping messages moves all tokens after them, so that their KV rows must be computed again. A cut
therefore goes down to half of the context at once, and the next turns keep it: the cut is found by
replaying the conversation turn by turn, and depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from medusa_core.engine.transcript import Transcript, transcribe, transcript_of
from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Cut, GenerateSettings, Overflow, Role

_KEPT_BY_CUT = 0.5  # of the context: what is kept is prefilled again, so it should last for turns
_MIN_ANSWER = 1 / 8  # of the context
_BEGINNING = 1 / 4  # of the context, kept by Overflow.MIDDLE
# A conversation that is estimated to be this much longer than the context isn't tokenized whole.
_FAR_TOO_LONG = 1.25
_CHARS_PER_TOKEN = 3  # at least, in ordinary text; below it a count decides


class Fitted(NamedTuple):
    """A conversation that fits into the context.

    Attributes:
        messages: The messages that are part of the prompt.
        transcript: Their tokens.
        num_tokens: Tokens of the whole conversation; an estimate if it is far too long.
        cut: The dropped messages, or None.
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
    """Fit a conversation into the context; one that fits is kept whole.

    Args:
        messages: The conversation; an assistant's message at the end is an answer to continue.
        keep_tokens: Number of tokens of that answer to keep; None for all.
        target: The target, whose tokenizer and template are used.
        settings: Settings with the overflow policy.
        context_tokens: The answer's share of the context; 0 for all of it.
        tools: Functions that the model may call, as in `Generate`.

    Raises:
        RequestError: There is nothing to answer, or even the shortest prompt is too long.
        ModelError: The template or the tokenizer fails.
    """
    limit = context_tokens or target.config.context_tokens
    may_cut = settings.overflow is not Overflow.STOP
    # Lengths are estimated only if the conversation won't fit: that tokenizes every message again.
    num_chars = sum(len(message.text) for message in messages)
    is_long = may_cut and num_chars > _FAR_TOO_LONG * _CHARS_PER_TOKEN * limit
    lengths = _ExchangeLengths(messages, target, tools) if is_long else None
    if lengths is None or lengths.num_tokens <= _FAR_TOO_LONG * limit:
        whole = transcribe(messages, keep_tokens, target, settings.thinks, tools)
        num_tokens = len(whole.token_ids)
        if num_tokens + _reserved(messages, settings, limit) <= limit:
            return Fitted(tuple(messages), whole, num_tokens, None)
    else:
        num_tokens = lengths.num_tokens
    if not may_cut:
        raise _too_long(num_tokens, target, limit, is_whole=True)
    lengths = lengths or _ExchangeLengths(messages, target, tools)
    return _cut(lengths, keep_tokens, target, settings, limit, num_tokens)


def fit_prompt(token_ids: Sequence[int], target: Target, context_tokens: int) -> Fitted:
    """Check a prompt that is given as tokens; nothing of it is ever dropped.

    Raises:
        RequestError: It is too long, or a token isn't in the target's vocabulary.
    """
    transcript = transcript_of(token_ids, target)
    if len(token_ids) >= context_tokens:
        raise _too_long(len(token_ids), target, context_tokens, is_whole=True)
    return Fitted((), transcript, len(token_ids), None)


def _reserved(messages: Sequence[ChatMessage], settings: GenerateSettings, limit: int) -> int:
    """Tokens that the prompt must leave; a continued answer reserved them when it began."""
    continues = messages[-1].role is Role.ASSISTANT
    return 1 if continues or settings.overflow is Overflow.STOP else _answer_tokens(limit)


def _answer_tokens(limit: int) -> int:
    """Minimum tokens of a new answer. All settings share it, or each would have its own cut."""
    return max(1, int(limit * _MIN_ANSWER))


def _cut(
    lengths: _ExchangeLengths,
    keep_tokens: int | None,
    target: Target,
    settings: GenerateSettings,
    limit: int,
    num_tokens: int,
) -> Fitted:
    """Drop messages until the prompt fits.

    Raises:
        RequestError: Even the last message alone is too long.
    """
    reserved = _reserved(lengths.messages, settings, limit)
    head = lengths.head(limit * _BEGINNING) if settings.overflow is Overflow.MIDDLE else 0
    first = lengths.first_remaining(head, limit - _answer_tokens(limit), limit * _KEPT_BY_CUT)
    last = max(0, len(lengths.exchanges) - 1)
    while True:
        kept = lengths.kept(head, first)
        transcript = transcribe(kept, keep_tokens, target, settings.thinks, lengths.tools)
        num_kept = len(transcript.token_ids)
        if num_kept + reserved <= limit or (first == last and head == 0):
            break
        # The estimate was too low; or the beginning and the last message are too long together.
        first, head = (first + 1, head) if first < last else (last, head - 1)
    if num_kept >= limit:
        raise _too_long(num_kept, target, limit, is_whole=False)
    num_dropped = len(lengths.messages) - len(kept)
    cut = Cut(num_dropped, max(0, num_tokens - num_kept)) if num_dropped else None
    return Fitted(kept, transcript, num_tokens, cut)


class _ExchangeLengths:
    """Estimated token counts of a conversation's exchanges: questions with their answers.

    Attributes:
        messages: All messages.
        exchanges: The exchanges, without the messages before the first one.
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
        questions = [_num_questions(exchange) for exchange in self.exchanges]
        parts = list(zip(self.exchanges, questions, strict=True))
        self._questions = [_num_tokens(exchange[:count], target) for exchange, count in parts]
        self._answers = [_num_tokens(exchange[count:], target) for exchange, count in parts]
        self._fixed, each = _overhead(self._system, target, tools) if self.exchanges else (0, 0)
        pairs = zip(self._questions, self._answers, strict=True)
        self._before = [0, *accumulate(question + answer + each for question, answer in pairs)]

    @property
    def num_tokens(self) -> int:
        """Estimated tokens of the whole conversation."""
        last = len(self.exchanges) - 1
        return self._prompt_tokens(0, 0, last) + self._answers[last] if self.exchanges else 0

    def head(self, max_tokens: float) -> int:
        """Number of exchanges from the beginning on that fit into `max_tokens`."""
        fitting = [n for n, size in enumerate(self._before) if self._fixed + size <= max_tokens]
        return max(0, min(len(fitting), len(self.exchanges)) - 1)

    def first_remaining(self, head: int, max_tokens: float, target_tokens: float) -> int:
        """Replay the conversation, and return the first exchange after the dropped ones.

        Args:
            head: Number of exchanges kept from the beginning.
            max_tokens: Longest prompt that isn't cut.
            target_tokens: Length of the prompt to cut down to.
        """
        first, last = head, len(self.exchanges) - 1
        for current in range(head, last + 1):
            # A continued or repeated answer has been prefilled with its own question.
            is_over = self._prompt_tokens(head, first, current) > max_tokens
            while (
                is_over
                and first < current
                and self._prompt_tokens(head, first, current) > target_tokens
            ):
                first += 1
        return first

    def kept(self, head: int, first: int) -> tuple[ChatMessage, ...]:
        """The messages without those of exchanges `head` to `first` - 1."""
        exchanges = (*self.exchanges[:head], *self.exchanges[first:])
        return (*self._system, *(message for exchange in exchanges for message in exchange))

    def _prompt_tokens(self, head: int, first: int, current: int) -> int:
        """Tokens of the prompt of question `current`, without exchanges `head` to `first` - 1."""
        before = self._before
        num_kept = before[head] + before[current] - before[first]
        return self._fixed + num_kept + self._questions[current]


def _starts(messages: Sequence[ChatMessage]) -> list[int]:
    """Indices at which exchanges begin: a user's message, or the system messages right before it.

    The system messages at the start of the conversation belong to no exchange, unless there is
    nothing else to answer.
    """
    inputs = [i for i, message in enumerate(messages) if message.role in (Role.USER, Role.SYSTEM)]
    users = (i for i in inputs if messages[i].role is Role.USER)
    first = next(users, inputs[-1] if inputs else 0)
    return [
        i for i in inputs if i == first or (i > first and messages[i - 1].role is not Role.SYSTEM)
    ]


def _num_questions(exchange: Sequence[ChatMessage]) -> int:
    """Number of messages of an exchange before its first answer."""
    answers = (i for i, one in enumerate(exchange) if one.role in (Role.ASSISTANT, Role.TOOL))
    return next(answers, len(exchange))


def _num_tokens(messages: Sequence[ChatMessage], target: Target) -> int:
    """Tokens of messages, without what the chat template adds."""
    return sum(
        len(message.token_ids) or len(target.tokenizer.encode(message.text)) for message in messages
    )


def _overhead(
    system: tuple[ChatMessage, ...], target: Target, tools: tuple[str, ...]
) -> tuple[int, int]:
    """Tokens that the template adds to a prompt, system messages included, and to each exchange."""
    user, answer = ChatMessage(Role.USER, "a"), ChatMessage(Role.ASSISTANT, "a")
    one = len(transcribe((*system, user), None, target, None, tools).token_ids)
    two = len(transcribe((*system, user, answer, user), None, target, None, tools).token_ids)
    letter = len(target.tokenizer.encode("a"))
    return one - letter, max(0, two - one - 2 * letter)


def _too_long(num_tokens: int, target: Target, limit: int, *, is_whole: bool) -> RequestError:
    """The error of a prompt that doesn't fit.

    Args:
        num_tokens: Length of the prompt.
        target: The target.
        limit: The answer's share of the context, in tokens.
        is_whole: The conversation isn't cut; False if it is the last message that is too long.
    """
    whole = target.config.context_tokens
    what = tr("This chat") if is_whole else tr("The last message alone")
    if limit == whole:
        hint = (
            tr(
                "Shorten the message, start a new chat, or let the oldest messages go (Context, in "
                "the chat's settings)."
            )
            if is_whole
            else tr("Shorten it, or load the model with a longer context.")
        )
    else:
        hint = tr(
            "Answers that are written at once share the context of {0:,} tokens: shorten the "
            "message, or load the model with a longer context.",
            whole,
        )
    return RequestError(
        tr(
            "{0} needs {1:,} tokens; {2}'s limit is {3:,} with its answer.",
            what,
            num_tokens,
            target.name,
            limit,
        ),
        hint,
        num_tokens=num_tokens,
        context_tokens=limit,
    )
