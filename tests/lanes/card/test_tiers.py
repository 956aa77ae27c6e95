"""Layers below a card: in the computer's memory, and on a disk below that."""

from pathlib import Path
from unittest.mock import patch

import pytest

from medusa_core.loading import plan as plan_module
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.placement import OffloadRoom, layer_bytes
from medusa_core.messages import GenerateSettings, LoadOptions, Tier, WeightFormats
from medusa_core.runtime.runner.offload import OffloadRunner
from tests.lanes.card.conftest import Folders
from tests.support.card.card import fake_cuda
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import check_same_tokens, decode, user_says
from tests.support.engine.tight import with_layers_below

MESSAGES = user_says("Tell me a story about a lighthouse.")
SETTINGS = GenerateSettings("medusa", max_new_tokens=16)


@pytest.mark.parametrize("num_in_memory", [0, 2, 5])
def test_texts_equal_those_of_the_cpu_on_every_tier(
    num_in_memory: int, load: LoadTarget, folders: Folders
) -> None:
    here = load("streamed", "float64")
    expected = decode(here, SETTINGS, MESSAGES)
    with fake_cuda() as card:
        options = with_layers_below(*folders["streamed"], LoadOptions("float64", "cuda"), 1)
        room = num_in_memory * max(layer_bytes(here.config, here.formats))
        with patch.object(
            plan_module, "offload_room", lambda *_: OffloadRoom(room, Path("layers"))
        ):
            there = load_target(*folders["streamed"], options)
        assert isinstance(there.runner, OffloadRunner)
        placement = there.plan.placement
        assert placement is not None
        assert len(placement.layers(Tier.MEMORY)) == num_in_memory
        assert len(placement.layers(Tier.DISK)) == 5 - num_in_memory
        card.journal.clear()
        before = there.runner.waited.transfer_s
        check_same_tokens(expected, decode(there, SETTINGS, MESSAGES))
        assert there.runner.waited.transfer_s > before
        traffic = there.runner.traffic
        assert traffic.weights_s > 0
        assert traffic.weights_bytes > 0
        assert max(card.journal.uploads) >= max(placement.layer_bytes)


@pytest.mark.parametrize(
    "quant",
    [*("nf4", "int8"), *(pytest.param(quant, marks=pytest.mark.slow) for quant in ("", "nf4-dq"))],
)
def test_every_weight_format_can_be_offloaded_below_a_card(quant: str, folders: Folders) -> None:
    with fake_cuda() as card:
        formats = WeightFormats(quant)
        options = LoadOptions("", "cuda", formats)
        with card.waiting():
            whole = load_target(*folders["streamed"], options)
            options = with_layers_below(*folders["streamed"], options, 2)
            there = load_target(*folders["streamed"], options)
        placement = there.plan.placement
        assert placement is not None
        assert len(placement.layers(Tier.DEVICE)) == 2
        assert there.weights_bytes <= there.plan.weights_bytes
        assert there.weights_bytes < whole.weights_bytes + placement.buffer_bytes
        check_same_tokens(decode(whole, SETTINGS, MESSAGES), decode(there, SETTINGS, MESSAGES))
