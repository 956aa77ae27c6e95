"""Where a server listens, and to whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from medusa_core.server.limits import Limits

DEFAULT_PORT = 8642


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where a server listens, and to whom.

    Attributes:
        host: Address; who isn't on this computer needs the key.
        port: 0 for any that is free.
        api_key: What clients must know; empty for none, which only loopback allows.
        origins: Of other sites whose pages may use it.
        limits: What a request may cost.
        is_strict: Refuse requests for models that aren't here; else the loaded one answers them.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    api_key: str = ""
    origins: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    is_strict: bool = False
