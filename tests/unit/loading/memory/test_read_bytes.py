"""Bytes of weights that a step reads."""

from medusa_core.loading.memory.estimate import read_bytes
from medusa_core.messages import WeightFormats
from medusa_core.models.precision import hardware_of
from medusa_core.models.quant.choice import resolve_formats
from tests.support.models.shapes import resized

EXPERTS, WIDTH, HIDDEN, LAYERS = 4, 32, 64, 22  # of 24 layers two are dense


def bytes_read(num_experts_per_tok: int) -> int:
    import torch

    config = resized(
        "lfm2-8b-a1b",
        hidden_size=HIDDEN,
        moe_intermediate_size=WIDTH,
        num_experts=EXPERTS,
        num_experts_per_tok=num_experts_per_tok,
    )
    formats = resolve_formats(WeightFormats(), "float32", hardware_of(torch.device("cpu")))
    return read_bytes(config, formats, rows=1)


def test_a_step_of_one_row_reads_only_its_chosen_experts() -> None:
    unread = 4 * (EXPERTS - 1) * 3 * WIDTH * HIDDEN * LAYERS  # float32; gate, up and down
    assert bytes_read(EXPERTS) - bytes_read(1) == unread
