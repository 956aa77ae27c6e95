"""Saved API keys of endpoints."""

from __future__ import annotations

from pathlib import Path

from medusa_core.remote.endpoints import Endpoints
from medusa_core.system.key_store import KeyStore


def saved_key(folder: Path | None, url: str) -> str:
    """Return the saved key of an endpoint; empty for none. Blocks.

    Args:
        folder: Folder of the user's configuration; None for none.
        url: URL of the endpoint. The keyring is called only for endpoints that have a key.
    """
    endpoint = None if folder is None else Endpoints(folder).find(url)
    if folder is None or endpoint is None or not endpoint.has_key:
        return ""
    return KeyStore(folder).key_of(url)
