"""Approvals of tool calls: what they bind, how long they hold, and damaged files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.chats.rounds import Approval
from medusa_core.errors import ToolError
from medusa_core.tools.approvals import Approvals, approval_key
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.tool import Tool

SERVER = ToolServer("files", "npx", ("-y", "server"), (("TOKEN", "a"),), is_enabled=True)
TOOL = Tool("read", "Reads a file.", '{"type": "object", "properties": {}}')


def test_a_changed_server_or_tool_asks_again() -> None:
    key = approval_key(SERVER, TOOL)
    changed = [
        approval_key(replace(SERVER, command="node"), TOOL),
        approval_key(replace(SERVER, args=("-y", "other")), TOOL),
        approval_key(replace(SERVER, args=("-y server",)), TOOL),
        approval_key(replace(SERVER, name="other"), TOOL),
        approval_key(replace(SERVER, cwd="/"), TOOL),
        approval_key(replace(SERVER, env=(("NODE_OPTIONS", "a"),)), TOOL),
        approval_key(None, TOOL),
        approval_key(SERVER, TOOL._replace(name="write")),
        approval_key(SERVER, TOOL._replace(description="Reads a file. Then sends it.")),
        approval_key(SERVER, TOOL._replace(parameters='{"type": "object"}')),
        approval_key(SERVER, TOOL, "a.example"),
    ]
    assert len({key, *changed}) == 1 + len(changed)
    same = TOOL._replace(parameters='{"properties":{},"type":"object"}')
    assert approval_key(replace(SERVER, env=(("TOKEN", "b"),)), same) == key


def test_approvals_hold_for_a_conversation_or_always(tmp_path: Path) -> None:
    path, key = tmp_path / "approvals.json", approval_key(SERVER, TOOL)
    approvals = Approvals(path)
    approvals.approve(key, Approval.ONCE, "tea")
    assert approvals.approval(key, "tea") is Approval.NONE
    assert not path.exists()
    approvals.approve(key, Approval.CONVERSATION, "tea")
    again = Approvals(path)
    assert again.approval(key, "tea") is Approval.CONVERSATION
    assert again.approval(key, "soup") is Approval.NONE
    again.approve(key, Approval.ALWAYS, "soup")
    assert Approvals(path).approval(key, "new") is Approval.ALWAYS
    again.revoke(key)
    assert Approvals(path).approval(key, "tea") is Approval.NONE
    again.approve(key, Approval.CONVERSATION, "tea")
    again.forget(["tea", "unknown"])
    assert "tea" not in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o077 == 0


def test_approvals_for_all_conversations_are_listed_by_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "approvals.json"
    approvals = Approvals(path)
    approvals.approve("k1", Approval.ALWAYS, "tea", "web page (b.example)")
    approvals.approve("k2", Approval.ALWAYS, "tea", "calculator")
    approvals.approve("k3", Approval.CONVERSATION, "tea", "clock")
    listed = (("k2", "calculator"), ("k1", "web page (b.example)"))
    assert approvals.always() == Approvals(path).always() == listed
    approvals.revoke("k1")
    assert Approvals(path).always() == listed[:1]
    raw = json.loads(path.read_text(encoding="utf-8"))
    del raw["labels"]  # as the first version wrote it
    path.write_text(json.dumps(raw), encoding="utf-8")
    assert Approvals(path).always() == (("k2", ""),)


def test_two_programs_share_the_file(tmp_path: Path) -> None:
    path = tmp_path / "approvals.json"
    window, terminal = Approvals(path), Approvals(path)
    window.approve("k1", Approval.ALWAYS, "tea", "calculator")
    assert terminal.approval("k1", "soup") is Approval.ALWAYS
    window.revoke("k1")
    assert terminal.approval("k1", "soup") is Approval.NONE
    terminal.approve("k2", Approval.ALWAYS, "soup", "clock")
    assert window.always() == Approvals(path).always() == (("k2", "clock"),)
    path.unlink()
    assert window.approval("k2", "tea") is Approval.NONE


@pytest.mark.parametrize(
    "text",
    [
        *("", "[", "[]", "{}", '{"version": 1, "always": 5}', "[" * 99_999),
        '{"version": 1, "always": ["KEY"], "conversations": []}',
    ],
)
def test_a_damaged_file_approves_nothing(tmp_path: Path, text: str) -> None:
    path, key = tmp_path / "approvals.json", approval_key(SERVER, TOOL)
    path.write_text(text.replace("KEY", key), encoding="utf-8")
    assert Approvals(path).approval(key, "tea") is Approval.NONE


def test_a_file_of_another_version_approves_nothing(tmp_path: Path) -> None:
    path, key = tmp_path / "approvals.json", approval_key(SERVER, TOOL)
    path.write_text(json.dumps({"version": 2, "always": [key], "conversations": {}}))
    assert Approvals(path).approval(key, "tea") is Approval.NONE


def test_an_approval_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path / "file" / "approvals.json")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ToolError, match="can't be written"):
        approvals.approve("key", Approval.ALWAYS, "tea")
