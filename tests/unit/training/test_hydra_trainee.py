"""What Hydra heads learn is what the target wrote, token by token."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.errors import TrainingError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.training.documents import answered
from medusa_core.training.heads import LOSS_DECAY
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.hydra_trainee import HydraTrainee, open_trained
from medusa_core.training.positions import computed
from medusa_core.training.trainee import collected
from tests.support.models.tiny import TinySpec, write_tiny

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=2, seed=4)
TEXTS = [answered((5, 6), (7, 8, 9, 10, 11)), answered((12, 3, 4), (14, 15)), answered((1,), (2,))]


def load(tmp_path: Path) -> Target:
    return load_target(write_tiny(tmp_path, SPEC), None, LoadOptions("float32", "cpu"))


def trainee_of(target: Target, token_ids: torch.Tensor | None) -> HydraTrainee:
    trainee = HydraTrainee(target, HeadsConfig(num_heads=3), token_ids)
    generator = torch.Generator().manual_seed(2)
    for parameter in trainee.module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.05
    trainee.module.eval()  # nothing is dropped
    return trainee


@pytest.mark.parametrize("token_ids", [None, torch.arange(0, 64, 2)])
def test_each_hydra_head_learns_the_token_after_the_path_it_drafts_from(
    token_ids: torch.Tensor | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.training.hydra_trainee.trains_in_bf16", lambda _: False)
    target = load(tmp_path)
    trainee = trainee_of(target, token_ids)
    shard = collected(trainee, target, TEXTS)
    places = torch.arange(trainee.num_samples(shard))
    drafted = torch.arange(64) if token_ids is None else token_ids
    states = [own.float() for own in computed(target, TEXTS, 64)]
    texts = [0] * 5 + [1] * 2 + [2]  # of each place
    expected = torch.zeros(())
    for head in range(3):
        losses = []
        for place in range(len(places)):
            path = shard["paths"][place : place + 1, : head + 1]
            own = shard["hidden"][place : place + 1].float()
            state = trainee.module.state_of(head, own, path)
            wanted = int(shard["paths"][place, head + 1])
            if wanted not in drafted.tolist():
                continue
            chances = torch.softmax((trainee.module.lm_head @ state.T).T[0], -1)
            before = int(shard["places"][place]) + head  # the token that the wanted one follows
            scores = trainee.module.lm_head.float() @ states[texts[place]][before]
            best, columns = torch.softmax(scores / 0.5, -1).topk(16)
            losses.append(-torch.minimum(chances[columns], best / best.sum()).sum().log())
        expected = expected + LOSS_DECAY**head * torch.stack(losses).mean()
    torch.testing.assert_close(
        trainee.loss(shard, places), expected, rtol=1e-3, atol=1e-3
    )  # float16 chances


def test_the_teacher_has_the_scale_and_soft_cap_of_the_target(tmp_path: Path) -> None:
    target = load(tmp_path)
    sizes = replace(target.config, logits_scaling=2.0, final_logit_softcapping=0.5)
    trainee = HydraTrainee(replace(target, config=sizes), HeadsConfig(num_heads=3), None)
    shard = collected(trainee, target, TEXTS)
    scores = trainee.module.lm_head.float() @ shard["hidden"][0].float()
    best = (torch.tanh(scores / 2.0 / 0.5) * 0.5).topk(16).values
    torch.testing.assert_close(
        shard["teacher_chances"][0].float(), torch.softmax(best / 0.5, -1), rtol=1e-2, atol=1e-3
    )


def test_a_token_outside_of_the_vocabulary_counts_as_missed(tmp_path: Path) -> None:
    target = load(tmp_path)
    trainee = trainee_of(target, torch.tensor([8, 10]))
    ranks = trainee.ranks(collected(trainee, target, TEXTS), 2)
    assert ranks[0, 1].item() == 2  # 9 is never drafted
    assert ranks[-1].tolist() == [-1, -1, -1]  # nothing follows
    assert trainee.module.training


def test_training_goes_on_from_the_heads_that_were_written(tmp_path: Path) -> None:
    target = load(tmp_path)
    first = trainee_of(target, torch.arange(0, 64, 2))
    first.write(tmp_path, "model")
    config = HeadsConfig(num_heads=3, from_heads=str(tmp_path))
    second = HydraTrainee.from_heads(target, config)
    second.module.eval()
    shard = collected(first, target, TEXTS)
    assert torch.equal(first.ranks(shard, 5), second.ranks(shard, 5))
    for one, other in zip(first.module.parameters(), second.module.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0.01, atol=1e-4)  # written in bfloat16
    with pytest.raises(TrainingError, match="hold 4 Hydra heads"):
        open_trained(replace(config, num_heads=4), target.config)
    with pytest.raises(TrainingError, match="hold 3 Hydra heads"):
        open_trained(config, replace(target.config, vocab_size=32))
    for changes in ({"kind": "eagle"}, {"vocabulary": 32}):
        with pytest.raises(TrainingError, match=r"(?i)heads"):
            replace(config, **changes)


def test_the_last_token_of_a_recorded_answer_is_certain(tmp_path: Path) -> None:
    target = load(tmp_path)
    trainee = trainee_of(target, None)
    states = [own[:-2] for own in computed(target, TEXTS[:2], 64)]  # as they are recorded
    shard = trainee.shard_of(TEXTS[:2], states)
    wanted = torch.tensor([10, 11, 15])
    samples = torch.tensor([2, 3, 4])
    columns, chances = trainee._teacher_at(shard, samples, 0, wanted)
    assert chances[0, 0] < 1
    assert torch.equal(columns[0], shard["teacher_columns"][3].long())
    assert columns[1:, 0].tolist() == [11, 15]
    assert chances[1:].tolist() == [[1.0] + [0.0] * 15] * 2
