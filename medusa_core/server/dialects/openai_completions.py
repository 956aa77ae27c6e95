"""`/v1/completions`: continues a text, without a chat template."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.chats.conversation import new_id
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import AnswerEnd, AnswerPart, ChatRequest, ScoredToken, TextDelta
from medusa_core.server.choices import ChoiceParts, merged
from medusa_core.server.constraints import Constraint, read_constraint
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_chat import seeded
from medusa_core.server.dialects.openai_forms import (
    FINGERPRINT,
    answer_figures,
    created_now,
    finish_reason,
    openai_error,
    text_logprobs,
    usage,
)
from medusa_core.server.dialects.openai_messages import read_schema
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    read_fields,
    server_event,
    while_connected,
)
from medusa_core.server.sampling import read_max_tokens, read_settings, read_stops
from medusa_core.server.text_prompts import GapPrompt, GivenPrompt, prompt_ids, read_prompts

_USUAL_TOKENS = 16  # as OpenAI's API has it
_MOST_LOGPROBS = 5
_DONE = "data: [DONE]\n\n"


class TextWish(NamedTuple):
    """A request of this API.

    Attributes:
        request: How to go on.
        prompts: With what.
        num_choices: Answers to each of them.
        streams: The answers are wanted as they come.
        has_usage: A last chunk counts the tokens.
    """

    request: ChatRequest
    prompts: tuple[GivenPrompt, ...]
    num_choices: int
    streams: bool
    has_usage: bool


@dataclass(slots=True)
class Continuation:
    """One answer as it grows.

    Attributes:
        text: Its text.
        tokens: With probabilities, where these are asked for.
        end: Its end.
    """

    text: str = ""
    tokens: list[ScoredToken] = field(default_factory=list)
    end: AnswerEnd | None = None

    def add(self, part: AnswerPart) -> None:
        """Take a part; a text has no calls."""
        if isinstance(part, TextDelta):
            self.text += part.text
            self.tokens += part.tokens
        elif isinstance(part, AnswerEnd):
            self.end = part


def _routes(context: ServerContext) -> list[Route]:
    async def completions(http: Request) -> Response:
        wish = read_text_wish(await read_fields(http, context.limits), context.limits)
        requests = await while_connected(http, text_requests(wish, context))
        parts = merged([context.answer(http, request) for request in requests])
        head = _TextHead(wish, context)
        if not wish.streams:
            return JsonReply(await while_connected(http, _whole(head, len(requests), parts)))
        first, rest = await first_of(http, parts)
        return EventStream(_chunks(head, len(requests), first, rest), context.limits)

    return [Route("/v1/completions", completions, methods=["POST"])]


def read_text_wish(fields: Fields, limits: Limits) -> TextWish:
    """What a request of this API wants.

    Raises:
        ApiError: It can't be read.
    """
    _refuse_unserved(fields)
    max_tokens = read_max_tokens(fields, limits, "max_tokens", "max_completion_tokens", "n_predict")
    if not max_tokens and not fields.has("max_tokens") and not fields.has("n_predict"):
        max_tokens = _USUAL_TOKENS
    constraint = read_constraint(fields, read_schema(fields))
    logprobs = fields.whole("logprobs", 0, _MOST_LOGPROBS)
    request = replace(
        text_request(fields, limits, max_tokens, constraint),
        num_logprobs=-1 if logprobs is None else logprobs,
    )
    prompts = _prompts(fields, limits)
    count = fields.whole("n", 1, limits.most_choices) or 1
    if count * len(prompts) > limits.most_choices:
        raise fields.invalid("n", f"so that there are at most {limits.most_choices} answers")
    streams = fields.flag("stream")
    options = fields.record("stream_options") or Fields({})
    return TextWish(request, prompts, count, streams, streams and options.flag("include_usage"))


def text_request(
    fields: Fields, limits: Limits, max_tokens: int, constraint: Constraint
) -> ChatRequest:
    """How a text is continued; its prompt is missing yet.

    Args:
        fields: The request.
        limits: What it may cost.
        max_tokens: Longest answer; 0 for what the context leaves.
        constraint: What the answer must match.

    Raises:
        ApiError: A field has another type, or is out of range.
    """
    settings, open_settings = read_settings(
        fields, limits, max_tokens, read_stops(fields, limits, "stop")
    )
    return ChatRequest(
        model=fields.text("model"),
        messages=(),
        settings=settings,
        open_settings=open_settings,
        schema=constraint.schema,
        grammar=constraint.grammar,
    )


def _refuse_unserved(fields: Fields) -> None:
    if fields.flag("echo"):
        raise fields.invalid("echo", "false: the prompt isn't repeated here")
    best_of = fields.whole("best_of", 1, 1 << 10)
    if best_of is not None and best_of != (fields.whole("n", 1, 1 << 10) or 1):
        raise fields.invalid("best_of", "left out, or equal to `n`")


def _prompts(fields: Fields, limits: Limits) -> tuple[GivenPrompt, ...]:
    """The prompts; with a `suffix`, what is wanted is the text between."""
    prompts, suffix = read_prompts(fields, limits), fields.text("suffix")
    if not suffix:
        return prompts
    if not all(isinstance(prompt, str) for prompt in prompts):
        raise fields.invalid("prompt", "text where `suffix` is given")
    return tuple(GapPrompt(str(prompt), suffix) for prompt in prompts)


async def text_requests(wish: TextWish, context: ServerContext) -> tuple[ChatRequest, ...]:
    """Make a request for each answer, its prompt as tokens of the model.

    Args:
        wish: What is asked.
        context: What the routes work with.

    Raises:
        ApiError: The prompt is empty, or the model can't be loaded.
    """
    found: list[ChatRequest] = []
    for prompt in wish.prompts:
        token_ids = await prompt_ids(context, wish.request.model, prompt)
        found += seeded(replace(wish.request, prompt_ids=token_ids), wish.num_choices)
    return tuple(found)


class _TextHead:
    """What all replies to one request have in common."""

    def __init__(self, wish: TextWish, context: ServerContext) -> None:
        self.wish = wish
        self.is_scored = wish.request.num_logprobs >= 0
        self._context = context
        self._id, self._created = f"cmpl-{new_id()}", created_now()

    def as_json(self) -> dict[str, Any]:
        """The fields at the beginning of an object."""
        loaded = self._context.models.loaded
        model = self.wish.request.model if loaded is None else loaded.model_id
        return {
            "id": self._id,
            "object": "text_completion",
            "created": self._created,
            "model": model,
            "system_fingerprint": FINGERPRINT,
        }


async def _whole(head: _TextHead, count: int, parts: ChoiceParts) -> Mapping[str, Any]:
    """The answers in one object."""
    answers = [Continuation() for _ in range(count)]
    async with aclosing(parts) as arriving:
        async for place, part in arriving:
            answers[place].add(part)
    ends = [one.end for one in answers if one.end is not None]
    choices = [
        {
            "index": place,
            "text": answer.text,
            "logprobs": text_logprobs(answer.tokens, 0) if head.is_scored else None,
            "finish_reason": finish_reason(end),
        }
        for place, (answer, end) in enumerate(zip(answers, ends, strict=True))
    ]
    return {**head.as_json(), "choices": choices, "usage": usage(ends), **answer_figures(ends[0])}


async def _chunks(
    head: _TextHead, count: int, first: tuple[int, AnswerPart], rest: ChoiceParts
) -> AsyncGenerator[str, None]:
    """The answers as events, each as it comes."""
    answers = [Continuation() for _ in range(count)]
    try:
        async with aclosing(rest) as parts:
            yield _event(head, answers, *first)
            async for place, part in parts:
                yield _event(head, answers, place, part)
    except ApiError as error:
        yield server_event(openai_error(error))
        return
    if head.wish.has_usage:
        ends = [one.end for one in answers if one.end is not None]
        counted = {"choices": [], "usage": usage(ends), **answer_figures(ends[0])}
        yield server_event({**head.as_json(), **counted})
    yield _DONE


def _event(head: _TextHead, answers: list[Continuation], place: int, part: AnswerPart) -> str:
    """The event that a part of an answer becomes."""
    offset = len(answers[place].text)
    answers[place].add(part)
    choice: dict[str, Any] = {"index": place, "text": "", "logprobs": None, "finish_reason": None}
    extra: Mapping[str, Any] = {}
    if isinstance(part, TextDelta):
        choice["text"] = part.text
        choice["logprobs"] = text_logprobs(part.tokens, offset) if head.is_scored else None
    elif isinstance(part, AnswerEnd):
        choice["finish_reason"] = finish_reason(part)
        if all(answer.end is not None for answer in answers):
            extra = answer_figures(part)
    nothing = {"usage": None} if head.wish.has_usage else {}
    return server_event({**head.as_json(), "choices": [choice], **nothing, **extra})


SPEC = DialectSpec("openai_completions", ("/v1/completions",), _routes, openai_error)
