"""Files that are damaged at random, as disks, cables and programs do it."""

import random
from collections.abc import Callable
from pathlib import Path

from medusa_core.chats.history.history import History
from tests.support.history.samples import Clock, tell

PAGE = 4096


def junk(chance: random.Random, num_bytes: int) -> bytes:
    """Return random bytes that overwrite others."""
    kinds = (bytes(num_bytes), b"\xff" * num_bytes, chance.randbytes(num_bytes))
    return chance.choice(kinds)


def flip_bits(chance: random.Random, raw: bytearray) -> None:
    for _ in range(chance.choice((1, 5, 50, 500))):
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)


def lose_pages(chance: random.Random, raw: bytearray) -> None:
    for _ in range(chance.choice((1, 2, 5, 20))):
        begin = chance.randrange(len(raw) // PAGE) * PAGE
        raw[begin : begin + PAGE] = junk(chance, PAGE)


def lose_a_run(chance: random.Random, raw: bytearray) -> None:
    count = chance.randint(2, len(raw) // PAGE // 3)
    begin = chance.randrange(len(raw) // PAGE - count) * PAGE
    raw[begin : begin + count * PAGE] = junk(chance, count * PAGE)


def lose_pieces(chance: random.Random, raw: bytearray) -> None:
    for _ in range(chance.choice((1, 3, 10))):
        begin, count = chance.randrange(len(raw) - 600), chance.randint(1, 600)
        raw[begin : begin + count] = junk(chance, count)


def lose_the_head(chance: random.Random, raw: bytearray) -> None:
    begin, count = chance.choice((0, 16, 24, 50, 100)), chance.choice((1, 8, 100, PAGE))
    raw[begin : begin + count] = junk(chance, count)


def lose_the_end(chance: random.Random, raw: bytearray) -> None:
    del raw[chance.randrange(len(raw)) :]


def lose_bytes(chance: random.Random, raw: bytearray) -> None:
    begin = chance.randrange(len(raw))
    del raw[begin : begin + chance.randint(1, 5000)]


DAMAGES: tuple[Callable[[random.Random, bytearray], None], ...] = (
    *(flip_bits, lose_pages, lose_the_end, lose_a_run, lose_the_head, lose_pieces, lose_bytes),
)


def text_of(chance: random.Random, num_words: int) -> str:
    """Return a unique text."""
    return " ".join(f"{chance.getrandbits(40):x}" for _ in range(num_words))


def fill(history: History, names: list[str], chance: random.Random) -> None:
    """Conversations of a few answers, short and long."""
    for name in names:
        history.begin(name, f"About {name}")
        parent = None
        for _ in range(chance.randint(1, 4)):
            question, answer = chance.randint(2, 40), chance.choice((5, 30, 120, 900))
            _, parent = tell(
                history, name, text_of(chance, question), text_of(chance, answer), parent
            )


def damaged(path: Path, number: int) -> bytes:
    """Damage a file in the way of a number; returns what it holds then."""
    raw = bytearray(path.read_bytes())
    DAMAGES[number % len(DAMAGES)](random.Random(number), raw)
    path.write_bytes(raw)
    return bytes(raw)


def texts_in(path: Path) -> set[str]:
    """Return all texts of a history, opened as by the window."""
    history = History(path, Clock())
    try:
        infos = history.conversations() + history.conversations(in_trash=True)
        return {message.text for info in infos for message in history.messages(info.id)}
    finally:
        history.close()


def harm_pack(history: History, packed: bytes, conversation: str = "tea") -> None:
    """Corrupt one pack of steps in a way that SQLite can't detect."""
    history._database.write(
        "UPDATE steps SET packed = ? WHERE number = (SELECT min(s.number) FROM steps AS s"
        " JOIN messages AS m ON m.number = s.message JOIN conversations AS c"
        " ON c.number = m.conversation WHERE c.id = ?)",
        packed,
        conversation,
    )
