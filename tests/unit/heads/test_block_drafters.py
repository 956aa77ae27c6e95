"""DFlash, DSpark and JetSpec: drafts equal the papers' equations in every published layout."""

from array import array
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import GenerationConfig
from transformers.generation import DFlashTokenCandidateGenerator
from transformers.models.muse_glimmer_assistant import MuseGlimmerAssistantModel

from medusa_core.cli.plan import shape_config
from medusa_core.errors import HeadsError
from medusa_core.heads import frequent_tokens
from medusa_core.heads.block import BlockHead, DraftedBlock
from medusa_core.heads.block_parts import drafter_parts
from medusa_core.heads.kind import shape_of_tensors
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import GIB, cuda_budget
from medusa_core.loading.memory.recommend import recommend
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Fit,
    GenerateSettings,
    LoadOptions,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.speculation.drafters.block_source import BlockSource
from medusa_core.speculation.drafters.source import Paths
from tests.support.engine.heard_text import TEXT, candidates_behind, candidates_of, hear
from tests.support.engine.laws import decode, user_says
from tests.support.models.block_files import (
    BLOCK_DRAFTERS,
    DFLASH,
    DSPARK,
    JETSPEC,
    REDUCED,
    BlockSpec,
    Slowly,
    config_of,
    shapes_of,
    write_block,
)
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import write_tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("block") / "target", GROUPED)


def loaded(model: Path, heads: Path, dtype: str = "float64") -> Target:
    return load_target(model, heads, LoadOptions(dtype, "cpu"))


def source_of(target: Target) -> BlockSource:
    assert isinstance(target.heads, BlockHead)
    return BlockSource(target.heads)


def slowly(model: Path, spec: str) -> Slowly:
    checkpoint = ModelFiles.open(model).checkpoint()
    names = ("model.embed_tokens.weight", "lm_head.weight")
    return Slowly(BLOCK_DRAFTERS[spec], *(checkpoint.floats(name, torch.float64) for name in names))


@pytest.mark.parametrize("name", BLOCK_DRAFTERS)
def test_drafts_equal_the_papers_equations(name: str, model: Path, tmp_path: Path) -> None:
    target = loaded(model, write_block(tmp_path, BLOCK_DRAFTERS[name]))
    source, reference = source_of(target), slowly(model, name)
    deep = hear(target, source, TEXT, [4, 1, 3, 2, 1])
    source.start(TEXT[-1], 24)
    states = reference.states(deep[: len(TEXT) - 1], TEXT[-1])
    paths: list[tuple[int, ...]] = [()]
    for level in range(len(states)):
        wider = []
        for path, found in zip(paths, candidates_of(source, *paths), strict=True):
            expected = reference.chances(states, level, (TEXT[-1], *path)[-1])
            best = sorted(expected, key=lambda token: -expected[token])[:10]
            assert list(found) == best
            wanted = [expected[token] for token in best]
            assert list(found.values()) == pytest.approx(wanted, rel=1e-5, abs=1e-7)
            wider += [(*path, token) for token in best[:2]]
        paths = wider[:4]
    assert source.candidates(Paths(1, len(states), array("i", paths[0]))) is None


def test_drafts_equal_transformers_own_generator(model: Path, tmp_path: Path) -> None:
    """Of the one drafter that transformers runs: a Muse Glimmer assistant."""
    name = "DFlash, transformers' Muse"
    spec = BLOCK_DRAFTERS[name]
    folder = write_block(tmp_path, spec)
    target = loaded(model, folder, "float32")
    source = source_of(target)
    deep = hear(target, source, TEXT, [6, 2])
    source.start(TEXT[-1], 24)
    assistant = MuseGlimmerAssistantModel.from_pretrained(folder, dtype=torch.float32)
    checkpoint = ModelFiles.open(model).checkpoint()
    embedding, lm_head = (
        checkpoint.floats(f"{part}.weight", torch.float32)
        for part in ("model.embed_tokens", "lm_head")
    )
    projection = torch.nn.Linear(*reversed(lm_head.shape), bias=False)
    projection.weight.data = lm_head
    generator = DFlashTokenCandidateGenerator(
        assistant,
        torch.nn.Embedding.from_pretrained(embedding),
        projection,
        GenerationConfig(max_length=64, do_sample=False),
    )
    count = len(TEXT)
    hidden = {tap: part[None] for tap, part in zip(spec.taps, deep.chunk(2, dim=1), strict=True)}
    with torch.no_grad():
        _, logits = generator.get_candidates(
            torch.tensor([TEXT]),
            {"position_ids": torch.arange(count)[None], "attention_mask": None},
            SimpleNamespace(hidden_states=hidden),
            is_first_iteration=False,
            n_last_matches=0,
        )
    path: tuple[int, ...] = ()
    for level in range(spec.num_places - 1):
        found = candidates_behind(source, path)
        best = torch.softmax(logits[0, level], 0).topk(10)
        assert list(found) == best.indices.tolist()
        assert list(found.values()) == pytest.approx(best.values.tolist(), rel=1e-3)
        path = (*path, next(iter(found)))


