"""DFlash, DSpark and JetSpec: drafts equal the papers' equations in every published layout."""

from array import array
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from medusa_core.heads.block import BlockHead
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.models.model_files import ModelFiles
from medusa_core.speculation.drafters.block_source import BlockSource
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from tests.core.block_files import DFLASH, DSPARK, JETSPEC, REDUCED, Slowly, write_block
from tests.core.conftest import GROUPED
from tests.core.test_eagle import TEXT
from tests.core.tiny import write_tiny

SCORED = {"input_embedding_scale": 2.5, "output_multiplier": 0.5, "final_logit_softcapping": 3.0}
SPECS = {
    "DFlash, z-lab": DFLASH,
    "DFlash with windows and scaled scores": replace(
        DFLASH, windows=(4, None), has_bias=True, own=SCORED
    ),
    "DFlash, transformers' Muse": replace(DFLASH, layout="muse", windows=(3, None)),
    "DFlash, speculators": replace(DFLASH, layout="speculators", columns=80),
    "DSpark, DeepSeek": DSPARK,
    "DSpark, LFM2.5": replace(DSPARK, layout="liquid"),
    "DSpark, SpecForge": replace(DSPARK, layout="specforge", confidence=False),
    "DSpark, speculators, some tokens": REDUCED,
    "JetSpec": JETSPEC,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("block") / "target", GROUPED)


def loaded(model: Path, heads: Path, dtype: str = "float64") -> Target:
    return load_target(model, heads, LoadOptions(dtype, "cpu"))


def source_of(target: Target) -> BlockSource:
    assert isinstance(target.heads, BlockHead)
    return BlockSource(target.heads)


@torch.inference_mode()
def hear(target: Target, source: BlockSource, text: list[int], pieces: list[int]) -> Tensor:
    """Let a source hear a text as prefill and steps tell it; returns what enters the taps."""
    size = target.config.hidden_size
    reported = target.runner.extend(text, target.runner.new_cache(len(text) + 8))
    final, deep = reported[:, :size], reported[:, size:]
    source.begin(text[: pieces[0]])
    source.resume(text[: pieces[0]], {})
    half = pieces[0] // 2
    for start, end in ((0, half), (half, pieces[0])):
        source.read(start, final[start:end], deep[start:end])
    at = pieces[0]
    for piece in (*pieces[1:], len(text) - sum(pieces)):
        if piece:
            rows = range(at - 1, at - 1 + piece)
            source.observe(Observation(text[at : at + piece], final, rows, None, deep))
        at += piece
    return deep


@torch.inference_mode()
def behind(source: BlockSource, path: tuple[int, ...]) -> dict[int, float]:
    found = source.candidates(Paths(1, len(path), array("i", path)))
    assert found is not None
    return dict(zip(found.token_ids, found.chances, strict=True))


def slowly(model: Path, spec: str) -> Slowly:
    checkpoint = ModelFiles.open(model).checkpoint()
    names = ("model.embed_tokens.weight", "lm_head.weight")
    return Slowly(SPECS[spec], *(checkpoint.floats(name, torch.float64) for name in names))


@pytest.mark.parametrize("name", SPECS)
def test_drafts_are_those_of_the_equations(name: str, model: Path, tmp_path: Path) -> None:
    target = loaded(model, write_block(tmp_path, SPECS[name]))
    source, reference = source_of(target), slowly(model, name)
    deep = hear(target, source, TEXT, [4, 1, 3, 2, 1])
    source.start(TEXT[-1], 24)
    states = reference.states(deep[: len(TEXT) - 1], TEXT[-1])
    paths: list[tuple[int, ...]] = [()]
    for level in range(len(states)):
        wider = []
        for path in paths:
            found = behind(source, path)
            expected = reference.chances(states, level, (TEXT[-1], *path)[-1])
            best = sorted(expected, key=lambda token: -expected[token])[:10]
            assert list(found) == best
            wanted = [expected[token] for token in best]
            assert list(found.values()) == pytest.approx(wanted, rel=1e-5, abs=1e-7)
            wider += [(*path, token) for token in best[:2]]
        paths = wider[:4]
    assert source.candidates(Paths(1, len(states), array("i", paths[0]))) is None
