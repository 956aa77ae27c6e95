"""Laws on real models: SmolLM2 in the usual run, all as slow tests."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.bench.contestant import OwnMode
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role, WeightFormats
from medusa_core.speculation.drafters.lineup import serving_drafters
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.prompts import read_prompts
from medusa_core.system.resources import prompts_dir
from tests.lanes.real_models.divergence import TEXT, mean_divergence, reference_logits
from tests.support.models.real import EVERY_MODEL, loaded

Find = Callable[[str], Path]

GREEDY = GenerateSettings(max_new_tokens=12, tree_rows=8)
SAMPLED = replace(GREEDY, rule="sample", temperature=0.8, seed=7)
# Of llama.cpp on the same text, as `tests.lanes.real_models.divergence` prints it.
LLAMA_CPP = {"smollm2": 0.0032446}


@pytest.mark.parametrize("settings", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", EVERY_MODEL)
def test_every_drafter_gives_the_tokens_of_plain_decoding(
    name: str, settings: GenerateSettings, real_model: Find
) -> None:
    target = loaded(real_model(name))
    prompts = read_prompts(prompts_dir() / "general.jsonl", 20)
    requested = [ChatMessage(Role.USER, prompt.turns[0][:60]) for prompt in prompts]
    assert len(requested) == 20
    drafting = [spec.name for spec in serving_drafters(target) if spec.drafts]
    assert drafting
    modes = {
        drafter: OwnMode(target, replace(settings, drafter=drafter), RowPolicy(target))
        for drafter in ("none", *drafting)
    }
    accepted = dict.fromkeys(modes, 0)
    for message in requested:
        found = {}
        for drafter, mode in modes.items():
            with mode.conversation():
                turn = mode.answer([message])
            found[drafter] = turn.token_ids
            accepted[drafter] += sum(turn.accept_lengths) - len(turn.accept_lengths)
        assert len(set(found.values())) == 1, (message.text, found)
    assert accepted.pop("none") == 0
    assert all(accepted.values()), f"who never guesses right can't be wrong: {accepted}"


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_weights_take_the_planned_memory(name: str, real_model: Find) -> None:
    target = loaded(real_model(name))
    held = target.weights_bytes  # a norm's float32 copies are planned and not counted here
    assert held <= target.plan.weights_bytes <= 1.001 * held
    in_heads = 0 if target.heads is None else target.heads.nbytes
    assert in_heads <= target.plan.heads_bytes <= 1.05 * in_heads


def test_the_first_model_has_its_shipped_heads(real_model: Find) -> None:
    target = loaded(real_model("smollm2"))
    drafting = {spec.name for spec in serving_drafters(target)}
    assert {"hydra", "composite"} <= drafting


@pytest.mark.parametrize("name", list(LLAMA_CPP))
def test_logits_are_nearer_to_float32_than_llama_cpps(name: str, real_model: Find) -> None:
    path = real_model(name)
    target = loaded(path)
    token_ids = target.tokenizer.encode(TEXT)
    reference = reference_logits(path, token_ids)

    def divergence(of: Target) -> float:
        states = of.runner.extend(token_ids, of.runner.new_cache(len(token_ids)))
        return mean_divergence(reference, of.runner.logits(states).float())

    assert divergence(target) <= LLAMA_CPP[name]
    options = LoadOptions("float32", "cpu", WeightFormats("fp32"), context_tokens=512)
    assert divergence(load_target(path, options=options)) <= 1e-6
