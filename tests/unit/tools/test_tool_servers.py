"""Settings of tool servers: files of other programs, switches, hostile entries."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medusa_core.errors import ToolError
from medusa_core.tools.approvals import approval_key
from medusa_core.tools.servers import ToolServer, import_servers, read_servers, write_servers
from medusa_core.tools.tool import Tool

CLAUDE = {
    "mcpServers": {
        "files": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/a b"],
            "env": {"TOKEN": "secret"},
        }
    },
    "globalShortcut": "",
}
LM_STUDIO = {
    "mcpServers": {
        "time": {"command": "uvx", "args": ["mcp-server-time"], "disabled": False},
        "remote": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer x"}},
    }
}


def written(folder: Path, raw: Any, name: str = "theirs.json") -> Path:
    path = folder / name
    path.write_text(raw if isinstance(raw, str) else json.dumps(raw), encoding="utf-8")
    return path


def test_files_of_claude_desktop_and_lm_studio_are_imported_switched_off(tmp_path: Path) -> None:
    (files,) = import_servers(written(tmp_path, CLAUDE), ()).servers
    assert files == ToolServer(
        "files",
        "npx",
        ("-y", "@modelcontextprotocol/server-filesystem", "/home/a b"),
        (("TOKEN", "secret"),),
    )
    assert files.command_line == (
        "TOKEN=… npx -y @modelcontextprotocol/server-filesystem '/home/a b'"
    )
    time, remote = import_servers(written(tmp_path, LM_STUDIO), (files,)).servers
    assert not time.is_enabled
    assert remote.command_line == "https://a.example/mcp"


@pytest.mark.parametrize(
    "name", ["NODE_OPTIONS", "path", "LD_PRELOAD", "PYTHONPATH", "npm_config_registry", "BASH_ENV"]
)
def test_variables_that_decide_which_code_runs_are_shown_and_approved(name: str) -> None:
    server = ToolServer("files", "npx", ("server",), ((name, "--require x.js"), ("TOKEN", "s")))
    assert server.command_line == f"{name}='--require x.js' TOKEN=… npx server"
    tool = Tool("read", "", "{}")
    key = approval_key(server, tool)
    assert approval_key(replace(server, env=((name, "other"), ("TOKEN", "s"))), tool) != key
    assert approval_key(replace(server, env=(*server.env[:1], ("TOKEN", "other"))), tool) == key


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "NPM_TOKEN", "UV_INDEX_PASSWORD", "HOME_KEY", "X"]
)
def test_secrets_are_not_shown(name: str) -> None:
    assert ToolServer("a", "npx", env=((name, "secret"),)).command_line == f"{name}=… npx"


def test_an_import_adds_nothing_twice_and_replaces_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, CLAUDE)
    (files,) = import_servers(path, ()).servers
    switched_on = ToolServer("files", files.command, files.args, files.env, is_enabled=True)
    assert import_servers(path, (switched_on,)).servers == ()
    other = ToolServer("files", "other")
    (renamed,) = import_servers(path, (other,)).servers
    assert renamed.name == "files 2"


def test_servers_are_written_and_read_again(tmp_path: Path) -> None:
    servers = (
        ToolServer("a", "run", ("x", "ü"), (("K", "v"),), "/tmp", is_enabled=True),
        ToolServer("b", url="http://localhost:1/mcp", headers=(("H", "v"),)),
    )
    path = tmp_path / "mcp.json"
    assert read_servers(path).servers == ()
    write_servers(path, servers)
    assert read_servers(path) == (servers, ())
    assert path.stat().st_mode & 0o077 == 0
    raw = json.loads(path.read_text(encoding="utf-8"))
    del raw["mcpServers"]["a"]["disabled"]
    assert not read_servers(written(tmp_path, raw)).servers[0].is_enabled


def test_writing_keeps_what_the_user_wrote(tmp_path: Path) -> None:
    bad, good = {"command": "a", "args": "typo"}, {"command": "b", "timeout": 60}
    raw = {"mcpServers": {"bad": bad, "good": good, "gone": {"command": "c"}}, "theme": "dark"}
    path = written(tmp_path, raw, "mcp.json")
    write_servers(path, read_servers(path).servers[:1])
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept == {
        "mcpServers": {"bad": bad, "good": {**good, "disabled": True}},
        "theme": "dark",
    }
    path.write_text("[", encoding="utf-8")
    with pytest.raises(ToolError, match="no valid JSON"):
        write_servers(path, ())
    assert path.read_text(encoding="utf-8") == "["


BAD_ENTRIES: dict[str, Any] = {
    "no object": 5,
    "neither": {},
    "both": {"command": "a", "url": "http://a"},
    "scheme": {"url": "file:///etc/passwd"},
    "args": {"command": "a", "args": "b"},
    "arg": {"command": "a", "args": [1]},
    "env": {"command": "a", "env": {"A": 1}},
    "command": {"command": ["a"]},
    "null": {"command": "a\0b"},
}


def test_entries_that_cannot_be_used_are_refused_one_by_one(tmp_path: Path) -> None:
    raw = {"mcpServers": {**BAD_ENTRIES, "good": {"command": "a"}}}
    found = read_servers(written(tmp_path, raw))
    assert [server.name for server in found.servers] == ["good"]
    assert len(found.refused) == len(BAD_ENTRIES)


@pytest.mark.parametrize(
    "raw", ["", "[", "[]", "{}", '{"mcpServers": []}', "[" * 100_000, " " * (1 << 20) + "{}"]
)
def test_other_files_are_refused_with_a_reason(tmp_path: Path, raw: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_servers(written(tmp_path, raw))
    assert "theirs.json" in str(caught.value)
