"""Addresses have one form, for approval, display and connection; ambiguous ones are refused."""

import pytest

from medusa_core.tools.web.address import parse_address, redirected

CANONICAL = {
    "https://Example.ORG": "https://example.org/",
    " http://example.org:80/a b".replace(" b", "%20b"): "http://example.org/a%20b",
    "https://example.org:8443/?q=ü#part": "https://example.org:8443/?q=%C3%BC",
    "https://example.org./x": "https://example.org/x",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "https://аpple.com/": "https://xn--pple-43d.com/",  # a Cyrillic а
    "https://example。org/": "https://example.org/",
    "http://１２７.0.0.1/": "http://127.0.0.1/",
    "http://[::FFFF:127.0.0.1]:8080/": "http://[::ffff:7f00:1]:8080/",
    "https://example.org?a=b?c": "https://example.org/?a=b?c",
}
REFUSED = (
    *("", "example.org", "//example.org", "ftp://example.org", "file:///etc/passwd", "https://"),
    *("javascript:alert(1)", "https:example.org", "https:///example.org"),
    *("http://good.example@evil.example/", "http://user:password@example.org", "http://@a.example"),
    *("http://good.example\\@evil.example/", "http://good.example\\.evil.example/"),
    *(
        "http://exa mple.org",
        "http://exam\tple.org",
        "http://example.org/a\r\nHost: b",
        "http://a\0",
    ),
    *("http://example.org:0", "http://example.org:99999", "http://example.org:8x"),
    *("http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/"),
    *("http://127.0.0.1.0x1/", "http://１27.1/", "http://a..b/", "http://example.org../"),
    *("http://exa%6dple.org/", "http://a/%00".replace("/%", "%"), "http://[fe80::1%25eth0]/"),
    *("http://[::1", "http://::1/", "http://a_b-.org/", "http://exam<ple.org/", "http://a|b/"),
    *("http://" + "a" * 64 + ".org/", "http://" + "a." * 130 + "org/", "http://a/" + "x" * 3000),
    "http://℀.example/",
)


@pytest.mark.parametrize("text", CANONICAL)
def test_an_address_has_one_form(text: str) -> None:
    address = parse_address(text)
    assert address.url == CANONICAL[text]
    assert parse_address(address.url) == address


@pytest.mark.parametrize("text", REFUSED)
def test_ambiguous_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|host|port"):
        parse_address(text)


def test_redirects_stay_on_their_site() -> None:
    start = parse_address("http://example.org/a/b?c")
    assert redirected(start, "../d").url == "http://example.org/d"
    assert redirected(start, "https://www.example.org/").url == "https://www.example.org/"
    secure = parse_address("https://example.org/")
    for location in (
        *(
            "https://evil.example/",
            "//evil.example/",
            "http://127.0.0.1/",
            "https://example.org:81/",
        ),
        *("http://example.org/", "https://a@example.org/", "ftp://example.org/", "/\\evil.example"),
        "https://sub.example.org/",
    ):
        with pytest.raises(ValueError, match=r"moved|redirects to an invalid"):
            redirected(secure, location)
