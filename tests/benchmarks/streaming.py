"""Measures what the window costs an answer: streaming, recording, panels; and how it stalls.

All ways take turns, so that a machine that slows down slows them alike. Headless, the engine
answers a conversation that the window doesn't show: events arrive all the same.

`python -m tests.benchmarks.streaming [--json FILE]`; `OMP_NUM_THREADS` sets the threads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QDockWidget

from app.__main__ import leave
from app.chat.suggestions import DEMO
from app.insight.track import Track
from app.window.application import (
    Application,
    Options,
    run,
)
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    ChatMessage,
    Event,
    Generate,
    GenerationDone,
    Role,
)
from tests.benchmarks.stalls import StallProbe

_PROMPT = DEMO[0]  # a story as long as an answer may be
_REPEATS = 9
_STALL_TOKENS = 2_000
_LONG_TRACK = 10_000
_MOVES = 60
_UNSEEN = "streaming-probe"
_SETTLE_S = 0.6  # until panels are drawn, and the old chat is gone


class StreamingProbe:
    """Drives the window once its model is ready."""

    def __init__(self, application: Application) -> None:
        self._app = application
        self._done: list[GenerationDone] = []
        self._changed = asyncio.Event()

    async def run(self) -> dict[str, object]:
        """Measure.

        Returns:
            Medians of decoding speed, the medians of ratios of neighbours, the longest stall
            while 2,000 tokens stream with all panels open, and the longest move of the slider in a
            recording of 10,000 steps.
        """
        loaded_model = self._app.loaded_model
        self._app.window.chat.answer_reported.connect(lambda _turn, events: self._receive(events))
        loaded_model.changed.connect(self._changed.set)
        self._app.window.chat.answer_ended.connect(self._changed.set)
        await self._until(lambda: loaded_model.status.phase is not Phase.LOADING)
        await self._until(lambda: loaded_model.status.calibrated is not None)
        speeds = await self._race()
        medians = {name: statistics.median(values) for name, values in speeds.items()}
        insight = self._app.window.insight
        self._open_panels()
        await asyncio.sleep(_SETTLE_S)
        stall_ms, num_tokens = await self._stalls()
        move_ms = await self._moves()
        insight.close_all()
        return {
            "headless_tokens_per_s": round(medians["headless"], 1),
            "streaming_tokens_per_s": round(medians["streaming"], 1),
            "ratio": _ratio(speeds, "streaming", "headless"),
            "recording_ratio": _ratio(speeds, "recording", "streaming"),
            "recording_headless_ratio": _ratio(speeds, "recording headless", "headless"),
            "panels_ratio": _ratio(speeds, "panels", "recording"),
            "longest_stall_ms": round(stall_ms, 1),
            "stall_tokens": num_tokens,
            "longest_move_ms": round(move_ms, 1),
        }

    def _open_panels(self) -> None:
        """Open all panels in windows of their own, so that all of them are visible."""
        insight = self._app.window.insight
        insight.open_tree()
        insight.open_steps()
        insight.open_equilibrium()
        for dock in self._docks():
            dock.setFloating(True)
            dock.show()

    def _docks(self) -> list[QDockWidget]:
        return self._app.window.findChildren(QDockWidget)

    async def _race(self) -> dict[str, list[float]]:
        """Tokens per second of every way, interleaved; the first round isn't counted."""
        ways = ("headless", "streaming", "recording", "panels", "recording headless")
        speeds: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(_REPEATS + 1):
            for way in ways:
                speed = await self._answer(way)
                if number:
                    speeds[way].append(speed)
        return speeds

    async def _answer(self, way: str) -> float:
        window = self._app.window
        window.chat.new_chat()
        if way == "panels":
            self._open_panels()
        else:
            window.insight.close_all()
        await asyncio.sleep(_SETTLE_S)  # no way pays for what was opened or closed before it
        if way.endswith("headless"):
            return await self._unseen(records=way != "headless")
        window.chat.records = way != "streaming"
        return await self._shown()

    async def _shown(self) -> float:
        chat = self._app.window.chat
        self._done.clear()
        chat.send(_PROMPT)
        await self._until(lambda: bool(self._done) and not chat.is_busy)
        return self._done[-1].decode_tokens_per_s

    async def _unseen(self, *, records: bool) -> float:
        bridge, pickers = self._app.bridge, self._app.window.page.settings_panel
        self._done.clear()
        messages = (ChatMessage(Role.USER, _PROMPT),)
        settings = pickers.generate_settings()
        bridge.ask(Generate(_UNSEEN, "ask", messages, settings, records=records), self._receive)
        await self._until(lambda: bool(self._done))
        bridge.close_session(_UNSEEN)
        return self._done[-1].decode_tokens_per_s

    async def _stalls(self) -> tuple[float, int]:
        """Measure the window's longest stall while answers stream; separately, as it keeps the
        window busy.
        """
        probe, num_tokens = StallProbe(), 0
        self._app.window.chat.records = True
        probe.start()
        while num_tokens < _STALL_TOKENS:
            self._app.window.chat.new_chat()
            await self._shown()
            num_tokens += len(self._done[-1].token_ids)
        probe.stop()
        return probe.longest_stall_ms, num_tokens

    async def _moves(self) -> float:
        """The longest move of the slider, drawn, in a long recording."""
        timeline = self._app.window.insight.timeline
        short = timeline.track
        assert short is not None, "answers were recorded"
        track = Track("long", short.model, short.rule)
        for number in range(_LONG_TRACK):
            track.add(short[1 + number % (len(short) - 1)]._replace(step=number))
        track.done = short.done
        timeline.show(track, 0)
        await asyncio.sleep(1.0)  # until the curves are drawn
        longest_s, places = 0.0, random.Random(0)
        for _ in range(_MOVES):
            started = time.perf_counter()
            timeline.go(places.randrange(_LONG_TRACK))
            for dock in self._docks():
                dock.repaint()
            longest_s = max(longest_s, time.perf_counter() - started)
            await asyncio.sleep(0)
        return longest_s * 1000

    def _receive(self, events: tuple[Event, ...]) -> None:
        self._done += [event for event in events if isinstance(event, GenerationDone)]
        if self._done:
            self._changed.set()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        # Waiting by looking again and again would slow the engine, too.
        while not is_so():
            await self._changed.wait()
            self._changed.clear()


def _ratio(speeds: dict[str, list[float]], way: str, other: str) -> float:
    pairs = zip(speeds[way], speeds[other], strict=True)
    return round(statistics.median(a / b for a, b in pairs), 3)


async def measure(application: Application, json_path: Path | None) -> int:
    """Open the window, measure, and print the figures; keep them where a file is named."""
    application.open()
    figures = json.dumps(await StreamingProbe(application).run()) + "\n"
    application.close()
    sys.stdout.write(figures)
    if json_path is not None:
        json_path.write_text(figures, encoding="utf-8")
    return 0


def main() -> int:
    """Measure."""
    options = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.streaming", description=__doc__
    )
    options.add_argument("--json", type=Path, metavar="FILE", help="takes the figures, too")
    json_path: Path | None = options.parse_args().json
    built = Options(platform="offscreen", is_fresh=True)
    return run(built, lambda application: measure(application, json_path))


if __name__ == "__main__":
    leave(main())
