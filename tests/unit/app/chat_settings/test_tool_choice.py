"""Tools of a conversation in the panel and in the composer's menu."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat.compose.tools_button import ChecksMenu, ToolsButton
from app.chat_settings.panel import TOOLS, ChatSettingsPanel
from app.chat_settings.tool_choice import ToolOffer
from app.theme.appearance import Appearance
from medusa_core.chats.presets import Presets
from medusa_core.chats.settings import ChatSettings

CLOCK = ToolOffer("builtin/clock", "Clock", "Tells the time.", '{"name": "clock"}')
FILES = ToolOffer(
    "files/read", "files · read & write", "Reads a file.", '{"name": "read"}', server="files"
)
MANY = tuple(
    ToolOffer(f"files/tool{n}", f"files · tool{n}", f"Job {n}.", "x" * 40, server="files")
    for n in range(14)
)


@pytest.fixture
def panel(qtbot: QtBot, appearance: Appearance) -> ChatSettingsPanel:
    panel = ChatSettingsPanel(appearance, Presets(None), lambda: 7)
    qtbot.addWidget(panel)
    return panel


@pytest.fixture
def button(qtbot: QtBot, panel: ChatSettingsPanel, appearance: Appearance) -> ToolsButton:
    button = ToolsButton(panel.tools, appearance)
    qtbot.addWidget(button)
    return button


def entries(button: ToolsButton) -> list[tuple[str, bool, bool]]:
    """Text, mark and whether it can be clicked, of each entry of the menu."""
    button.checks.aboutToShow.emit()
    found = (entry for entry in button.checks.actions() if not entry.isSeparator())
    return [(entry.text(), entry.isChecked(), entry.isEnabled()) for entry in found]


def test_without_a_toolbox_nothing_is_shown(panel: ChatSettingsPanel, button: ToolsButton) -> None:
    assert panel.groups[TOOLS].isHidden()
    assert button.isHidden()
    panel.tools.offer(())
    assert not panel.groups[TOOLS].isHidden()
    assert "switched on" in panel.tool_list.summary.text()
    assert entries(button)[0] == ("No tools are switched on yet.", False, False)
    assert entries(button)[-1] == ("Manage tools…", False, True)


def test_chosen_tools_are_settings_in_an_order_that_clicks_do_not_change(
    panel: ChatSettingsPanel, button: ToolsButton
) -> None:
    panel.tools.offer((CLOCK, FILES))
    panel.tool_list.boxes[FILES.id].click()
    panel.tool_list.boxes[CLOCK.id].click()
    assert panel.settings().tools == (CLOCK.id, FILES.id)
    assert panel.tools.texts == (CLOCK.text, FILES.text)
    assert button.text() == "2"
    assert entries(button)[:2] == [
        ("Clock", True, True),
        ("files · read && write", True, True),
    ]
    button.checks.actions()[0].trigger()
    assert panel.settings().tools == (FILES.id,)
    assert not panel.tool_list.boxes[CLOCK.id].isChecked()


def test_a_missing_tool_is_marked_and_can_only_be_left_out(
    panel: ChatSettingsPanel, button: ToolsButton
) -> None:
    panel.tools.offer((CLOCK,))
    panel.show_settings(ChatSettings(tools=("files/read", CLOCK.id)))
    assert panel.tools.texts == (CLOCK.text,)
    assert panel.tools.num_chosen == 1
    assert entries(button)[1] == ("files · read (missing)", True, True)
    panel.tool_list.boxes[CLOCK.id].click()
    assert panel.settings().tools == ("files/read",), "it may come back"
    panel.tool_list.boxes["files/read"].click()
    assert panel.settings().tools == ()
    assert "files/read" not in panel.tool_list.boxes


def test_many_tools_are_folded_by_server_with_their_cost(panel: ChatSettingsPanel) -> None:
    panel.tools.offer((CLOCK, FILES))
    shown = panel.tool_list
    assert not shown.boxes[FILES.id].isHidden()
    assert shown.filter_edit.isHidden()
    panel.tools.offer((CLOCK, *MANY))
    group = shown.groups["files"]
    assert (group.switch.text(), shown.groups["builtin"].switch.text()) == ("files", "Built in")
    assert all(box.isHidden() for box in shown.boxes.values())
    assert group.counts.text() == "14 tools, about 140 tokens"
    assert shown.groups["builtin"].counts.text() == "1 tool, about 4 tokens"
    panel.show_settings(ChatSettings(tools=(MANY[0].id, MANY[3].id)))
    panel.tools.show_tokens(40)
    assert group.counts.text() == "2 of 14 chosen, about 40 tokens"
    assert shown.groups["builtin"].counts.text() == "1 tool, about 8 tokens", "as it was counted"
    assert group.switch.checkState() is Qt.CheckState.PartiallyChecked
    group.fold.click()
    assert not shown.boxes[MANY[0].id].isHidden()
    assert shown.boxes[MANY[0].id].text() == "tool0", "without the name of its server"
    panel.tools.offer(MANY)
    assert not shown.boxes[MANY[0].id].isHidden(), "a server has ended, the fold stays open"


def test_a_server_is_chosen_at_once(panel: ChatSettingsPanel) -> None:
    panel.tools.offer((CLOCK, *MANY))
    panel.show_settings(ChatSettings(tools=(CLOCK.id, MANY[2].id)))
    switch = panel.tool_list.groups["files"].switch
    switch.click()
    assert panel.settings().tools == (CLOCK.id, *(one.id for one in MANY))
    assert switch.checkState() is Qt.CheckState.Checked
    switch.click()
    assert panel.settings().tools == (CLOCK.id,)
    assert switch.checkState() is Qt.CheckState.Unchecked
    panel.tools.offer((CLOCK,))
    panel.show_settings(ChatSettings(tools=(CLOCK.id, MANY[2].id)))
    missing = panel.tool_list.groups["files"]
    assert (missing.switch.text(), missing.counts.text()) == ("files", "not there now")
    missing.switch.click()
    assert panel.settings().tools == (CLOCK.id,)
    assert list(panel.tool_list.groups) == ["builtin"]


def test_tools_are_found_by_their_words(panel: ChatSettingsPanel) -> None:
    panel.tools.offer((CLOCK, *MANY))
    shown = panel.tool_list
    shown.filter_edit.setText("FILES job 7")
    assert [key for key, box in shown.boxes.items() if not box.isHidden()] == ["files/tool7"]
    assert shown.groups["builtin"].isHidden()
    assert not shown.groups["files"].switch.isEnabled(), "it would choose hidden tools"
    shown.boxes["files/tool7"].click()
    assert panel.settings().tools == ("files/tool7",)
    shown.filter_edit.setText("weather")
    assert "No tool" in shown.summary.text()
    shown.filter_edit.clear()
    assert not shown.groups["builtin"].isHidden()
    assert all(box.isHidden() for box in shown.boxes.values()), "folded as before"


def test_tab_goes_through_the_tools_in_their_order(panel: ChatSettingsPanel) -> None:
    panel.tools.offer((CLOCK, *MANY))
    shown = panel.tool_list
    expected = [shown.filter_edit]
    for group in shown.groups.values():
        expected += group.stops
    expected.append(shown.manage_button)
    found = [shown.filter_edit]
    while found[-1] is not shown.manage_button:
        found.append(found[-1].nextInFocusChain())
    assert [one for one in found if one in expected] == expected


def test_a_long_menu_has_a_menu_for_each_server(
    panel: ChatSettingsPanel, button: ToolsButton
) -> None:
    panel.tools.offer((CLOCK, *MANY))
    assert [text for text, _, _ in entries(button)] == ["Built in", "files", "Manage tools…"]
    menu = button.checks.actions()[1].menu()
    assert isinstance(menu, ChecksMenu)
    menu.actions()[5].trigger()
    assert panel.settings().tools == (MANY[5].id,)


def test_the_cost_of_the_tools_is_shown(panel: ChatSettingsPanel, button: ToolsButton) -> None:
    panel.tools.offer((CLOCK, FILES))
    panel.show_settings(ChatSettings(tools=(CLOCK.id, FILES.id)))
    panel.tools.show_tokens(1234)
    words = "2 tools, about 1,234 tokens of each prompt."
    assert panel.tool_list.summary.text() == words
    assert button.accessibleDescription() == words
    panel.tools.show_model("", "Expect mistakes.")
    assert panel.tool_list.summary.text() == f"{words} Expect mistakes."


def test_a_model_without_tools_says_so_and_uses_none(
    panel: ChatSettingsPanel, button: ToolsButton
) -> None:
    panel.tools.offer((CLOCK, FILES))
    panel.show_settings(ChatSettings(tools=(CLOCK.id,)))
    panel.tools.show_model("It can't.", "")
    assert panel.tools.texts == ()
    assert panel.tool_list.summary.text() == "It can't."
    assert not panel.tool_list.boxes[FILES.id].isEnabled()
    assert entries(button)[0] == ("It can't.", False, False)
    assert panel.settings().tools == (CLOCK.id,), "the choice stays for other models"


def test_the_menu_stays_open_while_tools_are_checked(
    qtbot: QtBot, panel: ChatSettingsPanel, button: ToolsButton
) -> None:
    panel.tools.offer((CLOCK, FILES))
    menu = button.checks
    menu.popup(menu.pos())
    qtbot.waitExposed(menu)
    for entry in menu.actions()[:2]:
        QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(entry).center())
    assert panel.settings().tools == (CLOCK.id, FILES.id)
    menu.setActiveAction(menu.actions()[0])
    QTest.keyClick(menu, Qt.Key.Key_Space)
    assert panel.settings().tools == (FILES.id,)
    assert [entry.isChecked() for entry in menu.actions()[:2]] == [False, True]
    assert menu.isVisible()
    with qtbot.waitSignal(panel.tools.manage_requested):
        menu.setActiveAction(menu.actions()[-1])
        QTest.keyClick(menu, Qt.Key.Key_Return)
    assert not menu.isVisible()


def test_a_long_description_makes_no_endless_tooltip(panel: ChatSettingsPanel) -> None:
    panel.tools.offer((ToolOffer("a/b", "b", "\u202ex" * 50_000, "{}"),))
    said = panel.tool_list.boxes["a/b"].accessibleDescription()
    assert len(said) < 1000
    assert "\u202e" not in said
