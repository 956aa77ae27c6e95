"""What training needs on a card of 8 GB."""

from types import SimpleNamespace
from typing import cast

import torch

from medusa_core.bench.random_target import shape_config
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.plan import plan_memory
from medusa_core.loading.target import Target
from medusa_core.messages import Fit, HeadsShape, MemoryPlan, WeightFormats
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.training.heads import HeadsModule, MedusaSizes
from medusa_core.training.heads_command import SESSIONS
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.heads_plan import peak_bytes
from medusa_core.training.trainee import Trainee

CARD = cuda_budget(8.0)


def loaded(quant: str, sessions: int) -> MemoryPlan:
    """Vicuna-7B as it is loaded for training, texts of 1,024 tokens."""
    config = shape_config("vicuna-7b")
    formats = resolve_formats(WeightFormats(linears=quant), "", CARD.hardware, config.stored)
    return plan_memory(config, HeadsShape(), formats, CARD, 1024, sessions)


def peak(quant: str, sessions: int) -> int:
    """Bytes of training three shared heads on it."""
    config, plan = shape_config("vicuna-7b"), loaded(quant, sessions)
    with torch.device("meta"):
        matrix = torch.empty(config.vocab_size, config.hidden_size, dtype=torch.float16)
        module = HeadsModule(MedusaSizes(3), matrix, matrix[:0])
        shard = {"hidden": torch.empty(8192, config.hidden_size, dtype=torch.float16)}
    target = SimpleNamespace(
        plan=plan,
        config=config,
        shared_weights=SimpleNamespace(embedding=torch.empty(0)),
        precision=SimpleNamespace(device=torch.device("cuda")),
    )
    trainee = SimpleNamespace(module=module, batch=1024, num_samples=lambda _: 8192)
    run = HeadsConfig(kind="medusa-shared", num_heads=3)
    return peak_bytes(run, cast(Target, target), cast(Trainee, trainee), shard, 1024, 0)


def test_three_shared_heads_of_a_7b_in_4_bits_fit_a_card_of_8_gb() -> None:
    room = CARD.total_bytes - CARD.other_bytes
    chosen = next(count for count in SESSIONS if loaded("nf4-dq", count).fit is not Fit.NO)
    assert chosen > 1, "answers are written several at once"
    assert peak("nf4-dq", chosen) < room
    assert peak("nf4-dq", max(SESSIONS)) > peak("nf4-dq", min(SESSIONS))
    assert peak("int8", min(SESSIONS)) > peak("nf4-dq", min(SESSIONS)) + 2_500_000_000
