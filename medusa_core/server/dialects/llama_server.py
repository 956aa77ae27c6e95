"""`/tokenize`, `/detokenize`, `/apply-template` as llama-server has them; health and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from medusa_core import __version__
from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import openai_error
from medusa_core.server.dialects.openai_messages import (
    read_messages,
    read_tools,
)
from medusa_core.server.fields import Fields
from medusa_core.server.replies import JsonReply, read_fields, while_connected
from medusa_core.server.sampling import read_settings

_MOST_TOKENS = 1 << 20


def _routes(context: ServerContext) -> list[Route]:
    async def tokenize(http: Request) -> Response:
        fields = await read_fields(http, context.limits)
        text, model = fields.text("content"), fields.text("model")
        opens = fields.flag("add_special")
        with_pieces = fields.flag("with_pieces")
        found = await while_connected(http, context.tokenize(model, text, opens_prompt=opens))
        tokens = _with_pieces(found.token_ids, found.pieces) if with_pieces else found.token_ids
        return JsonReply({"tokens": tokens})

    async def detokenize(http: Request) -> Response:
        fields = await read_fields(http, context.limits)
        token_ids = _token_ids(fields)
        found = await while_connected(http, context.detokenize(fields.text("model"), token_ids))
        return JsonReply({"content": found})

    async def apply_template(http: Request) -> Response:
        fields = await read_fields(http, context.limits)
        settings = read_settings(fields, context.limits, 0, ()).settings
        messages = read_messages(fields, context.limits)
        tools = read_tools(fields).functions
        counted = await while_connected(
            http, context.count(fields.text("model"), messages, settings, tools)
        )
        if not counted.prompt:  # one that is only too long is shown all the same
            raise bad_request(counted.lack, "messages")
        return JsonReply({"prompt": counted.prompt})

    async def props(http: Request) -> Response:
        facts, loaded = context.models.facts, context.models.loaded
        if facts is None or loaded is None:
            raise ApiError(503, "No model is loaded.", code="no_model")
        return JsonReply(
            {
                "model_alias": loaded.model_id,
                # A path would say more of this computer than a client needs.
                "model_path": loaded.model_id if loaded.path is None else loaded.path.name,
                "total_slots": context.limits.most_running,
                "default_generation_settings": {"n_ctx": facts.context_tokens},
                "chat_template": facts.chat_template,
                "modalities": {"vision": False, "audio": False},
                "build_info": f"medusa {__version__}",
            }
        )

    async def health(http: Request) -> Response:
        if context.models.is_lost:
            return JsonReply({"status": "engine lost"}, 503)
        return JsonReply({"status": "ok" if context.models.loaded else "no model"})

    async def metrics(http: Request) -> Response:
        text = context.metrics.text(context.queue.num_running, context.queue.num_waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return [
        Route("/tokenize", tokenize, methods=["POST"]),
        Route("/detokenize", detokenize, methods=["POST"]),
        Route("/apply-template", apply_template, methods=["POST"]),
        Route("/props", props),
        Route("/health", health),
        Route("/metrics", metrics),
    ]


def _with_pieces(token_ids: Sequence[int], pieces: Sequence[bytes]) -> list[dict[str, Any]]:
    """Each token with its text; with its bytes where these are no whole characters."""
    found = []
    for token_id, piece in zip(token_ids, pieces, strict=True):
        try:
            text: str | list[int] = piece.decode()
        except UnicodeDecodeError:
            text = list(piece)
        found.append({"id": token_id, "piece": text})
    return found


def _token_ids(fields: Fields) -> tuple[int, ...]:
    found = fields.array("tokens", _MOST_TOKENS)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
        raise fields.invalid("tokens", "a list of token ids")
    return tuple(found)


SPEC = DialectSpec("llama_server", ("/tokenize",), _routes, openai_error)
