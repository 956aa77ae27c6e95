"""Heads: what they learn from, how they are judged, and the trees that come of it."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from medusa_core.heads.weights import HeadSet, HeadWeights
from medusa_core.messages import GenerateSettings
from medusa_core.rules.sampling import Sampler
from medusa_core.training.accuracy import (
    best_trees,
    head_accuracies,
    path_counts,
    path_length,
    replayed_length,
    true_ranks,
)
from medusa_core.training.heads import HeadData, MedusaHeads, _later_tokens, _rate_factor, collect
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.packing import document_mask
from medusa_core.training.pebble import frequent_tokens
from medusa_core.training.recipe import RECIPES, HeadRecipe
from medusa_core.training.reliability import reliabilities, reliability
from medusa_core.training.self_answers import Answer, GenerationOptions, generate_answers
from tests.core.toy_recipe import NARROW

HEADS: HeadRecipe = RECIPES["small"].heads


def test_head_k_learns_the_token_k_plus_two_places_on(network: PebbleNetwork) -> None:
    answer = Answer((0, 3, 9, 1, 4), (20, 21, 22, 23, 24), finished=False)
    data = collect(network, [answer], HEADS.num_heads)
    assert data.roots.tolist() == [20, 21, 22, 23, 24]
    # row 0 is the last prompt position: 20 is the target's own, 21 is head 0's
    assert data.targets.tolist() == [
        [21, 22, 23, 24],
        [22, 23, 24, -1],
        [23, 24, -1, -1],
        [24, -1, -1, -1],
        [-1, -1, -1, -1],
    ]
    ids = torch.tensor([answer.prompt_ids + answer.answer_ids])
    hidden = network.hidden_states(ids, document_mask(torch.zeros_like(ids)))[0, 4:9]
    assert (data.hidden.float() - hidden).abs().max() < 0.1


def positions(hidden: torch.Tensor, targets: torch.Tensor, roots: torch.Tensor) -> HeadData:
    """Positions of greedy answers."""
    nothing = torch.zeros(len(hidden), dtype=torch.int64)
    return HeadData(hidden, roots, targets, nothing, nothing)


class ListedHeads(MedusaHeads):
    """Heads whose ranking is given: head k ranks `ranking[k]` first at every position."""

    def __init__(self, rankings: list[list[int]], vocab_size: int) -> None:
        super().__init__(torch.zeros(vocab_size, 4), HEADS)
        self.rankings = rankings

    def logits(self, head: int, hidden: torch.Tensor, roots: torch.Tensor) -> torch.Tensor:
        scores = torch.zeros(len(hidden), 50)
        for place, token in enumerate(self.rankings[head]):
            scores[:, token] = 10.0 - place
        return scores


def test_the_heads_rate_rises_over_a_tenth_and_falls_to_nothing() -> None:
    rates = [_rate_factor(step, 100) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
    assert rates[10] == 1
    assert rates[55] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_accuracies_count_every_rank_and_skip_positions_past_the_end() -> None:
    heads = ListedHeads([[5, 6], [7, 5], [9, 8], [8, 9]], 50)
    targets = torch.tensor([[5, 5, 9, 9], [6, 7, 8, -1], [5, 7, -1, -1], [1, -1, -1, -1]])
    ranks = true_ranks(heads, positions(torch.zeros(4, 4), targets, torch.zeros(4)), 2)
    assert ranks.tolist() == [[0, 1, 0, 1], [1, 0, 1, -1], [0, 0, -1, -1], [2, -1, -1, -1]]
    known = torch.tensor([1, 5, 8, 9])  # a head without 7 holds 5 first
    reduced = true_ranks(heads, positions(torch.zeros(4, 4), targets, torch.zeros(4)), 2, known)
    assert reduced[:3, 1].tolist() == [0, 2, 2]
    expected = [[0.5, 0.25], [2 / 3, 1 / 3], [0.5, 0.5], [0.0, 1.0]]
    assert head_accuracies(ranks, 2) == [pytest.approx(row) for row in expected]


def test_replayed_length_counts_accepted_and_bonus_tokens_but_not_the_first() -> None:
    heads = ListedHeads([[5], [6], [7], [8]], 50)
    answer = Answer((0, 4), (4, 5, 6, 9, 5, 2, 3), finished=False)
    data = positions(torch.zeros(7, 4), _later_tokens(answer, 4), torch.tensor(answer.answer_ids))
    ranks = true_ranks(heads, data, 1)
    # from 4: 5 6 right, bonus 9; from 9: 5 right, bonus 2; from 2: bonus 3
    assert replayed_length([ranks], [(0,), (0, 0), (0, 0, 0)]) == pytest.approx(6 / 3)
    assert replayed_length([ranks], []) == 1.0


class TargetAsHead(MedusaHeads):
    """A head that scores the next place as the target will: what chance adds is all it lacks."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__(
            torch.zeros(NARROW.vocab_size, NARROW.hidden_size), replace(HEADS, num_heads=1)
        )
        self.scores = scores

    def logits(self, head: int, hidden: torch.Tensor, roots: torch.Tensor) -> torch.Tensor:
        return self.scores


