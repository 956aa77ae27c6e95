"""Saves a tool server with its secrets, and notes whether the user has to agree to it again."""

from __future__ import annotations

from dataclasses import replace

from app.tools.pairs_edit import Pair
from app.tools.switch_on_question import described
from app.tools.window_tools import WindowTools
from medusa_core.api import ToolServer


class ServerSaving:
    """Saves a server with its secrets; a second attempt goes on where the first one failed.

    Attributes:
        name: Name under which the server is saved; empty before that.
        was_switched_off: Whether the server was on, but something else would be started now.
    """

    def __init__(self, tools: WindowTools, server: ToolServer | None) -> None:
        self._toolbox = tools.toolbox
        self._before = server
        self.name = "" if server is None else server.name
        self.was_switched_off = False

    def __call__(
        self, server: ToolServer, env: tuple[Pair, ...], headers: tuple[Pair, ...]
    ) -> None:
        """Save; blocks.

        Raises:
            MedusaError: The server can't be used or saved, or a secret can't be.
        """
        before, toolbox = self._before, self._toolbox
        is_enabled = before is not None and before.is_enabled
        plain = replace(
            server,
            env=tuple((pair.name, pair.value) for pair in env if not pair.is_secret),
            headers=tuple((pair.name, pair.value) for pair in headers if not pair.is_secret),
            is_enabled=False,
        )
        if self.name:
            toolbox.replace(self.name, plain)
        else:
            toolbox.add(plain)
        self.name = plain.name
        whole = replace(
            plain,
            env=tuple((pair.name, self._value(pair)) for pair in env),
            headers=tuple((pair.name, self._value(pair)) for pair in headers),
        )
        is_same = before is not None and as_agreed(before) == as_agreed(whole)
        self.was_switched_off = is_enabled and not is_same
        whole = replace(whole, is_enabled=is_enabled and is_same)
        if whole != plain:
            toolbox.replace(self.name, whole)

    def _value(self, pair: Pair) -> str:
        """Return the value of a pair; for a secret a reference to it in the keyring."""
        if not pair.is_secret:
            return pair.value
        return self._toolbox.save_secret(self.name, pair.name, pair.value)


def as_agreed(server: ToolServer) -> tuple[object, ...]:
    """Return what the user agrees to: what the question shows."""
    return described(server), server.command, server.args
