"""Servers that are programs: calls, limits, and the end of their processes."""

import gc
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from medusa_core.chats.rounds import ToolResult
from medusa_core.errors import ToolError
from medusa_core.tools.results import MOST_RESULT_BYTES
from medusa_core.tools.servers import ToolServer, write_servers
from medusa_core.tools.status import ServerState
from medusa_core.tools.toolbox import Toolbox
from tests.support.toolboxes import (
    QUICK,
    WAIT_S,
    offered,
    opened,
    program,
    result_of,
    settled,
    status,
    until,
)


def pids(marker: Path) -> list[int]:
    return [int(line) for line in marker.read_text(encoding="utf-8").split()]


def wait_for_end(pid: int) -> None:
    end_s = time.monotonic() + WAIT_S
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end_s, f"{pid} still runs"
        time.sleep(0.02)


def test_tools_of_all_pages_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret of another program")
    tea = replace(program("tea", env={"KIND": "green"}), cwd=str(tmp_path))
    with opened(tmp_path / "config", tea) as toolbox:
        echo = offered(toolbox, "tea/echo")
        found = status(toolbox, "tea")
        assert [tool.source.name for tool in found.tools] == sorted(
            ("change", "die", "echo", "environment", "fail", "long", "number", "picture", "wait")
        )
        assert (echo.label, echo.tool.description) == ("tea · echo", "Returns its text.")
        until(toolbox, lambda: status(toolbox, "tea").log)
        assert status(toolbox, "tea").log == ("ready for tea",)
        result = result_of(toolbox, echo, text="übung")
        assert (result.text, result.is_error) == ("übung", False)
        told = json.loads(result_of(toolbox, offered(toolbox, "tea/environment")).text)
        assert told["env"]["KIND"] == "green"
        assert "HF_TOKEN" not in told["env"]
        assert Path(told["cwd"]) == tmp_path
        picture = result_of(toolbox, offered(toolbox, "tea/picture"), text="Look:")
        assert picture.text.startswith("Look:\n[The tool returned an image that you can't see: ")
        assert len(picture.content) == 1
        long = result_of(toolbox, offered(toolbox, "tea/long"))
        assert MOST_RESULT_BYTES <= len(long.text.encode()) < MOST_RESULT_BYTES + 200
        assert "cut" in long.text[-100:]
        failed = result_of(toolbox, offered(toolbox, "tea/fail"), text="no tea")
        assert (failed.text, failed.is_error) == ("no tea", True)
        wrong = result_of(toolbox, offered(toolbox, "tea/number"))
        assert wrong.is_error
        assert "doesn't follow the protocol" in wrong.text
        results: queue.SimpleQueue[ToolResult] = queue.SimpleQueue()
        for arguments in ("[]", "{", '{"a": NaN}', "[" * 99_999):
            toolbox.run(echo, arguments, results.put)
            assert results.get(timeout=WAIT_S).is_error
        assert result_of(toolbox, echo, text="still here").text == "still here"


def test_half_a_symbol_in_a_result_is_replaced() -> None:
    from medusa_core.tools.mcp.stdio import _parse

    message = _parse(b'{"jsonrpc": "2.0", "id": 3, "result": {"content": [{"text": "a\\ud83d"}]}}')
    assert message is not None
    raw: dict[str, Any] = message.message.model_dump()
    assert raw["result"]["content"][0]["text"] == "a?"
    assert _parse(b"Listening on port 3000") is None
    assert _parse(b"[" * 100_000) is None


def test_structured_content_is_read_unless_a_text_repeats_it() -> None:
    from mcp import types

    from medusa_core.tools.mcp.answers import result_of as result_of_answer

    picture = types.ImageContent(type="image", data="AAAA", mime_type="image/png")
    text = types.TextContent(type="text", text="width 3")
    raw = types.CallToolResult(content=[picture], structured_content={"width": 3})
    assert result_of_answer(raw, 0).text.endswith('bytes]\n{"width": 3}')
    raw = types.CallToolResult(content=[picture, text], structured_content={"width": 3})
    assert result_of_answer(raw, 0).text.endswith("bytes]\nwidth 3")


def test_a_call_ends_by_time_or_by_the_user(tmp_path: Path) -> None:
    slow = replace(program("slow"), timeout_s=0.3)
    with opened(tmp_path, slow, program("tea")) as toolbox:
        result = result_of(toolbox, offered(toolbox, "slow/wait"))
        assert result.is_error
        assert "didn't answer within" in result.text
        results: queue.SimpleQueue[ToolResult] = queue.SimpleQueue()
        call = toolbox.run(offered(toolbox, "tea/wait"), "{}", results.put)
        with pytest.raises(queue.Empty):
            results.get(timeout=0.2)
        call.cancel()
        stopped = results.get(timeout=WAIT_S)
        assert (stopped.is_error, stopped.text) == (True, "The user stopped this call.")
        waiting = toolbox.run(offered(toolbox, "tea/wait"), "{}", results.put)
        toolbox.set_enabled("tea", on=False)
        assert results.get(timeout=WAIT_S).is_error
        waiting.cancel()
        assert results.empty()


