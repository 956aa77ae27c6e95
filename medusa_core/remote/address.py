"""What a user writes as an address, as the one form that is kept and asked."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from medusa_core.errors import RequestError

_SCHEMES = ("http", "https")
_CALLS = ("/chat/completions", "/completions", "/models", "/responses")  # pasted with the address
_VERSION = "/v1"
_MOST_CHARS = 500


def endpoint_url(text: str) -> str:
    """The address of an OpenAI-compatible server.

    Args:
        text: As people write it, such as `localhost:8080` or `https://host/v1/chat/completions`.

    Returns:
        Scheme, host, port and path up to where `/models` follows; without a path, `/v1`. Without a
        scheme, HTTP for numbers and names of a local network and HTTPS for all others.

    Raises:
        RequestError: It is none, or holds more than an address, such as a key.
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
    """Host and port of an address, which name a machine where the user doesn't."""
    return urlsplit(url).netloc


def is_loopback_url(url: str) -> bool:
    """Whether an address leads to this computer."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_readable_by_others(url: str) -> bool:
    """Whether who is on the way can read what is sent: no encryption, and another computer."""
    return urlsplit(url).scheme == "http" and not is_loopback_url(url)


def _path(parts: SplitResult) -> str:
    path = parts.path.rstrip("/")
    for call in _CALLS:
        path = path.removesuffix(call)
    return path or _VERSION


def _is_local_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".localhost"))
    return True


def _no_address(text: str) -> RequestError:
    shown = "This" if "@" in text else text[:100] or "Nothing"  # no password goes into a log
    return RequestError(
        f"{shown} is no address of a server.",
        "Write one such as http://localhost:8080/v1.",
    )
