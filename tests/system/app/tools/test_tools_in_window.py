"""Tools in the window: opened when they are needed, chosen in a chat, counted."""

from pathlib import Path

from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from app.tools.tools_dialog import ToolsDialog
from medusa_core.api import History, Places, Toolbox, places
from medusa_core.chats.rounds import Approval
from medusa_core.messages import Count
from tests.support.window.accessibility import faults
from tests.support.window.fixtures import Open

CALCULATOR = "builtin/calculate"


def with_tools(folder: Path) -> Places:
    """Return folders of a user who has switched on a tool."""
    found = places(folder)
    found.config.mkdir(parents=True)
    toolbox = Toolbox(found.config)
    toolbox.set_builtin("calculate", True)
    toolbox.close()
    return found


def test_the_toolbox_is_opened_at_start_only_if_there_are_tools(
    qtbot: QtBot, open_ready: Open, tmp_path: Path
) -> None:
    window, _ = open_ready(places=places(tmp_path / "new"))
    window.pages.start()
    assert window.chat.toolbox is None
    assert window.page.tools_button.isVisible()
    window.page.settings_panel.tools.manage_requested.emit()
    dialog = window.pages.find(ToolsDialog)
    assert dialog is not None
    assert dialog.isVisible()
    assert window.chat.toolbox is not None
    for tab in range(dialog.tabs.count()):
        dialog.tabs.setCurrentIndex(tab)
        assert faults(dialog) == [], dialog.tabs.tabText(tab)
    dialog.servers.add_button.click()
    (form,) = dialog.servers.findChildren(QDialog)
    assert faults(form) == []
    form.reject()
    dialog.close()
    other, _ = open_ready(places=with_tools(tmp_path / "old"))
    other.pages.start()
    qtbot.waitUntil(lambda: other.chat.toolbox is not None)
    assert [one.id for one in other.page.settings_panel.tools.offers] == [CALCULATOR]


def test_chosen_tools_are_part_of_the_counted_prompt_and_their_tokens_are_shown(
    qtbot: QtBot, open_ready: Open, tmp_path: Path
) -> None:
    window, engine = open_ready(places=with_tools(tmp_path))
    window.pages.start()
    panel = window.page.settings_panel
    qtbot.waitUntil(lambda: bool(panel.tools.offers))
    panel.tool_list.boxes[CALCULATOR].click()
    qtbot.waitUntil(lambda: panel.tools.num_tokens is not None)
    # The fake engine counts words, and its model's template describes no functions.
    assert panel.tools.num_tokens > 20  # type: ignore[operator]
    assert "about" in panel.tool_list.summary.text()
    counted = [one for one in engine.of_kind(Count) if isinstance(one, Count)]
    assert any("calculate" in one.messages[0].text for one in counted if one.messages)


def test_approvals_end_with_their_conversation(
    open_ready: Open, tmp_path: Path, qtbot: QtBot
) -> None:
    history = History(tmp_path / "history.db")
    window, _ = open_ready(places=with_tools(tmp_path / "user"), history=history)
    window.pages.start()
    qtbot.waitUntil(lambda: window.chat.toolbox is not None)
    assert window.chat.toolbox is not None
    assert window.history is not None
    approvals = window.chat.toolbox.approvals
    approvals.approve("key", Approval.CONVERSATION, "tea")
    window.history.trashed.emit(("tea",))
    assert approvals.approval("key", "tea") is Approval.NONE


def test_a_window_without_user_folders_has_no_tools(open_ready: Open) -> None:
    window, _ = open_ready()
    assert window.tools is None
    assert window.page.tools_button.isHidden()
    assert window.pages.open("tools") is None
