"""Only public addresses are connected to, and the one that was checked."""

import ipaddress
import socket
from typing import Any

import pytest

from medusa_core.tools.web.address import parse_address
from medusa_core.tools.web.connect import connect, is_public
from tests.support.tools.web_site import web_site

PRIVATE = (
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("0.0.0.0", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.255.255.250"),
    *("240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%1", "fc00::1", "fd12::1"),
    *("fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "2001:db8::1"),
    *("2002:7f00:1::", "2002:a00:1::1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "100::1"),
)
PUBLIC = ("93.184.216.34", "1.1.1.1", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1")


class Resolver:
    """Answers with one list of addresses after the other."""

    def __init__(self, port: int, *answers: tuple[str, ...]) -> None:
        self.port, self.answers, self.num_asked = port, answers, 0

    def __call__(self, host: str, port: int) -> list[Any]:
        found = self.answers[self.num_asked]
        self.num_asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (ip, self.port)) for ip in found]


@pytest.mark.parametrize("ip", PRIVATE)
def test_special_addresses_are_not_public(ip: str) -> None:
    assert not is_public(ipaddress.ip_address(ip))


def test_public_addresses_are() -> None:
    assert all(is_public(ipaddress.ip_address(ip)) for ip in PUBLIC)


@pytest.mark.parametrize("places", [("127.0.0.1",), ("1.1.1.1", "127.0.0.1")])
def test_a_name_of_a_private_address_is_refused_without_a_connection(
    places: tuple[str, ...],
) -> None:
    with web_site({}) as site:
        port = int(site.host.rpartition(":")[2])
        address = parse_address(f"http://good.example:{port}/")
        with pytest.raises(ValueError, match="private network"):
            connect(address, ("other.example", f"good.example:{port + 1}"), Resolver(port, places))
    assert not site.num_connections


def test_the_checked_address_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    # The second answer would be used by a client that resolves the name again to connect.
    monkeypatch.setattr(
        "medusa_core.tools.web.connect.is_public", lambda ip: str(ip) == "127.0.0.1"
    )
    with web_site({}) as site:
        port = int(site.host.rpartition(":")[2])
        resolver = Resolver(port, ("127.0.0.1",), ("127.0.0.2",))
        address = parse_address(f"http://rebound.example:{port}/")
        with connect(address, (), resolver) as connection:
            assert connection.getpeername() == ("127.0.0.1", port)
        assert resolver.num_asked == 1
        with pytest.raises(ValueError, match="private network"):
            connect(address, (), resolver)


@pytest.mark.parametrize("allowed", ["nas.example", "nas.example:{0}"])
def test_the_user_allows_a_host_with_or_without_its_port(allowed: str) -> None:
    with web_site({}) as site:
        port = int(site.host.rpartition(":")[2])
        address = parse_address(f"http://NAS.example:{port}/")
        connect(address, (allowed.format(port),), Resolver(port, ("127.0.0.1",))).close()
    assert site.num_connections == 1
