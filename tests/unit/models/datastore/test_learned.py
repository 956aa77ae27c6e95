"""What models said: kept, bounded, found again, and gone with its conversation."""

from __future__ import annotations

import random
import secrets
import sqlite3
import subprocess
import sys
from array import array
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.engine.direct import events_of
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import MedusaError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
)
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.folder import (
    forget_answers,
    forget_deleted_conversations,
    model_key,
    store_of,
)
from medusa_core.models.datastore.suffix_array import DEPTH, NO_MATCHES, Found
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.suffix_source import SuffixSource
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.drafts import received
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import decode, plainly, user_says
from tests.support.models.targets import TIED
from tests.support.models.tiny import write_tiny

ROOT = Path(__file__).resolve().parents[4]
VOCABULARY = 1 << 20
GREETING = [700_000 + number for number in range(40)]
FAREWELL = [800_000 + number for number in range(40)]


def learned_in(folder: Path, max_tokens: int = 1 << 20, key: str = "model") -> EarlierAnswers:
    """Return the learned answers of the model with this key."""
    return EarlierAnswers(store_of(folder, key), VOCABULARY, max_tokens)


def bytes_of(folder: Path) -> bytes:
    """Return the bytes of all files in a folder."""
    return b"".join(file.read_bytes() for file in folder.iterdir())


def packed(token_ids: Sequence[int]) -> bytes:
    return array("i", token_ids).tobytes()


def found_behind(learned: EarlierAnswers, recent: Sequence[int]) -> Found:
    """Return all positions of these tokens."""
    found = learned.texts.array.search(array("i", [-1] * DEPTH + list(recent)))
    return found if max(found.lengths, default=0) >= len(recent) else NO_MATCHES


def followers(learned: EarlierAnswers, *recent: int) -> list[int]:
    """Return the tokens that followed these."""
    return found_behind(learned, recent).token_ids


# Where a context stood ----------------------------------------------------------------------------


def test_separate_answers_dont_run_into_each_other(tmp_path: Path) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", (), [1, 2, 3])
    learned.learn("b", (), [4, 5, 6])
    assert followers(learned, 1, 2) == [3]
    assert followers(learned, 2, 3) == followers(learned, 3, 4) == []


def test_text_before_an_answer_is_context_but_never_drafted(tmp_path: Path) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", [9, 8, 7], [1, 2])
    assert followers(learned, 8, 7) == [1]
    assert followers(learned, 9, 8) == []


# What is kept -------------------------------------------------------------------------------------


def test_no_file_is_written_before_there_is_an_answer(tmp_path: Path) -> None:
    learned = learned_in(tmp_path / "learned")
    learned.learn("a", (1,), ())
    learned.refresh()
    forget_answers(tmp_path / "learned")
    assert not (tmp_path / "learned").exists()


def test_learned_answers_are_loaded_at_the_next_start(tmp_path: Path) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", [5], GREETING)
    learned.learn("a", [5], GREETING)  # the same once more is kept once
    learned.close()
    again = learned_in(tmp_path)
    assert followers(again, *GREETING[:9]) == [GREETING[9]]
    assert len(again.texts.numbers) == 1
    other = learned_in(tmp_path, key="another")
    assert followers(other, *GREETING[:9]) == []


def test_the_least_used_answers_are_dropped_when_the_file_is_full(tmp_path: Path) -> None:
    learned = learned_in(tmp_path, max_tokens=1000)
    texts = [list(range(1000 * number, 1000 * number + 90)) for number in range(30)]
    for number, text in enumerate(texts):
        learned.learn(f"c{number}", (), text)
        found = found_behind(learned, texts[0][:9])
        learned.use(found.places[0])  # the first is drafted by, again and again
        assert len(learned.texts.array) <= 1000
    kept = [number for number, text in enumerate(texts) if followers(learned, *text[:9])]
    assert kept[0] == 0
    assert kept[1:] == list(range(30 - len(kept) + 1, 30))
    assert 8 <= len(kept) <= 11
    learned.close()
    assert len(learned_in(tmp_path, 1000).texts.numbers) == len(kept)


