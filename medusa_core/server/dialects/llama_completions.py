"""llama-server's routes `/completion` and `/infill`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import Answer, AnswerEnd, AnswerPart, Finish, TextDelta
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_completions import (
    ParsedCompletion,
    TextRecord,
    text_requests,
)
from medusa_core.server.dialects.openai_forms import answer_figures, openai_error
from medusa_core.server.replies import read_record, while_connected
from medusa_core.server.reply import Reply, respond
from medusa_core.server.text_prompts import GapPrompt, GapRecord, GivenPrompt, Prompts

_STOPS = {Finish.LENGTH: "limit", Finish.STOP_STRING: "word", Finish.STOP: "eos"}


class CompletionBody(TextRecord):
    """A request of `/completion`."""

    prompt: Prompts


class InfillBody(TextRecord, GapRecord):
    """A request of `/infill`."""


def _routes(context: ServerContext) -> list[Route]:
    """Return llama-server's completion routes."""

    async def completion(http: Request) -> Response:
        """Continue a text."""
        body = await read_record(http, context.limits, CompletionBody)
        return await reply(http, parse_text(body, body.prompt))

    async def infill(http: Request) -> Response:
        """Fill a gap in a text."""
        body = await read_record(http, context.limits, InfillBody)
        return await reply(http, parse_text(body, (gap_prompt(body),)))

    async def reply(http: Request, parsed: ParsedCompletion) -> Response:
        """Answer the requests of a body."""
        requests = await while_connected(http, text_requests(parsed, context))
        answers = _LlamaReply(len(requests), context)
        return await respond(http, context, requests, answers, streams=parsed.streams)

    return [
        Route("/completion", completion, methods=["POST"]),
        Route("/infill", infill, methods=["POST"]),
    ]


def gap_prompt(body: InfillBody) -> GapPrompt:
    """Return the text around the gap; what fills it begins with the field `prompt`."""
    prefix = body.input_prefix + body.prompt
    return GapPrompt(prefix, body.input_suffix, body.input_extra, "input_suffix")


def parse_text(body: TextRecord, prompts: tuple[GivenPrompt, ...]) -> ParsedCompletion:
    """Return prompts and settings of a request.

    Raises:
        ApiError: A constraint is invalid, or there are several.
    """
    max_tokens = body.max_tokens or 0 if body.n_predict is None else body.n_predict
    request = body.request(max_tokens)
    return ParsedCompletion(request, prompts, 1, body.stream, has_usage=False)


class _LlamaReply(Reply):
    """Answers in llama-server's form."""

    def __init__(self, num_answers: int, context: ServerContext) -> None:
        self._answers, self._context = [Answer() for _ in range(num_answers)], context

    def events(self, index: int, part: AnswerPart) -> Iterator[dict[str, Any]]:
        """Return the events for a part."""
        self._answers[index].add(part)
        if isinstance(part, TextDelta):
            yield {"index": index, "content": part.text, "stop": False}
        elif isinstance(part, AnswerEnd):
            yield {**self._final(index, part), "content": ""}

    def whole(self) -> Any:
        """Return the answer to one prompt, or a list of answers to several."""
        found = [
            {**self._final(index, answer.end), "content": answer.text}
            for index, answer in enumerate(self._answers)
            if answer.end is not None
        ]
        return found[0] if len(found) == 1 else found

    def failure(self, error: ApiError) -> Mapping[str, Any]:
        """Return the error event."""
        return openai_error(error)

    def _final(self, index: int, end: AnswerEnd) -> dict[str, Any]:
        """Return the final fields of an answer: stop reason, token counts, timings."""
        return {
            "index": index,
            "stop": True,
            "model": self._context.models.loaded_id,
            "tokens_predicted": end.num_answer_tokens,
            "tokens_evaluated": end.num_prompt_tokens,
            "tokens_cached": end.num_cached_tokens,
            "stop_type": _STOPS.get(end.finish, "eos"),
            "stopping_word": end.stop,
            "truncated": False,
            **answer_figures(end),
        }


SPEC = DialectSpec("llama_completions", ("/completion", "/infill"), _routes, openai_error)
