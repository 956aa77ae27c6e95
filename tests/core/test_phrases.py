"""What a model often says: the table, its file, and trees that are grown with it."""

import json
import random
from array import array
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from medusa_core.drafters.drafter import drafter_registry
from medusa_core.drafters.grown import form_of
from medusa_core.drafters.merge import (
    BY_HEADS,
    BY_LOOKUP,
    BY_PHRASES,
    MOST_DEPTH,
    NO_GUESSES,
    NO_TRUST,
    SHARE_AT_ONCE,
    SHARE_DEEPER,
    Guesses,
    Known,
    merger,
    search,
)
from medusa_core.errors import ModelError
from medusa_core.messages import GenerateSettings, TokenSource
from medusa_core.target import LoadOptions, load_target
from medusa_core.tree.phrase_table import FILE, Phrases, read_phrases, write_phrases
from medusa_core.types import RowBudget
from tests.core.conftest import LoadTarget
from tests.core.drafts import Path_, guesses_of, random_table, table, trust_of
from tests.core.laws import decode, plainly, user_says
from tests.core.tiny import write_tiny

# The table ----------------------------------------------------------------------------------------


def test_the_longest_known_context_counts() -> None:
    phrases = table({(7,): {1: 0.6, 2: 0.2}, (5, 7): {3: 1.0}, (9, 8, 5, 7): {4: 0.8}}, longest=4)
    assert [one.token_id for one in phrases.behind([7])] == [1, 2]
    assert [one.token_id for one in phrases.behind([7, 6, 5])] == [1, 2]
    assert phrases.behind([7, 5, 1]) == [(3, pytest.approx(1.0))]
    assert phrases.behind([7, 5, 8, 9, 2, 2, 2]) == [(4, pytest.approx(0.8, abs=0.002))]
    assert phrases.behind([5]) == phrases.behind([]) == []


def test_all_contexts_of_a_large_table_are_found() -> None:
    rng = random.Random(1)
    said = {(rng.randrange(50_000), rng.randrange(50_000)): {k: 0.5} for k in range(20_000)}
    phrases = table(said, longest=2)
    assert len(phrases) > 19_990  # keys may be alike
    wrong = sum(phrases.behind(reversed(c))[0].token_id not in f for c, f in said.items())
    assert wrong <= 20_000 - len(phrases)
    unknown = sum(bool(phrases.behind([k, 60_000])) for k in range(60_000))
    assert unknown < 5  # by chance one in two hundred thousand is taken for another


def test_a_written_table_is_read_again(tmp_path: Path) -> None:
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


