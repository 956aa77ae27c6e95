"""Laws 1, 2 and 7 where answers must match a grammar; and they do match it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import GrammarError
from medusa_core.messages import Generate, GenerateSettings, GenerationDone, StopReason
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry, serving_drafters
from medusa_core.speculation.rules.rule import RuleSpec, rule_registry
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.cases import case
from tests.support.engine import faults
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import WalkWitness, oracle_spec
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.grammars import (
    ABC_GRAMMAR,
    CALL_GRAMMAR,
    PERSON_GRAMMAR,
    check_person,
)
from tests.support.engine.law_settings import EXACT, RULES, VARIANTS
from tests.support.engine.laws import (
    Run,
    check_same_tokens,
    check_sources,
    decode,
    plainly,
    user_says,
)
from tests.support.engine.pairs import targets_of

MESSAGES = user_says("Who lives here?")
GRAMMARS = {"person": PERSON_GRAMMAR, "letters": ABC_GRAMMAR, "call": CALL_GRAMMAR}
METHODS = list(product(EXACT, GRAMMARS))
PlainRun = Callable[[str, str, GenerateSettings], Run]


@pytest.fixture(scope="module")
def plain_run(load: LoadTarget) -> PlainRun:
    """Plain decoding under a grammar, each once."""

    @cache
    def run(name: str, grammar: str, settings: GenerateSettings) -> Run:
        return decode(load(name, "float64"), plainly(settings), MESSAGES, grammar=grammar)

    return run


@pytest.mark.parametrize(
    ("drafter", "turn"), by_turns(drafter_registry().specs, list(range(len(METHODS))))
)
def test_laws_1_and_2_a_drafter_never_changes_a_token_under_a_grammar(
    drafter: DrafterSpec, turn: int, load: LoadTarget, plain_run: PlainRun
) -> None:
    for number, name in enumerate(targets_of(drafter), turn):
        rule, grammar = METHODS[number % len(METHODS)]
        text = GRAMMARS[grammar]
        settings = replace(VARIANTS[2], rule=rule.name, max_new_tokens=20)
        drafted_settings = replace(settings, drafter=drafter.name)
        with case(name, rule, grammar):
            drafted = decode(load(name, "float64"), drafted_settings, MESSAGES, grammar=text)
            check_same_tokens(plain_run(name, text, plainly(settings)), drafted)
            check_sources(drafted)


def test_law_7_answers_under_grammars_share_passes_with_others(load: LoadTarget) -> None:
    target = load("pebble", "float64")
    drafters = serving_drafters(target)[:4]
    for first in range(0, len(drafters), 2):
        requests = [
            Generate(
                f"{number}",
                "",
                MESSAGES,
                replace(VARIANTS[number], rule="sample", drafter=drafter.name, max_new_tokens=20),
                grammar=grammar,
            )
            for number, (drafter, grammar) in enumerate(
                (drafter, grammar)
                for drafter in drafters[first : first + 2]
                for grammar in (PERSON_GRAMMAR, "")
            )
        ]
        for request, done in zip(requests, _together(load, requests), strict=True):
            alone = decode(
                target,
                replace(request.settings, tree_rows=12),
                MESSAGES,
                grammar=request.grammar,
            )
            assert done.token_ids == alone.token_ids


def _together(load: LoadTarget, requests: list[Generate]) -> list[GenerationDone]:
    target = load("pebble", "float64")
    sessions = [Session(target) for _ in requests]
    row_policy, scheduler = RowPolicy(target), Scheduler()
    running = [
        start_generation(
            replace(request, settings=replace(request.settings, tree_rows=12)),
            target,
            session,
            row_policy,
        )
        for request, session in zip(requests, sessions, strict=True)
    ]
    done: dict[str, GenerationDone] = {}
    while running:
        for turn in scheduler.step(running):
            assert turn.error is None
            done.update({e.session_id: e for e in turn.events if isinstance(e, GenerationDone)})
    for session in sessions:
        session.close()
    return [done[request.session_id] for request in requests]


@pytest.mark.parametrize(("rule", "dtype"), by_turns(RULES, ["float32", "float64"]))
def test_every_answer_matches_its_schema(rule: RuleSpec, dtype: str, load: LoadTarget) -> None:
    target = load("pebble", dtype)
    for seed, drafter in enumerate(serving_drafters(target)):
        settings = GenerateSettings(
            rule=rule.name, drafter=drafter.name, temperature=1.5, seed=seed, max_new_tokens=120
        )
        run = decode(target, settings, MESSAGES, grammar=PERSON_GRAMMAR)
        assert run.done.stop_reason is StopReason.EOS
        check_person(run.done.text)


def test_an_oracle_is_accepted_at_all_depths_under_a_grammar(load: LoadTarget) -> None:
    target = load("pebble", "float64")
    settings = GenerateSettings(drafter="medusa", rule="greedy", max_new_tokens=60)
    plain = decode(target, plainly(settings), MESSAGES, grammar=PERSON_GRAMMAR)
    witness = WalkWitness()
    for seed in range(4):
        truth = [*plain.prompt_ids, *plain.token_ids]
        run = decode(
            target,
            settings,
            MESSAGES,
            drafter=oracle_spec(truth, seed),
            rule=witness.watch(rule_registry().get("greedy")),
            grammar=PERSON_GRAMMAR,
        )
        check_same_tokens(plain, run)
    assert witness.accepted_depths >= {0, 1, 2, 3}
    assert witness.accepted_ranks >= {0, 1}


def test_the_mask_of_a_wrong_node_is_detected(load: LoadTarget) -> None:
    target = load("pebble", "float64")
    settings = GenerateSettings(drafter="medusa", rule="greedy", max_new_tokens=60)
    plain = decode(target, plainly(settings), MESSAGES, grammar=PERSON_GRAMMAR)
    drafter = oracle_spec([*plain.prompt_ids, *plain.token_ids], 1)
    rule = faults.greedy_by_parents_grammar()
    with pytest.raises((AssertionError, GrammarError)):  # another text, or one that doesn't match
        check_same_tokens(
            plain,
            decode(target, settings, MESSAGES, drafter=drafter, rule=rule, grammar=PERSON_GRAMMAR),
        )


def test_a_grammar_may_demand_tokens_that_have_no_text(load: LoadTarget) -> None:
    target = load("pebble", "float64")
    special = [token_id for token_id, _ in target.tokenizer.special_tokens]
    mark = next(token_id for token_id in special if token_id not in target.eos_token_ids)
    grammar = f'start: "the " <[{mark}]> "end"'
    for drafter in serving_drafters(target):
        settings = GenerateSettings(rule="greedy", drafter=drafter.name, max_new_tokens=20)
        run = decode(target, settings, MESSAGES, grammar=grammar)
        assert run.done.text == "the end"
        assert mark in run.token_ids
        assert run.done.stop_reason is StopReason.EOS
