"""`/tokenize`, `/detokenize`, `/apply-template` as llama-server has them; health and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field, StrictInt
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from medusa_core import __version__
from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import openai_error
from medusa_core.server.dialects.openai_messages import ConversationRecord, chat_messages
from medusa_core.server.records import Flag, Record
from medusa_core.server.replies import JsonReply, read_record, while_connected
from medusa_core.server.sampling import SamplingRecord

_MOST_TOKENS = 1 << 20


class TokenizeBody(Record):
    """A request of `/tokenize`."""

    content: str = ""
    model: str = ""
    add_special: Flag = False
    with_pieces: Flag = False


class DetokenizeBody(Record):
    """A request of `/detokenize`."""

    tokens: tuple[StrictInt, ...] = Field(default=(), max_length=_MOST_TOKENS)
    model: str = ""


class TemplateBody(SamplingRecord, ConversationRecord):
    """A request of `/apply-template`."""


def _routes(context: ServerContext) -> list[Route]:
    """Return llama-server's utility routes."""

    async def tokenize(http: Request) -> Response:
        """Tokenize a text."""
        body = await read_record(http, context.limits, TokenizeBody)
        found = await while_connected(
            http, context.tokenize(body.model, body.content, opens_prompt=body.add_special)
        )
        tokens = found.token_ids
        return JsonReply(
            {"tokens": _with_pieces(tokens, found.pieces) if body.with_pieces else tokens}
        )

    async def detokenize(http: Request) -> Response:
        """Return the text of tokens."""
        body = await read_record(http, context.limits, DetokenizeBody)
        text = await while_connected(http, context.detokenize(body.model, body.tokens))
        return JsonReply({"content": text})

    async def apply_template(http: Request) -> Response:
        """Render a conversation."""
        body = await read_record(http, context.limits, TemplateBody)
        messages = chat_messages(body.messages)
        tools = body.read_tools().functions
        counted = await while_connected(
            http, context.count(body.model, messages, body.settings().settings, tools)
        )
        if not counted.prompt:  # one that is only too long is shown all the same
            raise bad_request(counted.lack, "messages")
        return JsonReply({"prompt": counted.prompt})

    async def props(http: Request) -> Response:
        """Describe the loaded model."""
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
        """Report whether a model is loaded and the engine alive."""
        if context.models.is_lost:
            return JsonReply({"status": "engine lost"}, 503)
        return JsonReply({"status": "ok" if context.models.loaded else "no model"})

    async def metrics(http: Request) -> Response:
        """Return metrics for Prometheus."""
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
    """Return each token with its text, or with its bytes if they aren't whole characters."""
    found = []
    for token_id, piece in zip(token_ids, pieces, strict=True):
        try:
            text: str | list[int] = piece.decode()
        except UnicodeDecodeError:
            text = list(piece)
        found.append({"id": token_id, "piece": text})
    return found


SPEC = DialectSpec("llama_server", ("/tokenize",), _routes, openai_error)