def told(path: Path) -> dict[str, str]:
    phrases = {"format": "medusa-chat phrases 1", "longest": 3, "accuracies": {}}
    return {"phrases": json.dumps(phrases)}


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "no table": lambda path: save_file({"keys": np.zeros(3, np.uint32)}, path),
    "parts missing": lambda path: save_file({"keys": np.zeros(3, np.uint32)}, path, told(path)),
    "too few counts": lambda path: save_file(
        {**load_file(path), "counts": load_file(path)["counts"][:-1]}, path, told(path)
    ),
    "too many followers": lambda path: save_file(
        {**load_file(path), "counts": load_file(path)["counts"] + 1}, path, told(path)
    ),
    "keys in no order": lambda path: save_file(
        {**load_file(path), "keys": load_file(path)["keys"][::-1].copy()}, path, told(path)
    ),
    "nothing said": lambda path: save_file(
        {name: part[:0] for name, part in load_file(path).items()}, path, told(path)
    ),
    "no such format": lambda path: save_file(
        load_file(path), path, {"phrases": told(path)["phrases"].replace(" 1", " 2")}
    ),
    "a context of forty": lambda path: save_file(
        load_file(path), path, {"phrases": told(path)["phrases"].replace(": 3", ": 40")}
    ),
    "wide keys": lambda path: save_file(
        {**load_file(path), "keys": load_file(path)["keys"].astype(np.int64)}, path, told(path)
    ),
    "counts below nothing": lambda path: save_file(
        {**load_file(path), "counts": load_file(path)["counts"].astype(np.int8)}, path, told(path)
    ),
    "chances of another kind": lambda path: save_file(
        {**load_file(path), "chances": load_file(path)["chances"] / 255}, path, told(path)
    ),
    "tokens in rows": lambda path: save_file(
        {**load_file(path), "tokens": load_file(path)["tokens"][:, None]}, path, told(path)
    ),
    "tokens of another model": lambda path: save_file(
        {**load_file(path), "tokens": load_file(path)["tokens"] + np.uint16(400)}, path, told(path)
    ),
    "tokens below nothing": lambda path: save_file(
        {**load_file(path), "tokens": load_file(path)["tokens"].astype(np.int32) - 5},
        path,
        told(path),
    ),
    "no description": lambda path: save_file(load_file(path), path, {"phrases": "{"}),
    "a list": lambda path: save_file(load_file(path), path, {"phrases": "[]"}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_refused_with_what_to_do(damage: str, tmp_path: Path) -> None:
    write_tiny(tmp_path)
    write_phrases(random_table(random.Random(5), 9), tmp_path)
    DAMAGES[damage](tmp_path / FILE)
    with pytest.raises(ModelError, match=r"phrases\.safetensors of .* is damaged") as refused:
        load_target(tmp_path)
    assert "Delete the file" in refused.value.hint


# Growing ------------------------------------------------------------------------------------------


def worths_of(known: Known, phrases: Phrases, num_tokens: int) -> dict[Path_, float]:
    """All paths of up to three tokens that are worth something, by looking everywhere."""
    guesses = known.guesses
    num_heads = len(guesses.token_ids) // guesses.num_ranks
    worths: dict[Path_, float] = {(): 1.0}
    for depth in range(max(num_heads, MOST_DEPTH)):
        own = slice(depth * guesses.num_ranks, (depth + 1) * guesses.num_ranks)
        given = dict(zip(guesses.token_ids[own], guesses.chances[own], strict=True))
        for path in [path for path in worths if len(path) == depth]:
            said = dict(phrases.behind([*reversed(path), *reversed(known.text)]))
            share = (SHARE_DEEPER if depth else SHARE_AT_ONCE) if given else 1.0
            share = share if said else 0.0
            for token in range(num_tokens):
                chance = (1 - share) * given.get(token, 0.0) + share * said.get(token, 0.0)
                if worths[path] * chance > 2e-3:
                    worths[*path, token] = worths[path] * chance
    return worths


@pytest.mark.parametrize("num_heads", [0, 1, 3])
@pytest.mark.parametrize("num_rows", [2, 3, 8, 24])
def test_a_tree_holds_what_heads_and_phrases_make_most_valuable(
    num_heads: int, num_rows: int
) -> None:
    rng = random.Random(10 * num_heads + num_rows)
    for _ in range(4):
        phrases = random_table(rng, 9)
        for _ in range(6):
            guesses = guesses_of(rng, num_heads, 4, 9)
            text = array("i", [rng.randrange(9) for _ in range(rng.randrange(1, 6))])
            known = Known(guesses, text, NO_TRUST)
            merged, same = (
                merger(RowBudget(num_rows), phrases)(known, num_rows),
                search(known, num_rows, phrases),
            )
            assert merged == same
            shape, sources = form_of(merged.form)
            worths = worths_of(known, phrases, 9)
            paths: list[Path_] = [()]
            drafts = zip(shape.parents[1:], merged.token_ids, merged.places, strict=True)
            for parent, token, place in drafts:
                said = phrases.behind([*reversed(paths[parent]), *reversed(text)])
                proposers = sources[len(paths)].proposers
                assert ("phrases" in proposers) == (token in {one.token_id for one in said})
                assert ("medusa" in proposers) == (place >= 0)
                assert place < 0 or guesses.token_ids[place] == token
                paths.append((*paths[parent], token))
            least = min(worths.get(path, 0.0) for path in paths)
            left = [worth for path, worth in worths.items() if path not in paths]
            if least > 2e-3:
                assert not left or least >= max(left) * 0.9999
            for children in shape.children:
                row = [worths.get(paths[child], 0.0) for child in children]
                assert all(left >= right * 0.9999 for left, right in pairwise(row))


@pytest.mark.parametrize("num_rows", [1, 2, 5, 30])
def test_with_all_three_the_compiled_tree_is_the_one_that_is_searched_for(num_rows: int) -> None:
    rng = random.Random(num_rows)
    seen = set()
    for _ in range(20):
        phrases = random_table(rng, 7)
        merge = merger(RowBudget(num_rows), phrases)
        for _ in range(30):
            text = array("i", [rng.randrange(7) for _ in range(rng.randrange(40))])
            known = Known(guesses_of(rng, rng.randrange(4), 3, 7), text, trust_of(rng))
            merged = merge(known, num_rows)
            assert merged == search(known, num_rows, phrases)
            seen.update(source.drafter for source in form_of(merged.form).sources[1:])
    if num_rows == 30:
        everyone = {"medusa", "ngram", "phrases", "medusa+ngram", "medusa+phrases"}
        assert seen == {*everyone, "ngram+phrases", "medusa+ngram+phrases"}


def test_phrases_alone_go_six_tokens_ahead() -> None:
    phrases = table({(1,): {1: 1.0}})
    for merge in (merger(RowBudget(40), phrases), lambda known, rows: search(known, rows, phrases)):
        merged = merge(Known(NO_GUESSES, array("i", [1]), NO_TRUST), 40)
        assert merged.token_ids == [1] * MOST_DEPTH
        marks = memoryview(merged.form).cast("i").tolist()[MOST_DEPTH + 2 :]
        assert marks == [BY_PHRASES] * MOST_DEPTH


def test_marks_say_who_proposed_a_node() -> None:
    phrases = table({(1,): {2: 0.9, 3: 0.1}})
    guesses = Guesses(array("i", [2, 4]), array("f", [0.6, 0.4]), 2)
    text, trust = array("i", [1, 2, 1]), array("f", [0.9] + [0.0] * 23)
    merged = merger(RowBudget(8), phrases)(Known(guesses, text, trust), 4)
    marks = memoryview(merged.form).cast("i").tolist()[5:]
    by_token = dict(zip(merged.token_ids, marks, strict=True))
    assert by_token == {2: BY_HEADS | BY_LOOKUP | BY_PHRASES, 4: BY_HEADS, 3: BY_PHRASES}
    assert form_of(merged.form).sources[1] == TokenSource("medusa+ngram+phrases", 1)


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
