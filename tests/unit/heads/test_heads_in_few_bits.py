"""Heads of a layer of their own in 4 or 8 bits by choice: they are smaller, and change no text."""

from pathlib import Path

import pytest

from medusa_core.messages import GenerateSettings
from tests.support.engine.laws import check_same_tokens, decode, plainly, user_says
from tests.support.models.heads_of_kind import HEADS_OF_KIND, Formats, load_heads

KINDS = (
    *("EAGLE-1", "EAGLE-3", "Hydra", "DFlash2", "DSpark, DeepSeek", "MiMo"),
    "an assistant of gemma 4 26B",
)


@pytest.mark.parametrize("name", KINDS)
def test_heads_in_few_bits_are_smaller_and_change_no_text(name: str, tmp_path: Path) -> None:
    kind = HEADS_OF_KIND[name]
    kind.write(tmp_path / "model", tmp_path / "heads")
    whole = load_heads(tmp_path, Formats("bfloat16", heads="bf16")).heads
    assert whole is not None
    for quant in ("int8", "q4"):
        target = load_heads(tmp_path, Formats(heads=quant))
        assert target.heads is not None
        assert target.heads.nbytes == target.plan.heads_bytes
        assert target.formats.heads.name == quant
        assert target.heads.nbytes < 0.8 * whole.nbytes, quant
        for rule, temperature in (("greedy", 1.0), ("sample", 0.8)):
            settings = GenerateSettings(
                kind.drafter, rule, temperature, seed=3, tree_rows=10, max_new_tokens=20
            )
            run = decode(target, settings, user_says("one two"))
            check_same_tokens(decode(target, plainly(settings), user_says("one two")), run)
