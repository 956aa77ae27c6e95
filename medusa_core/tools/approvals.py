"""Which tool calls the user has approved, for a conversation or always."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from medusa_core.chats.rounds import Approval
from medusa_core.errors import ToolError
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import replace_file
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.tools.servers import ToolServer
from medusa_core.tools.tool import Tool

log = logging.getLogger(__name__)

HOST_SEPARATOR = " · "  # between the tool and the host in the label of an approval
_VERSION = 1
FileVersion = tuple[int, int, int]


def approval_key(server: ToolServer | None, tool: Tool, host: str = "") -> str:
    """Return the key of an approval: SHA-256 of the server's command and the tool's description.

    If one of them changes, the user is asked again. Values of headers and variables, such as
    tokens, may change, except of variables that decide which code runs.

    Args:
        server: Server of the tool; None for a built-in one.
        host: Host that a tool reaches, if each needs its own approval.
    """
    program: Any = None
    if server is not None:
        names = [[name for name, _ in pairs] for pairs in (server.env, server.headers)]
        command = [server.command, server.args, server.cwd, server.url, server.code_variables]
        program = [server.name, *command, *names]
    parts = (program, tool.name, tool.description, json.loads(tool.parameters), host)
    text = json.dumps(parts, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Approvals:
    """Approvals in a file that only the user can read; a damaged file approves nothing."""

    def __init__(self, path: Path) -> None:
        """Prepare.

        Args:
            path: The file, if there is one. Several programs share it: it is read again after each
                change, so that a revoked approval isn't written back.
        """
        self._path = path
        self._always: set[str] = set()
        self._conversations: dict[str, set[str]] = {}
        self._labels: dict[str, str] = {}
        self._version: FileVersion | None = None
        self._update()

    def approval(self, key: str, conversation_id: str) -> Approval:
        """Return how calls of a key are approved; `Approval.NONE` if the user must be asked."""
        self._update()
        if key in self._always:
            return Approval.ALWAYS
        if key in self._conversations.get(conversation_id, ()):
            return Approval.CONVERSATION
        return Approval.NONE

    def always(self) -> tuple[tuple[str, str], ...]:
        """Return the keys that are always approved, with their labels, in the labels' order."""
        self._update()
        found = ((key, self._labels.get(key, "")) for key in self._always)
        return tuple(sorted(found, key=lambda pair: (pair[1].casefold(), pair[0])))

    def approve(self, key: str, approval: Approval, conversation_id: str, label: str = "") -> None:
        """Store an approval; that of a single call isn't stored.

        Args:
            key: Key of the call.
            approval: How long it holds.
            conversation_id: Conversation of the call.
            label: Display name of the tool, with the host if each host has its own approval.

        Raises:
            ToolError: The file can't be written; the approval holds until the program ends.
        """
        self._update()
        if approval is Approval.ALWAYS:
            self._always.add(key)
            self._labels[key] = label
        elif approval is Approval.CONVERSATION:
            self._conversations.setdefault(conversation_id, set()).add(key)
        else:
            return
        self._save()

    def revoke(self, key: str) -> None:
        """Remove all approvals of a key.

        Raises:
            ToolError: The file can't be written; the approval is gone until the program ends.
        """
        self._update()
        self._always.discard(key)
        self._labels.pop(key, None)
        for keys in self._conversations.values():
            keys.discard(key)
        self._save()

    def forget(self, conversation_ids: Iterable[str]) -> None:
        """Remove the approvals of deleted conversations.

        Raises:
            ToolError: The file can't be written.
        """
        self._update()
        gone = [self._conversations.pop(name, None) for name in conversation_ids]
        if any(gone):
            self._save()

    def _update(self) -> None:
        """Read the file if it has changed."""
        version = _version_of(self._path)
        if version == self._version:
            return
        self._version = version
        self._always, self._conversations, self._labels = set(), {}, {}
        try:
            raw = json.loads(self._path.read_text(encoding="utf-8"))
            if raw["version"] == _VERSION:
                always = set(map(str, raw["always"]))
                conversations = {
                    name: set(map(str, keys)) for name, keys in raw["conversations"].items()
                }
                labels = raw.get("labels", {}).items()
                self._labels = {key: str(label) for key, label in labels if key in always}
                # Once the whole file is read.
                self._always, self._conversations = always, conversations
        except FileNotFoundError:
            return
        except Exception:
            log.warning("approvals of tools can't be read", exc_info=True)

    def _save(self) -> None:
        raw = {
            "version": _VERSION,
            "always": sorted(self._always),
            "labels": {key: self._labels.get(key, "") for key in sorted(self._always)},
            "conversations": {
                name: sorted(keys) for name, keys in self._conversations.items() if keys
            },
        }
        with disk_errors(ToolError, self._path, tr("Make space, or check who may write there.")):
            replace_file(self._path, [json.dumps(raw, indent=1).encode()])
        self._version = _version_of(self._path)


def _version_of(path: Path) -> FileVersion | None:
    """Return time, size and inode of a file, to detect its replacement; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
