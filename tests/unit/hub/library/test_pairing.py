"""Which heads fit which model, from headers alone, with a reason for each."""

from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.errors import HeadsError
from medusa_core.hub.library.library_folder import (
    ContentsKind,
    look_into,
)
from medusa_core.hub.library.pairing import (
    HeadsFacts,
    HeadsFit,
    TargetFacts,
    heads_facts,
    match,
    misfit,
    pair,
    same_model,
    target_facts,
)
from medusa_core.messages import HeadsShape
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

VICUNA = TargetFacts("lmsys/vicuna-7b-v1.3", 4096, 32000, 32)


def heads(hidden: int = 4096, columns: int = 32000, base: str = "", **more: bool) -> HeadsFacts:
    return HeadsFacts("org/heads", HeadsShape(5, 1, columns, hidden, **more), base)


def eagle(**more: int) -> HeadsFacts:
    """An EAGLE-3 head narrower than the states that it reads."""
    shape = HeadsShape(1, 0, 8000, 2048, is_reduced=True, kind="eagle-3", reads_width=4096)
    return HeadsFacts("org/eagle", replace(shape, **more))


@pytest.mark.parametrize(
    ("facts", "fit", "reason"),
    [
        (heads(base="lmsys/vicuna-7b-v1.3"), HeadsFit.MADE_FOR, "made for lmsys/vicuna-7b-v1.3"),
        (heads(base="./models/vicuna-7b-v1.3/"), HeadsFit.MADE_FOR, "made for"),
        (heads(), HeadsFit.FITS, "don't say"),
        (heads(base="meta-llama/Llama-2-7b"), HeadsFit.FOREIGN, "made for meta-llama/Llama-2-7b"),
        (heads(hidden=5120), HeadsFit.MISFIT, "hidden size 5,120 ≠ 4,096"),
        (heads(columns=128256), HeadsFit.MISFIT, "vocabulary size 128,256 ≠ 32,000"),
        (heads(columns=32064), HeadsFit.FITS, ""),
        (heads(columns=32129), HeadsFit.MISFIT, "vocabulary size 32,129 ≠ 32,000"),
        (heads(columns=0), HeadsFit.FITS, ""),
        (heads(columns=8000, is_reduced=True), HeadsFit.FITS, ""),
        (heads(columns=32001, is_reduced=True), HeadsFit.MISFIT, "vocabulary size 32,001 > 32,000"),
        (HeadsFacts("x", HeadsShape()), HeadsFit.MISFIT, "these are no heads"),
        (eagle(), HeadsFit.FITS, ""),
        (eagle(reads_width=5120), HeadsFit.MISFIT, "hidden size 5,120 ≠ 4,096"),
        (eagle(made_for_vocab=128256), HeadsFit.MISFIT, "vocabulary size 128,256 ≠ 32,000"),
        (eagle(made_for_vocab=32064), HeadsFit.FITS, ""),
        (eagle(deepest_layer=33), HeadsFit.MISFIT, "reads layer 33 of 32"),
        (eagle(deepest_layer=29), HeadsFit.FITS, ""),
    ],
)
def test_every_set_of_heads_has_a_reason(facts: HeadsFacts, fit: HeadsFit, reason: str) -> None:
    found = match(VICUNA, facts)
    assert found.fit is fit
    assert reason in found.reason
    assert found.reason


def test_models_without_heads_are_listed_and_the_best_heads_come_first() -> None:
    other = TargetFacts("org/lonely", 64, 100, 2)
    sets = [heads(hidden=5120), heads(base="other"), heads(), heads(base=VICUNA.name)]
    first, second = pair([VICUNA, other], sets)
    fits = [found.fit for found in first.matches]
    assert fits == [HeadsFit.MADE_FOR, HeadsFit.FITS, HeadsFit.FOREIGN, HeadsFit.MISFIT]
    assert len(first.fitting) == 3
    assert second.target is other
    assert not second.fitting
    assert len(second.matches) == 4
    assert pair([other], [])[0].matches == ()


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("lmsys/vicuna-7b-v1.3", "vicuna-7b-v1.3", True),
        ("lmsys/Vicuna-7B-v1.3", "me/vicuna-7b-v1.3-bnb-4bit", True),
        ("meta-llama/Llama-2-7b-hf", "Llama-2-7b", True),
        (r"C:\models\vicuna-7b-v1.3", "lmsys/vicuna-7b-v1.3", True),
        ("vicuna-7b-v1", "vicuna-7b-v1.3", False),
        ("vicuna-7b-v1.3", "vicuna-13b-v1.3", False),
        ("vicuna-7b-v1.5", "vicuna-7b-v1.5-16k", False),
    ],
)
def test_names_of_one_model_are_recognized(one: str, other: str, is_same: bool) -> None:
    assert same_model(one, other) is is_same


def test_pairing_uses_headers_and_not_counts_in_the_configuration() -> None:
    shapes = {
        **{f"{head}.0.linear.weight": (64, 64) for head in range(3)},
        **{f"{head}.1.weight": (100, 64) for head in range(3)},
    }
    config = {"medusa_num_heads": 2, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}
    found = heads_facts("x", shapes, config)
    assert found == HeadsFacts("x", HeadsShape(3, 1, 100, 64), "lmsys/vicuna-7b-v1.3")
    assert heads_facts("x", shapes, {"base_model_name_or_path": "N/A"}).base_model == ""
    verifier = {"verifier": {"name_or_path": "Qwen/Qwen3-8B", "architectures": []}}
    assert heads_facts("x", shapes, {"speculators_config": verifier}).base_model == "Qwen/Qwen3-8B"
    for strange in (5, {"verifier": 5}, {"verifier": {"name_or_path": 5}}):
        assert heads_facts("x", shapes, {"speculators_config": strange}).base_model == ""
    with pytest.raises(HeadsError):
        heads_facts("x", {"model.norm.weight": (64,)}, {})
    assert target_facts("x", {"hidden_size": 64, "vocab_size": True}) is None
    assert target_facts("x", {"hidden_size": 64, "vocab_size": "a", "num_hidden_layers": 2}) is None


def test_folders_are_paired_by_their_files(tmp_path: Path) -> None:
    spec = TinySpec()
    target = look_into(write_tiny(tmp_path / "tiny", spec))
    made = look_into(write_heads(tmp_path / "heads", random_heads(spec)))
    wide = look_into(write_heads(tmp_path / "wide", random_heads(TinySpec(hidden_size=64))))
    assert (target.kind, made.kind, wide.kind) == (
        ContentsKind.TARGET,
        ContentsKind.HEADS,
        ContentsKind.HEADS,
    )
    assert target.target is not None
    assert made.heads is not None
    assert wide.heads is not None
    assert match(target.target, made.heads).fit is HeadsFit.FITS
    assert misfit(target.target, wide.heads.shape) == "hidden size 64 ≠ 32"


def test_layer_types_must_be_as_many_as_the_layers() -> None:
    kinds = ["linear_attention", "mlp", "full_attention"]
    facts = target_facts(
        "nemotron", {"hidden_size": 32, "vocab_size": 320, "layers_block_type": kinds}
    )
    assert facts is not None
    assert facts.num_layers == 3
