"""The embedding model of a server, which the engine loads beside the chat model on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.chats.conversation import new_id
from medusa_core.client import Client
from medusa_core.errors import MedusaError, ModelError, RequestError
from medusa_core.messages import Embed
from medusa_core.server.api_error import ApiError, api_error_of, bad_request
from medusa_core.server.served_models import ServedModel, ServedModels
from medusa_core.server.server_options import ServerOptions

_SESSION = "server"
_FLOAT_BYTES = 4


class EmbeddedTexts(NamedTuple):
    """Vectors of the texts of a request.

    Attributes:
        model_id: Id of the model.
        vectors: Little-endian float32 numbers of each vector.
        num_tokens: Number of tokens of all texts.
    """

    model_id: str
    vectors: tuple[bytes, ...]
    num_tokens: int


class ServedEmbedding:
    """Embeds the texts of requests.

    Attributes:
        model: The embedding model; None for none.
    """

    def __init__(self, client: Client, models: ServedModels, options: ServerOptions) -> None:
        """Offer the embedding model of the options.

        Args:
            client: Client of the engine.
            models: Chat models, whose names aren't the embedding model's.
            options: Options of the server.
        """
        self._client, self._models = client, models
        self.model, self._device = options.embedding_model, options.embedding_device
        self._is_strict = options.is_strict
        self._most_waiting = options.limits.most_waiting
        self._num_open = 0

    async def embed(
        self, name: str, inputs: Sequence[str | tuple[int, ...]], dimensions: int = 0
    ) -> EmbeddedTexts:
        """Embed texts, or texts as token ids.

        Args:
            name: Name of the model; unknown names mean the embedding model unless the server is
                strict.
            inputs: Texts, either all as strings or all as token ids.
            dimensions: Dimensions of the vectors; 0 for all.

        Raises:
            ApiError: There is no embedding model, it can't be loaded, or the request is invalid.
        """
        model = await self._model_named(name)
        if self._num_open >= self._most_waiting:
            raise ApiError(
                429,
                f"{self._num_open} requests wait already. Try again later.",
                code="queue_full",
                retry_after_s=2,
            )
        assert model.path is not None  # as of every installed model
        command = Embed(
            _SESSION,
            new_id(),
            model.path,
            tuple(text for text in inputs if isinstance(text, str)),
            tuple(ids for ids in inputs if not isinstance(ids, str)),
            dimensions,
            device=self._device,
        )
        self._num_open += 1
        try:
            embedded = await self._client.embed(command)
        except MedusaError as error:
            raise _api_error(error) from error
        finally:
            self._num_open -= 1
        size = embedded.width * _FLOAT_BYTES
        starts = range(0, len(embedded.vectors), size)
        vectors = tuple(embedded.vectors[start : start + size] for start in starts)
        return EmbeddedTexts(model.model_id, vectors, sum(embedded.num_tokens))

    async def _model_named(self, name: str) -> ServedModel:
        """Return the embedding model for a request that names a model.

        Raises:
            ApiError: There is none, or the name is that of a chat model, or unknown to a strict
                server.
        """
        model = self.model
        if model is None:
            raise ApiError(
                501,
                "No embedding model is set, and chat models have no embeddings. Start the server "
                "with --embedding-model, such as all-MiniLM-L6-v2 or Qwen3-Embedding, or choose "
                "one in the window under Documents.",
                code="no_embedding_model",
            )
        if name.casefold() in ("", model.model_id.casefold()):
            return model
        if any(one.model_id.casefold() == name.casefold() for one in await self._models.all()):
            raise bad_request(
                f"{name} is a chat model. The embedding model here is {model.model_id}.", "model"
            )
        if self._is_strict:
            raise ApiError(
                404,
                f"There is no embedding model of that name here. There is: {model.model_id}.",
                "model",
                "model_not_found",
            )
        return model


def _api_error(error: MedusaError) -> ApiError:
    """Convert an error of the engine: invalid texts are the client's, a missing file isn't."""
    found = api_error_of(error)
    if isinstance(error, RequestError):
        found.param = "dimensions" if "dimensions" in error.data else "input"
    elif isinstance(error, ModelError):
        found.status = 503
    return found
