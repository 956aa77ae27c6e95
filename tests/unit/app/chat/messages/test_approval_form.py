"""The question about a call in a narrow column."""

from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.messages.approval_form import ApprovalForm, CallQuestion
from app.theme.appearance import Appearance
from medusa_core.api import OfferedTool
from medusa_core.chats.rounds import RoundCall
from medusa_core.messages import ToolCall
from medusa_core.tools.tool import Tool

HOST = "encyclopaedia.subdomain.example.org"
WIDTH_PX = 230


def test_nothing_is_cut_off_in_a_narrow_column(qtbot: QtBot, appearance: Appearance) -> None:
    tool = Tool("web_page", "Fetches a page.", '{"type": "object"}')
    offered = OfferedTool(tool, "builtin/web_page", None, "Web page", tool, lambda _: HOST)
    call = RoundCall(ToolCall("1", "web_page", f'{{"url": "https://{HOST}/wiki"}}'))
    column = QWidget()
    qtbot.addWidget(column)
    form = ApprovalForm(CallQuestion(0, "web_page", offered), call, appearance)
    layout = QVBoxLayout(column)
    layout.addWidget(form)
    layout.addStretch(1)
    column.setFixedWidth(WIDTH_PX)
    column.resize(WIDTH_PX, 900)
    column.show()
    assert form.minimumSizeHint().width() <= WIDTH_PX
    # Wrapped arguments make the field higher once it has its width.
    qtbot.waitUntil(lambda: form.edit.verticalScrollBar().maximum() == 0)
    assert form._more.isHidden()
    for button in (
        form.once_button,
        form.conversation_button,
        form.always_button,
        form.deny_button,
    ):
        assert form.rect().contains(button.geometry()), button.text()
        assert button.height() >= button.heightForWidth(button.width()), button.text()
    assert form.always_button.height() > form.deny_button.height(), "its text is wrapped"