def test_hidden_states_are_not_collected_while_nobody_drafts(model: Path, tmp_path: Path) -> None:
    target = loaded(model, write_block(tmp_path, DFLASH))
    source = source_of(target)
    text = TEXT * 30
    with torch.inference_mode():
        hear(target, source, text, [4, *[3] * 100])
    memory = source._memory.get()
    assert memory.num_places == len(text) - 1
    assert memory.num_waiting < 64


@pytest.mark.parametrize("change", ["states", "path"])
def test_a_dspark_tree_depends_on_its_paths(change: str, model: Path, tmp_path: Path) -> None:
    """Behind two tokens of one place stand different guesses; DFlash has the same for both."""
    spec = DSPARK if change == "path" else DFLASH
    target = loaded(model, write_block(tmp_path, spec))
    source = source_of(target)
    hear(target, source, TEXT, [6, 2])
    source.start(TEXT[-1], 24)
    first, second, *_ = candidates_behind(source, ())
    found = source.candidates(Paths(2, 1, array("i", [first, second])))
    assert found is not None
    if change == "states":
        assert found.counts is None
        return
    assert found.counts is not None
    half = found.counts[0]
    assert list(found.token_ids[:half]) != list(found.token_ids[half:])


@pytest.mark.parametrize("name", ["DFlash, z-lab", "DSpark, DeepSeek"])
def test_a_text_is_unchanged_if_only_some_tokens_can_be_drafted(
    name: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = loaded(model, write_block(tmp_path, BLOCK_DRAFTERS[name]), "float32")
    assert isinstance(target.heads, BlockHead)
    settings = GenerateSettings(drafter=target.heads.kind, max_new_tokens=12, tree_rows=12)
    plain = decode(target, replace(settings, drafter="none"), user_says("one two"))
    asked: list[int] = []
    draft = target.heads.draft

    def noted(root_id: int, place: int, kv: KvCache, levels: int, most: int = 0) -> DraftedBlock:
        block = draft(root_id, place, kv, levels, most)
        asked.append(block.scores_after(0, [root_id]).scores.shape[1])
        return block

    monkeypatch.setattr(frequent_tokens, "_JUDGED", 1)
    monkeypatch.setattr(frequent_tokens, "frequent_columns", lambda ids, count: 64)
    monkeypatch.setattr(target.heads, "draft", noted)
    assert decode(target, settings, user_says("one two")).token_ids == plain.token_ids
    assert set(asked) == {64}


def test_without_configured_layers_the_default_ones_are_tapped() -> None:
    """As z-lab/dflash's and JetSpec's `build_target_layer_ids` spreads them."""
    spec = replace(JETSPEC, taps=(0,) * 5, num_layers=5)
    raw = config_of(spec) | {"num_target_layers": 36}
    del raw["dflash_config"]["target_layer_ids"]
    assert drafter_parts(raw, shapes_of(spec)).settings.taps == (2, 10, 18, 26, 34)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (replace(DFLASH, hidden=48, heads=6), "hidden size of 48"),
        (replace(DFLASH, vocab=1000), "vocabulary of 1000"),
        (replace(DSPARK, vocab=321), "vocabulary of 321"),
        (replace(DFLASH, taps=(1, 2)), "leaves layer 1"),
        (replace(DFLASH, mask=5000), "MASK is token 5000"),
        (replace(DSPARK, more={"markov_head_type": "gated"}), "Markov head of the type 'gated'"),
        (replace(REDUCED, more={"speculators_model_type": "dflare"}), "kind 'dflare'"),
        (replace(DFLASH, own={"projector_type": "domino"}), "parts that aren't supported"),
    ],
)
def test_a_misfit_with_the_target_is_reported(
    spec: BlockSpec, message: str, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(HeadsError, match=message):
        loaded(model, write_block(tmp_path, spec))


@pytest.mark.parametrize(
    ("shape", "num_places", "rank", "wanted"),
    [("qwen3-4b", 16, 0, 0.28), ("qwen3-4b", 7, 256, 0.37), ("qwen3-8b", 16, 0, 0.50)],
)
def test_published_drafters_fit_beside_a_model_in_8_gib(
    shape: str, num_places: int, rank: int, wanted: float
) -> None:
    """z-lab/Qwen3-4B-DFlash-b16, dspark_qwen3_4b_block7, Qwen3-8B-DFlash-b16; in GiB."""
    config = shape_config(shape)
    spec = BlockSpec(
        "deepseek" if rank else "z-lab",
        hidden=config.hidden_size,
        heads=config.num_heads,
        kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        inner=config.intermediate_size,
        vocab=config.vocab_size,
        num_layers=5,
        taps=(2, 10, 18, 26, 34),
        num_places=num_places,
        rank=rank,
        confidence=bool(rank),
    )
    heads = shape_of_tensors(shapes_of(spec), config_of(spec))
    best = recommend(config, heads, cuda_budget(8))
    assert best is not None
    assert best.plan.fit is not Fit.NO
    assert wanted == pytest.approx(best.plan.heads_bytes / GIB, abs=0.01)
