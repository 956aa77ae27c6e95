"""The newest wheel of Medusa Chat on a package index.

Source: the specification "Simple repository API" of the Python packaging authority, in HTML.
"""

import hashlib
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import (
    HTTPBasicAuthHandler,
    HTTPPasswordMgrWithPriorAuth,
    OpenerDirector,
    Request,
    build_opener,
)

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
        address: of the index, as pip's --index-url; may hold a user name and a password.
        folder: gets the file; what it held before is removed.

    Raises:
        SetupError: the index can't be reached or has none, or the file isn't what it promised.
    """
    page = f"{address.rstrip('/')}/{PROJECT}/"
    try:
        opener, bare_page = _signed_in(page)
        links = _links(opener, bare_page)
        if not links:
            raise SetupError(f"{shown_address(address)} has no wheel of Medusa Chat.")
        name = max(links, key=lambda one: version_key(wheel_version(Path(one)) or "") or ())
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in folder.iterdir():
            earlier.unlink()
        _download(opener, links[name], folder / name)
    except (URLError, HTTPException, OSError, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()  # it is the answer, too
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


def _signed_in(page: str) -> tuple[OpenerDirector, str]:
    """What opens addresses of a page's host by the name and password in it; the page without."""
    parts = urlsplit(page)
    host = parts.netloc.rpartition("@")[2]
    passwords = HTTPPasswordMgrWithPriorAuth()
    if parts.username:
        root = f"{parts.scheme}://{host}/"
        user, password = unquote(parts.username), unquote(parts.password or "")
        passwords.add_password(None, root, user, password, is_authenticated=True)
    return build_opener(HTTPBasicAuthHandler(passwords)), urlunsplit(parts._replace(netloc=host))


def _links(opener: OpenerDirector, page: str) -> dict[str, str]:
    """Wheels by their names, and where they are."""
    request = Request(page, headers={"Accept": "text/html"})
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        text = answer.read(MAX_PAGE_BYTES).decode("utf-8", "replace")
        base = answer.geturl()
    parser = _Links()
    parser.feed(text)
    wheels = {}
    for link in parser.found:
        try:
            address = urljoin(base, link)
        except ValueError:  # it is no address
            continue
        name = unquote(urlsplit(address).path).rpartition("/")[2]
        is_web = urlsplit(address).scheme in ("http", "https")
        if is_web and wheel_version(Path(name)) is not None:
            wheels[name] = address
    return wheels


def _download(opener: OpenerDirector, address: str, target: Path) -> None:
    """Download a file and compare it with the hash that the index names.

    Raises:
        SetupError: it is another file, too large, or promised by a hash that can't be checked.
    """
    bare, fragment = urldefrag(address)
    kind, _, promised = fragment.partition("=")
    digest, size = _hash(kind, fragment, target.name), 0
    with opener.open(bare, timeout=TIMEOUT_S) as answer, target.open("wb") as file:
        while block := answer.read(BLOCK_BYTES):
            digest.update(block)
            file.write(block)
            size += len(block)
            if size > MAX_WHEEL_BYTES:
                raise SetupError(f"{target.name} is larger than a wheel of Medusa Chat can be.")
    if fragment and promised.lower() != digest.hexdigest():
        raise SetupError(f"{target.name} has other bytes than the index says.", "Try again.")


def _hash(kind: str, fragment: str, name: str) -> "hashlib._Hash":
    """What computes the hash that a link names; any where it names none.

    Raises:
        SetupError: it is unknown here.
    """
    try:
        digest = hashlib.new(kind.lower() if fragment else "sha256")
    except ValueError:
        digest = None
    if digest is None or not digest.digest_size:
        raise SetupError(
            f"The index promises {name} by a hash that can't be checked here: {fragment[:40]}.",
            "Publish it with #sha256=…",
        )
    return digest
