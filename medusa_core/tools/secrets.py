"""Secrets of tool servers: `mcp.json` has a reference, the system's keyring the value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.system.key_store import KeyStore
from medusa_core.tools.servers import Pairs, ToolServer

_REFERENCE = re.compile(r"\$\{keyring:([^${}]{1,100})\}")


def save_secret(store: KeyStore, server: str, name: str, value: str) -> str:
    """Save a secret and return the reference to it; blocks.

    Args:
        store: Where secrets are.
        server: Name of the server, which alone can use the secret.
        name: Name of the variable or header.
        value: The secret.

    Raises:
        StorageError: It can't be saved.
    """
    plain = re.sub(r"[${}]", "_", name)[:100] or "_"
    store.save_key(_key(server, plain), value)
    return f"${{keyring:{plain}}}"


def with_secrets(server: ToolServer, store: KeyStore) -> ToolServer:
    """Return a server with the values of its secrets; blocks.

    A reference names a secret of the same server: settings of another program can't read those of
    other servers.

    Raises:
        ToolError: A secret is missing.
    """

    def resolve(match: re.Match[str]) -> str:
        value = store.key_of(_key(server.name, match[1]))
        if not value:
            raise ToolError(
                tr("The secret {0} isn't in the keyring.", repr(match[1])),
                tr("Enter it again in the settings of the server."),
            )
        return value

    def resolved(pairs: Pairs) -> Pairs:
        return tuple((name, _REFERENCE.sub(resolve, value)) for name, value in pairs)

    return replace(server, env=resolved(server.env), headers=resolved(server.headers))


def move_secrets(server: ToolServer, new_name: str, store: KeyStore) -> None:
    """Save the secrets of a server for its new name; blocks.

    Raises:
        StorageError: They can't be saved.
    """
    for name in _names(server):
        if value := store.key_of(_key(server.name, name)):
            store.save_key(_key(new_name, name), value)
            store.remove_key(_key(server.name, name))


def remove_secrets(
    server: ToolServer, store: KeyStore, successor: ToolServer | None = None
) -> None:
    """Remove the secrets of a server; blocks.

    Args:
        server: The server, which has been removed or replaced.
        store: Where secrets are.
        successor: What has replaced it; the secrets that it refers to stay.

    Raises:
        StorageError: They can't be removed.
    """
    kept = set() if successor is None else set(_names(successor))
    for name in _names(server):
        if name not in kept:
            store.remove_key(_key(server.name, name))


def _names(server: ToolServer) -> Iterable[str]:
    """Return the names of the secrets that a server refers to."""
    values = (value for _, value in (*server.env, *server.headers))
    return dict.fromkeys(name for value in values for name in _REFERENCE.findall(value))


def _key(server: str, name: str) -> str:
    """Return the name of a secret in the store, where endpoints have theirs by URL."""
    return f"tool server {server!r} {name}"
