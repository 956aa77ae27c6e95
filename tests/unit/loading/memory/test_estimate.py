"""What is said of a model's speed before it is fetched."""

import json
from dataclasses import replace

import pytest

from medusa_core.bench.random_target import shape_config
from medusa_core.errors import RequestError
from medusa_core.loading.measure.weights import measure_read_rate
from medusa_core.loading.memory.estimate import ReadRate, forecast, rate_limiting_format
from medusa_core.loading.memory.plan import (
    embedding_bytes,
    experts_bytes,
    heads_bytes,
    weights_bytes,
)
from medusa_core.loading.memory.probe import live_budget
from medusa_core.messages import HeadsShape, WeightFormats
from medusa_core.models.config import parse_config
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.tree.tables import typical_table
from medusa_core.system.resources import shapes_dir

GB = 10**9
# Reads 10 GB/s for one row; each further row takes a tenth of that step more.
PACE = ReadRate(tuple((rows, 10 * GB / (1 + 0.1 * (rows - 1))) for rows in (1, 2, 4, 8, 16)))
FREE_ROWS = ReadRate(tuple((rows, 10.0 * GB) for rows in (1, 2, 4, 8, 16)))
DEAR_ROWS = ReadRate(tuple((rows, 10 * GB / rows) for rows in (1, 2, 4, 8, 16)))
Q4 = WeightFormats("q4")


def test_a_step_takes_the_time_of_reading_its_weights() -> None:
    budget, config = live_budget("cpu"), shape_config("vicuna-7b")
    reported = forecast(config, HeadsShape(), Q4, budget, PACE)
    formats = resolve_formats(Q4, "", budget.hardware, config.stored)
    read = weights_bytes(config, formats) - embedding_bytes(config, formats)
    assert reported.plain_tokens_per_s == pytest.approx(10 * GB / read)
    assert reported.tokens_per_s == reported.plain_tokens_per_s
    assert reported.tree_rows == 1


def test_tied_embeddings_are_read_as_the_output_projection() -> None:
    budget = live_budget("cpu")
    tied = replace(shape_config("qwen3-4b"), tie_embeddings=True)
    apart = replace(tied, tie_embeddings=False)
    speeds = [forecast(c, HeadsShape(), WeightFormats("fp32"), budget, PACE) for c in (tied, apart)]
    assert speeds[0].plain_tokens_per_s == pytest.approx(speeds[1].plain_tokens_per_s)


def test_heads_help_as_far_as_rows_are_cheap() -> None:
    budget, config = live_budget("cpu"), shape_config("vicuna-7b")
    heads = HeadsShape(3, 1, config.vocab_size, config.hidden_size)
    reported = {
        name: forecast(config, heads, Q4, budget, read_rate)
        for name, read_rate in (("usual", PACE), ("free", FREE_ROWS), ("dear", DEAR_ROWS))
    }
    assert (
        reported["free"].tree_rows > reported["usual"].tree_rows > reported["dear"].tree_rows == 1
    )
    assert (
        reported["free"].tokens_per_s
        > reported["usual"].tokens_per_s
        > reported["usual"].plain_tokens_per_s
    )
    assert reported["dear"].tokens_per_s == reported["dear"].plain_tokens_per_s


def test_a_step_with_drafts_includes_the_time_of_the_heads() -> None:
    budget, config = live_budget("cpu"), shape_config("vicuna-7b")
    heads = HeadsShape(3, 1, config.vocab_size, config.hidden_size)
    reported = forecast(config, heads, Q4, budget, FREE_ROWS)
    formats, table = resolve_formats(Q4, "", budget.hardware, config.stored), typical_table(3)
    tokens = table.expected_length(table.tree(reported.tree_rows))
    heads_s = heads_bytes(config, heads, formats) / (10 * GB)
    step_s = 1 / reported.plain_tokens_per_s + heads_s
    assert reported.tokens_per_s == pytest.approx(tokens / step_s)


def test_only_the_experts_chosen_by_the_rows_are_read() -> None:
    budget = live_budget("cpu")
    raw = json.loads((shapes_dir() / "qwen3-4b.json").read_text(encoding="utf-8"))
    reported = {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 768}
    config = parse_config(raw | reported | {"model_type": "qwen3_moe"}, {})
    wanted = WeightFormats("fp32")
    formats = resolve_formats(wanted, "", budget.hardware, config.stored)
    rest = weights_bytes(config, formats) - experts_bytes(config, formats)
    read = rest + experts_bytes(config, formats) / 4
    read -= 0 if formats.shares_embedding(True) else embedding_bytes(config, formats)
    speed = forecast(config, HeadsShape(), wanted, budget, PACE).plain_tokens_per_s
    assert speed == pytest.approx(10 * GB / read)


def test_step_times_are_interpolated_between_measured_row_counts_and_linear_beyond() -> None:
    times = [PACE.step_s(10 * GB, rows) for rows in (1, 2, 3, 4, 6, 16, 32)]
    assert times == pytest.approx([1.0, 1.1, 1.2, 1.3, 1.5, 2.5, 5.0])


@pytest.mark.parametrize("quant", ["q4", "q4_k", "nf4_0", "int8", "bf16"])
def test_a_processor_is_timed_in_every_weight_format(quant: str) -> None:
    read_rate = measure_read_rate(
        "cpu",
        rate_limiting_format(WeightFormats(quant), shape_config("qwen3-4b"), live_budget("cpu")),
    )
    assert [rows for rows, _ in read_rate.rates] == [1, 2, 4, 8, 16]
    assert all(1e7 < rate < 1e13 for _, rate in read_rate.rates)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(RequestError):
        measure_read_rate("cpu", "q3.5")
