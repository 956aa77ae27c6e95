"""Drafts are sought in the part of a large vocabulary that a text keeps to."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.heads import frequent_tokens
from medusa_core.heads.frequent_tokens import frequent_columns
from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.linear import DenseLinear, first_outputs
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.models.quant.random_blocks import random_blocks
from tests.support.engine.laws import decode, user_says
from tests.support.models.mtp_files import write_mimo


def test_a_vocabulary_covers_nearly_all_of_a_texts_last_tokens() -> None:
    low = [5, 60, 16383] * 40
    assert frequent_columns(low[:63], 150_000) == 0  # too short to tell
    assert frequent_columns(low, 150_000) == 16384
    assert frequent_columns([*low, 140_000], 150_000) == 16384  # one of 121
    assert frequent_columns([*low, *[40_000] * 9], 150_000) == 65536
    assert frequent_columns([16384] * 100, 150_000) == 32768  # the first one beyond 16,384
    assert frequent_columns([*low, *[100_000] * 9], 150_000) == 0  # more than half of it
    assert frequent_columns([*[140_000] * 500, *low * 9], 150_000) == 16384  # it has changed
    assert frequent_columns(low, 32_000) == 0
    assert frequent_columns([], 150_000) == 0


@pytest.mark.parametrize(
    "name",
    [
        *("bf16", "fp32", "fp64", "int8", "q4", "q6_k", "q8_0"),
        pytest.param("nf4", marks=pytest.mark.slow),  # loads bitsandbytes
    ],
)
def test_the_first_outputs_equal_those_of_the_whole_projection(name: str) -> None:
    spec = weight_formats().get(name)
    dtype = {"fp32": torch.float32, "fp64": torch.float64}.get(name, torch.bfloat16)
    torch.manual_seed(3)
    is_blocks = name in BLOCK_SIZES
    blocks = {"blocks": random_blocks(name, 256, 256)} if is_blocks else None
    stored = blocks or spec.quantize(torch.randn(256, 256).to(dtype))
    whole, x = spec.build(stored, 256, None, dtype), torch.randn(3, 256).to(dtype)
    cut = first_outputs(whole, 96)
    assert (cut is None) == (not isinstance(whole, NativeLinear | DenseLinear))
    if cut is not None:
        assert torch.equal(cut(x), whole(x)[:, :96])


def test_a_text_is_unchanged_if_only_some_tokens_can_be_drafted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = load_target(write_mimo(tmp_path), options=LoadOptions("float32", "cpu"))
    settings = GenerateSettings(drafter="mtp", max_new_tokens=12, tree_rows=12)
    plain = decode(target, replace(settings, drafter="none"), user_says("one two"))
    asked: list[int] = []
    scores = target.heads.scores  # type: ignore[union-attr]

    def noted(states: torch.Tensor, most: int = 0) -> torch.Tensor:
        found: torch.Tensor = scores(states, most)
        asked.append(found.shape[1])
        return found

    monkeypatch.setattr(frequent_tokens, "_JUDGED", 1)
    monkeypatch.setattr(frequent_tokens, "frequent_columns", lambda ids, count: 64)
    monkeypatch.setattr(target.heads, "scores", noted)
    assert decode(target, settings, user_says("one two")).token_ids == plain.token_ids
    assert set(asked) == {64}
