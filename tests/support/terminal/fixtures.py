"""A home without anything in it, and chats at a terminal of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from medusa_core.system.resources import demo_model_dir
from tests.support.terminal.typing_at import Typist

PEBBLE = str(demo_model_dir())
OPTIONS = ("--threads", "1", "--no-learned", "--set", "max_new_tokens", "24")
StartChat = Callable[..., Typist]


@pytest.fixture
def start_chat(tmp_path: Path) -> Iterator[StartChat]:
    """Return a function that opens terminal chats, which end after the test."""
    chats: list[Typist] = []

    def start(*words: str, env: dict[str, str] | None = None) -> Typist:
        folder = ("--data-dir", str(tmp_path))
        chats.append(Typist("run", PEBBLE, *OPTIONS, *folder, *words, env=env))
        return chats[-1]

    yield start
    for chat in chats:
        chat.close()
