"""Settings of the tools that reach the web."""

from __future__ import annotations

from dataclasses import dataclass, replace

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.tools.web.address import WebAddress, parse_address


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The user's settings for requests to the web.

    Attributes:
        search_url: Address of a SearXNG server; empty for none.
        allowed_hosts: Hosts that may be in a private network or on this computer, such as
            `nas.local` or `localhost:8080`.
        is_offline: Whether offline mode is on, which forbids all requests.
    """

    search_url: str = ""
    allowed_hosts: tuple[str, ...] = ()
    is_offline: bool = False


def checked_settings(settings: WebSettings) -> WebSettings:
    """Return settings with the addresses that the user typed in their canonical form.

    Raises:
        ToolError: An address is invalid.
    """
    search_url = settings.search_url.strip()
    if search_url:
        search_url = _parsed(search_url, "https://search.example.org").url
    typed = filter(None, map(str.strip, settings.allowed_hosts))
    hosts = [_parsed(host, "nas.local:8080").site for host in typed]
    return replace(settings, search_url=search_url, allowed_hosts=tuple(dict.fromkeys(hosts)))


def _parsed(text: str, example: str) -> WebAddress:
    """Parse an address, or a host without its scheme."""
    text = text.strip()
    try:
        return parse_address(text if "://" in text else f"http://{text}")
    except ValueError as error:
        raise ToolError(
            tr("{0} is no address.", repr(text[:100])), tr("Write one such as {0}.", example)
        ) from error


def forbid_offline(settings: WebSettings) -> None:
    """Raise an error in offline mode.

    Raises:
        ValueError: It is on.
    """
    if settings.is_offline:
        raise ValueError("the user has switched off all access to the network")
