"""Our kernels on a CUDA device: right for every type, and drafts change no token."""

from pathlib import Path

import pytest
import torch

from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.quant.card_linear import working_types
from medusa_core.runtime.backends.cuda_blocks import card_attention, fused_kernels_work
from medusa_core.system.native.cuda import BLOCK_TYPES
from medusa_core.system.native.cuda.kernels import wrong_kernels
from tests.support.engine.laws import decode, plainly, user_says
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import ACCURACIES, TinySpec, random_heads, write_heads, write_tiny

DEVICE = torch.device("cuda", 0)
MESSAGES = user_says("Tell me a story about a lighthouse.")


def test_all_cuda_kernels_are_correct() -> None:
    assert working_types(DEVICE) == BLOCK_TYPES
    assert card_attention(DEVICE) is not None
    assert fused_kernels_work(DEVICE)
    assert wrong_kernels(DEVICE) == ()


@pytest.mark.parametrize("of", ["q4_0", "q8_0"])
def test_drafts_change_no_token_of_a_gguf_file_in_its_stored_format(
    of: str, tmp_path: Path
) -> None:
    tiny = TinySpec(hidden_size=256, intermediate_size=512, num_layers=2, seed=51)
    folder = write_tiny(tmp_path / "tiny", tiny)
    heads = write_heads(tmp_path / "heads", random_heads(tiny), ACCURACIES)
    path = write_as_gguf(folder, tmp_path / "file.gguf", of)
    target = load_target(path, heads, LoadOptions(device="cuda"))
    assert target.formats.keeps_blocks
    settings = GenerateSettings(drafter="medusa", max_new_tokens=64)
    drafted, plain = (decode(target, one, MESSAGES) for one in (settings, plainly(settings)))
    assert drafted.token_ids == plain.token_ids
