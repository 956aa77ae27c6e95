"""Heads of any target: what they learn from, how they are judged, the trees that come of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from medusa_core.engine.session import Session
from medusa_core.errors import TrainingError
from medusa_core.heads.reader import read_head_set
from medusa_core.heads.writer import write_heads
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, LoadOptions, Role, WeightFormats
from medusa_core.runtime.tree.tables import read_tree_table
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training.accuracy import head_accuracies, true_ranks
from medusa_core.training.answers import own_answers, questions_at
from medusa_core.training.documents import ANSWER, PROMPT, EncodedDocument, answered
from medusa_core.training.heads import (
    HeadsModule,
    MedusaSizes,
    heads_loss,
    projection_matrix,
)
from medusa_core.training.loop import LoopOptions, LoopResult, train
from medusa_core.training.optimizer import Optimizers, adam_w, cosine_rate
from medusa_core.training.order import sample_order
from medusa_core.training.positions import Positions, collect
from medusa_core.training.trees import (
    TreesRecipe,
    best_trees,
    path_counts,
    path_length,
    write_trees,
)
from tests.support.models.tiny import TinySpec, write_tiny

SPEC = TinySpec(model_type="qwen3", seed=9)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    folder = write_tiny(tmp_path_factory.mktemp("target"), SPEC)
    return load_target(folder, options=LoadOptions("float32"))


def test_head_k_learns_the_token_at_distance_k_plus_two(target: Target) -> None:
    document = answered((0, 3, 9, 1, 4), (20, 21, 22, 23, 24), seed=6)
    data = collect(target, [document], 4)
    assert data.roots.tolist() == [20, 21, 22, 23, 24]
    # row 0 is the last prompt position: 20 is the target's own, 21 is head 0's
    assert data.targets.tolist() == [
        [21, 22, 23, 24],
        [22, 23, 24, -1],
        [23, 24, -1, -1],
        [24, -1, -1, -1],
        [-1, -1, -1, -1],
    ]
    assert data.places.tolist() == [5, 6, 7, 8, 9]
    assert set(data.seeds.tolist()) == {6}
    hidden = target.runner.extend(document.ids[:-1].tolist(), target.runner.new_cache(16))[4:]
    assert (data.hidden.float() - hidden).abs().max() < 0.02


def test_text_of_others_between_two_answers_is_not_learned(target: Target) -> None:
    kinds = np.array([PROMPT, ANSWER, ANSWER, PROMPT, ANSWER], dtype=np.uint8)
    document = EncodedDocument(np.array([3, 20, 21, 5, 22], dtype=np.uint32), kinds)
    data = collect(target, [document], 2)
    assert data.roots.tolist() == [20, 21, 22]
    assert data.targets.tolist() == [[21, -1], [-1, -1], [-1, -1]]
    with pytest.raises(TrainingError, match="no answer"):
        collect(target, [answered((1, 2, 3), ())], 2)


def test_states_of_a_document_equal_those_of_it_alone(target: Target) -> None:
    rng = np.random.default_rng(0)
    documents = [
        answered(rng.integers(5, 300, 20).tolist(), rng.integers(5, 300, size).tolist())
        for size in (30, 8, 14, 290)  # the last one longer than a chunk
    ]
    apart = [collect(target, [document], 2).hidden for document in documents]
    assert torch.equal(collect(target, documents, 2).hidden, torch.cat(apart))


def test_a_document_longer_than_the_context_is_truncated(target: Target) -> None:
    longest = target.config.context_tokens
    data = collect(target, [answered((3, 4), [7] * (longest + 30))], 2)
    assert len(data.roots) == longest - 2
    assert data.targets[-1].tolist() == [-1, -1]


@pytest.mark.parametrize("name", ["fp32", "bf16", "int8", "q4"])
def test_the_projection_in_any_format_is_recovered_by_unit_vectors(
    name: str, tmp_path: Path
) -> None:
    folder = write_tiny(tmp_path, replace(SPEC, hidden_size=64))
    quantized = load_target(folder, options=LoadOptions(formats=WeightFormats(name, lm_head=name)))
    matrix = projection_matrix(quantized)
    hidden = torch.randn(5, 64).to(quantized.runner.hidden_dtype)
    expected = quantized.runner.logits(hidden).float()
    found = hidden.float() @ matrix.float().T
    assert (found - expected).abs().max() < 0.03 * expected.abs().max()


def own_positions(target: Target, num_heads: int) -> Positions:
    requested = [[ChatMessage(Role.USER, f"number {n}")] for n in range(6)]
    answers = list(own_answers(target, questions_at(requested), 40, RowPolicy(target)))
    assert all(answer.answer_ids for answer in answers)
    return collect(target, [answer.document for answer in answers], num_heads)


def test_generating_own_answers_frees_its_cache_even_if_interrupted(
    target: Target, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Session] = []  # as a logged error holds what its traceback refers to

    def make(of: Target, has_one_answer: bool) -> Session:
        held.append(Session(of, has_one_answer))
        return held[-1]

    monkeypatch.setattr("medusa_core.engine.batch_generate.Session", make)
    free = target.caches.free_rows
    too_long = [ChatMessage(Role.USER, "number " * 2 * target.config.context_tokens)]
    short = [ChatMessage(Role.USER, "number 1")]
    long = [ChatMessage(Role.USER, "number " * 40)]  # still being read when the short one ends
    requested = [too_long, short, long]
    with caplog.at_level("INFO"):
        answers = own_answers(target, questions_at(requested), 4, RowPolicy(target))
        next(answers)
        assert target.caches.free_rows < free
        answers.close()
    assert target.caches.free_rows == free
    assert "not asked" in caplog.text


FORMS = (MedusaSizes(2), MedusaSizes(2, own_lm_head=True), MedusaSizes(2, 2, reads_root=True))


@pytest.mark.parametrize("form", FORMS, ids=["shared", "own", "rooted"])
def test_heads_of_any_target_learn_its_answers(
    form: MedusaSizes, target: Target, tmp_path: Path
) -> None:
    data = own_positions(target, form.num_heads)
    heads = new_heads(target, form)
    loss, ranks = loss_of(heads, data), true_ranks(heads, data, 4)
    result = learn(heads, data, 150, tmp_path / "heads.pt")
    assert result.finished
    assert loss_of(heads, data) < 0.6 * loss
    before, ranks = ranks, true_ranks(heads, data, 4)
    assert head_accuracies(ranks, 4)[0][0] > 3 * head_accuracies(before, 4)[0][0]
    name = form.format_name(has_all_tokens=True)
    write_heads(heads.weights(), name, tmp_path, target.name)
    write_trees(tmp_path, {0.0: ranks, 0.7: ranks}, TreesRecipe(4, (4, 8), 8))
    assert read_head_set(tmp_path, None)[1].name == name
    table = read_tree_table(tmp_path, form.num_heads)
    assert (set(table.measured), table.default_rows) == ({4, 8}, 8)
    assert table.at(0.5).head_accuracies == table.head_accuracies


def new_heads(target: Target, form: MedusaSizes) -> HeadsModule:
    return HeadsModule(
        form, projection_matrix(target), target.shared_weights.embedding.matrix(), root_scale=8.0
    )


def loss_of(heads: HeadsModule, data: Positions) -> float:
    return float(heads_loss(heads, data).detach())


def learn(
    heads: HeadsModule,
    data: Positions,
    num_steps: int,
    checkpoint: Path,
    slice_s: float | None = None,
) -> LoopResult:
    optimizers = Optimizers([adam_w(heads.parameters(), 0.01)], cosine_rate(num_steps))

    def loss_at(step: int) -> torch.Tensor:
        return heads_loss(heads, data.batch(step, 32, 5))

    return train(heads, optimizers, loss_at, LoopOptions(checkpoint, num_steps, 32, slice_s))


def test_states_may_be_computed_step_by_step(target: Target, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    documents = [answered(rng.integers(5, 40, 6).tolist(), [7, 8, 9] * 6) for _ in range(12)]
    heads = new_heads(target, MedusaSizes(2))
    losses: list[float] = []

    def loss_at(step: int) -> torch.Tensor:
        chosen = [documents[place] for place in sample_order(step, len(documents), 4, seed=1)]
        loss = heads_loss(heads, collect(target, chosen, 2))
        losses.append(float(loss.detach()))
        return loss

    optimizers = Optimizers([adam_w(heads.parameters(), 0.02)], cosine_rate(40))
    train(heads, optimizers, loss_at, LoopOptions(tmp_path / "heads.pt", 40, 4 * 24))
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize(
    ("form", "has_all_tokens", "name"),
    [
        (MedusaSizes(2, 2, reads_root=True), False, "rooted"),
        (MedusaSizes(2, 2), False, "vllm"),
        (MedusaSizes(2, 2), True, "v2"),
        (MedusaSizes(2, 2, own_lm_head=True), False, "vllm"),
        (MedusaSizes(2, 2, own_lm_head=True), True, "v0.1"),
    ],
)
def test_heads_are_written_in_a_format_that_describes_them(
    form: MedusaSizes, has_all_tokens: bool, name: str, tmp_path: Path
) -> None:
    assert form.format_name(has_all_tokens) == name
    matrix = torch.randn(50, 8)
    token_ids = None if has_all_tokens else torch.arange(0, 50, 2)
    write_heads(HeadsModule(form, matrix, matrix).weights(token_ids), name, tmp_path, "toy")
    assert read_head_set(tmp_path, None)[1].name == name


def test_heads_trained_in_slices_equal_those_trained_at_once(
    target: Target, tmp_path: Path
) -> None:
    data = own_positions(target, 2)
    form = MedusaSizes(2, own_lm_head=True)
    whole = new_heads(target, form)
    learn(whole, data, 4, tmp_path / "whole.pt")
    for step in (1, 2, 3, 4):
        sliced = new_heads(target, form)
        result = learn(sliced, data, 4, tmp_path / "sliced.pt", slice_s=0.0)
        assert (result.step, result.finished) == (step, step == 4)
    for one, other in zip(whole.parameters(), sliced.parameters(), strict=True):
        assert torch.equal(one, other)


def test_later_heads_weigh_less_and_targets_past_the_end_nothing(target: Target) -> None:
    data = own_positions(target, 2)
    heads = new_heads(target, MedusaSizes(2))
    alone = [
        loss_of(heads, replace(data, targets=targets))
        for targets in (
            torch.stack([data.targets[:, 0], torch.full_like(data.roots, -1)], dim=1),
            torch.stack([torch.full_like(data.roots, -1), data.targets[:, 1]], dim=1),
        )
    ]
    assert loss_of(heads, data) == pytest.approx(sum(alone), rel=1e-5)
    for head, weight in enumerate((1.0, 0.8)):
        scores = heads.logits(head, data.hidden.float(), data.roots).detach()
        known = data.targets[:, head] >= 0
        plain = torch.nn.functional.cross_entropy(scores[known], data.targets[known, head])
        assert alone[head] == pytest.approx(weight * float(plain), rel=1e-4)


def positions(hidden: torch.Tensor, targets: torch.Tensor, roots: torch.Tensor) -> Positions:
    """Positions of greedy answers."""
    nothing = torch.zeros(len(hidden), dtype=torch.int64)
    return Positions(hidden, roots, targets, nothing, nothing)


class ListedHeads(HeadsModule):
    """Heads whose ranking is given: head k ranks `ranking[k]` first at every position."""

    def __init__(self, rankings: list[list[int]], vocab_size: int) -> None:
        super().__init__(MedusaSizes(len(rankings)), *[torch.zeros(vocab_size, 4)] * 2)
        self.rankings = rankings

    def logits(self, head: int, hidden: torch.Tensor, roots: torch.Tensor) -> torch.Tensor:
        scores = torch.zeros(len(hidden), 50)
        for place, token in enumerate(self.rankings[head]):
            scores[:, token] = 10.0 - place
        return scores


def test_the_learning_rate_rises_over_a_tenth_and_falls_to_zero() -> None:
    rates = [*map(cosine_rate(100), range(101))]
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


def test_the_best_tree_holds_the_most_frequent_paths_and_every_parent() -> None:
    ranks = torch.tensor([[0, 0, 0]] * 5 + [[1, 0, 2]] * 4 + [[0, 1, 2]] * 2 + [[2, 0, -1]])
    counts = path_counts(ranks, 2)
    trees = best_trees(counts, (4, 8))
    assert trees[4] == [(0,), (0, 0), (0, 0, 0)]
    assert trees[8] == [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]
    assert path_length(counts, trees[4], len(ranks)) == pytest.approx(1 + (7 + 5 + 5) / 12)
