"""The demo model's heads: whether they may believe themselves, and what they draft from."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from medusa_core.heads.weights import HeadSet, HeadWeights
from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings
from medusa_core.speculation.rules.sampling import Sampler
from medusa_core.training.accuracy import true_ranks
from medusa_core.training.heads import HeadsModule, MedusaSizes
from medusa_core.training.positions import Positions, collect
from recipe.attention import document_mask
from recipe.network import PebbleNetwork
from recipe.reliability import reliabilities, reliability
from recipe.self_answers import GenerationOptions, generate_answers
from tests.lanes.recipe.toy_recipe import NARROW
from tests.support.models.tiny import write_tiny


def positions(hidden: torch.Tensor, targets: torch.Tensor, roots: torch.Tensor) -> Positions:
    """Positions of greedy answers."""
    nothing = torch.zeros(len(hidden), dtype=torch.int64)
    return Positions(hidden, roots, targets, nothing, nothing)


class TargetAsHead(HeadsModule):
    """A head that scores the next place as the target will: what chance adds is all it lacks."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__(MedusaSizes(1), *[torch.zeros(NARROW.vocab_size, NARROW.hidden_size)] * 2)
        self.scores = scores

    def logits(self, head: int, hidden: torch.Tensor, roots: torch.Tensor) -> torch.Tensor:
        return self.scores


def test_sampled_answers_equal_the_engines_and_noise_aware_heads_draft_them(
    network: PebbleNetwork, tmp_path: Path
) -> None:
    target = load_target(write_tiny(tmp_path))  # its states aren't read
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
        data = collect(target, [answer.document], 1)
        assert data.places.tolist() == list(range(first, first + 24))
        head = TargetAsHead(torch.cat([scores[1:], scores[:1]]))
        knowing = true_ranks(head, data, 5, temperature=1.3)
        assert knowing.flatten().tolist() == [0] * 23 + [-1]
        assert true_ranks(head, data, 5).flatten().tolist().count(0) < 20


def test_calibrated_heads_have_no_calibration_error() -> None:
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


def test_reliabilities_are_computed_of_the_heads_own_drafts(network: PebbleNetwork) -> None:
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
    form = MedusaSizes(4, 2, reads_root=reads_root)
    matrix = network.model.embed_tokens.weight.detach()
    trained = HeadsModule(form, matrix, matrix, root_scale=3.0)
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
