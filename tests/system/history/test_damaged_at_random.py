"""Of files that are damaged anywhere, all open: with every text that is whole on the disk."""

import random
import shutil
from pathlib import Path

import pytest

from medusa_core.chats.history.folding import fold
from medusa_core.chats.history.history import History
from medusa_core.system.storage.database_backup import backup_of
from tests.support.history.damage import (
    DAMAGES,
    damaged,
    fill,
    flip_bits,
    lose_bytes,
    lose_pieces,
    texts_in,
)
from tests.support.history.samples import Clock

OLD = [f"old{number}" for number in range(30)]
NEW = [f"new{number}" for number in range(10)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file, and what its backup holds: the older conversations."""
    path = tmp_path_factory.mktemp("sound") / "history.db"
    history, chance = History(path, Clock()), random.Random(1)
    fill(history, OLD, chance)
    history.close()
    shutil.copyfile(path, path.with_name("older.db"))
    history = History(path, Clock())
    fill(history, NEW, chance)
    history.close()
    return path


def folded(texts: set[str]) -> set[str]:
    return {fold(text) for text in texts}


def open_damaged(sound: Path, tmp_path: Path, number: int, *, has_backup: bool) -> tuple[int, int]:
    """Damage and open a copy; returns how many texts came back, and how many were whole."""
    path = tmp_path / str(number) / "history.db"
    path.parent.mkdir()
    shutil.copyfile(sound, path)
    whole, older = texts_in(path), set[str]()
    if has_backup:
        shutil.copyfile(sound.with_name("older.db"), backup_of(path))
        shutil.copyfile(backup_of(path), path.with_name("older.db"))
        older = texts_in(path.with_name("older.db"))
    else:
        backup_of(path).unlink()
    raw = damaged(path, number)
    found_exactly = texts_in(path)
    found = folded(found_exactly)
    on_disk = {text for text in whole if text.encode() in raw}
    lost = folded(on_disk) - found
    kind = DAMAGES[number % len(DAMAGES)]
    if kind in (flip_bits, lose_pieces):  # also of names, so that a message isn't known again
        assert len(lost) <= 10, kind.__name__
        assert len(older - found_exactly) <= 10, kind.__name__
        return len(found & folded(whole)), len(whole)
    if kind is not lose_bytes:  # behind that place no page begins where it did
        assert not lost, kind.__name__
    assert not older - found_exactly, f"what the backup has comes back: {kind.__name__}"
    assert texts_in(path), "it is well from then on"
    shutil.rmtree(path.parent)
    return len(found & folded(whole)), len(whole)


def test_damaged_histories_open_with_all_intact_rows(sound: Path, tmp_path: Path) -> None:
    for number in range(len(DAMAGES)):  # the slow test has each with and without a backup
        open_damaged(sound, tmp_path, number, has_backup=number % 2 == 0)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_120_damaged_histories_all_open(sound: Path, tmp_path: Path) -> None:
    counts = [
        open_damaged(sound, tmp_path, number, has_backup=number % 2 == 0) for number in range(120)
    ]
    assert sum(kept for kept, _ in counts) > 0.9 * sum(whole for _, whole in counts)
