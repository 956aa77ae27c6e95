"""What masking drafts by a grammar brings."""

from medusa_core.messages import GenerateSettings
from medusa_core.system.prompts import BenchPrompt
from tests.benchmarks.grammar_gain import grammar_gain_text, measure_grammar_gain
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.grammars import PERSON_GRAMMAR


def test_masked_drafts_increase_tokens_per_step_and_change_no_text(load: LoadTarget) -> None:
    prompts = [
        BenchPrompt("1", "json", ("Who lives here?",)),
        BenchPrompt("2", "json", ("Tell me of a cat.",)),
    ]
    settings = GenerateSettings(drafter="medusa", rule="greedy", tree_rows=16, max_new_tokens=80)
    gain = measure_grammar_gain(
        load("pebble", "float64"), prompts, settings, PERSON_GRAMMAR, lambda *_: None
    )
    assert gain.num_differing == 0
    assert gain.masked_tau > gain.unmasked_tau
    assert f"{gain.masked_tau:.2f}" in grammar_gain_text(gain)
