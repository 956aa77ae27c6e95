"""Requests: bounded, without cookies and proxies, with redirects within a site."""

import gzip
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from medusa_core.tools.web.address import parse_address
from medusa_core.tools.web.fetch import MOST_BYTES, Response, fetch
from tests.support.remote.fixtures import make_certificate
from tests.support.tools.web_site import reply, web_site

Route = Callable[[socket.socket], None]


def fetched(routes: dict[str, Route], path: str = "/") -> Response:
    """Fetch a page of a site that the user has allowed."""
    with web_site(routes) as site:
        return fetch(parse_address(site.url(path)), "text/html", (site.host,))


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    with suppress(OSError):
        while True:
            connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def test_a_page_is_fetched_with_its_type() -> None:
    found = fetched({"/": reply("é".encode("latin-1"), 'Text/HTML; charset="ISO-8859-1"')})
    assert (found.media_type, found.charset) == ("text/html", "iso-8859-1")
    assert (found.data, found.is_cut) == (b"\xe9", False)


def test_an_endless_page_is_cut() -> None:
    found = fetched({"/": endless})
    assert (len(found.data), found.is_cut) == (MOST_BYTES, True)


def test_a_gzip_bomb_unpacks_to_the_same_bound() -> None:
    bomb = gzip.compress(bytes(200 << 20), 9)
    start_s = time.process_time()
    found = fetched({"/": reply(bomb, Content_Encoding="gzip")})
    assert (len(found.data), found.is_cut) == (MOST_BYTES, True)
    assert time.process_time() - start_s < 5.0
    assert fetched({"/": reply(gzip.compress(b"tea"), Content_Encoding="GZIP")}).data == b"tea"


@pytest.mark.parametrize(
    ("route", "words"),
    [
        (reply(status=403), "403 Forbidden"),
        (reply(status=799), "answers 799"),
        (reply(b"no gzip", Content_Encoding="gzip"), "damaged"),
        (reply(b"?", Content_Encoding="br"), "unknown way"),
        (lambda connection: connection.sendall(b"SSH-2.0\r\n"), "by HTTP"),
        (lambda connection: None, "can't be reached"),
        (reply(status=302, Location="http://169.254.169.254/latest"), "another site: http://169"),
        (reply(status=302, Location="/"), "more than 5 times"),
        (reply(status=302, Location="http://a@b/"), "invalid address"),
    ],
)
def test_what_is_no_page_says_why(route: Route, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fetched({"/": route})


def test_redirects_carry_no_cookies_and_their_number_is_bounded() -> None:
    routes = {f"/{n}": reply(status=301, Location=f"/{n + 1}", Set_Cookie="a=b") for n in range(5)}
    with web_site({**routes, "/5": reply(b"here")}) as site:
        assert fetch(parse_address(site.url("/0")), "*/*", (site.host,)).data == b"here"
    assert len(site.requests) == 6
    assert not any("cookie" in request.lower() for request in site.requests)


def test_a_redirect_to_other_letters_is_followed() -> None:
    routes = {"/": reply(status=302, Location="/tée"), "/t%C3%A9e": reply(b"here")}
    assert fetched(routes).data == b"here"


def test_the_proxy_of_the_system_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_site({}) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        assert fetched({"/": reply(b"here")}).data == b"here"
    assert not proxy.num_connections


def test_certificates_are_checked_for_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    encryption = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    encryption.load_cert_chain(certificate, key)

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), encryption.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(4096)
            reply(b"here")(encrypted)

    with web_site({}, answer) as site:
        address = parse_address(site.url().replace("http:", "https:"))
        with pytest.raises(ValueError, match="certificate"):
            fetch(address, "*/*", (site.host,))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert fetch(address, "*/*", (site.host,)).data == b"here"
        port = address.port
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]
        other = address._replace(host="other.example")
        with pytest.raises(ValueError, match="certificate"):
            fetch(other, "*/*", ("other.example",), lambda *_: found)
