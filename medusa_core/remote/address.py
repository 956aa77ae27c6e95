"""Parse and normalize addresses of endpoints."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.system.loopback import is_loopback_url

_SCHEMES = ("http", "https")
_ROUTES = ("/chat/completions", "/completions", "/models", "/responses")  # often pasted, too
_VERSION = "/v1"
_MOST_CHARS = 500


def endpoint_url(text: str) -> str:
    """Normalize the address of an OpenAI-compatible server.

    Args:
        text: User input, such as `localhost:8080` or `https://host/v1/chat/completions`.

    Returns:
        Scheme, host, port and path before `/models`. The default path is `/v1`; the default scheme
        is HTTP for IP addresses and local names, HTTPS for others.

    Raises:
        RequestError: The text is no address, or holds more, such as a key.
    """
    written = text.strip()
    try:
        parts = urlsplit(written if "://" in written else f"//{written}")
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _no_address(written) from error
    scheme = parts.scheme or ("http" if _is_local_name(host) else "https")
    if (
        scheme not in _SCHEMES
        or not host
        or len(written) > _MOST_CHARS
        or not written.isprintable()
    ):
        raise _no_address(written)
    if " " in written or "\\" in written:
        raise _no_address(written)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise RequestError(
            "The address holds more than an address.",
            "Leave out names, passwords and what follows a ?; a key has a field of its own.",
        )
    shown_host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown_host}{'' if port is None else f':{port}'}{_path(parts)}"


def host_of_url(url: str) -> str:
    """Return host and port of a URL, the default name of an endpoint."""
    return urlsplit(url).netloc


def is_readable_by_others(url: str) -> bool:
    """Return whether requests leave this computer unencrypted."""
    return urlsplit(url).scheme == "http" and not is_loopback_url(url)


def _path(parts: SplitResult) -> str:
    """Return the base path of an API, without known routes."""
    path = parts.path.rstrip("/")
    for route in _ROUTES:
        path = path.removesuffix(route)
    return path or _VERSION


def _is_local_name(host: str) -> bool:
    """Whether a host is an address or a name of the local network."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".localhost"))
    return True


def _no_address(text: str) -> RequestError:
    """Make the error for an invalid address; it never quotes a password."""
    shown = "This" if "@" in text else text[:100] or "Nothing"  # a password must not get into a log
    return RequestError(
        tr("{0} is no address of a server.", shown),
        "Write one such as http://localhost:8080/v1.",
    )
