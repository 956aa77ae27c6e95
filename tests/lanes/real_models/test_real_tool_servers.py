"""Tool servers that others publish; each test is skipped where its program isn't on the PATH."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from medusa_core.tools.mcp.limits import DEFAULT_LIMITS
from medusa_core.tools.servers import ToolServer
from tests.support.toolboxes import offered, opened, result_of

# pip install mcp-server-time; npm install @modelcontextprotocol/server-filesystem
TIME, FILES = "mcp-server-time", "mcp-server-filesystem"


def server(name: str, program: str, *args: str) -> ToolServer:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} isn't on the PATH")
    return ToolServer(name, path, args, is_enabled=True)


def test_the_time_is_told_and_converted(tmp_path: Path) -> None:
    with opened(tmp_path, server("time", TIME), limits=DEFAULT_LIMITS) as toolbox:
        now = result_of(toolbox, offered(toolbox, "time/get_current_time"), timezone="Asia/Tokyo")
        assert json.loads(now.text)["datetime"].endswith("+09:00")
        convert = offered(toolbox, "time/convert_time")
        zones = {"source_timezone": "UTC", "target_timezone": "Asia/Tokyo"}
        converted = json.loads(result_of(toolbox, convert, time="12:00", **zones).text)
        assert "T21:00:00" in converted["target"]["datetime"]
        wrong = result_of(toolbox, convert, time="noon", **zones)
        assert wrong.is_error


def test_files_of_one_folder_are_read_and_written(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.txt").write_text("Green tea: 80 degrees.\n", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    files = server("files", FILES, str(folder))
    with opened(tmp_path / "config", files, limits=DEFAULT_LIMITS) as toolbox:
        listed = result_of(toolbox, offered(toolbox, "files/list_directory"), path=str(folder))
        assert "tea.txt" in listed.text
        read = offered(toolbox, "files/read_text_file")
        assert "80 degrees" in result_of(toolbox, read, path=str(folder / "tea.txt")).text
        outside = result_of(toolbox, read, path=str(tmp_path / "secret.txt"))
        assert outside.is_error
        written = folder / "coffee.txt"
        write = offered(toolbox, "files/write_file")
        assert not result_of(toolbox, write, path=str(written), content="Hot.").is_error
        assert written.read_text(encoding="utf-8") == "Hot."
