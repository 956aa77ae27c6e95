"""Fetch pages in a process with limits of time and memory, which is killed to stop a call."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import NamedTuple

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.system.sandbox.worker import WorkerErrors, WorkerProcess
from medusa_core.tools.web.address import WebAddress
from medusa_core.tools.web.fetch import MOST_BYTES
from medusa_core.tools.web.settings import WebSettings, forbid_offline
from medusa_core.tools.web.worker import MEMORY_BYTES

MOST_S = 20.0
_MODULE = "medusa_core.tools.web.worker"
_MOST_LINE_CHARS = 6 * MOST_BYTES + 10_000  # JSON escapes a byte as six characters at most
# The model reads these errors, too.
_ERRORS = WorkerErrors(
    start=lambda error: ToolError(tr("no process can be started to fetch it: {0}", error)),
    memory=lambda: ToolError("the page takes too much memory to read"),
    time=lambda seconds: ToolError(tr("the page takes longer than {0:.0f} s", seconds)),
    end=lambda: ToolError("the page broke the process that reads it"),
)


class Page(NamedTuple):
    """A page.

    Attributes:
        url: Its address, after redirects.
        title: Its title on one line; empty if it has none.
        text: Its text.
    """

    url: str
    title: str
    text: str


def fetch_page(
    address: WebAddress,
    accept: str,
    web: WebSettings,
    stop: threading.Event,
    most_s: float = MOST_S,
) -> Page:
    """Fetch a page as text.

    Args:
        accept: Media types, as the header `Accept` has them.
        web: Settings of the user.
        stop: Ends the request.
        most_s: Timeout in seconds.

    Raises:
        ValueError: It can't be fetched or read; the text is for the model.
    """
    forbid_offline(web)

    def check_stop() -> None:
        """Raise if the user has stopped the call."""
        if stop.is_set():
            raise ToolError("the user stopped the call")

    request = {"url": address.url, "accept": accept, "allowed": web.allowed_hosts}
    try:
        with closing(WorkerProcess(_MODULE, _ERRORS, MEMORY_BYTES, _MOST_LINE_CHARS)) as worker:
            worker.start()
            answer = worker.request(request, most_s, check_stop)
    except ToolError as error:
        raise ValueError(str(error)) from error
    if "error" in answer:
        raise ValueError(answer["error"])
    return Page(str(answer["url"]), str(answer["title"]), str(answer["text"]))
