"""`/v1/models`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import openai_error
from medusa_core.server.replies import JsonReply
from medusa_core.server.served_models import ServedModel


def _routes(context: ServerContext) -> list[Route]:
    """Return the routes of models."""

    async def models(http: Request) -> Response:
        """List the models."""
        embedding, chats = context.embedding.model, await context.models.all()
        if embedding is None:
            listed = [_as_json(one, context) for one in chats]
        else:  # a decoder may be installed among the chat models, too
            others = (one for one in chats if one.model_id != embedding.model_id)
            listed = [*(_as_json(one, context) for one in others), _embedding_json(embedding)]
        return JsonReply({"object": "list", "data": listed})

    async def model(http: Request) -> Response:
        """Describe a model."""
        name, embedding = http.path_params["model_id"], context.embedding.model
        if embedding is not None and name.casefold() == embedding.model_id.casefold():
            return JsonReply(_embedding_json(embedding))
        found = await context.models.find(name)
        return JsonReply(_as_json(found, context))

    return [
        Route("/v1/models", models),
        Route("/v1/models/{model_id:path}", model),
    ]


def _as_json(model: ServedModel, context: ServerContext) -> dict[str, Any]:
    """Return a model in OpenAI's form."""
    facts = context.models.facts if model == context.models.loaded else None
    known = {} if facts is None else {"context_length": facts.context_tokens, "loaded": True}
    return {**_basic_json(model), **known}


def _embedding_json(model: ServedModel) -> dict[str, Any]:
    """Return the embedding model in OpenAI's form."""
    return {**_basic_json(model), "type": "embedding"}


def _basic_json(model: ServedModel) -> dict[str, Any]:
    """Return the fields that OpenAI's form has."""
    return {
        "id": model.model_id,
        "object": "model",
        "created": model.created,
        "owned_by": "medusa",
    }


SPEC = DialectSpec("openai_models", ("/",), _routes, openai_error)
