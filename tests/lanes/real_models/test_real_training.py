"""Heads for a real model, after a few steps: they load, draft, and change no token."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.bench.contestant import OwnMode
from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training.heads_command import load_for_training, trainee_of
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.heads_run import HeadsRun, RunParts
from medusa_core.training.prompts import bundled_training_prompts
from medusa_core.training.run_folder import RunFolder

Find = Callable[[str], Path]

KINDS = [
    pytest.param(kind, marks=() if kind == "hydra" else pytest.mark.slow)
    for kind in ("hydra", "medusa-shared", "eagle", "dspark")
]


@pytest.mark.parametrize("kind", KINDS)
def test_heads_of_a_few_steps_load_and_draft(kind: str, real_model: Find, tmp_path: Path) -> None:
    path = real_model("smollm2")
    config = HeadsConfig(
        model=str(path),
        kind=kind,
        vocabulary=1024 if kind != "medusa-shared" else 0,
        answers=6,
        steps=100 if kind == "dspark" else 20,  # its layers begin with nothing of the model's
        batch=256,
        max_new_tokens=24,
        drawn_share=0.0,
        context=256,
        device="cpu",
        prompts="bundled",
    )
    folder = RunFolder(tmp_path / "heads")
    folder.begin(config)
    parts = RunParts(
        load=lambda: load_for_training(config),
        trainee=lambda target, answers: trainee_of(config, target, answers),
        prompts=lambda target, is_over: bundled_training_prompts(),
        evaluate=lambda _: None,
        stop=lambda: False,
    )
    assert HeadsRun(folder, parts).run()
    target = load_target(path, folder.out, LoadOptions(context_tokens=256))
    drafter = {"medusa-shared": "medusa"}.get(kind, kind)
    settings = GenerateSettings(max_new_tokens=24, tree_rows=8)
    learned = bundled_training_prompts()[1].messages  # the first answer is held out
    found = {}
    for name in ("none", drafter):
        mode = OwnMode(target, replace(settings, drafter=name), RowPolicy(target))
        with mode.conversation():
            found[name] = mode.answer(learned)
    assert found[drafter].token_ids == found["none"].token_ids
    assert max(found[drafter].accept_lengths) > 1
