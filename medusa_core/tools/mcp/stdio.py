"""Servers that are programs: messages are lines of their standard streams.

Unlike the SDK's own client this one limits what a program may write, keeps its log, and ends it
even if this program is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import psutil
from pydantic import ValidationError

from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.tools.mcp.limits import Limits, OutputBudget
from medusa_core.tools.mcp.transport import CountedMessages, Failure, Transport
from medusa_core.tools.servers import ToolServer

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

_CHUNK_BYTES = 1 << 16
_POLL_S = 0.01
_WATCHER = Path(__file__).with_name("watch.py")
# All that a program gets of this environment, which may hold tokens.
_INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
)
_INHERITED_ON_WINDOWS = (
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT"),
    *("PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
)

OnLog = Callable[[str], None]


@asynccontextmanager
async def run_program(
    server: ToolServer, limits: Limits, on_log: OnLog
) -> AsyncIterator[Transport]:
    """Run a server's program within the context.

    Args:
        server: Settings with the values of secrets.
        limits: Limits of the program.
        on_log: Gets each line of its log.

    Raises:
        ToolError: The program can't be started.
    """
    program = _Program(limits, on_log)
    transport = await program.start(server)
    try:
        yield transport
    finally:
        # Another cancellation must not leave the program running.
        await asyncio.shield(asyncio.ensure_future(program.stop()))


class _Program:
    """A running program with the tasks that move its messages."""

    def __init__(self, limits: Limits, on_log: OnLog) -> None:
        self._limits = limits
        self._on_log = on_log
        self._budget = OutputBudget(limits)
        self._lifeline = -1
        self._last_log = ""

    async def start(self, server: ToolServer) -> Transport:
        """Start the program.

        Raises:
            ToolError: It isn't installed, or the system starts no more.
        """
        environment = program_environment(server)
        folder = Path(server.cwd).expanduser() if server.cwd else Path.home()
        command = [_find_program(server.command, folder, environment), *server.args]
        inherited: tuple[int, ...] = ()
        if sys.platform != "win32":
            reading, self._lifeline = os.pipe()
            inherited = (reading,)
            watcher = (sys.executable, "-I", "-S", str(_WATCHER), str(reading))
            command = [*watcher, str(self._limits.stop_s), *command]
        loop = asyncio.get_running_loop()
        try:
            self._transport, protocol = await loop.subprocess_exec(
                partial(SubprocessStreamProtocol, limit=_CHUNK_BYTES, loop=loop),
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=environment,
                cwd=folder,
                pass_fds=inherited,
                start_new_session=True,  # Ctrl-C in a terminal ends an answer, not this program
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # Windows only
            )
        except OSError as error:
            self._close_lifeline()
            reason = error.strerror or str(error)
            raise ToolError(tr("{0} can't be started: {1}.", server.command, reason)) from error
        except BaseException:
            self._close_lifeline()
            raise
        finally:
            for descriptor in inherited:
                os.close(descriptor)
        self._process = Process(self._transport, protocol, loop)
        return self._move_messages()

    def _move_messages(self) -> Transport:
        """Start the tasks that move messages and log."""
        self._failure = Failure()
        self._received, read = _message_stream()
        write, self._sent = _message_stream()
        self._to_close = (self._received, read, write, self._sent)
        works = (self._read, self._write, self._read_log)
        self._tasks = tuple(asyncio.ensure_future(work()) for work in works)
        return Transport(CountedMessages(read, self._budget, self._failure), write, self._failure)

    async def stop(self) -> None:
        """End the program: by the end of its input, then SIGTERM, then SIGKILL.

        If it is cancelled, since the event loop ends, the watcher goes on with that.
        """
        for task in self._tasks:
            task.cancel()
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            if not await self._has_ended(self._limits.stop_s):
                self._end_tree()
                # The watcher waits as long before SIGKILL.
                if not await self._has_ended(2 * self._limits.stop_s + 1.0):
                    self._transport.kill()
                    await self._has_ended(self._limits.stop_s)
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            self._close_lifeline()
            process = self._transport.get_extra_info("subprocess")
            if process.returncode is None and sys.platform != "win32":
                process.returncode = 0  # else the transport kills the watcher before its program
            # A process that left the group may hold the pipes open.
            self._transport.close()
            for stream in self._to_close:
                stream.close()

    async def _read(self) -> None:
        """Pass on the messages that the program writes."""
        assert self._process.stdout is not None
        try:
            async for line in self._lines(self._process.stdout):
                if (message := _parse(line)) is not None:
                    await self._received.send(message)
                elif line.strip():
                    self._log(line)
            self._failure.set(ToolError(await self._why_ended()))
        except ToolError as error:
            self._failure.set(error)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session is closed, or the program doesn't read
        finally:
            self._received.close()

    async def _write(self) -> None:
        """Write messages to the program, which must read them in time."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            async for sent in self._sent:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode() + b"\n")
                async with asyncio.timeout(self._limits.write_s):
                    await stdin.drain()
        except TimeoutError:
            self._failure.set(ToolError(tr("The server doesn't read what it is sent.")))
            self._received.close()
        except OSError:
            self._sent.close()  # the program ends: `_read` says why

    async def _read_log(self) -> None:
        """Keep the lines that the program writes to stderr."""
        assert self._process.stderr is not None
        line = b""
        try:
            while chunk := await self._process.stderr.read(_CHUNK_BYTES):
                self._budget.count(len(chunk))
                *complete, line = (line + chunk).split(b"\n")
                for text in complete:
                    self._log(text)
                line = line[:_CHUNK_BYTES]
            if line:
                self._log(line)
        except ToolError as error:
            self._failure.set(error)
            self._received.close()

    async def _lines(self, stdout: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """Iterate over the lines that the program writes.

        Raises:
            ToolError: It writes too much.
        """
        line = bytearray()
        while chunk := await stdout.read(_CHUNK_BYTES):
            self._budget.count(len(chunk))
            first, *others = chunk.split(b"\n")
            line += first
            for following in others:
                yield bytes(line)
                line = bytearray(following)
            if len(line) > self._limits.line_bytes:
                most = self._limits.line_bytes >> 20
                raise ToolError(tr("The server sent a message of more than {0} MiB.", most))

    async def _why_ended(self) -> str:
        """Say how the program ended, which has closed its output."""
        await self._has_ended(self._limits.stop_s)
        last = f" {self._last_log}" if self._last_log else ""
        code = self._process.returncode
        if code is None:
            return tr("The program closed its output.{0}", last)
        return tr("The program ended with exit code {0}.{1}", code, last)

    async def _has_ended(self, time_s: float) -> bool:
        """Wait for the end of the process; `Process.wait` would also wait for its pipes."""
        end_s = asyncio.get_running_loop().time() + time_s
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() >= end_s:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _end_tree(self) -> None:
        """End the program and its child processes."""
        self._close_lifeline()
        if sys.platform == "win32":
            try:
                tree = psutil.Process(self._process.pid).children(recursive=True)
                for child in tree:
                    child.kill()
                self._transport.kill()
            except (psutil.Error, OSError) as error:
                self._on_log(str(error))

    def _close_lifeline(self) -> None:
        """Make the watcher end the program."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _log(self, line: bytes) -> None:
        """Keep a line of the log."""
        text = line[: 4 * self._limits.log_chars].decode("utf-8", "replace").strip()
        text = "".join(char if char.isprintable() else " " for char in text)
        if text:
            self._last_log = text[: self._limits.log_chars]
            self._on_log(self._last_log)


def program_environment(server: ToolServer) -> dict[str, str]:
    """Return the environment of a server's program: names of this one, and the server's own."""
    names = _INHERITED_ON_WINDOWS if sys.platform == "win32" else _INHERITED
    return {name: os.environ[name] for name in names if name in os.environ} | dict(server.env)


def _find_program(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Return the path of a program.

    Raises:
        ToolError: There is none, or no such folder.
    """
    if not folder.is_dir():
        raise ToolError(tr("The folder {0} of the server doesn't exist.", folder))
    path = Path(command).expanduser()
    if len(path.parts) > 1:
        path = folder / path
    found = shutil.which(str(path), path=environment.get("PATH"))
    if found is None:
        raise ToolError(
            tr("The program {0} isn't found.", command),
            tr("Install it, or give its full path."),
        )
    return found


def _parse(line: bytes) -> SessionMessage | None:
    """Parse a line as a JSON-RPC message; None if it isn't one."""
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    with suppress(ValidationError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    try:  # JavaScript writes half of a surrogate pair where it cuts a text within a symbol
        message = json.loads(line.decode("utf-8", "replace"))
        text = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except (ValueError, RecursionError):
        return None


def _message_stream() -> tuple[
    MemoryObjectSendStream[SessionMessage], MemoryObjectReceiveStream[SessionMessage]
]:
    """Return both ends of a stream without a buffer."""
    return anyio.create_memory_object_stream["SessionMessage"](0)
