"""`/v1/embeddings`, and llama-server's `/embedding` and `/embeddings`."""

from __future__ import annotations

import array
import asyncio
import base64
import sys
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medusa_core.server.api_error import bad_request
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.dialects.openai_forms import openai_error
from medusa_core.server.records import Record, Whole, refusal
from medusa_core.server.replies import JsonReply, read_record, while_connected
from medusa_core.server.request_log import tally_of
from medusa_core.server.served_embedding import EmbeddedTexts

_MOST_DIMENSIONS = 1 << 16
_KINDS = "must be a text, a list of texts, a list of tokens, or a list of such lists"
_Inputs = tuple[str | tuple[int, ...], ...]


def _inputs(value: Any) -> _Inputs:
    """Normalize the input to texts or lists of tokens."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not value:
        raise refusal(_KINDS)
    if all(isinstance(text, str) for text in value):
        return tuple(value)
    if type(value[0]) is int:
        value = [value]
    if not all(isinstance(ids, list) and ids for ids in value):
        raise refusal(_KINDS)
    if not all(type(token_id) is int for ids in value for token_id in ids):
        raise refusal(_KINDS)
    return tuple(map(tuple, value))


Inputs = Annotated[_Inputs, PlainValidator(_inputs)]


class EmbeddingsBody(Record):
    """A request of `/v1/embeddings`."""

    input: Inputs
    model: str = ""
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[Whole, Field(ge=1, le=_MOST_DIMENSIONS)] | None = None


class LlamaEmbeddingsBody(Record):
    """A request of llama-server's `/embedding`."""

    content: Inputs | None = None
    input: Inputs | None = None
    model: str = ""


def _routes(context: ServerContext) -> list[Route]:
    """Return the routes of embeddings."""

    async def embeddings(http: Request) -> Response:
        """Embed texts."""
        body = await read_record(http, context.limits, EmbeddingsBody)
        found = await embed(http, body.model, body.input, body.dimensions or 0)
        # Numbers of many vectors are megabytes of text: written in a thread, streams continue.
        return await asyncio.to_thread(_reply, found, body.encoding_format == "base64")

    async def llama_embeddings(http: Request) -> Response:
        """Embed texts in llama-server's form."""
        body = await read_record(http, context.limits, LlamaEmbeddingsBody)
        inputs = body.content or body.input
        if inputs is None:
            raise bad_request("`content` is missing.", "content")
        found = await embed(http, body.model, inputs)
        return await asyncio.to_thread(_llama_reply, found)

    async def embed(
        http: Request, model: str, inputs: _Inputs, dimensions: int = 0
    ) -> EmbeddedTexts:
        """Embed the texts of a request, and count its tokens for the log."""
        limits = context.limits
        if len(inputs) > limits.texts:
            raise bad_request(f"`input` must have at most {limits.texts:,} texts.", "input")
        if any(isinstance(text, str) and len(text) > limits.text_chars for text in inputs):
            raise bad_request(f"A text is longer than {limits.text_chars:,} characters.", "input")
        found = await while_connected(http, context.embedding.embed(model, inputs, dimensions))
        tally = tally_of(http)
        tally.model, tally.prompt_tokens = found.model_id, found.num_tokens
        return found

    return [
        Route("/v1/embeddings", embeddings, methods=["POST"]),
        Route("/embedding", llama_embeddings, methods=["POST"]),
        Route("/embeddings", llama_embeddings, methods=["POST"]),
    ]


def _reply(found: EmbeddedTexts, is_base64: bool) -> JsonReply:
    """Return vectors in OpenAI's form."""
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector).decode() if is_base64 else _numbers(vector),
        }
        for index, vector in enumerate(found.vectors)
    ]
    usage = {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens}
    return JsonReply({"object": "list", "data": data, "model": found.model_id, "usage": usage})


def _llama_reply(found: EmbeddedTexts) -> JsonReply:
    """Return vectors in llama-server's form."""
    return JsonReply(
        [
            {"index": index, "embedding": [_numbers(vector)]}
            for index, vector in enumerate(found.vectors)
        ]
    )


def _numbers(vector: bytes) -> list[float]:
    """Return the numbers of a vector, which are little-endian."""
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


SPEC = DialectSpec("openai_embeddings", ("/embedding",), _routes, openai_error)
