"""List the models of an endpoint."""

from __future__ import annotations

from typing import Any, NamedTuple

from medusa_core.i18n import tr
from medusa_core.remote.connection import EndpointConnection
from medusa_core.remote.refusals import unknown_model, unreadable_answer

_MOST_MODELS = 1000
_LONGEST_ID = 300
# Fields with the context length, of various servers.
_CONTEXT_NAMES = ("max_model_len", "context_length", "context_window", "n_ctx", "n_ctx_train")
_MOST_CONTEXT = 1 << 31


class OfferedModel(NamedTuple):
    """A model that an endpoint offers.

    Attributes:
        model_id: Id of the model at the endpoint.
        context_tokens: Context length, prompt and answer together; 0 if unknown.
    """

    model_id: str
    context_tokens: int = 0


async def offered_models(connection: EndpointConnection) -> tuple[OfferedModel, ...]:
    """Request the models of an endpoint, in its order.

    Raises:
        EndpointError: The request fails, or the list can't be parsed.
    """
    raw = await connection.get_json("/models")
    entries = raw.get("data") if isinstance(raw, dict) else None
    if not isinstance(entries, list):
        raise unreadable_answer(connection.place, tr("it holds no list of models"))
    models = (_offered(entry) for entry in entries[:_MOST_MODELS])
    return tuple({model.model_id: model for model in models if model is not None}.values())


def chosen_model(server: str, model_id: str, offered: tuple[OfferedModel, ...]) -> OfferedModel:
    """Return the model with this id; for an empty id the first.

    Raises:
        EndpointModelError: There is no such model.
    """
    if not model_id and offered:
        return offered[0]
    # Ollama lists names with a tag that may be omitted.
    names = (model_id, f"{model_id}:latest")
    for model in offered:
        if model.model_id in names:
            return model
    raise unknown_model(server, model_id, tuple(model.model_id for model in offered))


def _offered(entry: Any) -> OfferedModel | None:
    """Parse a model; None if its id is invalid."""
    model_id = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(model_id, str) or not 0 < len(model_id) <= _LONGEST_ID:
        return None
    if not model_id.isprintable():
        return None
    meta = entry.get("meta")
    values = {**(meta if isinstance(meta, dict) else {}), **entry}
    contexts = (values.get(name) for name in _CONTEXT_NAMES)
    known = (size for size in contexts if type(size) is int and 0 < size < _MOST_CONTEXT)
    return OfferedModel(model_id, next(known, 0))