def test_a_file_that_is_too_long_is_read_partially(tmp_path: Path) -> None:
    store = store_of(tmp_path, "k")
    for number in range(4):
        store.add(f"conversation {number}", 1, array("i", [number] * 50))
    store.close()
    learned = EarlierAnswers(store_of(tmp_path, "k"), 320, max_tokens=120)
    assert len(learned.texts.numbers) == 2
    assert set(learned.texts.array.tokens(0, 110)) - {-1} == {2, 3}
    learned.close()


def test_an_endless_answer_is_saved_partially(tmp_path: Path) -> None:
    learned = learned_in(tmp_path, max_tokens=1000)
    learned.learn("a", (), list(range(5000)))
    assert 400 <= len(learned.texts.array) <= 600


def test_two_programs_share_learned_answers(tmp_path: Path) -> None:
    one, other = learned_in(tmp_path), learned_in(tmp_path)
    one.learn("a", (), GREETING)
    other.learn("b", (), FAREWELL)
    for learned in (one, other):
        learned.refresh()
        assert followers(learned, *GREETING[:9]) == [GREETING[9]]
        assert followers(learned, *FAREWELL[:9]) == [FAREWELL[9]]
    forget_answers(tmp_path, ["a"])
    for learned in (one, other):
        learned.refresh()
        assert followers(learned, *GREETING[:9]) == []
        assert followers(learned, *FAREWELL[:9]) == [FAREWELL[9]]


WRITER = """
import sys
from pathlib import Path
from medusa_core.models.datastore.folder import store_of
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
learned = EarlierAnswers(store_of(Path(sys.argv[1]), "model"), 1 << 20)
first = int(sys.argv[2]) * 10_000
for number in range(40):
    learned.learn(f"{first}-{number}", (), range(first + number, first + number + 50))
"""


def test_concurrent_writes_of_two_programs_lose_nothing(tmp_path: Path) -> None:
    learned_in(tmp_path).learn("first", (), GREETING)
    commands = [[sys.executable, "-c", WRITER, str(tmp_path), name] for name in "12"]
    children = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    assert [child.wait(60) for child in children] == [0, 0]
    with closing(store_of(tmp_path, "model")) as store:
        assert len(store.conversations()) == 81