def test_a_server_that_dies_in_a_call_says_how_and_starts_again(tmp_path: Path) -> None:
    with opened(tmp_path, program("tea")) as toolbox:
        echo = offered(toolbox, "tea/echo")
        assert result_of(toolbox, offered(toolbox, "tea/die")).is_error
        until(toolbox, lambda: status(toolbox, "tea").state is ServerState.FAILED)
        reason = status(toolbox, "tea").reason
        assert reason == "The program ended with exit code 3. out of tea"
        assert toolbox.all_tools() == ()
        assert result_of(toolbox, echo, text="a").is_error
        toolbox.restart("tea")
        assert result_of(toolbox, offered(toolbox, "tea/echo"), text="again").text == "again"


HOSTILE = {
    "endless line": "more than 2 MiB",
    "endless lines": "writes without end",
    "endless log": "writes without end",
    "endless requests": "writes without end",
    "endless pages": "doesn't end",
    "many tools": "more than 256 tools",
    "large tools": "more than 512 KiB",
    "wrong types": "doesn't follow the protocol",
    "wrong version": "1850-01-01",
    "no protocol": "ended with exit code 0",
    "silent": "didn't start within 1 s",
    "no tools": "has no tools",
}


@pytest.mark.parametrize("behaviour", HOSTILE)
def test_a_hostile_server_fails_with_a_reason(tmp_path: Path, behaviour: str) -> None:
    limits = replace(QUICK, start_s=1.0) if behaviour == "silent" else QUICK
    before = psutil.Process().memory_info().rss
    with opened(tmp_path, program("bad", behaviour), limits=limits) as toolbox:
        found = settled(toolbox, "bad")
        assert found.state is ServerState.FAILED
        assert HOSTILE[behaviour] in found.reason
        assert found.tools == ()
        assert len(found.log) <= QUICK.log_lines
        assert all(len(line) <= QUICK.log_chars for line in found.log)
    assert psutil.Process().memory_info().rss - before < 200 << 20


def test_a_server_that_does_not_read_is_ended(tmp_path: Path) -> None:
    with opened(tmp_path, program("deaf", "deaf")) as toolbox:
        echo = offered(toolbox, "deaf/echo")
        results: queue.SimpleQueue[ToolResult] = queue.SimpleQueue()
        toolbox.run(echo, "{}", results.put)
        assert result_of(toolbox, echo, text="x" * 500_000).is_error
        assert "doesn't read" in results.get(timeout=WAIT_S).text
        assert "doesn't read" in settled_as(toolbox, "deaf", ServerState.FAILED)


def test_a_server_that_lists_no_more_tools_is_ended(tmp_path: Path) -> None:
    limits = replace(QUICK, call_s=0.5)
    with opened(tmp_path, program("tea", "lists once"), limits=limits) as toolbox:
        result_of(toolbox, offered(toolbox, "tea/change"))
        assert "list its tools any more" in settled_as(toolbox, "tea", ServerState.FAILED)


def settled_as(toolbox: Toolbox, name: str, state: ServerState) -> str:
    until(toolbox, lambda: status(toolbox, name).state is state)
    return status(toolbox, name).reason


def test_tools_that_cannot_be_used_are_left_out(tmp_path: Path) -> None:
    with opened(tmp_path, program("odd", "odd tools")) as toolbox:
        found = settled(toolbox, "odd")
        assert found.state is ServerState.READY
        names = [tool.tool.name for tool in found.tools]
        assert {"deep", "big", ""}.isdisjoint(names)
        assert names.count("echo") == 1
        assert "odd_calcu1ate" in names
        assert "_im_start_system" in names
        assert r"odd · \u202eohce read" in [tool.label for tool in found.tools]
        assert all(len(name) <= 64 for name in names)
        until(toolbox, lambda: len(status(toolbox, "odd").log) >= 6)
        assert "deep: its schema is nested too deeply" in status(toolbox, "odd").log


def test_a_tool_that_changes_after_approval_is_not_run(tmp_path: Path) -> None:
    with opened(tmp_path, program("tea")) as toolbox:
        echo = offered(toolbox, "tea/echo")
        result_of(toolbox, offered(toolbox, "tea/change"))
        until(toolbox, lambda: offered(toolbox, "tea/echo") != echo)
        result = result_of(toolbox, echo, text="secret")
        assert result.is_error
        assert "changed or removed" in result.text
        changed = offered(toolbox, "tea/echo")
        assert changed.approval_key("{}") != echo.approval_key("{}")
        toolbox.replace("tea", program("tea", "another command"))
        assert result_of(toolbox, changed, text="secret").is_error


