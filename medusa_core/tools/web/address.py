r"""Parse addresses of the web into one canonical form, which is approved, shown and connected to.

If approval and connection read an address differently, a tool reaches another host than the user
approved. So whatever parsers read differently is refused: `https://good.example\@evil.example`.
"""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

_PORTS = {"http": 80, "https": 443}
_MOST_CHARS = 2_000
_MOST_HOST_CHARS = 253
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
_SAFE = "/%:@!$&'()*+,;=~"


class WebAddress(NamedTuple):
    """An address.

    Attributes:
        scheme: `http` or `https`.
        host: Host in lower case; an international name as `xn--…`.
        port: Port.
        target: Path and query, percent-encoded.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def site(self) -> str:
        """The host, with its port unless that is the scheme's."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole address."""
        return f"{self.scheme}://{self.site}{self.target}"


def parse_address(text: str) -> WebAddress:
    """Parse an address; its fragment is left out.

    Raises:
        ValueError: It is no http or https address, or is ambiguous; the text is for the model.
    """
    text = text.strip()
    if len(text) > _MOST_CHARS:
        raise ValueError(f"the address has more than {_MOST_CHARS:,} characters")
    if any(char <= " " or char in "\\\x7f" for char in text):
        raise ValueError("the address has spaces, backslashes or control characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError("this is no valid address") from error
    if parts.scheme not in _PORTS or not parts.netloc:
        raise ValueError("the address must begin with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError("an address with a user name or password isn't allowed")
    port = _PORTS[parts.scheme] if port is None else port
    if not port:
        raise ValueError("the port is invalid")
    target = quote(parts.path, safe=_SAFE) or "/"
    if "?" in text.partition("#")[0]:
        target += "?" + quote(parts.query, safe=_SAFE + "?")
    return WebAddress(parts.scheme, _canonical_host(parts.hostname or ""), port, target)


def redirected(address: WebAddress, location: str) -> WebAddress:
    """Return where a redirect of a page leads; only to the same site, with or without `www.`.

    The user approved a host. A page there that redirects anywhere would carry data in addresses to
    hosts that nobody approved; the model may call the tool with the new address instead.

    Raises:
        ValueError: It leads to another site, or to an unencrypted page from an encrypted one.
    """
    try:
        found = parse_address(urljoin(address.url, location.strip()))
    except ValueError as error:
        raise ValueError(f"the page redirects to an invalid address: {error}") from error
    if found.site.removeprefix("www.") != address.site.removeprefix("www."):
        raise ValueError(f"the page has moved to another site: {found.url}")
    if (address.scheme, found.scheme) == ("https", "http"):
        raise ValueError(f"the page has moved to an unencrypted one: {found.url}")
    return found


def _canonical_host(host: str) -> str:
    """Return a host in the only form that is used.

    Raises:
        ValueError: It is no host, or one that resolvers read as a number.
    """
    if ":" in host:  # urlsplit has checked brackets
        if "%" in host:
            raise ValueError("an IPv6 address with a zone isn't allowed")
        return str(ipaddress.IPv6Address(host))
    if len(host) > _MOST_HOST_CHARS:
        raise ValueError("the host's name is too long")
    try:
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError as error:
        raise ValueError("the host's name is invalid") from error
    labels = name.split(".")
    if len(name) > _MOST_HOST_CHARS or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("the host's name is invalid")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(name))  # not 127.1, 0x7f000001, 0177.0.0.1
        except ValueError as error:
            raise ValueError("the host is a malformed IP address") from error
    return name
