"""Who may speak to the server: its names, its pages, its key."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers

from medusa_core.server.api_error import ApiError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OPEN_PATHS = frozenset({"/health"})
_CORS_METHODS = "GET, POST, OPTIONS"
_CORS_S = "600"
_AUTHORITY = re.compile(
    r"(\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]@/?#\\:\s]+))(:(?P<port>[0-9]{1,5}))?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks a request's head before anything is done for it.

    A page in a browser can make it send requests to a local server, also under a name that it
    lets mean 127.0.0.1 (DNS rebinding): so names of hosts and origins are checked on every address.

    Attributes:
        hosts: Names and addresses under which the server is reached, in lower case.
        port: Where it listens.
        origins: Other origins whose pages may use it.
        api_key: What clients must know; empty for no key.
    """

    hosts: frozenset[str]
    port: int
    origins: frozenset[str] = frozenset()
    api_key: str = ""

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Refuse a request that comes from where it may not, or without the key.

        Raises:
            ApiError: It is refused.
        """
        self._check_host(headers.getlist("host"))
        if not all(map(self._may_use, headers.getlist("origin"))):
            raise ApiError(
                403,
                "Pages of this origin may not use the server; name it with --cors-origin.",
                code="origin_refused",
            )
        if self.api_key and path not in _OPEN_PATHS and method != "OPTIONS":
            self._check_key(headers)

    def cors_headers(self, origin: str | None) -> Mapping[str, str]:
        """What lets a page of a named origin read the reply."""
        if origin is None or origin not in self.origins:
            return {}
        return {"access-control-allow-origin": origin, "vary": "Origin"}

    def preflight_headers(self, headers: Headers) -> Mapping[str, str]:
        """The answer to a browser that asks what a page may send."""
        allowed = self.cors_headers(headers.get("origin"))
        if not allowed:
            return {}
        return {
            **allowed,
            "access-control-allow-methods": _CORS_METHODS,
            "access-control-allow-headers": headers.get("access-control-request-headers", "*"),
            "access-control-max-age": _CORS_S,
        }

    def _check_host(self, named: list[str]) -> None:
        if len(named) != 1 or not self._is_ours(named[0], 80):
            raise ApiError(
                403, "The header Host names another server than this one.", code="host_refused"
            )

    def _is_ours(self, authority: str, default_port: int) -> bool:
        parts = _AUTHORITY.fullmatch(authority)
        if parts is None:
            return False
        name = (parts["address"] or parts["name"]).lower().removesuffix(".")
        return name in self.hosts and int(parts["port"] or default_port) == self.port

    def _may_use(self, origin: str) -> bool:
        if origin in self.origins:
            return True
        scheme, mark, authority = origin.partition("://")
        port = _DEFAULT_PORTS.get(scheme, 0)
        return bool(mark) and scheme == "http" and self._is_ours(authority, port)

    def _check_key(self, headers: Headers) -> None:
        if not hmac.compare_digest(given_key(headers).encode(), self.api_key.encode()):
            raise ApiError(
                401,
                "The key is missing or wrong. Send it as `Authorization: Bearer …` or `x-api-key`.",
                code="invalid_api_key",
            )


def given_key(headers: Headers) -> str:
    """The API key that a request brings; empty where it has none."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def cache_salt(headers: Headers) -> str:
    """Separates the cached prompts of clients with different API keys; see `Generate`.

    Keys that the server doesn't ask for separate, too, and all from the window.
    """
    return "server:" + hashlib.sha256(given_key(headers).encode()).hexdigest()


def is_loopback(host: str) -> bool:
    """Does only this computer reach the address?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def known_hosts(host: str, own: Iterable[str]) -> frozenset[str]:
    """Under which names a server on an address is reached.

    Args:
        host: What it listens on.
        own: Names and addresses of this computer.
    """
    named = {host.lower()}
    if is_loopback(host):
        return LOOPBACK_NAMES | named
    try:
        is_all = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        is_all = False
    return LOOPBACK_NAMES | named | ({one.lower() for one in own} if is_all else set())
