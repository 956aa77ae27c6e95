"""A step copies at most twice to the card and twice from it, whatever is asked for."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import Generate, GenerateSettings, LoadOptions, StepDone, WeightFormats
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.lanes.card.conftest import Folders
from tests.support.card.card import fake_cuda
from tests.support.card.tensor import CardMode
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import decode, plainly, take_step, user_says
from tests.support.models.tiny import ACCURACIES, TinySpec, random_heads, write_heads, write_tiny

MOST = 2
MESSAGES = user_says("Tell me a story about a lighthouse.")
SETTINGS = {
    **{
        rule: GenerateSettings(drafter="medusa", rule=rule, seed=4)
        for rule in rule_registry().names
    },
    "filtered": GenerateSettings(
        drafter="medusa", rule="sample", seed=4, top_p=0.9, top_k=40, min_p=0.01
    ),
    "shaped": GenerateSettings(
        drafter="medusa", rule="greedy", repetition_penalty=1.2, logit_bias=((9, 1.5),)
    ),
}


def copies(
    card: CardMode,
    target: Target,
    settings: GenerateSettings,
    records: bool,
    drafter: DrafterSpec | None = None,
) -> list[tuple[int, int]]:
    """Copies to the card and from it in each decoding step."""
    settings = replace(settings, max_new_tokens=16, tree_rows=12)
    request = Generate("s", "r", MESSAGES, settings, records=records)
    generation = start_generation(request, target, Session(target), RowPolicy(target), drafter)
    counted = []
    while not generation.is_done:
        card.journal.clear()
        events = take_step(generation)
        if any(isinstance(event, StepDone) and event.step for event in events):
            counted.append((len(card.journal.uploads), len(card.journal.downloads)))
    return counted


@pytest.mark.parametrize(
    ("name", "graphs", "records"),
    by_turns(list(SETTINGS), list(product((False, True), (False, True)))),
)
def test_a_step_copies_at_most_twice_in_each_direction(
    name: str, graphs: bool, records: bool, folders: Folders
) -> None:
    with fake_cuda(graphs_pay=graphs) as card:
        target = load_target(*folders["grouped"], LoadOptions("", "cuda"))
        counted = copies(card, target, SETTINGS[name], records)
    assert len(counted) > 3
    assert max(up for up, _ in counted) <= MOST
    assert max(down for _, down in counted) <= MOST


@pytest.mark.parametrize(("name", "records"), by_turns(list(SETTINGS), [False, True]))
def test_long_paths_need_no_further_copies(name: str, records: bool, folders: Folders) -> None:
    settings = SETTINGS[name]
    with fake_cuda() as card:
        target = load_target(*folders["grouped"], LoadOptions("float64", "cuda"))
        plain = decode(target, plainly(replace(settings, max_new_tokens=24)), MESSAGES)
        oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
        counted = copies(card, target, settings, records, oracle)
    assert len(counted) < 12  # of 16 tokens
    assert max(up for up, _ in counted) <= 1
    assert max(down for _, down in counted) <= 1  # heads would bring theirs by another


@pytest.mark.parametrize("name", ["greedy", "sample"])
def test_token_embeddings_in_ram_are_copied_with_the_rows(name: str, folders: Folders) -> None:
    formats = WeightFormats(embedding_in_ram=True)
    with fake_cuda() as card:
        # Its heads read the root's vector, too.
        target = load_target(*folders["pebble"], LoadOptions("", "cuda", formats))
        counted = copies(card, target, SETTINGS[name], True)
    assert max(up for up, _ in counted) <= MOST
    assert max(down for _, down in counted) <= MOST


def test_heads_with_a_large_vocabulary_return_candidates_with_their_logits(tmp_path: Path) -> None:
    wide = TinySpec(vocab_size=5000, seed=8)
    model = write_tiny(tmp_path / "wide", wide)
    heads = write_heads(tmp_path / "wide-heads", random_heads(wide), ACCURACIES)
    with fake_cuda() as card:
        target = load_target(model, heads, LoadOptions("", "cuda"))
        # Scores of random weights are flat: without a filter, noise could raise any token.
        settings = replace(SETTINGS["sample"], top_k=40)
        counted = copies(card, target, settings, False)
    assert max(down for _, down in counted) <= MOST
