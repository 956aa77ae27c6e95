"""llama-server's routes `/completion` and `/infill`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.chat import AnswerEnd, AnswerPart, Finish, TextDelta
from medusa_core.server.choices import ChoiceParts, merged
from medusa_core.server.constraints import read_constraint
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_completions import (
    Continuation,
    TextWish,
    text_request,
    text_requests,
)
from medusa_core.server.dialects.openai_forms import answer_figures, openai_error
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits
from medusa_core.server.records import read_record
from medusa_core.server.replies import (
    EventStream,
    JsonReply,
    first_of,
    read_fields,
    server_event,
    while_connected,
)
from medusa_core.server.sampling import read_max_tokens
from medusa_core.server.text_prompts import GapPrompt, GivenPrompt, InfillFields, read_prompts

_STOPS = {Finish.LENGTH: "limit", Finish.STOP_STRING: "word", Finish.STOP: "eos"}


def _routes(context: ServerContext) -> list[Route]:
    async def completion(http: Request) -> Response:
        fields = await read_fields(http, context.limits)
        return await reply(http, fields, read_prompts(fields, context.limits))

    async def infill(http: Request) -> Response:
        fields = await read_fields(http, context.limits)
        return await reply(http, fields, (_gap(fields),))

    async def reply(http: Request, fields: Fields, prompts: tuple[GivenPrompt, ...]) -> Response:
        wish = _wish(fields, context.limits, prompts)
        requests = await while_connected(http, text_requests(wish, context))
        parts = merged([context.answer(http, request) for request in requests])
        if not wish.streams:
            return JsonReply(await while_connected(http, _whole(context, len(requests), parts)))
        first, rest = await first_of(http, parts)
        return EventStream(_chunks(context, len(requests), first, rest), context.limits)

    return [
        Route("/completion", completion, methods=["POST"]),
        Route("/infill", infill, methods=["POST"]),
    ]


def _gap(fields: Fields) -> GapPrompt:
    record = read_record(InfillFields, fields)
    if not record.input_prefix and not record.prompt and not record.input_suffix:
        raise bad_request("There is no text around the gap.", "input_prefix")
    # What fills the gap begins with `prompt`, so the model continues the text before it.
    prefix = record.input_prefix + record.prompt
    return GapPrompt(prefix, record.input_suffix, tuple(record.input_extra), "input_suffix")


def _wish(fields: Fields, limits: Limits, prompts: tuple[GivenPrompt, ...]) -> TextWish:
    max_tokens = read_max_tokens(fields, limits, "n_predict", "max_tokens")
    request = text_request(fields, limits, max_tokens, read_constraint(fields, ""))
    return TextWish(request, prompts, 1, fields.flag("stream"), has_usage=False)


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
