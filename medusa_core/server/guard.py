"""Access to the server: host names, origins of pages, API key."""

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
    """Checks the headers of a request.

    A web page can make the browser send requests to a local server, even under a name that
    resolves to 127.0.0.1 (DNS rebinding), so hosts and origins are checked on every address.

    Attributes:
        hosts: Names and addresses of the server, in lower case.
        port: Port of the server.
        origins: Other origins whose pages may use it.
        api_key: Key that clients must send; empty for none.
    """

    hosts: frozenset[str]
    port: int
    origins: frozenset[str] = frozenset()
    api_key: str = ""

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Check host, origin and key of a request.

        Raises:
            ApiError: The request is refused.
        """
        self._check_host(headers.getlist("host"))
        if not all(map(self._is_allowed, headers.getlist("origin"))):
            raise ApiError(
                403,
                "Pages of this origin may not use the server; name it with --cors-origin.",
                code="origin_refused",
            )
        if self.api_key and path not in _OPEN_PATHS and method != "OPTIONS":
            self._check_key(headers)

    def cors_headers(self, origin: str | None) -> Mapping[str, str]:
        """Return the CORS headers of a reply; none for origins that aren't allowed."""
        if origin is None or origin not in self.origins:
            return {}
        return {"access-control-allow-origin": origin, "vary": "Origin"}

    def preflight_headers(self, headers: Headers) -> Mapping[str, str]:
        """Return the headers of a reply to a CORS preflight request."""
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
        """Refuse other host names, by which a page could reach this server (DNS rebinding)."""
        if len(named) != 1 or not self._names_server(named[0], 80):
            raise ApiError(403, "The header Host doesn't name this server.", code="host_refused")

    def _names_server(self, authority: str, default_port: int) -> bool:
        """Whether host and port are this server's."""
        parts = _AUTHORITY.fullmatch(authority)
        if parts is None:
            return False
        name = (parts["address"] or parts["name"]).lower().removesuffix(".")
        return name in self.hosts and int(parts["port"] or default_port) == self.port

    def _is_allowed(self, origin: str) -> bool:
        """Whether an origin is listed or this server itself."""
        if origin in self.origins:
            return True
        scheme, mark, authority = origin.partition("://")
        port = _DEFAULT_PORTS.get(scheme, 0)
        return bool(mark) and scheme == "http" and self._names_server(authority, port)

    def _check_key(self, headers: Headers) -> None:
        """Compare the API key in constant time."""
        if not hmac.compare_digest(given_key(headers).encode(), self.api_key.encode()):
            raise ApiError(
                401,
                "The key is missing or wrong. Send it as `Authorization: Bearer …` or `x-api-key`.",
                code="invalid_api_key",
            )


def given_key(headers: Headers) -> str:
    """Return the API key of a request; empty for none."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def cache_salt(headers: Headers) -> str:
    """Return the cache salt of a client: clients with different keys share no cached prompts.

    That holds for keys that the server doesn't check, too, and for the window.
    """
    return "server:" + hashlib.sha256(given_key(headers).encode()).hexdigest()


def is_loopback(host: str) -> bool:
    """Return whether only this computer reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def known_hosts(host: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names and addresses of a server.

    Args:
        host: Address it listens on.
        names: Names and addresses of this computer.
    """
    named = {host.lower()}
    if is_loopback(host):
        return LOOPBACK_NAMES | named
    try:
        is_all = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        is_all = False
    return LOOPBACK_NAMES | named | ({name.lower() for name in names} if is_all else set())
