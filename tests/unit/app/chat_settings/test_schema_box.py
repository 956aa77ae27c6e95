"""The JSON schema of answers in the panel."""

import pytest
from pytestqt.qtbot import QtBot

from app.chat_settings.panel import ANSWER_FORM, ChatSettingsPanel
from app.chat_settings.tool_choice import ToolOffer
from app.theme.appearance import Appearance
from medusa_core.chats.presets import Presets
from medusa_core.chats.settings import MOST_SCHEMA_CHARS, ChatSettings

SCHEMA = '{"type": "object"}'


@pytest.fixture
def panel(qtbot: QtBot, appearance: Appearance) -> ChatSettingsPanel:
    panel = ChatSettingsPanel(appearance, Presets(None), lambda: 7)
    qtbot.addWidget(panel)
    return panel


def test_a_typed_schema_is_a_setting_and_reaches_the_engine(panel: ChatSettingsPanel) -> None:
    panel.schema.edit.setPlainText(SCHEMA)
    assert panel.settings().json_schema == SCHEMA
    assert panel.generate_settings().json_schema == SCHEMA
    assert panel.schema.note.isHidden()
    panel.schema.edit.setPlainText("  \n")
    assert panel.settings().json_schema == ""
    assert panel.schema.edit.toPlainText() == "  \n"


def test_an_invalid_schema_stays_and_the_note_says_what_is_wrong(panel: ChatSettingsPanel) -> None:
    panel.schema.edit.setPlainText('{"type": "object"')
    assert "line 1" in panel.schema.note.text()
    assert not panel.schema.note.isHidden()
    assert panel.settings().json_schema == '{"type": "object"'
    panel.schema.edit.setPlainText('{"type": "objekt"}')
    assert "objekt" in panel.schema.note.text()
    panel.schema.edit.setPlainText("x" * (MOST_SCHEMA_CHARS + 1))
    assert "65,536 are the most" in panel.schema.note.text()
    assert panel.settings().json_schema == '{"type": "objekt"}'
    panel.tools.offer([])  # such as a server that has ended
    assert len(panel.schema.edit.toPlainText()) == MOST_SCHEMA_CHARS + 1


def test_the_group_of_a_chat_with_a_schema_opens_and_says_when_tools_come_first(
    panel: ChatSettingsPanel,
) -> None:
    assert not panel.groups[ANSWER_FORM].is_open
    panel.show_settings(ChatSettings(json_schema=SCHEMA, tools=("builtin/calculate",)))
    assert panel.groups[ANSWER_FORM].is_open
    assert panel.schema.edit.toPlainText() == SCHEMA
    assert panel.schema.note.isHidden(), "no such tool is there"
    panel.tools.offer([ToolOffer("builtin/calculate", "Calculator", text="{}")])
    assert "tools first" in panel.schema.note.text()
    panel.show_settings(ChatSettings())
    assert panel.schema.edit.toPlainText() == ""
    assert panel.schema.note.isHidden()
