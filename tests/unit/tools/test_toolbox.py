"""The toolbox: settings of servers and built-in tools, calls, and who hears of changes."""

import json
import queue
import threading
from pathlib import Path

import pytest

from medusa_core.chats.rounds import ToolResult
from medusa_core.errors import RequestError, ToolError
from medusa_core.tools.results import MOST_RESULT_BYTES, RunningCall, text_result
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.toolbox import Toolbox
from medusa_core.tools.web.settings import WebSettings

FILES = ToolServer("files", "npx", ("server",))


def test_builtin_tools_are_off_until_they_are_switched_on(tmp_path: Path) -> None:
    toolbox = Toolbox(tmp_path)
    assert toolbox.all_tools() == ()
    assert {one.builtin.name for one in toolbox.builtins()} >= {"calculate", "date_time"}
    assert not any(one.is_on for one in toolbox.builtins())
    toolbox.set_builtin("date_time", on=True)
    toolbox.set_builtin("calculate", on=True)
    assert [tool.id for tool in toolbox.all_tools()] == ["builtin/calculate", "builtin/date_time"]
    toolbox.set_builtin("date_time", on=False)
    (tool,) = Toolbox(tmp_path).all_tools()
    assert (tool.tool.name, tool.label, tool.server) == ("calculate", "Calculator", None)
    assert toolbox.chosen({"builtin/calculate", "builtin/date_time"}) == (tool,)
    assert toolbox.chosen(()) == ()
    with pytest.raises(RequestError, match="no tool"):
        toolbox.set_builtin("shell", on=True)


def test_a_call_has_one_result_from_another_thread(tmp_path: Path) -> None:
    toolbox = Toolbox(tmp_path)
    toolbox.set_builtin("calculate", on=True)
    (tool,) = toolbox.all_tools()
    results: queue.SimpleQueue[tuple[ToolResult, int]] = queue.SimpleQueue()
    call = toolbox.run(
        tool, '{"expression": "6 * 7"}', lambda r: results.put((r, threading.get_ident()))
    )
    result, thread = results.get(timeout=60)
    assert (result.text, result.is_error) == ("42", False)
    assert thread != threading.get_ident()
    call.cancel()
    toolbox.run(tool, "no JSON", lambda r: results.put((r, 0)))
    assert results.get(timeout=60)[0].is_error
    with pytest.raises(queue.Empty):
        results.get(timeout=0.1)


def test_a_stopped_call_says_so_and_drops_a_late_result() -> None:
    results: queue.SimpleQueue[ToolResult] = queue.SimpleQueue()
    stopped = threading.Event()
    call = RunningCall(results.put)
    call.on_cancel(stopped.set)
    call.cancel()
    assert stopped.is_set()
    result = results.get(timeout=60)
    assert result.is_error
    assert "stopped" in result.text
    call.finish(text_result("late"))
    assert results.empty()


def test_long_results_are_cut_with_a_note() -> None:
    whole = text_result("ü" * (MOST_RESULT_BYTES // 2))
    assert whole.text == "ü" * (MOST_RESULT_BYTES // 2)
    cut = text_result("x" + "ü" * MOST_RESULT_BYTES)
    kept, note = cut.text.split("\n")
    assert kept == "x" + "ü" * (MOST_RESULT_BYTES // 2 - 1)
    assert "131,073 bytes" in note
    assert "\ud800" not in text_result("a\ud800b").text


def test_servers_are_added_changed_and_removed(tmp_path: Path) -> None:
    toolbox, heard = Toolbox(tmp_path), []
    toolbox.listen(lambda: heard.append(len(toolbox.servers())))
    toolbox.add(FILES, ToolServer("web", url="https://a.example/mcp"))
    with pytest.raises(ToolError, match="already a server 'files'"):
        toolbox.add(FILES)
    with pytest.raises(ToolError, match="either a command or a url"):
        toolbox.add(ToolServer("neither"))
    with pytest.raises(ToolError, match="needs a name"):
        toolbox.add(ToolServer(" ", "a"))
    with pytest.raises(ToolError, match="already"):
        toolbox.replace("web", ToolServer("files", "b"))
    toolbox.replace("files", ToolServer("files", "other"))
    toolbox.remove("web")
    with pytest.raises(ToolError, match="no server 'web'"):
        toolbox.set_enabled("web", on=True)
    assert [status.server for status in toolbox.servers()] == [ToolServer("files", "other")]
    assert [status.server for status in Toolbox(tmp_path).servers()] == [
        ToolServer("files", "other")
    ]
    assert heard == [2, 2, 1]


def test_a_change_keeps_what_was_edited_by_hand_meanwhile(tmp_path: Path) -> None:
    toolbox, path = Toolbox(tmp_path), tmp_path / "mcp.json"
    toolbox.add(FILES)
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["mcpServers"]["by hand"] = {"command": "a"}
    path.write_text(json.dumps(raw), encoding="utf-8")
    toolbox.add(ToolServer("third", "b"))
    assert [status.server.name for status in toolbox.servers()] == ["files", "by hand", "third"]


def test_damaged_settings_are_named_and_stay(tmp_path: Path) -> None:
    for name in ("mcp.json", "tools.json"):
        (tmp_path / name).write_text("[", encoding="utf-8")
    toolbox = Toolbox(tmp_path)
    assert (toolbox.servers(), toolbox.all_tools()) == ((), ())
    assert len(toolbox.problems) == 2
    with pytest.raises(ToolError, match="no valid JSON"):
        toolbox.add(FILES)
    assert (tmp_path / "mcp.json").read_text(encoding="utf-8") == "["
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "b"}}}', encoding="utf-8")
    toolbox.reload()
    assert [status.server.name for status in toolbox.servers()] == ["a"]


def test_other_settings_stay_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('{"later": 1}', encoding="utf-8")
    Toolbox(tmp_path).set_builtin("calculate", on=True)
    written = json.loads((tmp_path / "tools.json").read_text(encoding="utf-8"))
    assert written == {"later": 1, "builtin": ["calculate"]}


def test_two_programs_change_the_settings(tmp_path: Path) -> None:
    window, terminal = Toolbox(tmp_path), Toolbox(tmp_path)
    window.set_builtin("calculate", on=True)
    window.set_web(WebSettings("https://search.example.org"))
    terminal.set_builtin("date_time", on=True)
    window.set_builtin("calculate", on=False)
    found = Toolbox(tmp_path)
    assert [one.builtin.name for one in found.builtins() if one.is_on] == ["date_time"]
    assert found.web.search_url == "https://search.example.org/"
