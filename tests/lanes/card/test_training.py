"""Training's own code on a card: states, losses and ranks of all heads, and of a LoRA with them.

Torch's gradients don't run on a card that it doesn't see: what they are computed by is called here.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.training.adapted import load_adapted
from medusa_core.training.answers import OwnAnswer
from medusa_core.training.frozen import _Product
from medusa_core.training.heads_command import trainee_of
from medusa_core.training.heads_config import KINDS, HeadsConfig
from medusa_core.training.joint import JointTrainee
from medusa_core.training.lora import LoraSpec
from medusa_core.training.trainee import collected
from tests.support.card.card import fake_cuda
from tests.support.models.tiny import TinySpec, write_tiny

# Torch sees no card, and computes in 32 bits what a real one would in 16.
pytestmark = pytest.mark.filterwarnings("ignore:CUDA is not available")
SPEC = TinySpec(hidden_size=64, intermediate_size=128, num_layers=4, seed=61)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("training") / "model", SPEC)


@pytest.fixture(autouse=True)
def replaced_parameters() -> Iterator[None]:
    """Replace parameters moved to the card, since its tensors have a class of their own."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    yield
    torch.__future__.set_overwrite_module_params_on_conversion(False)


def some_answers() -> list[OwnAnswer]:
    generator = torch.Generator().manual_seed(4)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, 300, (count,), generator=generator).tolist())

    return [OwnAnswer(ids(6), ids(14), True, number=number) for number in range(4)]


@pytest.mark.parametrize("kind", KINDS)
def test_heads_are_trained_and_written_on_a_card(kind: str, model: Path, tmp_path: Path) -> None:
    config = HeadsConfig(kind=kind, num_heads=2, device="cuda", batch=256, context=64)
    answers = some_answers()
    documents = [answer.document for answer in answers]
    losses = []
    for device in ("cpu", "cuda"):
        with fake_cuda() as card, card.waiting():
            options = LoadOptions("float32", device, context_tokens=64)
            target = load_target(model, options=options)
            trainee = trainee_of(config, target, answers)
            shard = collected(trainee, target, documents)
            assert all(tensor.device.type == "cpu" for tensor in shard.values())
            with torch.no_grad():
                loss = trainee.loss(shard, torch.arange(trainee.num_samples(shard)))
            losses.append(float(loss))
            assert trainee.ranks(shard, 4).shape[1] == 2
            on_card = {parameter.is_cuda for parameter in trainee.module.parameters()}
            assert on_card == {device == "cuda"}
            if device == "cuda":
                trainee.write(tmp_path, "tiny")
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize("quant", ["", "nf4", "int8"])
def test_heads_and_a_lora_are_trained_on_a_card(quant: str, model: Path, tmp_path: Path) -> None:
    config = HeadsConfig(
        num_heads=2, device="cuda", batch=512, context=64, joint=True, quant=quant, rank=4
    )
    documents = [answer.document for answer in some_answers()]
    with fake_cuda() as card, card.waiting():
        options = LoadOptions("", "cuda", WeightFormats(quant), context_tokens=64)
        target = load_target(model, options=options)
        trainee = trainee_of(config, target, some_answers())
        shard = collected(trainee, target, documents)
        adapted = load_adapted(model, LoraSpec(4), quant, "cuda")
        joint = JointTrainee(adapted, trainee, config)
        assert all(parameter.is_cuda for parameter in joint.module.parameters())
        with torch.no_grad():
            loss = joint.loss(documents, shard, torch.arange(4), 1.0)
        assert bool(torch.isfinite(loss).cpu())
        assert trainee.ranks(joint.adapted(documents, shard), 4).shape[1] == 2
        matrix = torch.randn(8, 64, device="cuda")
        grad, _ = _Product.backward(SimpleNamespace(matrix=lambda: matrix), matrix[:, :8])
        assert grad.is_cuda
        joint.write(tmp_path, "tiny")
    loaded = load_target(model, options=LoadOptions("", "cpu", adapter_dir=tmp_path / "adapter"))
    assert loaded.config.num_layers == SPEC.num_layers
