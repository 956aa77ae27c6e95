"""Medusa as vLLM runs it, against its own few lines written out slowly."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.observation import Observation
from tests.support.engine.laws import check_same_tokens, decode, plainly, user_says
from tests.support.models.medusa_files import REDUCED, reduced, save, vllm_names
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import random_heads, write_tiny

WHOLE = torch.arange(GROUPED.vocab_size)


@pytest.fixture(params=["whole vocabulary", "token_map"])
def heads(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Heads in vLLM's layout."""
    tensors = vllm_names(random_heads(GROUPED))
    if request.param == "token_map":
        tensors = reduced(REDUCED) | {"token_map": REDUCED}
    config = {"model_type": "medusa", "num_heads": 3, "num_hidden_layers": 1}
    return save(tmp_path / "heads", "model.safetensors", tensors, config)


@pytest.fixture
def target(heads: Path, tmp_path: Path) -> Target:
    return load_target(write_tiny(tmp_path / "model", GROUPED), heads, LoadOptions("float64"))


def as_vllm(heads: Path, state: Tensor) -> list[int]:
    """Return one token of each head by `Medusa.forward`, `compute_logits` and argmax."""
    tensors = {
        name: value.double() for name, value in load_file(heads / "model.safetensors").items()
    }
    token_map = tensors.get("token_map", WHOLE).long()
    drafted = []
    for head in range(3):
        block, hidden = f"blocks.{head}.layers.0", state
        weight, bias = tensors[f"{block}.weight"].double(), tensors[f"{block}.bias"].double()
        hidden = hidden + F.silu(hidden @ weight.T + bias)
        logits = torch.full((GROUPED.vocab_size,), -torch.inf, dtype=torch.float64)
        logits[token_map] = tensors[f"lm_heads.{head}.weight"].double() @ hidden
        drafted.append(int(logits.argmax()))
    return drafted


def test_the_chain_equals_vllms_whatever_the_noise(heads: Path, target: Target) -> None:
    def chance(scores: Tensor, token_ids: Tensor | None) -> Tensor:
        return scores.flip(-1)

    drafter = drafter_registry().get("vllm").build(target, RowBudget(16))
    states = torch.randn(20, GROUPED.hidden_size, dtype=torch.float64)
    seen = set()
    for state, reported in zip(states, [None, chance] * 10, strict=True):
        drafter.begin((1, 2))
        drafter.observe(Observation((3,), state[None], chance=reported))
        tree = drafter.propose(3, 16).tree
        assert list(tree.token_ids) == [3, *as_vllm(heads, state)]
        assert tree.shape.parents == (-1, 0, 1, 2)
        seen.add(tree.token_ids)
    assert len(seen) > 10
    assert len(drafter.propose(3, 3).tree.token_ids) == 3


@pytest.mark.parametrize("rule", ["greedy", "sample"])
def test_the_text_equals_plain_decoding(target: Target, rule: str) -> None:
    settings = GenerateSettings(drafter="vllm", rule=rule, max_new_tokens=30, seed=4)
    plain = decode(target, plainly(settings), user_says("as elsewhere"))
    check_same_tokens(plain, decode(target, settings, user_says("as elsewhere")))
