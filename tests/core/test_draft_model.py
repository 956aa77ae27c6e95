"""A smaller model as a source: it drafts what it would say itself, whatever was cut or guessed."""

from array import array
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.drafters.source import Memory, Paths
from medusa_core.drafters.sources.draft_model_source import DraftModelSource
from medusa_core.errors import RequestError
from medusa_core.messages import GenerateSettings
from medusa_core.target import LoadOptions, Target, load_target
from tests.core.conftest import Folders, LoadTarget
from tests.core.drafts import heard
from tests.core.laws import decode, plain_scores, user_says
from tests.core.tiny import TinySpec, make_tokenizer, write_tiny

TEXT = [5, 40, 60, 61, 200, 7, 7, 33]


def check_drafts(model: Target, source: DraftModelSource, text: list[int]) -> None:
    """What is said behind some paths is what the model says behind text and path."""
    source.start(text[-1], 24)
    for path in ((), (9,), (9, 12), (40, 9, 12)):
        found = source.candidates(Paths(1, len(path), array("i", path)))
        assert found is not None
        chances = torch.softmax(plain_scores(model, [*text, *path]).float(), 0)
        best = chances.topk(len(found.token_ids))
        assert list(found.token_ids) == best.indices.tolist()
        assert list(found.chances) == pytest.approx(best.values.tolist(), rel=1e-4)


@torch.inference_mode()
def test_it_drafts_what_it_says_itself_behind_steps_cuts_and_a_new_turn(load: LoadTarget) -> None:
    model = load("smaller", "float64")
    source, memory = DraftModelSource(model, model.config.vocab_size), Memory()
    hidden = torch.zeros(model.config.hidden_size, dtype=torch.float64)
    source.begin(TEXT)
    assert source.resume(TEXT, memory) == len(TEXT)
    source.read(0, torch.zeros(len(TEXT), 1), None)
    source.observe(heard(model, (50,), hidden))
    check_drafts(model, source, [*TEXT, 50])
    source.observe(heard(model, (12, 9, 77), hidden))
    check_drafts(model, source, [*TEXT, 50, 12, 9, 77])
    source.truncate(len(TEXT) + 2)
    source.observe(heard(model, (8,), hidden))
    check_drafts(model, source, [*TEXT, 50, 12, 8])
    other = [*TEXT[:5], 90, 91, 92]
    source.begin(other)
    source.resume(other, memory)
    check_drafts(model, source, other)


def test_a_model_that_drafts_for_itself_is_always_right(folders: Folders) -> None:
    folder = folders["grouped"][0]
    target = load_target(folder, options=LoadOptions("float64", assistant_dir=folder))
    settings = GenerateSettings("draft-model", tree_rows=6, max_new_tokens=30)
    run = decode(target, settings, user_says("tea and toast"))
    assert all(length >= 2 for length in run.done.accept_lengths[:-1])


def test_another_vocabulary_is_refused(folders: Folders, tmp_path: Path) -> None:
    other = write_tiny(tmp_path, replace(TinySpec(), vocab_size=300))
    make_tokenizer(300).save(str(other / "tokenizer.json"))
    options = LoadOptions("float64", assistant_dir=other)
    with pytest.raises(RequestError, match="can't draft"):
        load_target(folders["grouped"][0], options=options)
