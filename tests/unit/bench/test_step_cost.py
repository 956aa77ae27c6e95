"""Bytes that a step reads."""

from medusa_core.bench.random_target import make_random
from medusa_core.bench.step_cost import read_bytes
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from tests.support.models.shapes import resized

EXPERTS, WIDTH, HIDDEN, LAYERS = 4, 32, 64, 22  # of 24 layers two are dense


def target_with(num_experts_per_tok: int) -> Target:
    config = resized(
        "lfm2-8b-a1b",
        hidden_size=HIDDEN,
        intermediate_size=128,
        moe_intermediate_size=WIDTH,
        num_experts=EXPERTS,
        num_experts_per_tok=num_experts_per_tok,
        vocab_size=4096,
    )
    return make_random("small", config, LoadOptions("float32", "cpu", context_tokens=64), 0)


def test_a_step_of_one_row_reads_the_experts_that_it_chooses() -> None:
    all_of_them, one = target_with(EXPERTS), target_with(1)

    unread = 4 * (EXPERTS - 1) * 3 * WIDTH * HIDDEN * LAYERS  # float32; gate, up and down
    assert read_bytes(all_of_them) - read_bytes(one) == unread
