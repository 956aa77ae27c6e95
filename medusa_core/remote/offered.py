"""Which models an address offers."""

from __future__ import annotations

from typing import Any, NamedTuple

from medusa_core.remote.connection import EndpointConnection
from medusa_core.remote.refusals import unknown_model, unreadable_answer

_MOST_MODELS = 1000
_LONGEST_ID = 300
# Where servers say how much a model reads.
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
    """The models that an address lists, in its order.

    Raises:
        EndpointError: It can't be asked, or its answer can't be read.
    """
    raw = await connection.get_json("/models")
    entries = raw.get("data") if isinstance(raw, dict) else None
    if not isinstance(entries, list):
        raise unreadable_answer(connection.place, "it holds no list of models")
    found = (_offered(entry) for entry in entries[:_MOST_MODELS])
    return tuple({one.model_id: one for one in found if one is not None}.values())


def chosen_model(place: str, model_id: str, offered: tuple[OfferedModel, ...]) -> OfferedModel:
    """The model that is meant; without a name, the first.

    Raises:
        EndpointModelError: It isn't there.
    """
    if not model_id and offered:
        return offered[0]
    # Ollama lists names with the tag that may be left out.
    names = (model_id, f"{model_id}:latest")
    for one in offered:
        if one.model_id in names:
            return one
    raise unknown_model(place, model_id, tuple(one.model_id for one in offered))


def _offered(entry: Any) -> OfferedModel | None:
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
