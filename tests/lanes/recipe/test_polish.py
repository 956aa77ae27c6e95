"""The polish: what it asks, what counts as a flaw, what it learns from."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from medusa_core.training.answers import OwnAnswer
from medusa_core.training.documents import ANSWER, EncodedDocument
from recipe import rounds
from recipe.corpus import Document, Segment
from recipe.muon import network_optimizers
from recipe.network import PebbleNetwork, initialise
from recipe.packing import batch_at, pack_whole
from recipe.polish import PolishRows, PolishRun, _chat_loss
from recipe.prepare import first_prompts, load_tokenizer
from recipe.recipe import Source
from recipe.run import RunOptions, train_pebble
from recipe.stages import weighted_loss
from recipe.tokenizer import train_tokenizer
from tests.lanes.recipe.toy_recipe import TINY, tiny_recipe, write_rows


def test_a_round_takes_the_set_number_of_prompts_of_each_source(tmp_path: Path) -> None:
    source = Source("rows", 1.0, 1.0, 1.0, num_asked=3)
    recipe = replace(tiny_recipe(), sources=(source, Source("others", 1.0, 1.0)))
    tokenizer = train_tokenizer(["hens and foxes 0123456789"] * 20, 300)
    texts = ["hens", "hens", *(f"foxes {n}" for n in range(60)), "hens and foxes " * 40]
    documents = [
        Document(name, (Segment("user", text), Segment("assistant", "foxes")))
        for name in ("rows", "others")
        for text in texts[::-1]
    ]
    prompts = first_prompts(tokenizer, documents, recipe)
    assert len(prompts["rows"]) == 36
    assert len({tuple(prompt) for prompt in prompts["rows"]}) == 36
    assert max(map(len, prompts["rows"])) <= recipe.tune.row_length // 2
    assert not prompts["others"]
    (tmp_path / "prompts.json").write_text(json.dumps(prompts))
    requested = [rounds.prompts_asked(tmp_path, recipe, seed) for seed in (1, 1, 2)]
    assert [len(found) for found in requested] == [3, 3, 3]
    assert requested[0] == requested[1] != requested[2]


def test_without_penalized_ends_unfinished_answers_are_no_flaws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe()
    rows = write_rows(tmp_path / "rows")
    assert not train_pebble(recipe, RunOptions(rows, tmp_path, slice_s=0.0))
    stop = load_tokenizer(tmp_path / "run").get_vocab()["."]
    endless = OwnAnswer((0, 3, 4), tuple(x for n in range(20, 40) for x in (n, n + 1, stop)), False)
    monkeypatch.setattr(rounds, "generate_answers", lambda *_: [endless])
    found: list[int] = []
    monkeypatch.setattr(rounds, "polish", lambda *given: found.append(len(given[3])))
    network = PebbleNetwork(TINY)
    for numbers in recipe.polishes:
        optimizers = network_optimizers(network, numbers.schedule)
        rounds.polish_once(network, optimizers, numbers, recipe, tmp_path / "run")
    assert [bool(numbers.end_weight) for numbers in recipe.polishes] == [False, True]
    assert found == [0, 0, 1, 1]


@pytest.mark.parametrize("num_tune_rows", [0, 3])
def test_a_polish_weighs_rows_of_both_kinds_by_their_number(num_tune_rows: int) -> None:
    numbers = replace(tiny_recipe().polishes[0], num_tune_rows=num_tune_rows)
    run = PolishRun(numbers, 0, 5, equals_id=1, end_id=1, bf16=False)
    generator = np.random.default_rng(0)
    packs = [
        pack_whole(
            [
                EncodedDocument(
                    generator.integers(6, 500, 40).astype(np.uint16), np.full(40, ANSWER, np.uint8)
                )
                for _ in range(12)
            ],
            48,
        )
        for _ in range(2)
    ]
    network = PebbleNetwork(TINY)
    initialise(network, 0)
    mean = _chat_loss(network, PolishRows(packs[0], packs[1], packs[1]), 0, run)
    found = network.model.embed_tokens.weight.grad
    assert found is not None
    found = found.clone()
    network.zero_grad()
    expected = 0.0
    total = num_tune_rows + numbers.schedule.num_rows
    for packed, count in zip(packs, (num_tune_rows, numbers.schedule.num_rows), strict=True):
        if count:
            loss = weighted_loss(network, batch_at(packed, 0, count, 0.0, 5), bf16=False) * (
                count / total
            )
            loss.backward()  # type: ignore[no-untyped-call]
            expected += float(loss.detach())
    assert mean == pytest.approx(expected, rel=1e-4)
    assert found.abs().max() > 0
    torch.testing.assert_close(found, network.model.embed_tokens.weight.grad)