def test_nothing_starts_before_it_is_switched_on(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    tea = replace(program("tea", env={"MARKER": str(marker)}), is_enabled=False)
    with opened(tmp_path / "config", tea) as toolbox:
        toolbox.restart("tea")
        assert status(toolbox, "tea").state is ServerState.OFF
        assert not marker.exists()
        toolbox.set_enabled("tea", on=True)
        offered(toolbox, "tea/echo")
        toolbox.set_enabled("tea", on=False)
        assert status(toolbox, "tea").state is ServerState.OFF
        wait_for_end(pids(marker)[0])
    with opened(tmp_path / "config") as again:
        assert status(again, "tea").state is ServerState.OFF
    assert len(pids(marker)) == 1


def test_what_changed_since_it_was_shown_isnt_started(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    shown = replace(program("tea", env={"MARKER": str(marker)}), is_enabled=False)
    with opened(tmp_path / "config", shown) as toolbox:
        changed = replace(shown, args=(*shown.args, "stubborn"))
        write_servers(toolbox.path, (changed,))
        with pytest.raises(ToolError, match="has been changed"):
            toolbox.set_enabled("tea", on=True)
        assert status(toolbox, "tea").server == changed
        assert status(toolbox, "tea").state is ServerState.OFF
        assert not marker.exists()
        toolbox.set_enabled("tea", on=True)
        assert settled(toolbox, "tea").state is ServerState.READY


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_program_starts_again_after_its_end(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    stubborn = program("tea", "stubborn", env={"MARKER": str(marker)})
    with opened(tmp_path / "config", stubborn) as toolbox:
        offered(toolbox, "tea/echo")
        toolbox.set_enabled("tea", on=False)
        toolbox.set_enabled("tea", on=True)
        offered(toolbox, "tea/echo")
        first, _ = pids(marker)
        assert not psutil.pid_exists(first), "both would have run at once"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_closing_ends_stubborn_programs_with_their_children(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    stubborn = program("stubborn", "stubborn", env={"MARKER": str(marker)})
    with opened(tmp_path / "config", stubborn) as toolbox:
        offered(toolbox, "stubborn/echo")
        (pid,) = pids(marker)
        children = psutil.Process(pid).children(recursive=True)
        assert children
        start_s = time.monotonic()
        toolbox.close()
        assert time.monotonic() - start_s < 60  # its children sleep for 99 s
    for process in (pid, *(child.pid for child in children)):
        wait_for_end(process)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_closing_waits_for_no_server_that_hangs(tmp_path: Path) -> None:
    """Whatever time a server is given to end; its watcher ends it with this program."""
    marker = tmp_path / "started"
    stubborn = program("stubborn", "stubborn", env={"MARKER": str(marker)})
    limits = replace(QUICK, stop_s=WAIT_S)
    with opened(tmp_path / "config", stubborn, limits=limits) as toolbox:
        offered(toolbox, "stubborn/echo")
        started = [psutil.Process(pid) for pid in pids(marker)]
        (watcher,) = {one.parent() for one in started}
        started += [child for one in started for child in one.children(recursive=True)]
        start_s = time.monotonic()
        toolbox.close()
        assert time.monotonic() - start_s < WAIT_S / 2
    for thread in threading.enumerate():
        if thread.name == "tool servers":
            thread.join()
    del toolbox
    gc.collect(1)  # the connection
    assert watcher is not None
    assert watcher.status() != psutil.STATUS_ZOMBIE, "nobody ends the program"
    for process in started:
        process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_program_leaves_no_server_behind(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    with opened(tmp_path / "config") as toolbox:
        toolbox.add(
            replace(program("tea", "stubborn", env={"MARKER": str(marker)}), is_enabled=False)
        )
    raw = json.loads((tmp_path / "config" / "mcp.json").read_text(encoding="utf-8"))
    raw["mcpServers"]["tea"]["disabled"] = False
    (tmp_path / "config" / "mcp.json").write_text(json.dumps(raw), encoding="utf-8")
    code = (
        "import sys, time; from pathlib import Path\n"
        "from medusa_core.tools.toolbox import Toolbox\n"
        "box = Toolbox(Path(sys.argv[1]))\n"
        "while not box.all_tools(): time.sleep(0.05)\n"
        "print('ready', flush=True); time.sleep(99)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "config")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        (pid,) = pids(marker)
        children = psutil.Process(pid).children(recursive=True)
        os.kill(parent.pid, signal.SIGKILL)
    for process in (pid, *(child.pid for child in children)):
        wait_for_end(process)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    servers = (
        ToolServer("program", "no-such-program-7", is_enabled=True),
        replace(program("folder"), cwd=str(tmp_path / "gone")),
        replace(program("secret"), env=(("TOKEN", "${keyring:TOKEN}"),)),
    )
    with opened(tmp_path / "config", *servers) as toolbox:
        assert "no-such-program-7 isn't found" in settled(toolbox, "program").reason
        assert "Install it" in status(toolbox, "program").hint
        assert "doesn't exist" in settled(toolbox, "folder").reason
        assert "'TOKEN' isn't in the keyring" in settled(toolbox, "secret").reason


def test_without_the_extra_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with opened(tmp_path, program("tea")) as toolbox:
        found = settled(toolbox, "tea")
        assert found.reason == "Not installed: mcp."
        assert "tools" in found.hint


def test_a_closed_toolbox_runs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, program("tea")) as toolbox:
        echo = offered(toolbox, "tea/echo")
    assert result_of(toolbox, echo, text="a").is_error
    Toolbox(tmp_path / "other").close()
