"""The newest wheel of Medusa Chat on a package index.

Source: the specification "Simple repository API" of the Python packaging authority, in HTML.
"""

import hashlib
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import Request, urlopen

from installer.bootstrap.sources import shown_address
from installer.bootstrap.version import version_key, wheel_version
from installer.errors import SetupError

PROJECT = "medusa-chat"
TIMEOUT_S = 30.0
MAX_PAGE_BYTES = 4 << 20
MAX_WHEEL_BYTES = 1 << 30
BLOCK_BYTES = 1 << 20


def fetch_wheel(address: str, folder: Path) -> Path:
    """Download the newest wheel.

    Args:
        address: of the index, as pip's --index-url.
        folder: gets the file; what it held before is removed.

    Raises:
        SetupError: the index can't be reached or has none, or the file isn't what it promised.
    """
    page = f"{address.rstrip('/')}/{PROJECT}/"
    try:
        links = _links(page)
        if not links:
            raise SetupError(f"{shown_address(address)} has no wheel of Medusa Chat.")
        name = max(links, key=lambda one: version_key(wheel_version(Path(one)) or "") or ())
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in folder.iterdir():
            earlier.unlink()
        _download(links[name], folder / name)
    except (URLError, HTTPException, OSError, ValueError) as error:
        raise SetupError(
            f"{shown_address(page)} could not be read: {error}.", "Check the address."
        ) from error
    return folder / name


class _Links(HTMLParser):
    """Collects what a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if tag == "a" and address:
            self.found.append(address)


def _links(page: str) -> dict[str, str]:
    """Wheels by their names, and where they are."""
    request = Request(page, headers={"Accept": "text/html"})
    with urlopen(request, timeout=TIMEOUT_S) as answer:
        text = answer.read(MAX_PAGE_BYTES).decode("utf-8", "replace")
        base = answer.geturl()
    parser = _Links()
    parser.feed(text)
    wheels = {}
    for address in (urljoin(base, one) for one in parser.found):
        name = unquote(urlsplit(address).path).rpartition("/")[2]
        is_web = urlsplit(address).scheme in ("http", "https")
        if is_web and wheel_version(Path(name)) is not None:
            wheels[name] = address
    return wheels


def _download(address: str, target: Path) -> None:
    """Download a file and compare it with the hash that the index names.

    Raises:
        SetupError: it is another file, or too large.
    """
    bare, fragment = urldefrag(address)
    digest, size = hashlib.sha256(), 0
    with urlopen(bare, timeout=TIMEOUT_S) as answer, target.open("wb") as file:
        while block := answer.read(BLOCK_BYTES):
            digest.update(block)
            file.write(block)
            size += len(block)
            if size > MAX_WHEEL_BYTES:
                raise SetupError(f"{target.name} is larger than a wheel of Medusa Chat can be.")
    kind, _, promised = fragment.partition("=")
    if kind == "sha256" and promised != digest.hexdigest():
        raise SetupError(f"{target.name} has other bytes than the index says.", "Try again.")
