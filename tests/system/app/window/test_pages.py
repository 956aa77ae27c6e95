"""The registry of pages: all of them open, have a name for everybody, and a picture."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QDialog

from app.help.diagnostics import DiagnosticsDialog
from app.models.library_dialog import LibraryDialog
from app.settings.storage_page import StoragePage
from app.theme.appearance import ThemeChoice
from app.widgets.accessible_roles import give_roles
from app.window.commands.shortcuts_page import ShortcutsPage
from app.window.pages.registry import all_pages
from medusa_core.api import HubSettings, Library, places
from tests.support.window.accessibility import faults
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run, run
from tests.support.window.managing import wait_for_tasks
from tests.support.window.scripted_server import Servers
from tests.tools.tour import Tour

__all__ = ["run"]


def test_every_page_opens_with_a_title_a_name_and_a_picture(
    open_ready: Open, run: Run, tmp_path: Path
) -> None:
    give_roles()
    library = Library(
        tmp_path / "d.db",
        tmp_path / "f.json",
        HubSettings(cache_dir=tmp_path / "hub", is_offline=True),
    )
    window, _ = open_ready(
        open_library=lambda: library, make_server=Servers().make, places=places(tmp_path)
    )
    application = cast(Any, SimpleNamespace(window=window))
    pictures = tmp_path / "pictures"
    pictures.mkdir()

    async def work() -> None:
        for name, page in all_pages().items():
            widget = window.pages.open(name)
            assert widget is not None, name
            assert widget.isVisible(), name
            assert widget.accessibleName(), name
            assert page.is_panel or widget.windowTitle(), name
        models, diagnostics = (window.pages.find(k) for k in (LibraryDialog, DiagnosticsDialog))
        assert models is not None
        await wait_for_tasks(models)
        assert diagnostics is not None
        await diagnostics.tasks.wait()
        (storage,) = window.findChildren(StoragePage)
        await storage.tasks.wait()
        taken = await Tour(application, pictures, (ThemeChoice.LIGHT,)).visit_pages()
        assert taken == set(all_pages())
        await library.downloads.close()

    run(work)
    for name in all_pages():
        assert not QImage(str(pictures / f"{name}-light.png")).isNull(), name
    for dialog in window.findChildren(QDialog):
        assert faults(dialog) == [], type(dialog).__name__
    listed = {action.text() for action in window.page.header.menu.actions()}
    (shortcuts,) = window.findChildren(ShortcutsPage)
    for name, page in all_pages().items():
        label = window.commands.action(name).text()
        assert (label in listed) == bool(page.menu), name
        assert label in [one.label for one in shortcuts.shown]
