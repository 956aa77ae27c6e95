"""Connect, refresh and disconnect endpoints; all functions block."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from medusa_core.remote.address import endpoint_url, host_of_url
from medusa_core.remote.connection import EndpointConnection
from medusa_core.remote.endpoints import Endpoint, Endpoints
from medusa_core.remote.keys import saved_key
from medusa_core.remote.offered import OfferedModel, offered_models
from medusa_core.remote.refusals import offline_error
from medusa_core.system.key_store import KeyStore


def connect_endpoint(
    endpoints: Endpoints, address: str, *, name: str = "", key: str = "", is_offline: bool = False
) -> Endpoint:
    """Request the models of an endpoint, and save it with its key.

    Args:
        endpoints: The user's endpoints.
        address: User input; see `endpoint_url`.
        name: Name of the endpoint; empty for its host.
        key: API key; empty for the saved one, or none.
        is_offline: Whether offline mode is on.

    Raises:
        RequestError: The address is invalid.
        OfflineError: Offline mode is on.
        EndpointError: The endpoint doesn't answer as expected.
        StorageError: The endpoint can't be saved.
    """
    url = endpoint_url(address)
    known = endpoints.find(url)
    sent_key = key.strip() or saved_key(endpoints.folder, url)
    place = name.strip() or (known.name if known is not None else host_of_url(url))
    models = fetch_models(url, place, sent_key, is_offline=is_offline)
    if key.strip() and endpoints.folder is not None:
        KeyStore(endpoints.folder).save_key(url, sent_key)
    has_key = bool(sent_key) and endpoints.folder is not None
    endpoint = Endpoint(url, place, has_key, tuple(model.model_id for model in models))
    endpoints.add(endpoint)
    return endpoint


def refresh_endpoint(
    endpoints: Endpoints, endpoint: Endpoint, *, is_offline: bool = False
) -> Endpoint:
    """Request the models of a saved endpoint again, and save them.

    Raises:
        OfflineError: Offline mode is on.
        EndpointError: The endpoint doesn't answer as expected.
        StorageError: The endpoint can't be saved.
    """
    key = saved_key(endpoints.folder, endpoint.url)
    models = fetch_models(endpoint.url, endpoint.name, key, is_offline=is_offline)
    refreshed = replace(endpoint, models=tuple(model.model_id for model in models))
    endpoints.add(refreshed)
    return refreshed


def disconnect_endpoint(endpoints: Endpoints, endpoint: Endpoint) -> None:
    """Remove an endpoint and its key.

    Raises:
        StorageError: A file can't be written.
    """
    if endpoint.has_key and endpoints.folder is not None:
        KeyStore(endpoints.folder).remove_key(endpoint.url)
    endpoints.remove(endpoint.url)


def fetch_models(
    url: str, server: str, key: str, *, is_offline: bool = False
) -> tuple[OfferedModel, ...]:
    """Request the models of an endpoint.

    Raises:
        OfflineError: Offline mode is on.
        EndpointError: The endpoint doesn't answer as expected.
    """
    if is_offline:
        raise offline_error()
    return asyncio.run(_fetch(EndpointConnection(url, server, key)))


async def _fetch(connection: EndpointConnection) -> tuple[OfferedModel, ...]:
    """Request the models and close the connection."""
    try:
        return await offered_models(connection)
    finally:
        await connection.close()
