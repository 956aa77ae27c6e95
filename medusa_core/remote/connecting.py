"""Connecting an address: it is asked for its models first, then kept. All of this blocks."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from medusa_core.remote.address import endpoint_url, host_of_url
from medusa_core.remote.connection import EndpointConnection
from medusa_core.remote.endpoints import Endpoint, Endpoints
from medusa_core.remote.keys import KeyStore, saved_key
from medusa_core.remote.offered import OfferedModel, offered_models
from medusa_core.remote.refusals import offline_error


def connect_endpoint(
    endpoints: Endpoints, address: str, *, name: str = "", key: str = "", is_offline: bool = False
) -> Endpoint:
    """Ask an address for its models, and keep it with its key.

    Args:
        endpoints: Where it is kept.
        address: As people write it.
        name: What the user calls it; empty for its host.
        key: What proves who the user is; empty for the one that is kept, or nobody.
        is_offline: No request may leave.

    Raises:
        RequestError: It is no address.
        OfflineError: Nothing may be asked.
        EndpointError: It can't be used.
        StorageError: It can't be kept.
    """
    url = endpoint_url(address)
    known = endpoints.find(url)
    sent_key = key.strip() or saved_key(endpoints.folder, url)
    place = name.strip() or (known.name if known is not None else host_of_url(url))
    models = fetch_models(url, place, sent_key, is_offline=is_offline)
    if key.strip() and endpoints.folder is not None:
        KeyStore(endpoints.folder).save_key(url, sent_key)
    has_key = bool(sent_key) and endpoints.folder is not None
    made = Endpoint(url, place, has_key, tuple(model.model_id for model in models))
    endpoints.connect(made)
    return made


def refresh_endpoint(
    endpoints: Endpoints, endpoint: Endpoint, *, is_offline: bool = False
) -> Endpoint:
    """Ask a connected address for its models again, and keep what it says.

    Raises:
        OfflineError: Nothing may be asked.
        EndpointError: It can't be used.
        StorageError: It can't be kept.
    """
    key = saved_key(endpoints.folder, endpoint.url)
    models = fetch_models(endpoint.url, endpoint.name, key, is_offline=is_offline)
    refreshed = replace(endpoint, models=tuple(model.model_id for model in models))
    endpoints.connect(refreshed)
    return refreshed


def disconnect_endpoint(endpoints: Endpoints, endpoint: Endpoint) -> None:
    """Forget an address and its key.

    Raises:
        StorageError: It can't be removed.
    """
    if endpoint.has_key and endpoints.folder is not None:
        KeyStore(endpoints.folder).remove_key(endpoint.url)
    endpoints.remove(endpoint.url)


def fetch_models(
    url: str, place: str, key: str, *, is_offline: bool = False
) -> tuple[OfferedModel, ...]:
    """Which models an address offers now.

    Raises:
        OfflineError: Nothing may be asked.
        EndpointError: It can't be used.
    """
    if is_offline:
        raise offline_error()
    return asyncio.run(_fetch(EndpointConnection(url, place, key)))


async def _fetch(connection: EndpointConnection) -> tuple[OfferedModel, ...]:
    try:
        return await offered_models(connection)
    finally:
        await connection.close()
