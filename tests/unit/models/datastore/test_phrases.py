"""What a model often says: the table, its file, and trees that are grown with it."""

import json
import random
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from medusa_core.errors import ModelError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, TokenSource
from medusa_core.models.datastore.phrases import (
    FILE,
    read_phrases,
    write_phrases,
)
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.phrase_source import (
    PhrasesSource,
    _Compiled,
    _InPython,
)
from medusa_core.system.native.binding import native_library
from tests.support.engine.drafts import random_table, table
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import decode, plainly, user_says
from tests.support.models.tiny import write_tiny

# The table ----------------------------------------------------------------------------------------


def test_the_longest_known_context_is_used() -> None:
    phrases = table({(7,): {1: 0.6, 2: 0.2}, (5, 7): {3: 1.0}, (9, 8, 5, 7): {4: 0.8}}, longest=4)
    assert [one.token_id for one in phrases.followers([7])] == [1, 2]
    assert [one.token_id for one in phrases.followers([7, 6, 5])] == [1, 2]
    assert phrases.followers([7, 5, 1]) == [(3, pytest.approx(1.0))]
    assert phrases.followers([7, 5, 8, 9, 2, 2, 2]) == [(4, pytest.approx(0.8, abs=0.002))]
    assert phrases.followers([5]) == phrases.followers([]) == []


def test_all_contexts_of_a_large_table_are_found() -> None:
    rng = random.Random(1)
    output = {(rng.randrange(50_000), rng.randrange(50_000)): {k: 0.5} for k in range(20_000)}
    phrases = table(output, longest=2)
    assert len(phrases) > 19_990  # keys may be alike
    wrong = sum(phrases.followers(reversed(c))[0].token_id not in f for c, f in output.items())
    assert wrong <= 20_000 - len(phrases)
    unknown = sum(bool(phrases.followers([k, 60_000])) for k in range(60_000))
    assert unknown < 5  # by chance one in two hundred thousand is taken for another


def test_a_written_phrase_table_is_read_again(tmp_path: Path) -> None:
    for num_tokens in (300, 128_000):
        contexts = random.Random(4).sample(range(num_tokens), 90)
        phrases = table({(one,): {num_tokens - 1: 0.5, one: 0.3} for one in contexts})
        write_phrases(phrases, tmp_path)
        same = read_phrases(tmp_path, num_tokens)
        assert same is not None
        assert (same.longest, same.accuracies) == (phrases.longest, phrases.accuracies)
        for name in ("keys", "starts", "tokens", "chances", "buckets"):
            assert (getattr(same, name) == getattr(phrases, name)).all()
    (tmp_path / FILE).unlink()
    assert read_phrases(tmp_path, 300) is None


