"""A smaller model as a source: it drafts what it would say itself, whatever was cut or guessed."""

from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from medusa_core.cli.plan import shape_config
from medusa_core.errors import RequestError
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.recommend import plan_choice
from medusa_core.loading.target import Target
from medusa_core.messages import Fit, GenerateSettings, HeadsShape, LoadOptions, WeightFormats
from medusa_core.speculation.drafters.source import (
    Paths,
    SourceMemory,
)
from medusa_core.speculation.drafters.sources.draft_model_source import DraftModelSource
from tests.support.engine.drafts import received
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import decode, plain_scores, user_says
from tests.support.models.targets import Folders
from tests.support.models.tiny import TinySpec, make_tokenizer, write_tiny

TEXT = [5, 40, 60, 61, 200, 7, 7, 33]


def check_drafts(model: Target, source: DraftModelSource, text: list[int]) -> None:
    """Check that drafts after paths are the draft model's own tokens after text and path."""
    source.start(text[-1], 24)
    for path in ((), (9,), (9, 12), (40, 9, 12)):
        found = source.candidates(Paths(1, len(path), array("i", path)))
        assert found is not None
        chances = torch.softmax(plain_scores(model, [*text, *path]).float(), 0)
        best = chances.topk(len(found.token_ids))
        assert list(found.token_ids) == best.indices.tolist()
        assert list(found.chances) == pytest.approx(best.values.tolist(), rel=1e-4)


@pytest.mark.parametrize("name", ["smaller", "qwen3_5"])
@torch.inference_mode()
def test_a_draft_model_drafts_its_own_text_after_steps_truncations_and_new_turns(
    name: str, load: LoadTarget
) -> None:
    model = load(name, "float64")
    source, memory = DraftModelSource(model, model.config.vocab_size), SourceMemory()
    hidden = torch.zeros(model.config.hidden_size, dtype=torch.float64)
    source.begin(TEXT)
    assert source.resume(TEXT, memory) == len(TEXT)
    source.read(0, torch.zeros(len(TEXT), 1), None)
    source.observe(received(model, (50,), hidden))
    check_drafts(model, source, [*TEXT, 50])
    source.observe(received(model, (12, 9, 77), hidden))
    check_drafts(model, source, [*TEXT, 50, 12, 9, 77])
    source.truncate(len(TEXT) + 2)
    source.observe(received(model, (8,), hidden))
    check_drafts(model, source, [*TEXT, 50, 12, 8])
    other = [*TEXT[:5], 90, 91, 92]
    source.begin(other)
    source.resume(other, memory)
    check_drafts(model, source, other)


def test_a_draft_model_without_room_drafts_nothing_and_the_answer_continues(
    folders: Folders,
) -> None:
    folder = folders["grouped"][0]
    target = load_target(folder, options=LoadOptions("float64", assistant_dir=folder))
    assert target.assistant is not None
    caches = target.assistant.caches
    plain = GenerateSettings("none", max_new_tokens=12)
    expected = decode(target, plain, user_says("tea")).token_ids
    others = target.assistant.allocate_cache(caches.num_rows)
    run = decode(target, replace(plain, drafter="draft-model"), user_says("tea"))
    assert run.token_ids == expected
    assert set(run.done.accept_lengths) == {1}
    caches.release(others)


def test_a_model_that_drafts_for_itself_is_always_accepted(folders: Folders) -> None:
    folder = folders["grouped"][0]
    target = load_target(folder, options=LoadOptions("float64", assistant_dir=folder))
    settings = GenerateSettings("draft-model", tree_rows=6, max_new_tokens=30)
    run = decode(target, settings, user_says("tea and toast"))
    assert all(length >= 2 for length in run.done.accept_lengths[:-1])


@pytest.mark.parametrize(
    "more", [{"temperature": 0.7}, {"temperature": 1.5, "top_k": 40}, {"top_p": 0.8}], ids=str
)
def test_with_the_noise_a_model_that_drafts_for_itself_is_accepted_under_sampling(
    folders: Folders, more: dict[str, Any]
) -> None:
    folder = folders["grouped"][0]
    target = load_target(folder, options=LoadOptions("float64", assistant_dir=folder))
    settings = GenerateSettings(
        "draft-model", "sample", tree_rows=4, max_new_tokens=24, seed=5, **more
    )
    run = decode(target, settings, user_says("tea and toast"))
    plain = decode(target, replace(settings, drafter="none"), user_says("tea and toast"))
    assert run.token_ids == plain.token_ids
    assert all(length >= 2 for length in run.done.accept_lengths[:-1])


@pytest.mark.parametrize("formats", [WeightFormats(), WeightFormats("int8")])
def test_a_draft_model_is_planned_to_the_byte_in_the_targets_formats(
    folders: Folders, formats: WeightFormats
) -> None:
    options = LoadOptions(formats=formats, assistant_dir=folders["smaller"][0])
    target = load_target(folders["qwen3"][0], options=options)
    alone = load_target(folders["qwen3"][0], options=replace(options, assistant_dir=None))
    drafts = target.assistant
    assert drafts is not None
    assert drafts.formats.linears.name == target.formats.linears.name
    plan = target.plan
    assert plan.weights_bytes == alone.plan.weights_bytes
    assert plan.draft_model_bytes == drafts.plan.weights_bytes
    assert plan.heads_bytes == alone.plan.heads_bytes + plan.draft_model_bytes
    assert drafts.weights_bytes <= plan.draft_model_bytes <= drafts.weights_bytes * 1.05
    assert plan.kv_bytes == alone.plan.kv_bytes + drafts.plan.kv_bytes
    assert plan.scratch_bytes == alone.plan.scratch_bytes + drafts.plan.scratch_bytes


def test_the_context_leaves_room_for_the_draft_model() -> None:
    config = shape_config("vicuna-7b")
    formats = WeightFormats("nf4")
    card = cuda_budget(8)
    alone = plan_choice(config, HeadsShape(), formats, card, 4096)
    assert alone.plan.fit is not Fit.NO
    both = plan_choice(config, HeadsShape(), formats, card, 4096, draft_model=config)
    assert both.plan.fit is Fit.NO
    assert both.plan.max_context == 0
    small = config.with_blocks(config.blocks[:2])
    beside = plan_choice(config, HeadsShape(), formats, card, 4096, draft_model=small)
    assert alone.plan.max_context == 4096 > beside.plan.max_context > 0
    shorter = beside.plan.max_context
    fitting = plan_choice(config, HeadsShape(), formats, card, shorter, draft_model=small)
    assert fitting.plan.free_bytes >= 0


def test_another_vocabulary_is_refused_before_anything_is_read(
    folders: Folders, tmp_path: Path
) -> None:
    other = write_tiny(tmp_path, replace(TinySpec(), vocab_size=300))
    make_tokenizer(300).save(str(other / "tokenizer.json"))
    options = LoadOptions("float64", assistant_dir=other)
    stages: list[str] = []
    with pytest.raises(RequestError, match="can't draft"):
        load_target(folders["grouped"][0], None, options, lambda stage, *_: stages.append(stage))
    assert stages == []
