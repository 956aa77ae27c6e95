"""Laws 1 to 3 over every registered drafter and rule, on random targets and on Llama-Pebble."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import cycle, product

import pytest

from medusa_core.messages import GenerateSettings
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.rules.rule import (
    RuleSpec,
    rule_registry,
)
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
from tests.support.engine.pairs import serving_pairs

assert len(VARIANTS) <= len(TINY_PROMPTS)  # else some would never be tried

PlainRun = Callable[[str, str, int, GenerateSettings], Run]


@pytest.fixture(scope="module")
def plain_run(load: LoadTarget) -> PlainRun:
    """Plain decoding of a target's prompt, each once."""

    @cache
    def run(name: str, dtype: str, prompt: int, settings: GenerateSettings) -> Run:
        return decode(load(name, dtype), plainly(settings), prompts_of(name)[prompt])

    return run


def cases(
    name: str, rule: RuleSpec, num_tokens: int = 32, num_prompts: int = len(TINY_PROMPTS)
) -> list[tuple[int, GenerateSettings]]:
    """Prompts, each with one of the settings by turns."""
    if name != "pebble":
        settings = cycle(settings_for(rule, num_tokens))
        return list(zip(range(num_prompts), settings, strict=False))
    pebble = settings_for(rule, min(num_tokens, 32)) * (3 if rule.name == "greedy" else 1)
    return [(p % len(prompts_of(name)), s) for p, s in enumerate(pebble)]


@pytest.mark.parametrize(("name", "drafter", "rule"), by_turns(serving_pairs(), EXACT))
def test_laws_1_and_2_a_drafter_never_changes_a_token_in_float64(
    name: str, drafter: DrafterSpec, rule: RuleSpec, load: LoadTarget, plain_run: PlainRun
) -> None:
    target = load(name, "float64")
    for prompt, settings in cases(name, rule):
        settings = replace(settings, drafter=drafter.name)
        drafted = decode(target, settings, prompts_of(name)[prompt])
        check_same_tokens(plain_run(name, "float64", prompt, plainly(settings)), drafted)
        check_sources(drafted)


@pytest.mark.parametrize(
    ("name", "drafter", "rule", "dtype"),
    by_turns(serving_pairs(), list(product(EXACT, ["float32", "bfloat16"]))),
)
def test_laws_1_and_2_in_lower_precision_tokens_differ_at_ties_alone(
    name: str,
    dtype: str,
    drafter: DrafterSpec,
    rule: RuleSpec,
    load: LoadTarget,
    plain_run: PlainRun,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    target, exact = load(name, dtype), load(name, "float64")
    ties: list[Tie] = []
    for prompt, settings in cases(name, rule, 24, num_prompts=3):
        settings = replace(settings, drafter=drafter.name)
        drafted = decode(target, settings, prompts_of(name)[prompt])
        plain = plain_run(name, dtype, prompt, plainly(settings))
        tie = check_same_but_for_ties(plain, drafted, target, exact, rule)
        ties += [] if tie is None else [tie]
    report_ties(ties)
    # The compiled step computes a row alike, whatever is beside it.
    assert not (ties and isinstance(target.runner, NativeRunner))


@pytest.mark.parametrize(
    ("name", "drafter", "rule", "dtype"),
    by_turns(serving_pairs(), list(product(RULES, ["float64", "float32"]))),
)
def test_law_3_after_every_step_the_cache_is_one_that_never_drafted(
    name: str, dtype: str, drafter: DrafterSpec, rule: RuleSpec, load: LoadTarget
) -> None:
    target = load(name, dtype)
    tolerance = 0.0 if isinstance(target.runner, NativeRunner) else TOLERANCE[dtype]
    if target.config.state_layers:
        tolerance *= 10  # sums over all rows before, in another order
    prompt, settings = cases(name, rule)[-1]
    run = decode(
        target,
        replace(settings, drafter=drafter.name),
        prompts_of(name)[prompt],
        after_step=lambda session: check_cache(session, target, tolerance),
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
