"""Addresses of clusters."""

from __future__ import annotations

from ipaddress import ip_address

from medusa_core.errors import ClusterError
from medusa_core.i18n import tr


def split_address(address: str) -> tuple[str, int]:
    """Split HOST:PORT into host and port.

    Raises:
        ClusterError: The host isn't an IP address, or the port isn't a port.
    """
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]  # as IPv6 is written before a port
    host = "127.0.0.1" if host == "localhost" else host
    try:
        ip_address(host)
        number = int(port)
        if not 0 < number < 1 << 16:
            raise ValueError(port)
        return host, number
    except ValueError as error:
        raise ClusterError(
            tr("{0} is no address of a cluster.", address), "Write it as 192.168.1.5:6379."
        ) from error
