"""The diagnostics page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n.words import QT_TRANSLATE_NOOP
from app.startup.crash import LAST_DUMP_NAME
from app.startup.logs import FILE_NAME as LOG_NAME
from app.window.commands.command import Section
from app.window.pages.page import Page

if TYPE_CHECKING:
    from app.help.diagnostics import DiagnosticsDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts
    from medusa_core.api import Check


def _make(parts: WindowParts, _pages: Pages) -> DiagnosticsDialog:
    from app.help.diagnostics import DiagnosticsDialog
    from medusa_core.api import compose_report, run_checks

    where, loaded_model = parts.folders, parts.loaded_model
    logs = {"Last errors": where.log / LOG_NAME, "Last crash": where.log / LAST_DUMP_NAME}

    def report(checks: tuple[Check, ...]) -> str:
        return compose_report(checks, loaded_model.choice.name, loaded_model.status, logs)

    return DiagnosticsDialog(lambda: run_checks(where), report, parts.appearance, parts.window)


SPEC = Page(
    "diagnostics",
    QT_TRANSLATE_NOOP("Pages", "Diagnostics"),
    Section.APPLICATION,
    _make,
    menu=340,
    prepare=lambda dialog, _parts: dialog.look(),
)
