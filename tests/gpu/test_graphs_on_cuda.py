"""Steps recorded as CUDA graphs give what the same steps give without."""

from dataclasses import replace

import pytest
import torch

from medusa_core.messages import GenerateSettings
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.system import cuda as card
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.models.targets import TARGET_NAMES

MESSAGES = user_says("Tell me a story about a lighthouse.")


@pytest.mark.parametrize("drafter", ["none", "medusa", "hydra", "dspark", "suffix", "composite"])
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_graph_replayed_steps_keep_the_decoding_laws(
    name: str, drafter: str, load: LoadTarget
) -> None:
    resident = load(name, "float64", "cuda")
    if not drafter_registry().get(drafter).serves(resident):
        pytest.skip(f"{name} can't use {drafter}")
    runner = StaticRunner(resident.runner._model, resident.precision, captures=True)
    target = replace(resident, runner=runner)
    settings = GenerateSettings(drafter, max_new_tokens=48)
    drafted = decode(target, settings, MESSAGES, after_step=lambda s: check_cache(s, target, 1e-10))
    check_same_tokens(decode(resident, plainly(settings), MESSAGES), drafted)
    assert runner.is_recorded


def test_a_failed_graph_capture_leaves_stream_and_device_usable() -> None:
    before = torch.cuda.current_stream()
    x = torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError):
        card.record(lambda: x.sum().item(), card.graph_memory())
    assert torch.cuda.current_stream() == before
    assert (x * 2).tolist() == [2, 2, 2, 2]
