"""The page of the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page

if TYPE_CHECKING:
    from app.server.server_dialog import ServerDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts


def _make(parts: WindowParts, _pages: Pages) -> ServerDialog | None:
    if parts.server is None:
        return None
    from app.server.server_dialog import ServerDialog

    settings = parts.settings
    dialog = ServerDialog(parts.server, parts.window)

    def serve(on: bool) -> None:
        settings.set(serves=on)
        settings.apply("server")  # it may have failed, and is to be tried again

    settings.follow("server", lambda now: dialog.show_port(int(now.server_port)))
    dialog.switched.connect(serve)
    dialog.port_chosen.connect(lambda port: settings.set(server_port=float(port)))
    return dialog


SPEC = Page(
    "server",
    QT_TRANSLATE_NOOP("Pages", "Server"),
    Section.MODELS,
    _make,
    menu=250,
)
