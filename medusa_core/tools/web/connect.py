"""Connect to public addresses only.

A name is resolved once, all its addresses are checked, and the connection is made to one of these
addresses, so that a resolver that answers differently the next time changes nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection
from typing import Any

from medusa_core.tools.web.address import WebAddress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], list[Any]]  # as socket.getaddrinfo

_CONNECT_S = 10.0
# An IPv6 address of this network has an IPv4 address in its last 32 bits, which a gateway reaches.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def resolve(host: str, port: int) -> list[Any]:
    """Resolve a name to addresses of TCP connections, as `socket.getaddrinfo` returns them."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def connect(
    address: WebAddress, allowed: Collection[str], resolver: Resolver = resolve
) -> socket.socket:
    """Connect to a host.

    Args:
        address: Address whose host and port are connected to.
        allowed: Hosts, with or without port, that may be in a private network.
        resolver: Resolves a name.

    Raises:
        ValueError: The host isn't public and not allowed; no connection was made.
        OSError: It can't be resolved or reached.
    """
    found = resolver(address.host, address.port)
    if not {address.host, address.site} & set(allowed):
        for *_, place in found:
            _check_public(address.site, str(place[0]))
    failure = OSError("it has no address")
    for family, kind, protocol, _, place in found:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_CONNECT_S)
            connection.connect(place)
            return connection
        except OSError as error:
            connection.close()
            failure = error
    raise failure


def _check_public(site: str, place: str) -> None:
    """Check that an address is on the internet.

    Raises:
        ValueError: It isn't.
    """
    if not is_public(ipaddress.ip_address(place)):
        raise ValueError(
            f"{site} is on this computer or in a private network, which only the user can allow, "
            "in the settings of tools"
        )


def is_public(ip: IPAddress) -> bool:
    """Return whether an address is a host of the internet, not of a private or special network."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return is_public(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF))
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is not None:
            return is_public(inner)
        if ip.is_site_local or ip.teredo is not None or ip.scope_id is not None:
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)
