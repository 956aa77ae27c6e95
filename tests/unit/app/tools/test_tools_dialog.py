"""The dialog of tools: built-in ones, servers, approvals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.chat_settings.tool_choice import ToolChoice
from app.theme.appearance import Appearance
from app.tools import approvals_page, import_menu
from app.tools.import_menu import KnownFile, known_files
from app.tools.server_form import ServerForm
from app.tools.switch_on_question import SwitchOnQuestion, described
from app.tools.tools_dialog import ToolsDialog
from app.tools.window_tools import WindowTools
from medusa_core.api import OfferedTool, ServerState, ServerStatus, Toolbox, ToolServer
from medusa_core.chats.rounds import Approval
from medusa_core.errors import MissingExtraError, ToolError
from medusa_core.tools.approvals import approval_key
from medusa_core.tools.tool import Tool

TOOL = Tool("read", "Reads a file.", '{"type": "object"}')


class NoConnections:
    """Connects nothing: no program is started by these tests."""

    def __init__(self, *_: object) -> None: ...

    def use(self, servers: object) -> None: ...

    def connections(self) -> dict[str, object]:
        return {}

    def close(self) -> None: ...


class FakeToolbox(Toolbox):
    """A toolbox whose servers aren't started: states are those of the test.

    Attributes:
        calls: Servers that were switched or restarted.
        secrets: Values by server and name.
        states: States by server.
    """

    def __init__(self, folder: Path) -> None:
        self.calls: list[tuple[str, object]] = []
        self.secrets: dict[tuple[str, str], str] = {}
        self.states: dict[str, ServerStatus] = {}
        super().__init__(folder)

    def servers(self) -> tuple[ServerStatus, ...]:
        found = super().servers()
        return tuple(
            replace(self.states.get(one.server.name, one), server=one.server) for one in found
        )

    def set_enabled(self, name: str, on: bool) -> None:
        self.calls.append((name, on))
        server = next(one.server for one in self.servers() if one.server.name == name)
        super().replace(name, replace(server, is_enabled=on))

    def restart(self, name: str) -> None:
        self.calls.append((name, "restart"))

    def save_secret(self, server: str, name: str, value: str) -> str:
        self.secrets[server, name] = value
        return f"${{keyring:{name}}}"


@pytest.fixture
def toolbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeToolbox]:
    monkeypatch.setattr("medusa_core.tools.toolbox.Connections", NoConnections)
    box = FakeToolbox(tmp_path)
    yield box
    box.close()


@pytest.fixture
def choice(qapp: object) -> ToolChoice:
    return ToolChoice()


@pytest.fixture
def dialog(
    qtbot: QtBot,
    toolbox: FakeToolbox,
    choice: ToolChoice,
    appearance: Appearance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> ToolsDialog:
    monkeypatch.setattr("medusa_core.tools.toolbox.Toolbox", lambda _folder, **_: toolbox)
    monkeypatch.setattr("medusa_core.api.Toolbox", lambda _folder, **_: toolbox, raising=False)
    tools = WindowTools(tmp_path, choice)
    dialog = ToolsDialog(tools, appearance, lambda: None)
    dialog.servers.setProperty("tools", tools)  # as long as the dialog
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def entries(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "mcp.json").read_text(encoding="utf-8"))
    return found["mcpServers"]  # type: ignore[no-any-return]


def submit(form: ServerForm | None) -> str:
    """Save a form, and return its note; empty once it is saved."""
    assert form is not None

    async def work() -> None:
        form.accept()
        await form.tasks.wait()

    is_saved: list[bool] = []
    form.accepted.connect(lambda: is_saved.append(True))
    asyncio.run(work())
    return "" if is_saved else form.note.text()


# Built in -----------------------------------------------------------------------------------------


def test_built_in_tools_are_off_until_they_are_switched_on(
    qtbot: QtBot, dialog: ToolsDialog, choice: ToolChoice, tmp_path: Path
) -> None:
    switches = dialog.builtin.switches
    assert not any(switch.isChecked() for switch in switches.values())
    assert all(switch.accessibleDescription() for switch in switches.values())
    switches["calculate"].click()
    qtbot.waitUntil(lambda: [one.id for one in choice.offers] == ["builtin/calculate"])
    assert json.loads((tmp_path / "tools.json").read_text())["builtin"] == ["calculate"]
    switches["calculate"].click()
    qtbot.waitUntil(lambda: choice.offers == ())


def test_a_switch_that_cannot_be_saved_goes_back_and_says_why(
    dialog: ToolsDialog, toolbox: FakeToolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ToolError("The disk is full.", "Make space.")

    monkeypatch.setattr(toolbox, "set_builtin", refuse)
    dialog.builtin.switches["calculate"].click()
    assert not dialog.builtin.switches["calculate"].isChecked()
    assert dialog.builtin.note.text() == "The disk is full. Make space."


def test_addresses_are_saved_and_wrong_ones_stay_with_a_note(
    dialog: ToolsDialog, toolbox: FakeToolbox
) -> None:
    page = dialog.builtin
    page.search_edit.setText("searx.example.org")
    page.hosts_edit.setPlainText("nas.local:8080\n\n")
    page.save_button.click()
    assert toolbox.web.search_url.startswith("http://searx.example.org")
    assert toolbox.web.allowed_hosts == ("nas.local:8080",)
    assert page.note.isHidden()
    page.search_edit.setText("http://")
    page.save_button.click()
    assert "no address" in page.note.text()
    assert page.search_edit.text() == "http://"


# Servers ------------------------------------------------------------------------------------------


def test_a_server_is_added_with_its_secret_in_the_keyring(
    dialog: ToolsDialog, toolbox: FakeToolbox, tmp_path: Path
) -> None:
    page = dialog.servers
    page.add_button.click()
    form = page.form
    assert form is not None
    form.name_edit.setText("files")
    form.command_edit.setText("npx -y server '/home/a b'")
    form.env.show_pairs([("API_TOKEN", ""), ("LANG", "de")])
    form.env.rows[0].value.setText("s3cret")
    assert form.env.rows[0].secret.isChecked()
    assert not form.env.rows[1].secret.isChecked()
    assert submit(form) == ""
    entry = entries(tmp_path)["files"]
    assert [entry["command"], *entry["args"]] == ["npx", "-y", "server", "/home/a b"]
    assert entry["env"] == {"API_TOKEN": "${keyring:API_TOKEN}", "LANG": "de"}
    assert entry["disabled"] is True
    assert toolbox.secrets == {("files", "API_TOKEN"): "s3cret"}
    assert "s3cret" not in (tmp_path / "mcp.json").read_text()
    assert page.names.item(0).text() == "files: off"
    assert toolbox.calls == [], "nothing runs before it is switched on"


def test_a_form_stays_open_with_what_is_wrong(dialog: ToolsDialog, toolbox: FakeToolbox) -> None:
    toolbox.add(ToolServer("files", "npx"))
    page = dialog.servers
    page.add_button.click()
    form = page.form
    assert form is not None
    form.name_edit.setText("files")
    form.command_edit.setText("npx 'open")
    assert "quotation mark" in submit(form)
    form.command_edit.setText("")
    assert "either a command or a url" in submit(form)
    form.command_edit.setText("npx")
    assert "already a server" in submit(form)
    assert form.isVisible()
    form.kind_box.setCurrentIndex(1)
    form.name_edit.setText("web")
    form.url_edit.setText("ftp://x")
    assert "no http or https address" in submit(form)
    form.url_edit.setText("https://example.com/mcp")
    assert submit(form) == ""
    assert [one.server.url for one in toolbox.servers()] == ["", "https://example.com/mcp"]


def test_a_failed_secret_is_saved_by_the_second_attempt(
    dialog: ToolsDialog, toolbox: FakeToolbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: str) -> str:
        raise ToolError("The keyring is locked.", "Unlock it.")

    page = dialog.servers
    page.add_button.click()
    form = page.form
    assert form is not None
    form.name_edit.setText("files")
    form.command_edit.setText("npx")
    form.env.show_pairs([("KEY", "v")])
    with monkeypatch.context() as patch:
        patch.setattr(toolbox, "save_secret", refuse)
        assert submit(form) == "The keyring is locked. Unlock it."
    assert submit(form) == ""
    assert entries(tmp_path)["files"]["env"] == {"KEY": "${keyring:KEY}"}


def test_switching_on_asks_with_the_whole_command_line(
    dialog: ToolsDialog, toolbox: FakeToolbox
) -> None:
    env = (("API_KEY", "s3cret"), ("NODE_OPTIONS", "--require evil"))
    toolbox.add(ToolServer("files", "npx", ("-y", "server", "/home/a b"), env, cwd="/srv"))
    page = dialog.servers
    page.refresh()
    switch = page.details.switch
    switch.click()
    question = page.question
    assert question is not None
    assert "npx -y server '/home/a b'" in question.command.toPlainText()
    assert "/srv" in question.command.toPlainText()
    assert "NODE_OPTIONS=--require evil" in question.command.toPlainText()
    assert "s3cret" not in question.command.toPlainText()
    assert question.no_button.isDefault()
    QTest.keyClick(question, Qt.Key.Key_Return)
    assert toolbox.calls == []
    assert not switch.isChecked()
    switch.click()
    assert page.question is not None
    page.question.yes_button.click()
    assert toolbox.calls == [("files", True)]
    assert switch.isChecked()
    switch.click()
    page.question = None
    switch.click()
    assert page.question is None, "the user has agreed to this command line"
    assert toolbox.calls[1:] == [("files", False), ("files", True)]
    page.details.restart_button.click()
    assert toolbox.calls[-1] == ("files", "restart")


def test_another_command_line_switches_a_server_off_and_asks(
    dialog: ToolsDialog, toolbox: FakeToolbox, tmp_path: Path
) -> None:
    toolbox.add(
        ToolServer("files", "npx", ("server",), (("KEY", "${keyring:KEY}"),), is_enabled=True)
    )
    page = dialog.servers
    page.refresh()
    page.details.edit_button.click()
    form = page.form
    assert form is not None
    assert form.env.rows[0].value.text() == ""
    form.name_edit.setText("my files")
    form.timeout_box.setValue(90)
    assert submit(form) == ""
    assert entries(tmp_path)["my files"]["timeout_s"] == 90
    assert entries(tmp_path)["my files"]["disabled"] is False
    assert entries(tmp_path)["my files"]["env"] == {"KEY": "${keyring:KEY}"}
    assert page.question is None
    page.details.edit_button.click()
    form = page.form
    assert form is not None
    form.command_edit.setText("npx other")
    assert submit(form) == ""
    assert entries(tmp_path)["my files"]["disabled"] is True
    assert page.question is not None
    assert "npx other" in page.question.command.toPlainText()
    page.question.no_button.click()
    assert toolbox.calls == []


def test_details_show_state_tools_and_log(dialog: ToolsDialog, toolbox: FakeToolbox) -> None:
    server = ToolServer("files", "npx", is_enabled=True)
    toolbox.add(server)
    offered = OfferedTool(TOOL, "files/read", server, "files · read", TOOL)
    toolbox.states["files"] = ServerStatus(
        server,
        ServerState.FAILED,
        "It ended \u202eat once.",
        "Check it.",
        (offered,),
        ("first", "last"),
    )
    dialog.servers.refresh()
    details = dialog.servers.details
    assert dialog.servers.names.item(0).text() == "files: failed"
    assert details.state.text() == "State: failed: It ended \ufffdat once. Check it."
    assert details.tools.item(0).text() == "files · read\nReads a file."
    assert details.log.toPlainText() == "first\nlast"


def test_servers_are_imported_switched_off_and_removed_after_a_question(
    dialog: ToolsDialog, toolbox: FakeToolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    other = home / ".lmstudio" / "mcp.json"
    other.parent.mkdir(parents=True)
    servers = {"time": {"command": "uvx", "args": ["mcp-server-time"]}, "bad": {"command": 7}}
    other.write_text(json.dumps({"mcpServers": servers}))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert known_files(home, "linux") == (KnownFile("LM Studio", other),)
    page = dialog.servers
    monkeypatch.setattr(import_menu, "known_files", lambda: known_files(home, "linux"))
    menu = page.import_button.menu()
    assert menu is not None
    menu.aboutToShow.emit()
    menu.actions()[0].trigger()
    assert "time" in page.note.text()
    assert "'bad' can't be used" in page.note.text()
    assert [one.server.is_enabled for one in toolbox.servers()] == [False]
    page.import_from(tmp_path / "nothing.json")
    page.import_from(other)
    assert "isn't here already" in page.note.text()
    for answer, left in ((QMessageBox.StandardButton.No, 1), (QMessageBox.StandardButton.Yes, 0)):
        monkeypatch.setattr(QMessageBox, "exec", lambda _box, answer=answer: answer)

        async def remove() -> None:
            page.details.remove_button.click()
            await page.tasks.wait()

        asyncio.run(remove())
        assert len(toolbox.servers()) == left, page.note.text()
    assert page.details.server_name == ""


def test_a_missing_extra_says_how_to_install_it(
    qtbot: QtBot, dialog: ToolsDialog, appearance: Appearance
) -> None:
    def need() -> None:
        raise MissingExtraError("Not installed: mcp.", "Install it: pip install x[tools]")

    tools = dialog.servers.property("tools")
    other = ToolsDialog(tools, appearance, need)
    qtbot.addWidget(other)
    assert other.servers.note.text() == "Not installed: mcp. Install it: pip install x[tools]"


# Approvals ----------------------------------------------------------------------------------------


def test_approvals_are_listed_and_revoked(dialog: ToolsDialog, toolbox: FakeToolbox) -> None:
    page = dialog.approvals
    assert not page.revoke_button.isEnabled()
    toolbox.approvals.approve("k1", Approval.ALWAYS, "tea", "Web page (a.example)")
    toolbox.approvals.approve("k2", Approval.ALWAYS, "tea", "files · read")
    dialog.refresh()
    shown = [page.labels.item(row).text() for row in range(page.labels.count())]
    assert shown == ["files · read", "Web page (a.example)"]
    page.labels.setCurrentRow(1)
    page.revoke_button.click()
    assert toolbox.approvals.approval("k1", "soup") is Approval.NONE
    assert toolbox.approvals.approval("k2", "soup") is Approval.ALWAYS
    assert page.labels.count() == 1


def test_approved_builtin_tools_have_their_translated_names(
    dialog: ToolsDialog, toolbox: FakeToolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = next(one.builtin for one in toolbox.builtins() if one.builtin.name == "web_page")
    key = approval_key(None, page.tool, "a.example")
    toolbox.approvals.approve(key, Approval.ALWAYS, "tea", "Web page · a.example")
    toolbox.approvals.approve("other", Approval.ALWAYS, "tea", "Web page · b.example")
    monkeypatch.setattr(approvals_page, "builtin_words", lambda tool: (f"<{tool.name}>", ""))
    dialog.approvals.refresh()
    shown = [dialog.approvals.labels.item(row).text() for row in range(2)]
    assert shown == ["<web_page> · a.example", "Web page · b.example"], "the latter is a server's"


def test_line_ends_hide_nothing_of_what_is_started() -> None:
    hidden = ToolServer("a", "sh", ("-c", "true" + "\n" * 50 + "\u202eevil"), env=(("A\nB", "1"),))
    command, variable = described(hidden).split("\n")
    assert command.startswith(r"sh -c 'true\n\n")
    assert command.endswith(r"\u202eevil'")
    assert r"A\nB=1" in variable


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("http://nas.local/mcp", True),
        ("https://nas.local/mcp", False),
        ("http://localhost:8000/mcp", False),
    ],
)
def test_an_unencrypted_address_is_named(
    qtbot: QtBot, appearance: Appearance, url: str, is_open: bool
) -> None:
    question = SwitchOnQuestion(ToolServer("nas", url=url), appearance, None)
    qtbot.addWidget(question)
    assert ("isn't encrypted" in question.warning.text()) is is_open
