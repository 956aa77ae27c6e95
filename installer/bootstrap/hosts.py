"""Which hosts are near: this computer and private networks."""

import ipaddress
import socket


def is_near(host: str) -> bool:
    """Whether all addresses of a host are private or of this computer; unknown ones aren't."""
    addresses = _addresses(host)
    return bool(addresses) and all(_is_private(address) for address in addresses)


def _addresses(host: str) -> list[str]:
    try:
        return [str(ipaddress.ip_address(host.strip("[]")))]
    except ValueError:
        pass
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]
    except (OSError, UnicodeError):
        return []


def _is_private(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    return found.is_loopback or found.is_private or found.is_link_local
