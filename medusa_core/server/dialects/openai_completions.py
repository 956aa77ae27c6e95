"""`/v1/completions`: continues a text, without a chat template."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.server.chat import Answer, AnswerEnd, AnswerPart, ChatRequest, TextDelta
from medusa_core.server.constraints import ConstraintRecord, read_constraint
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_chat import StreamOptions, seeded
from medusa_core.server.dialects.openai_forms import (
    OpenAiReply,
    finish_reason,
    openai_error,
    text_logprobs,
)
from medusa_core.server.dialects.openai_messages import FormatRecord
from medusa_core.server.limits import MOST_CHOICES
from medusa_core.server.records import Flag, MaxTokens, Whole, refusal
from medusa_core.server.replies import read_record, while_connected
from medusa_core.server.reply import respond
from medusa_core.server.sampling import SamplingRecord, StopStrings
from medusa_core.server.text_prompts import GapPrompt, GivenPrompt, Prompts, prompt_ids

_DEFAULT_TOKENS = 16  # OpenAI's default
_MOST_LOGPROBS = 5


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
        """Refuse unsupported combinations of fields."""
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


def _routes(context: ServerContext) -> list[Route]:
    """Return the routes of completions."""

    async def completions(http: Request) -> Response:
        """Continue texts."""
        parsed = parse_completion(await read_record(http, context.limits, CompletionBody))
        requests = await while_connected(http, text_requests(parsed, context))
        reply = _TextReply(requests, context, has_usage=parsed.has_usage)
        return await respond(http, context, requests, reply, streams=parsed.streams)

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
    """Tokenize the prompts, and return a request for each answer.

    Raises:
        ApiError: The prompt is empty, or the model can't be loaded.
    """
    found: list[ChatRequest] = []
    for prompt in parsed.prompts:
        token_ids = await prompt_ids(context, parsed.request.model, prompt)
        found += seeded(replace(parsed.request, prompt_ids=token_ids), parsed.num_choices)
    return tuple(found)


class _TextReply(OpenAiReply):
    """Answers in the form of completions."""

    id_prefix = "cmpl-"
    kind = chunk_kind = "text_completion"

    def deltas(self, index: int, part: AnswerPart) -> list[dict[str, Any]]:
        """Return the chunks for a part."""
        if isinstance(part, AnswerEnd):
            return [{"text": "", "finish_reason": finish_reason(part)}]
        if not isinstance(part, TextDelta):  # a continuation has no tool calls
            return []
        offset = len(self.answers[index].text)
        logprobs = text_logprobs(part.tokens, offset) if self.is_scored else None
        return [{"text": part.text, "logprobs": logprobs}]

    def choice(self, answer: Answer) -> dict[str, Any]:
        """Return the choice for a complete answer."""
        logprobs = text_logprobs(answer.tokens, 0) if self.is_scored else None
        return {"text": answer.text, "logprobs": logprobs}


SPEC = DialectSpec("openai_completions", ("/v1/completions",), _routes, openai_error)
