"""Request a page, within bounds on its size.

`http.client` does what is needed and nothing more: no cookies, no authentication, no automatic
redirects. The system's proxy isn't used: it would resolve names itself, so that their addresses
couldn't be checked.
"""

from __future__ import annotations

import email.message
import http.client
import ssl
import zlib
from collections.abc import Collection
from http import HTTPStatus
from typing import NamedTuple

from medusa_core import __version__
from medusa_core.tools.web.address import WebAddress, redirected
from medusa_core.tools.web.connect import Resolver, connect, resolve

MOST_BYTES = 2 << 20
_MOST_REDIRECTS = 5
_READ_S = 10.0  # between two bytes; the process that fetches has a limit for all of them
_PIECE = 1 << 16
_REDIRECTS = (301, 302, 303, 307, 308)
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_HEADERS = {
    "User-Agent": f"Mozilla/5.0 (compatible; MedusaChat/{__version__})",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "close",
}


class Response(NamedTuple):
    """A response.

    Attributes:
        address: Address after redirects.
        media_type: Media type in lower case, such as `text/html`; empty if there is none.
        charset: Charset of the header; empty if there is none.
        data: The body, decompressed.
        is_cut: Whether the body had more bytes than are read.
    """

    address: WebAddress
    media_type: str
    charset: str
    data: bytes
    is_cut: bool


def fetch(
    address: WebAddress, accept: str, allowed: Collection[str], resolver: Resolver = resolve
) -> Response:
    """Request a page by GET, following redirects within its site.

    Args:
        accept: Media types, as the header has them.
        allowed: Hosts that may be in a private network.
        resolver: Resolves names.

    Raises:
        ValueError: The address isn't allowed, or there is no such page; the text is for the model.
    """
    for _ in range(_MOST_REDIRECTS + 1):
        connection = _Connection(address, allowed, resolver)
        try:
            connection.putrequest("GET", address.target, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": address.site, "Accept": accept, **_HEADERS}.items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or location is None:
                return _read(address, response)
        except (OSError, http.client.HTTPException) as error:
            raise ValueError(f"{address.site} can't be reached: {_reason(error)}") from error
        finally:
            connection.close()
        # Headers are bytes that `http.client` reads as Latin-1; addresses in them are UTF-8.
        address = redirected(address, location.encode("latin-1").decode("utf-8", "replace"))
    raise ValueError(f"the page redirects more than {_MOST_REDIRECTS} times")


class _Connection(http.client.HTTPConnection):
    """A connection to a checked address, encrypted for https."""

    def __init__(self, address: WebAddress, allowed: Collection[str], resolver: Resolver) -> None:
        super().__init__(address.host, address.port)
        self._address, self._allowed, self._resolver = address, allowed, resolver

    def connect(self) -> None:
        """Connect."""
        self.sock = connect(self._address, self._allowed, self._resolver)
        self.sock.settimeout(_READ_S)
        if self._address.scheme == "https":
            import httpx2

            # Certificates as for the Hub: those of the system.
            context = httpx2.create_ssl_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._address.host)


def _read(address: WebAddress, response: http.client.HTTPResponse) -> Response:
    """Read and decompress a body, up to `MOST_BYTES`.

    Raises:
        ValueError: The status is an error, or the body is damaged.
    """
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise ValueError(f"{address.site} answers {_status(response.status)}")
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
        raise ValueError("the page is compressed in an unknown way")
    unpacker = None if encoding == "identity" else zlib.decompressobj(_GZIP_OR_ZLIB)
    data = bytearray()
    while len(data) <= MOST_BYTES and (piece := response.read1(_PIECE)):
        if unpacker is None:
            data += piece
            continue
        try:
            # A few kilobytes may unpack to gigabytes: no more than is missing.
            data += unpacker.decompress(piece, MOST_BYTES + 1 - len(data))
        except zlib.error as error:
            raise ValueError("the page is compressed, and damaged") from error
        if unpacker.eof:
            break
    header = email.message.Message()
    header["Content-Type"] = response.headers.get("Content-Type", "")
    charset = header.get_content_charset("")
    media_type = header.get_content_type() if header["Content-Type"].strip() else ""
    is_cut = len(data) > MOST_BYTES
    return Response(address, media_type, charset, bytes(data[:MOST_BYTES]), is_cut)


def _status(status: int) -> str:
    """Describe a status; the server's own words aren't quoted."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _reason(error: Exception) -> str:
    """Describe a failed connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate isn't valid ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "the encryption fails"
    if isinstance(error, TimeoutError):
        return "it doesn't answer"
    if isinstance(error, http.client.HTTPException):
        return "it doesn't answer by HTTP"
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "it fails"
