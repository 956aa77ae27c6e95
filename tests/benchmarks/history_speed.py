"""How long a large history keeps people waiting, as JSON.

`python -m tests.benchmarks.history_speed [--json FILE] [--conversations 2000] [--messages 50000]`

The file is made by the history's own methods. Times are medians of several goes, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import (
    AnswerState,
    Stored,
    StoredAnswer,
)
from medusa_core.messages import Role, as_content
from tests.support.history.samples import done, steps

_SYLLABLES = (
    *("ka", "lo", "mi", "ter", "sun", "ver", "al", "ion", "ed", "ing"),
    *("pre", "con", "stra", "ny", "que", "or", "ba", "du", "fel", "gran"),
)
_STEPS_EVERY = 50  # answers; the others have a text alone, which is what lists and search read
_DAY_S = 86_400.0
SEARCHES = (
    *("k", "ka", "kalo", "the", "lighthouse", "the lighthouse", "kalo miter sunver"),
    *("天気", "ithous", "zzzz", "c++", "qu or", "É", '"kalo'),
)


class Filler:
    """Makes a history of words as a language has them: few are common."""

    def __init__(self, seed: int = 3) -> None:
        self._chance = random.Random(seed)
        lengths = [self._chance.randint(1, 5) for _ in range(30_000)]
        made = ("".join(self._chance.choices(_SYLLABLES, k=length)) for length in lengths)
        self._words = ["the", "a", "tea", *made]
        weights = [1 / (rank + 3) for rank in range(len(self._words))]
        self._drawn = iter(self._chance.choices(self._words, weights, k=6_000_000))

    def fill(self, path: Path, num_conversations: int, num_messages: int) -> None:
        """Write a file with the given number of messages."""
        now_s = [time.time() - num_conversations * _DAY_S / 5]
        history = History(path, lambda: now_s[0])
        history._database.rows("PRAGMA synchronous = OFF")
        each = num_messages // num_conversations
        for number in range(num_conversations):
            now_s[0] += _DAY_S / 5
            self._conversation(history, f"c{number}", each, now_s[0])
        history.close()

    def _conversation(self, history: History, name: str, num_messages: int, now_s: float) -> None:
        history.begin(name, self._text(5))
        parent = None
        for number in range(0, num_messages, 2):
            requested, answered = f"{name}-{number}", f"{name}-{number + 1}"
            question = self._text(self._chance.randint(5, 40))
            history.add_prompt(
                Stored(requested, name, parent, Role.USER, as_content(question), now_s)
            )
            reported = StoredAnswer("Pebble", "/models/pebble")
            history.begin_answer(
                Stored(answered, name, requested, Role.ASSISTANT, (), now_s, answer=reported)
            )
            text = self._text(self._chance.randint(40, 200))
            if number % _STEPS_EVERY == 0:
                history.append_steps(answered, tuple(steps(text, size=6)))
            history.finish_answer(answered, text, done(text), AnswerState.DONE)
            parent = answered

    def _text(self, num_words: int) -> str:
        words = [next(self._drawn) for _ in range(num_words)]
        if self._chance.random() < 0.01:
            words += ["東京の天気は晴れです", "lighthouse"]
        return " ".join(words).capitalize() + "."


def measure(path: Path) -> dict[str, float]:
    """Milliseconds of what people wait for."""
    figures = {"file_mb": path.stat().st_size / 1e6}
    history = History(path)
    name = history.conversations(limit=1)[0].id
    history.close()
    figures["open_ms"] = _usual(lambda: History(path).close())
    history = History(path)
    figures["list_ms"] = _usual(history.conversations)
    figures["list_100_ms"] = _usual(lambda: history.conversations(limit=100))
    figures["messages_ms"] = _usual(lambda: history.messages(name))
    for text in SEARCHES:
        figures[f"search {text!r} ms"] = _usual(lambda text=text: history.search(text))  # type: ignore[misc]
    prompt = Stored("new", name, None, Role.USER, as_content("Something new. " * 20), 0.0)
    figures["add_prompt_ms"] = _usual(lambda: history.add_prompt(prompt), 1)
    reported = StoredAnswer("Pebble", "/models/pebble")
    history.begin_answer(Stored("reply", name, "new", Role.ASSISTANT, (), 0.0, answer=reported))
    second = tuple(steps("word " * 300, size=6))
    figures["append_steps_ms"] = _usual(lambda: history.append_steps("reply", second))
    figures["checkpoint_ms"] = _usual(history.checkpoint, 1)
    history.trash([name])
    figures["empty_trash_ms"] = _usual(history.empty_trash, 1)
    history.close()
    return {key: round(value, 2) for key, value in figures.items()}


def _usual(work: Callable[[], object], times: int = 5) -> float:
    return median(_timed(work, times)) * 1000


def _timed(work: Callable[[], object], times: int) -> Iterator[float]:
    for _ in range(times):
        begin_s = time.perf_counter()
        work()
        yield time.perf_counter() - begin_s


def main() -> int:
    """Make a file, measure, and print or write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--file", type=Path, help="keep the history here, or take the one there")
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--messages", type=int, default=50_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.file or Path(folder) / "history.db"
        if not path.exists():
            begin_s = time.perf_counter()
            Filler().fill(path, args.conversations, args.messages)
            print(f"filled in {time.perf_counter() - begin_s:.0f} s", file=sys.stderr)
        figures = measure(path)
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    if args.json:
        args.json.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