@pytest.mark.parametrize("damage", ["rubbish", "cut", "empty"])
def test_a_damaged_file_affects_speed_and_no_answer(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Numbers under which the rows of the cut file lead in a circle.
    monkeypatch.setattr(secrets, "randbits", random.Random(8).getrandbits)
    learned = learned_in(tmp_path)
    for number in range(40):
        learned.learn(f"c{number}", (), range(1000 * number, 1000 * number + 500))
    learned.close()
    path = tmp_path / "model.db"
    whole = path.read_bytes()
    bad = {"rubbish": b"\x07" * len(whole), "cut": whole[: len(whole) // 2], "empty": b""}
    path.write_bytes(bad[damage])
    learned = learned_in(tmp_path)
    learned.learn("new", (), GREETING)
    learned.close()
    assert followers(learned_in(tmp_path), *GREETING[:9]) == [GREETING[9]]
    forget_answers(tmp_path, ["c1"])
    assert sorted(file.name for file in tmp_path.iterdir() if "damaged" in file.name) == []


def test_answers_with_tokens_of_another_model_are_deleted(tmp_path: Path) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", (), GREETING)
    learned.learn("b", (), FAREWELL)
    learned.close()
    with closing(sqlite3.connect(tmp_path / "model.db")) as db, db:
        odd = array("i", [3, VOCABULARY, 5]).tobytes()
        db.execute("UPDATE answers SET tokens = ? WHERE conversation = 'a'", (odd,))
        db.execute("INSERT INTO answers VALUES (7, 'c', 9, 50, ?)", (packed([1, 2]),))
        db.execute("INSERT INTO answers VALUES (8, 'd', 9, 0, ?)", (b"abc",))
    assert len(learned_in(tmp_path).texts.numbers) == 1
    with closing(store_of(tmp_path, "model")) as store:
        assert store.conversations() == {"b"}


def test_a_full_disk_affects_speed_and_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", (), GREETING)
    database = learned._store._open()
    (pages,) = database.row("PRAGMA page_count")  # type: ignore[misc]
    database.rows(f"PRAGMA max_page_count = {pages}")
    learned.learn("b", (), list(range(100_000)))
    assert "can't store an answer for drafting: The disk is full" in caplog.text
    assert followers(learned, *range(20)) == []
    assert followers(learned, *GREETING[:9]) == [GREETING[9]]
    database.rows("PRAGMA max_page_count = 1000000")
    learned.learn("b", (), FAREWELL)
    assert followers(learned, *FAREWELL[:9]) == [FAREWELL[9]]


def test_a_read_only_folder_affects_speed_and_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    learned = learned_in(tmp_path / "file" / "learned")
    learned.learn("a", (), GREETING)
    assert "can't store an answer for drafting" in caplog.text


# What is forgotten --------------------------------------------------------------------------------


def test_no_byte_of_a_deleted_conversation_remains(tmp_path: Path) -> None:
    learned = learned_in(tmp_path)
    for number in range(30):
        learned.learn(f"other-{number}", (), range(1000 * number, 1000 * number + 300))
    learned.learn("gone", [5, 6], GREETING)
    learned.learn("stays", (), FAREWELL)
    elsewhere = learned_in(tmp_path, key="another")
    elsewhere.learn("gone", (), GREETING)
    elsewhere.close()
    assert packed(GREETING) in bytes_of(tmp_path)
    forget_answers(tmp_path, ["gone"])
    assert packed(GREETING) not in bytes_of(tmp_path)
    assert packed(GREETING[:4]) not in bytes_of(tmp_path)
    assert b"gone" not in bytes_of(tmp_path)
    learned.close()
    assert packed(FAREWELL) in bytes_of(tmp_path)
    forget_answers(tmp_path)
    assert packed(FAREWELL[:4]) not in bytes_of(tmp_path)
    assert b"stays" not in bytes_of(tmp_path)


def test_dropped_answers_leave_no_byte_after_a_deletion(tmp_path: Path) -> None:
    learned = learned_in(tmp_path, max_tokens=400)
    learned.learn("gone", (), GREETING)
    for number in range(20):
        learned.learn(f"c{number}", (), range(1000 * number, 1000 * number + 90))
    forget_answers(tmp_path, ["gone"])
    assert packed(GREETING[:4]) not in bytes_of(tmp_path)


def test_answers_of_unknown_conversations_are_deleted_at_the_next_start(tmp_path: Path) -> None:
    learned = learned_in(tmp_path)
    learned.learn("known", (), FAREWELL)
    learned.learn("deleted meanwhile", (), GREETING)
    learned.close()
    forget_deleted_conversations(tmp_path, lambda: ["known", "never learned"])
    again = learned_in(tmp_path)
    assert followers(again, *FAREWELL[:9]) == [FAREWELL[9]]
    assert followers(again, *GREETING[:9]) == []
    assert packed(GREETING[:4]) not in bytes_of(tmp_path)


def test_a_file_that_cant_be_opened_doesnt_prevent_deletion_in_others(tmp_path: Path) -> None:
    learned_in(tmp_path, key="model").learn("gone", (), GREETING)
    (tmp_path / "a.db").mkdir()
    with pytest.raises(MedusaError):
        forget_answers(tmp_path, ["gone"])
    assert packed(GREETING[:4]) not in b"".join(f.read_bytes() for f in tmp_path.glob("model*"))


# Which model it is --------------------------------------------------------------------------------


def test_a_model_has_one_key_wherever_it_is_stored(tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "m.bin", tmp_path / "other" / "m.bin"
    for path in (one, other):
        path.parent.mkdir()
        path.write_bytes(bytes(100_000))
    pieces = {0: b"a", 1: b"b"}
    key = model_key([one], pieces)
    assert model_key([other], pieces) == key
    assert model_key([one], {0: b"a", 1: b"c"}) != key
    other.write_bytes(b"\x01" * 100_000)
    assert model_key([other], pieces) != key


# The source ---------------------------------------------------------------------------------------


def test_accepted_drafts_count_as_use(load: LoadTarget, tmp_path: Path) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", (), [1, 2, 3, 4])
    learned.learn("b", (), [5, 6, 7, 8])
    source, target = SuffixSource(learned), load("grouped", "float64")
    source.begin([1, 2])
    source.start(2, 12)
    source.candidates(Paths(1, 0, array("i")))
    state = target.runner.extend([1, 2], target.runner.new_cache(4))[-1:]
    source.observe(received(target, (3,), state))
    learned.learn("c", (), GREETING)  # writes down what was used
    with closing(store_of(tmp_path, "model")) as store:
        oldest = store.answers((), VOCABULARY)[0]
        assert oldest.token_ids.tolist() == [5, 6, 7, 8]


def test_the_current_text_precedes_earlier_answers_unless_their_context_is_longer(
    tmp_path: Path,
) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", (), [1, 2, 3, 4, 5])

    def drafted(*text: int) -> list[int]:
        source = SuffixSource(learned)
        source.begin(text)
        source.start(text[-1], 12)
        found = source.candidates(Paths(1, 0, array("i")))
        return [] if found is None else found.token_ids.tolist()

    assert drafted(7, 2, 3) == [4]
    assert drafted(2, 3, 9, 7, 2, 3) == [9], "as long a context in the text"
    assert drafted(2, 3, 9, 7, 1, 2, 3) == [4], "a longer one in an earlier answer"


def test_answers_deleted_while_drafting_arent_counted_as_used(
    load: LoadTarget, tmp_path: Path
) -> None:
    learned = learned_in(tmp_path)
    learned.learn("a", (), [1, 2, 3, 4])
    source = SuffixSource(learned)
    source.begin([1, 2])
    source.start(2, 12)
    assert source.candidates(Paths(1, 0, array("i"))) is not None
    forget_answers(tmp_path)
    learned.refresh()
    source.observe(Observation((3,), torch.zeros(1, 1)))
    source.start(3, 12)
    assert source.candidates(Paths(1, 0, array("i"))) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model."""
    return write_tiny(tmp_path_factory.mktemp("learned") / "model", TIED)


def loaded(folder: Path, datastore_dir: Path) -> Target:
    return load_target(folder, options=LoadOptions("float64", datastore_dir=datastore_dir))


def answer(target: Target, settings: GenerateSettings, updates_datastore: bool) -> GenerationDone:
    """Return one answer to the same question."""
    settings = replace(settings, tree_rows=12)
    request = Generate(
        "talk", "r", user_says("trees"), settings, updates_datastore=updates_datastore
    )
    generation = start_generation(request, target, Session(target), RowPolicy(target))
    *_, last = events_of(generation)
    generation.update_datastore()
    assert isinstance(last, GenerationDone)
    return last


SETTINGS = GenerateSettings(drafter="suffix", max_new_tokens=60)


def test_the_second_answer_is_drafted_from_the_first(folder: Path, tmp_path: Path) -> None:
    target = loaded(folder, tmp_path / "learned")
    first = answer(target, SETTINGS, updates_datastore=False)
    assert not (tmp_path / "learned").exists()
    assert answer(target, SETTINGS, updates_datastore=True).num_steps == first.num_steps
    second = answer(target, SETTINGS, updates_datastore=True)
    assert second.token_ids == first.token_ids
    assert second.num_steps <= first.num_steps / 2
    assert target.learned is not None
    target.learned.close()
    again = answer(loaded(folder, tmp_path / "learned"), SETTINGS, updates_datastore=False)
    assert again.num_steps == second.num_steps
    forget_answers(tmp_path / "learned", ["talk"])
    forgetful = loaded(folder, tmp_path / "learned")
    assert answer(forgetful, SETTINGS, updates_datastore=False).num_steps == first.num_steps


def test_earlier_answers_and_phrases_draft_together(load: LoadTarget) -> None:
    target = load("learned", "float64")
    spec = drafter_registry().get("phrases")
    assert spec.sources == ("phrases", "suffix")
    settings = GenerateSettings(max_new_tokens=60)
    proposed = set()
    for name in ("phrases", "composite"):
        run = decode(target, replace(settings, drafter=name), user_says("one"))
        assert run.token_ids == decode(target, plainly(settings), user_says("one")).token_ids
        assert any("suffix" in s.drafter for step in run.steps for s in step.sources)
        proposed |= {
            n for step in run.steps for s in step.node_sources for n in s.drafter.split("+")
        }
    assert {"phrases", "suffix"} <= proposed
