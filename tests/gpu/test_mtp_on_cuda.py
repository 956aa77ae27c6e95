"""Layers for multi-token prediction on a card: the CPU's drafts, and texts that don't change."""

from pathlib import Path

import pytest
import torch

from medusa_core.heads.mtp import MtpHead
from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from tests.support.engine.laws import check_same_tokens, decode, plainly, user_says
from tests.support.models.mtp_peers import MTP_PEERS, drafts_of, write_mtp_peer
from tests.support.models.qwen3_5_files import dense

MESSAGES = user_says("Tell me a story about a lighthouse.")


@pytest.mark.parametrize("name", MTP_PEERS)
def test_drafts_and_texts_equal_those_of_the_cpu(name: str, tmp_path: Path) -> None:
    folder = write_mtp_peer(name, tmp_path)
    here, there = (
        load_target(folder, options=LoadOptions("float64", device)) for device in ("cpu", "cuda")
    )
    assert drafts_of(there) == drafts_of(here)
    settings = GenerateSettings("mtp", seed=4, max_new_tokens=48)
    check_same_tokens(decode(here, settings, MESSAGES), decode(there, settings, MESSAGES))


@pytest.mark.parametrize("heads", ["nf4", "int8"])
def test_a_quantized_mtp_layer_takes_its_planned_memory(heads: str, tmp_path: Path) -> None:
    folder = write_mtp_peer("qwen 3.5", tmp_path, torch.bfloat16, dense())
    target = load_target(folder, options=LoadOptions("", "cuda", WeightFormats(heads=heads)))
    head = target.heads
    assert isinstance(head, MtpHead)
    assert head.nbytes <= target.plan.heads_bytes <= 1.05 * head.nbytes
    settings = GenerateSettings("mtp", seed=4, max_new_tokens=48)
    plain = decode(target, plainly(settings), MESSAGES)
    drafted = decode(target, settings, MESSAGES)
    assert drafted.done.num_steps <= plain.done.num_steps
