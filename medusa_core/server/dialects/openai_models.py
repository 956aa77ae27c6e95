"""`/v1/models` and what a chat model doesn't do."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.server.api_error import ApiError
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import openai_error
from medusa_core.server.replies import JsonReply
from medusa_core.server.served_models import ServedModel


def _routes(context: ServerContext) -> list[Route]:
    """Return the routes of models."""

    async def models(http: Request) -> Response:
        """List the models."""
        listed = await context.models.all()
        return JsonReply({"object": "list", "data": [_as_json(one, context) for one in listed]})

    async def model(http: Request) -> Response:
        """Describe a model."""
        found = await context.models.find(http.path_params["model_id"])
        return JsonReply(_as_json(found, context))

    async def embeddings(http: Request) -> Response:
        """Refuse: chat models have no embeddings."""
        raise ApiError(
            501, "Chat models have no embeddings to give. Use a server with an embedding model."
        )

    return [
        Route("/v1/models", models),
        Route("/v1/models/{model_id:path}", model),
        Route("/v1/embeddings", embeddings, methods=["POST"]),
    ]


def _as_json(model: ServedModel, context: ServerContext) -> dict[str, Any]:
    """Return a model in OpenAI's form."""
    facts = context.models.facts if model == context.models.loaded else None
    known = {} if facts is None else {"context_length": facts.context_tokens, "loaded": True}
    return {
        "id": model.model_id,
        "object": "model",
        "created": model.created,
        "owned_by": "medusa",
        **known,
    }


SPEC = DialectSpec("openai_models", ("/",), _routes, openai_error)