def test_drawn_answers_are_what_the_engine_draws_and_heads_that_know_the_noise_guess_them(
    network: PebbleNetwork,
) -> None:
    prompts = [[0, 3, 9, 1, 4], [0, 3, 7, 8, 2, 1, 4], [0, 3, 17, 1, 4]]
    options = GenerationOptions(24, -1, temperature=1.3, seed=70, bf16=False)
    answers = generate_answers(network, prompts, options)
    assert [answer.seed for answer in answers] == [70, 71, 72]
    for answer in answers:
        sampler = Sampler(GenerateSettings(rule="sample", temperature=1.3, seed=answer.seed))
        ids = torch.tensor([answer.prompt_ids + answer.answer_ids])
        states = network.hidden_states(ids, document_mask(torch.zeros_like(ids)))[0]
        first = len(answer.prompt_ids)
        scores = network.logits(states[first - 1 : -1]).detach()
        drawn = [sampler.draw(row, first + place) for place, row in enumerate(scores)]
        assert tuple(drawn) == answer.answer_ids
        data = collect(network, [answer], 1)
        assert data.places.tolist() == list(range(first, first + 24))
        head = TargetAsHead(torch.cat([scores[1:], scores[:1]]))
        knowing = true_ranks(head, data, 5, temperature=1.3)
        assert knowing.flatten().tolist() == [0] * 23 + [-1]
        assert true_ranks(head, data, 5).flatten().tolist().count(0) < 20


def test_the_best_tree_holds_the_most_frequent_paths_and_every_parent() -> None:
    ranks = torch.tensor([[0, 0, 0]] * 5 + [[1, 0, 2]] * 4 + [[0, 1, 2]] * 2 + [[2, 0, -1]])
    counts = path_counts(ranks, 2)
    trees = best_trees(counts, (4, 8))
    assert trees[4] == [(0,), (0, 0), (0, 0, 0)]
    assert trees[8] == [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]
    assert path_length(counts, trees[4], len(ranks)) == pytest.approx(1 + (7 + 5 + 5) / 12)


def test_heads_that_know_how_sure_they_may_be_have_no_error() -> None:
    sure = torch.tensor([0.75] * 8 + [0.25] * 4)
    came = torch.tensor([True] * 6 + [False] * 2 + [True] + [False] * 3)
    found = reliability(sure, came)
    assert found.error == pytest.approx(0)
    assert found.bins[7] == (0.75, 0.75, 8)
    assert found.bins[2] == (0.25, 0.25, 4)
    assert reliability(torch.ones(4), torch.zeros(4, dtype=torch.bool)).error == 1
    # too sure of the wrong ones, too modest about the right: that doesn't cancel out
    crossed = reliability(torch.tensor([0.9, 0.1]), torch.tensor([False, True]))
    assert crossed.error == pytest.approx(0.9)


def test_reliabilities_read_the_heads_own_guesses(network: PebbleNetwork) -> None:
    hidden = torch.randn(
        40, NARROW.hidden_size, generator=torch.Generator().manual_seed(2)
    ).bfloat16()
    matrix = network.model.embed_tokens.weight
    bare = HeadSet((HeadWeights((), None), HeadWeights((), matrix.flip(0))))
    best = F.linear(hidden.float(), matrix).argmax(-1)
    targets = torch.stack((best, best), dim=1)
    targets[:10] = -1
    first, second = reliabilities(bare, matrix, positions(hidden, targets, best))
    assert (first.accuracy, second.accuracy) == (1, 0)
    assert sum(count for _, _, count in first.bins) == 30


@pytest.mark.parametrize("reads_root", [False, True])
def test_published_heads_are_those_that_were_trained(
    reads_root: bool, network: PebbleNetwork
) -> None:
    recipe = replace(HEADS, reads_root=reads_root)
    matrix = network.model.embed_tokens.weight.detach()
    trained = MedusaHeads(matrix, recipe, root_scale=3.0)
    generator = torch.Generator().manual_seed(4)
    for parameter in trained.blocks.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.1
    hidden = torch.randn(60, NARROW.hidden_size, generator=generator)
    roots = torch.randint(0, NARROW.vocab_size, (60,), generator=generator)
    token_ids = torch.arange(0, NARROW.vocab_size, 3)
    with torch.no_grad():
        best = [trained.logits(h, hidden, roots)[:, token_ids].argmax(-1) for h in range(4)]
    targets = torch.stack([token_ids[column] for column in best], dim=1)
    data = positions(hidden, targets, roots)
    published = trained.weights(token_ids)
    assert published.reads_root == reads_root
    assert published.num_columns == len(token_ids)
    found = reliabilities(published, matrix, data)
    assert min(head.accuracy for head in found) > 0.9  # bfloat16 turns a few close ones round
    if reads_root:
        others = positions(hidden, targets, roots.flip(0))
        assert max(head.accuracy for head in reliabilities(published, matrix, others)) < 0.9


def test_heads_draft_from_the_tokens_that_come_most_often() -> None:
    answers = [Answer((9, 9, 9), (5, 3, 5), True), Answer((9,), (3, 5, 7, 1, 1), False)]
    assert frequent_tokens(answers, 3).tolist() == [1, 3, 5]
    assert frequent_tokens(answers, 100).tolist() == [1, 3, 5, 7]
