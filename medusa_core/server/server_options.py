"""Options of a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from medusa_core.server.limits import Limits
from medusa_core.server.served_models import ServedModel

DEFAULT_PORT = 8642


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where a server listens, and to whom.

    Attributes:
        host: Address to listen on; one that other computers reach needs an API key.
        port: Port; 0 for any free one.
        api_key: Key that clients must send; empty for none.
        origins: Origins of other sites whose pages may use the server.
        limits: Limits of the server.
        is_strict: Refuse requests for unknown models instead of answering them with the loaded one.
        embedding_model: Model of `/v1/embeddings`; None for none.
        embedding_device: Torch device name for it; empty for the best there is.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    api_key: str = ""
    origins: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    is_strict: bool = False
    embedding_model: ServedModel | None = None
    embedding_device: str = ""
