"""Answers under grammars on real models: SmolLM2 in the usual run, all as slow tests."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.messages import GenerateSettings, StopReason
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.lineup import serving_drafters
from medusa_core.system.prompts import BenchPrompt
from tests.benchmarks.grammar_gain import measure_grammar_gain
from tests.support.engine.grammars import PERSON_GRAMMAR, check_person
from tests.support.engine.laws import check_same_tokens, decode, plainly, user_says
from tests.support.models.real import EVERY_MODEL, loaded

Find = Callable[[str], Path]

PROMPT = "Describe a person who lives in Berlin as JSON."
GREEDY = GenerateSettings(rule="greedy", max_new_tokens=80, tree_rows=8)
SAMPLED = replace(GREEDY, rule="sample", temperature=0.8, seed=7)


@pytest.mark.parametrize("settings", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", EVERY_MODEL)
def test_every_drafter_gives_the_same_json_as_plain_decoding(
    name: str, settings: GenerateSettings, real_model: Find
) -> None:
    target = loaded(real_model(name))
    plain = decode(target, plainly(settings), user_says(PROMPT), grammar=PERSON_GRAMMAR)
    assert plain.done.stop_reason is StopReason.EOS
    check_person(plain.done.text)
    for spec in serving_drafters(target):
        if spec.drafts:
            drafted_settings = replace(settings, drafter=spec.name)
            drafted = decode(target, drafted_settings, user_says(PROMPT), grammar=PERSON_GRAMMAR)
            check_person(drafted.done.text)
            if isinstance(target.runner, NativeRunner):  # else they may part at ties
                check_same_tokens(plain, drafted)


def test_masked_drafts_increase_tokens_per_step_on_a_real_model(real_model: Find) -> None:
    target = loaded(real_model("smollm2"))
    settings = replace(GREEDY, drafter="composite", tree_rows=16)
    prompts = [BenchPrompt("1", "json", (PROMPT,))]
    gain = measure_grammar_gain(target, prompts, settings, PERSON_GRAMMAR, lambda *_: None)
    assert gain.num_differing == 0
    assert gain.masked_tau > 1.3 * gain.unmasked_tau
