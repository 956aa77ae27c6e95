"""Models that transformers runs, on a card: the laws, and nf4 by bitsandbytes."""

from pathlib import Path

import pytest

from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.models.transformers_files import EVERY, PLAIN, write_model

MESSAGES = user_says("Tell me a story about a lighthouse.")


@pytest.mark.parametrize("name", EVERY)
def test_decoding_laws_1_to_3_hold_on_a_card(name: str, tmp_path: Path) -> None:
    target = load_target(write_model(tmp_path, name), None, LoadOptions("float64", device="cuda"))
    assert bool(target.runner.plain_why) == (name in PLAIN)
    drafter = "none" if name in PLAIN else "suffix"
    settings = GenerateSettings(drafter, max_new_tokens=48)
    drafted = decode(target, settings, MESSAGES, after_step=lambda s: check_cache(s, target, 1e-5))
    check_same_tokens(decode(target, plainly(settings), MESSAGES), drafted)


@pytest.mark.parametrize("quant", ["nf4", "nf4-dq"])
def test_a_4_bit_model_is_planned_and_answers(quant: str, tmp_path: Path) -> None:
    options = LoadOptions("bfloat16", device="cuda", formats=WeightFormats(quant))
    target = load_target(write_model(tmp_path, "starcoder2"), None, options)
    assert not target.runner.plain_why
    assert decode(target, GenerateSettings("suffix", max_new_tokens=24), MESSAGES).token_ids
