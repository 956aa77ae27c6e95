"""Measures what the window costs an answer: the same one with the window streaming and without.

Without, the engine answers a conversation that the window doesn't show: events arrive all the same.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.chat.empty_state import SUGGESTIONS
from app.model_keeper import Phase
from app.startup_probe import StallProbe
from medusa_core.messages import (
    ChatMessage,
    CloseSession,
    Event,
    Generate,
    GenerationDone,
    Role,
)

if TYPE_CHECKING:
    from app.application import Application

_PROMPTS = SUGGESTIONS[:1]  # a story as long as an answer may be
_REPEATS = 9
_UNSEEN = "streaming-probe"


class StreamingProbe:
    """Drives the window once its model is ready."""

    def __init__(self, application: Application) -> None:
        self._app = application
        self._done: list[GenerationDone] = []
        self._changed = asyncio.Event()
        self._stalls = StallProbe()

    async def run(self) -> dict[str, object]:
        """Both in turns, so that a machine that slows down slows both.

        Returns:
            Medians of decoding speed and the ratio of neighbours, and the longest stall.
        """
        keeper = self._app.keeper
        self._app.bridge.arrived.connect(self._receive)
        keeper.changed.connect(self._changed.set)
        self._app.window.chat.answer_ended.connect(self._changed.set)
        await self._until(lambda: keeper.status.phase is not Phase.LOADING)
        await self._until(lambda: keeper.status.calibrated is not None)
        await self._shown(_PROMPTS[0])
        await self._unseen(_PROMPTS[0])
        shown: list[float] = []
        unseen: list[float] = []
        for _ in range(_REPEATS):
            for prompt in _PROMPTS:
                shown.append(await self._shown(prompt))
                unseen.append(await self._unseen(prompt))
        self._stalls.start()  # for itself: it keeps the interpreter busy
        await self._shown(_PROMPTS[0])
        self._stalls.stop()
        ratios = [a / b for a, b in zip(shown, unseen, strict=True)]
        return {
            "streaming_tokens_per_s": round(statistics.median(shown), 1),
            "headless_tokens_per_s": round(statistics.median(unseen), 1),
            "ratio": round(statistics.median(ratios), 3),
            "longest_stall_ms": round(self._stalls.longest_stall_ms, 1),
        }

    async def _shown(self, prompt: str) -> float:
        chat = self._app.window.chat
        chat.new_chat()
        self._done.clear()
        chat.send(prompt)
        await self._until(lambda: bool(self._done) and not chat.is_busy)
        return self._done[-1].decode_tokens_per_s

    async def _unseen(self, prompt: str) -> float:
        bridge = self._app.bridge
        settings = self._app.window.page.header.pickers.settings()
        self._done.clear()
        messages = (ChatMessage(Role.USER, prompt),)
        bridge.submit(Generate(_UNSEEN, "ask", messages, settings))
        await self._until(lambda: bool(self._done))
        bridge.submit(CloseSession(_UNSEEN, "close"))
        return self._done[-1].decode_tokens_per_s

    def _receive(self, events: tuple[Event, ...]) -> None:
        self._done += [event for event in events if isinstance(event, GenerationDone)]
        if self._done:
            self._changed.set()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        # Waiting by looking again and again would slow the engine, too.
        while not is_so():
            await self._changed.wait()
            self._changed.clear()
