"""Heads of a layer of their own in 4 or 8 bits by choice: as planned, and the text is the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from tests.support.engine.laws import check_same_tokens, decode, plainly, user_says
from tests.support.models.assistant_files import AssistantSpec, write_assistant
from tests.support.models.block_files import DFLASH, DSPARK, write_block
from tests.support.models.eagle_files import EagleSpec, write_eagle
from tests.support.models.hydra_files import random_hydra, write_hydra
from tests.support.models.mtp_files import write_mimo
from tests.support.models.peer_files import write_peer
from tests.support.models.tiny import TinySpec, write_tiny

# Wide enough for whole blocks of every format.
WIDE = TinySpec(hidden_size=64, intermediate_size=128, num_layers=4, seed=31)
EAGLE = EagleSpec("eagle3", hidden=64, inner=128, columns=128)
DRAFTER = replace(DFLASH, hidden=64, head_dim=16, inner=128)
Write = Callable[[Path], tuple[Path, Path | None]]


def _gemma4(root: Path) -> tuple[Path, Path | None]:
    write_peer("gemma 4 31B", root / "model")
    spec = AssistantSpec(hidden=64, inner=128, kv_heads=2, global_kv_heads=1)
    return root / "model", write_assistant(root / "heads", spec)


WRITERS: dict[str, Write] = {
    "eagle": lambda root: (
        write_tiny(root / "model", WIDE),
        write_eagle(root / "heads", EAGLE),
    ),
    "eagle-1": lambda root: (
        write_tiny(root / "model", WIDE),
        write_eagle(root / "heads", replace(EAGLE, spelling="eagle1")),
    ),
    "hydra": lambda root: (
        write_tiny(root / "model", WIDE),
        write_hydra(root / "heads", random_hydra(WIDE)),
    ),
    "gemma4-assistant": _gemma4,
    "dflash": lambda root: (
        write_tiny(root / "model", WIDE),
        write_block(root / "heads", DRAFTER),
    ),
    "dspark": lambda root: (
        write_tiny(root / "model", WIDE),
        write_block(root / "heads", replace(DSPARK, hidden=64, head_dim=16, inner=128, rank=32)),
    ),
    "mtp": lambda root: (write_mimo(root / "model"), None),
}


def loaded(root: Path, kind: str, heads: str, dtype: str = "") -> Target:
    model, heads_dir = WRITERS[kind](root)
    return load_target(model, heads_dir, LoadOptions(dtype, "cpu", WeightFormats(heads=heads)))


@pytest.mark.parametrize("quant", ["int8", "q4"])
@pytest.mark.parametrize("kind", WRITERS)
def test_heads_in_few_bits_are_planned_smaller_and_change_no_text(
    kind: str, quant: str, tmp_path: Path
) -> None:
    whole = loaded(tmp_path / "whole", kind, "bf16", "bfloat16")
    target = loaded(tmp_path / quant, kind, quant)
    assert whole.heads is not None
    assert target.heads is not None
    assert target.heads.nbytes <= target.plan.heads_bytes <= 1.05 * target.heads.nbytes
    assert target.formats.heads.name == quant
    assert target.heads.nbytes < 0.8 * whole.heads.nbytes
    drafter = "eagle" if kind == "eagle-1" else kind
    for rule, temperature in (("greedy", 1.0), ("sample", 0.8)):
        settings = GenerateSettings(
            drafter, rule, temperature, seed=3, tree_rows=10, max_new_tokens=20
        )
        run = decode(target, settings, user_says("one two"))
        plain = decode(target, plainly(settings), user_says("one two"))
        check_same_tokens(plain, run)
