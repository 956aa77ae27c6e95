"""`/v1/completions`: continues a text, without a chat template."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.chats.conversation import new_id
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import AnswerEnd, AnswerPart, ChatRequest, ScoredToken, TextDelta
from medusa_core.server.choices import ChoiceParts, merged
from medusa_core.server.constraints import ConstraintRecord, read_constraint
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_chat import StreamOptions, seeded
from medusa_core.server.dialects.openai_forms import (
    FINGERPRINT,
    answer_figures,
    created_now,
    finish_reason,
    openai_error,
    text_logprobs,
    usage,
)
from medusa_core.server.dialects.openai_messages import FormatRecord
from medusa_core.server.limits import MOST_CHOICES
from medusa_core.server.records import Flag, MaxTokens, Whole, refusal
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    read_record,
    server_event,
    while_connected,
)
from medusa_core.server.sampling import SamplingRecord, StopStrings
from medusa_core.server.text_prompts import GapPrompt, GivenPrompt, Prompts, prompt_ids

_DEFAULT_TOKENS = 16  # OpenAI's default
_MOST_LOGPROBS = 5
_DONE = "data: [DONE]\n\n"


class TextRecord(SamplingRecord, ConstraintRecord):
    """Fields that continuations of a text share, with llama-server's routes, too."""

    stop: StopStrings = ()
    max_tokens: MaxTokens | None = None
    n_predict: MaxTokens | None = None

    def request(self, max_tokens: int, response_schema: str = "") -> ChatRequest:
        """Return a request for the continuation of a prompt that is still missing.

        Args:
            max_tokens: Longest answer; 0 for the rest of the context.
            response_schema: JSON schema of the request's `response_format`; empty for none.

        Raises:
            ApiError: A constraint is invalid, or there are several.
        """
        settings, open_settings = self.settings(max_tokens, self.stop)
        constraint = read_constraint(self, response_schema)
        return ChatRequest(
            model=self.model,
            messages=(),
            settings=settings,
            open_settings=open_settings,
            schema=constraint.schema,
            grammar=constraint.grammar,
        )


class CompletionBody(TextRecord):
    """A request of completions."""

    prompt: Prompts
    suffix: str = ""
    max_completion_tokens: MaxTokens | None = None
    n: Whole = Field(default=1, ge=1, le=MOST_CHOICES)
    best_of: Whole | None = Field(default=None, ge=1, le=1 << 10)
    echo: Flag = False
    logprobs: Whole = Field(default=-1, ge=0, le=_MOST_LOGPROBS)
    stream_options: StreamOptions = StreamOptions()
    response_format: FormatRecord | None = None

    @model_validator(mode="after")
    def _check(self) -> CompletionBody:
        if self.echo:
            raise refusal("must be false: the prompt isn't repeated", "echo")
        if self.best_of not in (None, self.n):
            raise refusal("must be left out, or equal to `n`", "best_of")
        if self.suffix and not all(isinstance(prompt, str) for prompt in self.prompt):
            raise refusal("must be text where `suffix` is given", "prompt")
        if self.n * len(self.prompt) > MOST_CHOICES:
            raise refusal(f"must be so small that there are at most {MOST_CHOICES} answers", "n")
        return self


class ParsedCompletion(NamedTuple):
    """A request of this API.

    Attributes:
        request: Request for a continuation, without its prompt.
        prompts: Prompts to continue.
        num_choices: Answers to each prompt.
        streams: Whether the answers are streamed.
        has_usage: Whether a last chunk has the token counts.
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
        parsed = parse_completion(await read_record(http, context.limits, CompletionBody))
        requests = await while_connected(http, text_requests(parsed, context))
        parts = merged([context.answer(http, request) for request in requests])
        head = _TextHead(parsed, context)
        if not parsed.streams:
            return JsonReply(await while_connected(http, _whole(head, len(requests), parts)))
        first, rest = await first_of(http, parts)
        return EventStream(_chunks(head, len(requests), first, rest), context.limits)

    return [Route("/v1/completions", completions, methods=["POST"])]


def parse_completion(body: CompletionBody) -> ParsedCompletion:
    """Return the prompts and the settings of a request of this API.

    Raises:
        ApiError: A constraint is invalid, or there are several.
    """
    stated = (body.max_tokens, body.max_completion_tokens, body.n_predict)
    max_tokens = next((count for count in stated if count is not None), _DEFAULT_TOKENS)
    response_format = body.response_format
    schema = "" if response_format is None else response_format.schema_text("response_format")
    request = replace(body.request(max_tokens, schema), num_logprobs=body.logprobs)
    prompts: tuple[GivenPrompt, ...] = body.prompt
    if body.suffix:
        prompts = tuple(GapPrompt(str(prompt), body.suffix) for prompt in body.prompt)
    has_usage = body.stream and body.stream_options.include_usage
    return ParsedCompletion(request, prompts, body.n, body.stream, has_usage)


async def text_requests(
    parsed: ParsedCompletion, context: ServerContext
) -> tuple[ChatRequest, ...]:
    """Make a request for each answer, its prompt as tokens of the model.

    Args:
        parsed: The request.
        context: The server's shared objects.

    Raises:
        ApiError: The prompt is empty, or the model can't be loaded.
    """
    found: list[ChatRequest] = []
    for prompt in parsed.prompts:
        token_ids = await prompt_ids(context, parsed.request.model, prompt)
        found += seeded(replace(parsed.request, prompt_ids=token_ids), parsed.num_choices)
    return tuple(found)


class _TextHead:
    """What all replies to one request have in common."""

    def __init__(self, parsed: ParsedCompletion, context: ServerContext) -> None:
        self.parsed = parsed
        self.is_scored = parsed.request.num_logprobs >= 0
        self._context = context
        self._id, self._created = f"cmpl-{new_id()}", created_now()

    def as_json(self) -> dict[str, Any]:
        """The fields at the beginning of an object."""
        loaded = self._context.models.loaded
        model = self.parsed.request.model if loaded is None else loaded.model_id
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
    if head.parsed.has_usage:
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
    nothing = {"usage": None} if head.parsed.has_usage else {}
    return server_event({**head.as_json(), "choices": [choice], **nothing, **extra})


SPEC = DialectSpec("openai_completions", ("/v1/completions",), _routes, openai_error)
