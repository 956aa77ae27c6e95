"""Messages for tests of the history."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import (
    AnswerState,
    Stored,
    StoredAnswer,
)
from medusa_core.messages import (
    GenerateSettings,
    GenerationDone,
    Role,
    StepDone,
    StepTimes,
    StopReason,
    TokenSource,
    as_content,
)

TARGET = TokenSource("target", 0)


class Clock:
    """Clock that is set by hand and advances by itself."""

    def __init__(self, now_s: float = 1_700_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


def prompt(conversation: str, name: str, text: str, parent: str | None = None) -> Stored:
    attachments = (Attachment("notes.txt", "text/plain", "kept notes", 10),)
    return Stored(name, conversation, parent, Role.USER, as_content(text), 5.0, attachments)


def answer(conversation: str, name: str, parent: str) -> Stored:
    reported = StoredAnswer(
        "Pebble", "/models/pebble", settings=GenerateSettings(seed=7, stop=("x",))
    )
    return Stored(name, conversation, parent, Role.ASSISTANT, (), 6.0, answer=reported)


def steps(text: str, request: str = "r", size: int = 2) -> Iterator[StepDone]:
    """Return a text as steps of the given number of bytes, which may split characters."""
    raw = text.encode("utf-8", "replace")
    both = TokenSource("phrases+suffix", 1)
    for number, begin in zip(count(), range(0, len(raw), size), strict=False):
        piece = raw[begin : begin + size]
        yield StepDone(
            session_id="s",
            request_id=request,
            step=number,
            token_ids=(number, 128_255),
            pieces=(piece, b""),
            sources=(both, TARGET),
            num_visible_bytes=begin + len(piece),
            num_rows=3,
            node_sources=(TARGET, both, both),
            times=StepTimes(0.1, 1 / 3, 1e-9, 0.0),
            step_s=0.123456789012345,
            num_context_tokens=number + 9,
        )


def done(text: str) -> GenerationDone:
    settings = GenerateSettings(logit_bias=((3, -0.5),), forbidden=((1, 2),))
    return GenerationDone(
        session_id="s",
        request_id="r",
        text=text,
        token_ids=(1, 2, 3),
        stop_reason=StopReason.EOS,
        num_prompt_tokens=4,
        num_given_tokens=0,
        num_cached_tokens=1,
        num_steps=2,
        accept_lengths=(2, 1),
        time_to_first_token_s=0.1,
        prefill_s=0.2,
        decode_s=0.3,
        num_plain_steps=0,
        settings=settings,
        plain_step_s=0.004,
    )


def tell(
    history: History, conversation: str, question: str, reply: str, parent: str | None = None
) -> tuple[str, str]:
    """Write one exchange whose texts contain the conversation and a number."""
    number = history.conversation(conversation).num_messages
    requested, answered = f"{conversation}-{number}", f"{conversation}-{number + 1}"
    history.add_prompt(prompt(conversation, requested, question, parent))
    history.begin_answer(answer(conversation, answered, requested))
    history.append_steps(answered, tuple(steps(reply)))
    history.finish_answer(answered, reply, done(reply), AnswerState.DONE)
    return requested, answered


def filled(path: Path, clock: Clock) -> History:
    """Two conversations with a branch."""
    history = History(path, clock)
    history.begin("tea", "About tea")
    _, first = tell(history, "tea", "How long does green tea steep?", "Two minutes, not more.")
    tell(history, "tea", "And black tea?", "Four minutes.", first)
    tell(
        history, "tea", "And Jörg's crème brûlée?", "That is no tea: 東京の天気は晴れです。", first
    )
    history.begin("ships", "Ships")
    tell(history, "ships", "Name a ship.", "The lighthouse keeper's boat.")
    return history
