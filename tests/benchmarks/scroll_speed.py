"""Measures how a long conversation opens and scrolls, without a model.

`python -m tests.benchmarks.scroll_speed [--messages 500] [--json FILE]`;
set `QT_QPA_PLATFORM=offscreen` where there is no screen. Opening is seconds
of the clock; frames are seconds of the processor,
painting included, so that other programs don't count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.chat.conversation_view import ConversationView
from app.chat.turn_list import TurnList
from app.state.chat import ChatState
from app.theme.appearance import Appearance, ThemeChoice
from medusa_core.api import resources_dir
from medusa_core.chats.conversation import Conversation
from medusa_core.messages import GenerateSettings

_STEP_PX = 120  # a notch of a wheel
_NUM_FRAMES = 300
_FRAME_S = 0.016
_PARAGRAPH = "Some **bold** words, `code` and a formula $x^2 + y_i$ of an answer that goes on. " * 4
_KINDS = (
    f"{_PARAGRAPH}\n\n{_PARAGRAPH}",
    f"{_PARAGRAPH}\n\n```python\n" + "value = compute(value, 1)  # again\n" * 14 + "```\n",
    "\n".join(f"{number}. item *{number}* of a list" for number in range(12)),
    "| a | b | c |\n|---|---|---|\n" + "| one | two | three |\n" * 8 + f"\n> {_PARAGRAPH}",
)


def long_conversation(num_messages: int) -> Conversation:
    """Return a conversation of the given number of messages, with answers of every kind."""
    conversation = Conversation()
    for number in range(num_messages // 2):
        turn = conversation.ask(f"Question {number}: what is this?", GenerateSettings())
        turn.answer.is_running = False
        turn.answer.model = "Model"
        turn.answer.content.finish(f"Answer {number}.\n\n{_KINDS[number % len(_KINDS)]}")
    return conversation


def measure(num_messages: int) -> dict[str, float]:
    """Open a conversation, scroll up and down again, and jump about."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    appearance = Appearance(resources_dir())
    appearance.use(ThemeChoice.LIGHT)
    view = ConversationView(appearance)
    view.resize(1120, 700)
    view.show()
    state = ChatState()
    TurnList(view, state, appearance)
    app.processEvents()
    conversation = long_conversation(num_messages)
    start = time.perf_counter()
    state.show(conversation)
    view.follow_end()
    app.processEvents()
    view.grab()
    open_s = time.perf_counter() - start
    bar = view.verticalScrollBar()

    def frames(places: list[int]) -> list[float]:
        times = []
        for step in places:
            began, busy = time.perf_counter(), time.process_time()
            bar.setValue(step if abs(step) > _STEP_PX else bar.value() + step)
            app.processEvents()
            frame_s = time.process_time() - busy
            # What is done between two frames counts where it makes the next one late.
            left_s = began + _FRAME_S - time.perf_counter()
            time.sleep(max(0.0, left_s))
            app.processEvents()
            slot_s = time.process_time() - busy
            times.append(slot_s if slot_s > _FRAME_S else frame_s)
        return times

    scrolled = frames([-_STEP_PX] * _NUM_FRAMES + [_STEP_PX] * _NUM_FRAMES)
    jumps = frames([bar.maximum() * part // 11 for part in (3, 7, 1, 9, 5)])
    view.close()
    return {
        "num_messages": num_messages,
        "open_s": open_s,
        "frame_median_s": statistics.median(scrolled),
        "frame_p95_s": statistics.quantiles(scrolled, n=20)[-1],
        "frame_max_s": max(scrolled),
        "jump_max_s": max(jumps),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = measure(arguments.messages)
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
