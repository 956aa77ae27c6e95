"""llama-server's routes `/completion` and `/infill`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import AnswerEnd, AnswerPart, Finish, TextDelta
from medusa_core.server.choices import ChoiceParts, merged
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_completions import (
    Continuation,
    ParsedCompletion,
    TextRecord,
    text_requests,
)
from medusa_core.server.dialects.openai_forms import answer_figures, openai_error
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    read_record,
    server_event,
    while_connected,
)
from medusa_core.server.text_prompts import GapPrompt, GapRecord, GivenPrompt, Prompts

_STOPS = {Finish.LENGTH: "limit", Finish.STOP_STRING: "word", Finish.STOP: "eos"}


class CompletionBody(TextRecord):
    """A request of `/completion`."""

    prompt: Prompts


class InfillBody(TextRecord, GapRecord):
    """A request of `/infill`."""


def _routes(context: ServerContext) -> list[Route]:
    async def completion(http: Request) -> Response:
        body = await read_record(http, context.limits, CompletionBody)
        return await reply(http, parse_text(body, body.prompt))

    async def infill(http: Request) -> Response:
        body = await read_record(http, context.limits, InfillBody)
        return await reply(http, parse_text(body, (gap_prompt(body),)))

    async def reply(http: Request, parsed: ParsedCompletion) -> Response:
        requests = await while_connected(http, text_requests(parsed, context))
        parts = merged([context.answer(http, request) for request in requests])
        if not parsed.streams:
            return JsonReply(await while_connected(http, _whole(context, len(requests), parts)))
        first, rest = await first_of(http, parts)
        return EventStream(_chunks(context, len(requests), first, rest), context.limits)

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


async def _whole(context: ServerContext, count: int, parts: ChoiceParts) -> Any:
    """Return the complete answer to one prompt, or a list of answers to several."""
    answers = [Continuation() for _ in range(count)]
    async with aclosing(parts) as arriving:
        async for place, part in arriving:
            answers[place].add(part)
    found = [
        {**_ending(context, place, answer.end), "content": answer.text}
        for place, answer in enumerate(answers)
        if answer.end is not None
    ]
    return found[0] if count == 1 else found


async def _chunks(
    context: ServerContext, count: int, first: tuple[int, AnswerPart], rest: ChoiceParts
) -> AsyncGenerator[str, None]:
    """Yield the answers as server-sent events."""
    try:
        async with aclosing(rest) as parts:
            for event in _events(context, *first):
                yield event
            async for place, part in parts:
                for event in _events(context, place, part):
                    yield event
    except ApiError as error:
        yield server_event(openai_error(error))


def _events(context: ServerContext, place: int, part: AnswerPart) -> Sequence[str]:
    if isinstance(part, TextDelta):
        return [server_event({"index": place, "content": part.text, "stop": False})]
    if isinstance(part, AnswerEnd):
        return [server_event({**_ending(context, place, part), "content": ""})]
    return ()


def _ending(context: ServerContext, place: int, end: AnswerEnd) -> dict[str, Any]:
    """Return the final fields of an answer: stop reason, token counts, timings."""
    loaded = context.models.loaded
    return {
        "index": place,
        "stop": True,
        "model": "" if loaded is None else loaded.model_id,
        "tokens_predicted": end.num_answer_tokens,
        "tokens_evaluated": end.num_prompt_tokens,
        "tokens_cached": end.num_cached_tokens,
        "stop_type": _STOPS.get(end.finish, "eos"),
        "stopping_word": end.stop,
        "truncated": False,
        **answer_figures(end),
    }


SPEC = DialectSpec("llama_completions", ("/completion", "/infill"), _routes, openai_error)
