"""Laws 1 to 3 over every registered drafter and rule, on random targets and on Llama-Pebble."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import pytest

from medusa_core.messages import ChatMessage, GenerateSettings
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import RuleSpec, rule_registry
from tests.support.cases import case
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.law_settings import (
    EXACT,
    RULES,
    TINY_PROMPTS,
    TOLERANCE,
    VARIANTS,
    prompts_of,
    settings_for,
)
from tests.support.engine.laws import (
    Run,
    Tie,
    check_cache,
    check_same_but_for_ties,
    check_same_tokens,
    check_sources,
    decode,
    plainly,
)
from tests.support.engine.pairs import targets_of

assert len(VARIANTS) <= len(TINY_PROMPTS)  # else some would never be tried

DRAFTERS = drafter_registry().specs
PROMPTS = range(len(TINY_PROMPTS))
# Each target of a drafter takes the next one, and the whole grid is slow.
IN_FLOAT64 = list(product(PROMPTS, EXACT))
IN_FEWER_BITS = list(product(PROMPTS, ["float32", "bfloat16"], EXACT))
OF_CACHES = list(product(RULES, ["float64", "float32"]))

Messages = tuple[ChatMessage, ...]
PlainRun = Callable[[str, str, Messages, GenerateSettings], Run]


@pytest.fixture(scope="module")
def plain_run(load: LoadTarget) -> PlainRun:
    """Plain decoding of a target's prompt, each once."""

    @cache
    def run(name: str, dtype: str, messages: Messages, settings: GenerateSettings) -> Run:
        return decode(load(name, dtype), settings, messages)

    return run


def turns(grid: Sequence[object]) -> Any:
    """Return every drafter with each member of a grid by turns; all but one are slow."""
    return pytest.mark.parametrize(("drafter", "turn"), by_turns(DRAFTERS, list(range(len(grid)))))


def settings_of(
    name: str, rule: RuleSpec, drafter: DrafterSpec, prompt: int, num_tokens: int
) -> tuple[Messages, GenerateSettings]:
    """A prompt of a target, and settings that go with its number."""
    prompts, settings = prompts_of(name), settings_for(rule, num_tokens)
    chosen = replace(settings[prompt % len(settings)], drafter=drafter.name)
    return prompts[prompt % len(prompts)], chosen


@turns(IN_FLOAT64)
def test_laws_1_and_2_a_drafter_never_changes_a_token_in_float64(
    drafter: DrafterSpec, turn: int, load: LoadTarget, plain_run: PlainRun
) -> None:
    for number, name in enumerate(targets_of(drafter), turn):
        prompt, rule = IN_FLOAT64[number % len(IN_FLOAT64)]
        messages, settings = settings_of(name, rule, drafter, prompt, 24)
        with case(name, rule, prompt):
            drafted = decode(load(name, "float64"), settings, messages)
            check_same_tokens(plain_run(name, "float64", messages, plainly(settings)), drafted)
            check_sources(drafted)


@turns(IN_FEWER_BITS)
def test_laws_1_and_2_in_lower_precision_tokens_differ_only_at_ties(
    drafter: DrafterSpec,
    turn: int,
    load: LoadTarget,
    plain_run: PlainRun,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    ties = []
    for number, name in enumerate(targets_of(drafter), turn):
        prompt, dtype, rule = IN_FEWER_BITS[number % len(IN_FEWER_BITS)]
        target, exact = load(name, dtype), load(name, "float64")
        messages, settings = settings_of(name, rule, drafter, prompt, 24)
        with case(name, dtype, rule, prompt):
            drafted = decode(target, settings, messages)
            plain = plain_run(name, dtype, messages, plainly(settings))
            tie = check_same_but_for_ties(plain, drafted, target, exact, rule)
            # The compiled step computes a row alike, whatever is beside it.
            assert not (tie and isinstance(target.runner, NativeRunner))
        ties += [] if tie is None else [tie]
    report_ties(ties)


@turns(OF_CACHES)
def test_law_3_after_every_step_the_cache_equals_one_without_drafts(
    drafter: DrafterSpec, turn: int, load: LoadTarget
) -> None:
    for number, name in enumerate(targets_of(drafter), turn):
        rule, dtype = OF_CACHES[number % len(OF_CACHES)]
        target = load(name, dtype)
        tolerance = 0.0 if isinstance(target.runner, NativeRunner) else TOLERANCE[dtype]
        if target.config.state_layers:
            tolerance *= 10  # sums over all rows before, in another order
        messages, settings = settings_of(name, rule, drafter, PROMPTS[-1], 16)
        with case(name, dtype, rule):
            run = decode(
                target,
                settings,
                messages,
                after_step=partial(check_cache, honest=target, tolerance=tolerance),
            )
            assert run.done.num_steps > 0


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_law_1_on_all_prompts_of_the_domain(
    dtype: str, load: LoadTarget, report_ties: Callable[[list[Tie]], None]
) -> None:
    target, exact = load("pebble", dtype), load("pebble", "float64")
    rule = rule_registry().get("greedy")
    settings = GenerateSettings(drafter="medusa", rule="greedy", max_new_tokens=128)
    ties = []
    for messages in prompts_of("pebble"):
        plain = decode(target, plainly(settings), messages)
        drafted = decode(target, settings, messages)
        if dtype == "float64":
            check_same_tokens(plain, drafted)
        else:
            ties.append(check_same_but_for_ties(plain, drafted, target, exact, rule))
    report_ties([tie for tie in ties if tie is not None])