def reported(path: Path) -> dict[str, str]:
    phrases = {"format": "medusa-chat phrases 1", "longest": 3, "accuracies": {}}
    return {"phrases": json.dumps(phrases)}


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "no table": lambda path: save_file({"keys": np.zeros(3, np.uint32)}, path),
    "parts missing": lambda path: save_file({"keys": np.zeros(3, np.uint32)}, path, reported(path)),
    "too few counts": lambda path: save_file(
        {**load_file(path), "counts": load_file(path)["counts"][:-1]}, path, reported(path)
    ),
    "too many followers": lambda path: save_file(
        {**load_file(path), "counts": load_file(path)["counts"] + 1}, path, reported(path)
    ),
    "keys in no order": lambda path: save_file(
        {**load_file(path), "keys": load_file(path)["keys"][::-1].copy()}, path, reported(path)
    ),
    "nothing said": lambda path: save_file(
        {name: part[:0] for name, part in load_file(path).items()}, path, reported(path)
    ),
    "no such format": lambda path: save_file(
        load_file(path), path, {"phrases": reported(path)["phrases"].replace(" 1", " 2")}
    ),
    "a context of forty": lambda path: save_file(
        load_file(path), path, {"phrases": reported(path)["phrases"].replace(": 3", ": 40")}
    ),
    "wide keys": lambda path: save_file(
        {**load_file(path), "keys": load_file(path)["keys"].astype(np.int64)}, path, reported(path)
    ),
    "counts below nothing": lambda path: save_file(
        {**load_file(path), "counts": load_file(path)["counts"].astype(np.int8)},
        path,
        reported(path),
    ),
    "chances of another kind": lambda path: save_file(
        {**load_file(path), "chances": load_file(path)["chances"] / 255}, path, reported(path)
    ),
    "tokens in rows": lambda path: save_file(
        {**load_file(path), "tokens": load_file(path)["tokens"][:, None]}, path, reported(path)
    ),
    "tokens of another model": lambda path: save_file(
        {**load_file(path), "tokens": load_file(path)["tokens"] + np.uint16(400)},
        path,
        reported(path),
    ),
    "tokens below nothing": lambda path: save_file(
        {**load_file(path), "tokens": load_file(path)["tokens"].astype(np.int32) - 5},
        path,
        reported(path),
    ),
    "no description": lambda path: save_file(load_file(path), path, {"phrases": "{"}),
    "a list": lambda path: save_file(load_file(path), path, {"phrases": "[]"}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_phrase_table_is_refused_with_a_remedy(damage: str, tmp_path: Path) -> None:
    write_tiny(tmp_path)
    write_phrases(random_table(random.Random(5), 9), tmp_path)
    DAMAGES[damage](tmp_path / FILE)
    with pytest.raises(ModelError, match=r"phrases\.safetensors of .* is damaged") as refused:
        load_target(tmp_path)
    assert "Delete the file" in refused.value.hint


# The source ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 3])
def test_compiled_and_python_lookups_agree(level: int) -> None:
    rng = random.Random(level)
    num_said = 0
    for _ in range(20):
        phrases = random_table(rng, 7)
        compiled = PhrasesSource(phrases)._follow
        for _ in range(10):
            text = array("i", [rng.randrange(7) for _ in range(rng.randrange(9))])
            flat = array("i", [rng.randrange(7) for _ in range(5 * level)])
            paths = Paths(5 if level else 1, level, flat)
            same = _InPython(phrases)(text, paths)
            found = compiled(text, paths)
            size = len(same.token_ids)
            num_said += size
            assert found.counts is not None
            assert same.counts == found.counts[: paths.num]
            assert same.token_ids == found.token_ids[:size]
            assert same.chances == found.chances[:size]
    assert num_said > 300


def test_contexts_without_room_are_omitted() -> None:
    phrases = table({(1,): dict.fromkeys(range(200), 0.004)})
    many = Paths(100, 1, array("i", [1] * 100))
    library = native_library()
    if library is None:
        pytest.skip("nothing is compiled for this machine")
    found = _Compiled(library, phrases)(array("i"), many)
    assert found.counts is not None
    assert sum(found.counts[:100]) == 4000
    assert found.counts[19:22] == array("i", [200, 0, 0])


def test_phrases_alone_draft_six_tokens(tiny: Target) -> None:
    target = replace(tiny, phrases=table({(1,): {1: 1.0}}))
    drafter = drafter_registry().get("phrases").build(target, RowBudget(40))
    drafter.begin([1])
    proposal = drafter.propose(1, 40)
    assert proposal.tree.token_ids == (1,) * 7
    assert proposal.sources[1:] == tuple(TokenSource("phrases", depth) for depth in range(1, 7))


# Drafting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", ["phrases", "composite"])
def test_phrases_save_steps_and_change_no_token(drafter: str, load: LoadTarget) -> None:
    target = load("tied", "float64")
    without = replace(target, phrases=None)
    settings = GenerateSettings(drafter=drafter, max_new_tokens=60)
    plain = decode(target, plainly(settings), user_says("two"))
    drafted = decode(target, settings, user_says("two"))
    assert drafted.token_ids == plain.token_ids
    accepted = {name for step in drafted.steps for s in step.sources for name in s.proposers}
    assert "phrases" in accepted
    assert drafted.done.num_steps < plain.done.num_steps
    if drafter == "composite":
        assert drafted.done.num_steps < decode(without, settings, user_says("two")).done.num_steps


def test_without_a_table_the_drafter_is_not_offered(load: LoadTarget) -> None:
    target, spec = load("grouped", "float64"), drafter_registry().get("phrases")
    assert spec.serves(target)
    assert not spec.serves(replace(target, phrases=None))


def test_a_model_with_a_table_offers_the_drafter(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    options = LoadOptions("float64")
    assert load_target(tmp_path, options=options).phrases is None
    write_phrases(random_table(random.Random(2), 9), tmp_path)
    assert load_target(tmp_path, options=options).phrases is not None
