"""Training on a card: heads of every kind, and heads with a LoRA of their target."""

from pathlib import Path

import pytest
import torch

from medusa_core.messages import WeightFormats
from medusa_core.target import LoadOptions, load_target
from medusa_core.training.adapted import load_adapted
from medusa_core.training.answers import Answer
from medusa_core.training.heads_command import trainee_of
from medusa_core.training.heads_config import KINDS, HeadsConfig
from medusa_core.training.joint import JointTrainee
from medusa_core.training.lora import LoraForm
from medusa_core.training.optimizer import Optimizers, adam_w_groups, cosine_rate
from tests.core.tiny import TinySpec, write_tiny
from tests.imagined_card.card import imagined_card

SPEC = TinySpec(hidden_size=64, intermediate_size=128, num_layers=4, seed=61)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("training") / "model", SPEC)


def some_answers() -> list[Answer]:
    generator = torch.Generator().manual_seed(4)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, 300, (count,), generator=generator).tolist())

    return [Answer(ids(6), ids(14), True, number=number) for number in range(4)]


@pytest.mark.parametrize("kind", KINDS)
def test_heads_learn_on_a_card(kind: str, model: Path, tmp_path: Path) -> None:
    config = HeadsConfig(kind=kind, num_heads=2, device="cuda", batch=256, context=64)
    answers = some_answers()
    with imagined_card() as card, card.waiting():
        target = load_target(model, options=LoadOptions("", "cuda", context_tokens=64))
        trainee = trainee_of(config, target, answers)
        shard = trainee.collect([answer.document for answer in answers])
        optimizers = Optimizers([adam_w_groups(trainee.parameters(3e-3))], cosine_rate(4))
        places = torch.arange(trainee.num_places(shard))
        losses = []
        for step in range(4):
            loss = trainee.loss(shard, places)
            loss.backward()
            optimizers.step(step)
            losses.append(float(loss.detach()))
        assert losses[-1] < losses[0]
        assert trainee.ranks(shard, 4).shape[1] == 2
        assert all(parameter.is_cuda for parameter in trainee.module.parameters())
        trainee.write(tmp_path, "tiny", None)
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize("quant", ["", "nf4", "nf4-dq", "int8"])
def test_heads_and_a_lora_learn_on_a_card(quant: str, model: Path, tmp_path: Path) -> None:
    config = HeadsConfig(
        num_heads=2, device="cuda", batch=512, context=64, joint=True, quant=quant, rank=4
    )
    documents = [answer.document for answer in some_answers()]
    with imagined_card() as card, card.waiting():
        options = LoadOptions("", "cuda", WeightFormats(quant), context_tokens=64)
        target = load_target(model, options=options)
        trainee = trainee_of(config, target, some_answers())
        shard = trainee.collect(documents)
        adapted = load_adapted(model, LoraForm(4), quant, "cuda")
        joint = JointTrainee(adapted, trainee, config)
        optimizers = Optimizers([adam_w_groups(joint.parameters(3e-3))], cosine_rate(4))
        losses = []
        for step in range(4):
            loss = joint.loss(documents, shard, torch.arange(4), 1.0)
            loss.backward()
            optimizers.step(step)
            losses.append(float(loss.detach()))
        assert losses[-1] < losses[0]
        assert all(parameter.is_cuda for parameter in joint.module.parameters())
        assert trainee.ranks(joint.adapted(documents, shard), 4).shape[1] == 2
        joint.write(tmp_path, "tiny")
    loaded = load_target(model, options=LoadOptions("", "cpu", adapter_dir=tmp_path / "adapter"))
    assert loaded.config.num_layers == SPEC.num_layers
