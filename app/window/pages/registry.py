"""Registry of pages and owner of the open ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from PySide6.QtCore import QCoreApplication, QObject, Qt
from PySide6.QtWidgets import QDialog, QWidget

import app.window.pages as folder
from app.widgets.job_button import JobButton
from app.widgets.job_dialog import JobDialog
from app.window.commands.command import AppCommand
from app.window.pages.page import Page
from app.window.parts import WindowParts

W = TypeVar("W", bound=QWidget)


@cache
def all_pages() -> Mapping[str, Page]:
    """Return all pages by name, in menu order."""
    names = (f"{folder.__name__}.{one.name}" for one in iter_modules(folder.__path__))
    modules = map(import_module, names)
    specs = (spec for module in modules if isinstance(spec := getattr(module, "SPEC", None), Page))
    found = sorted(specs, key=lambda page: (page.menu or 1000, page.name))
    return {page.name: page for page in found}


def page_text(text: str) -> str:
    """Translate a text of a page's specification."""
    return QCoreApplication.translate("Pages", text) if text else ""


class Pages(QObject):
    """Opens pages; creates each on first use to start faster."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self._made: dict[str, QWidget] = {}
        self._jobs: list[JobDialog] = []

    def open(self, name: str, *place: str) -> QWidget | None:
        """Open a page.

        Args:
            name: Name of the page.
            place: Argument of the page's `open_page`, if it has one.

        Returns:
            The page's widget; None if it can't be opened.
        """
        page = all_pages()[name]
        widget = self.need(name)
        if widget is None or (page.prepare and page.prepare(widget, self._parts) is False):
            return None
        if place:
            widget.open_page(*place)  # type: ignore[attr-defined]
        if page.show is not None:
            page.show(widget, self._parts)
        elif not page.is_kept and isinstance(widget, QDialog):
            widget.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            widget.open()
        elif not page.is_panel:
            raise_window(widget)
        return widget

    def need(self, name: str) -> QWidget | None:
        """Return a page's widget without showing it; None if it can't be created."""
        page = all_pages()[name]
        widget = self._made.get(name) or page.make(self._parts, self)
        if widget is not None and name not in self._made:
            if not page.is_panel:
                widget.setWindowTitle(page_text(page.title))
            if not widget.accessibleName():
                widget.setAccessibleName(page_text(page.title))
            if page.is_kept and not page.is_panel:
                self._made[name] = widget
        return widget

    def find(self, kind: type[W]) -> W | None:
        """Return the kept widget of a class; None if there is none."""
        return next((one for one in self._made.values() if isinstance(one, kind)), None)

    def add_job(self, name: str, dialog: JobDialog) -> None:
        """Show a running job in the header, because its dialog may be closed."""
        self._jobs.append(dialog)
        button = JobButton(name)
        self._parts.page.header.add_job(button)
        dialog.progressed.connect(button.show_progress)
        button.clicked.connect(lambda: raise_window(dialog))

    def start(self) -> None:
        """Run the pages' `at_start` functions after the window is shown."""
        for page in all_pages().values():
            if page.at_start is not None:
                page.at_start(self._parts, self)

    def end(self) -> None:
        """Pause running jobs when the window closes."""
        for dialog in self._jobs:
            dialog.pause_on_exit()

    def commands(self) -> Iterator[AppCommand]:
        """Return the commands that open pages."""
        for page in all_pages().values():
            dots = "" if page.label or page.is_panel else "…"
            label = page_text(page.label or page.title) + dots
            yield AppCommand(
                page.name, label, page.section, self._opener(page), page.keys, page.menu
            )

    def _opener(self, page: Page) -> Callable[[], object]:
        insight, name = self._parts.insight, page.name
        if page.is_panel:
            return lambda: insight.close(name) if insight.is_open(name) else self.open(name)
        return lambda: self.open(name)


def raise_window(widget: QWidget) -> None:
    """Show and raise a window."""
    widget.show()
    widget.raise_()
    widget.activateWindow()
