"""What is decoded on a card is what is decoded on the CPU, for every card, rule and drafter."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import product

import pytest

from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import (
    RuleSpec,
    rule_registry,
)
from tests.lanes.card.conftest import Folders
from tests.support.card.card import ON_CARDS, fake_cuda
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import (
    Tie,
    check_cache,
    check_same_but_for_ties,
    check_same_tokens,
    decode,
    plainly,
    user_says,
)
from tests.support.models.targets import TARGET_NAMES, options_of

MESSAGES = user_says("Tell me a story about a lighthouse.")
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.1, "float16": 0.02}
DTYPE_OF = {(6, 1): "float32", (7, 5): "float16", (8, 6): "bfloat16", (8, 9): "bfloat16"}

EXACT = [rule for rule in rule_registry().specs if rule.choice.is_exact]
# Every drafter and every rule; graphs with the default drafter.
METHODS = [
    *((drafter, rule, False) for drafter in drafter_registry().names for rule in ("greedy",)),
    *(("composite", rule, graphs) for rule in rule_registry().names for graphs in (False, True)),
]


_TARGETS = {
    **{name: name for name in ("hydra", "eagle", "streams", "dflash", "dspark", "jetspec")},
    "suffix": "learned",
    "mtp": "mimo",
    "gemma4-assistant": "gemma4",
    "draft-model": "assisted",
}
_MORE = {"qwen3_5": "mtp"}


@pytest.mark.parametrize(("drafter", "rule", "graphs"), METHODS)
def test_texts_equal_those_of_the_cpu(
    drafter: str, rule: str, graphs: bool, load: LoadTarget, folders: Folders
) -> None:
    name = _TARGETS.get(drafter, "grouped")
    here = load(name, "float64")
    settings = GenerateSettings(drafter, rule, seed=4, max_new_tokens=12, repetition_penalty=1.1)
    expected = decode(here, settings, MESSAGES)
    with fake_cuda(graphs_pay=graphs) as card:
        with card.waiting():
            there = load_target(*folders[name], options_of(name, "float64", "cuda"))
        assert isinstance(there.runner, StaticRunner) == graphs
        check_same_tokens(expected, decode(there, settings, MESSAGES))


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_every_family_writes_the_same_on_a_card_as_on_the_cpu(
    name: str, load: LoadTarget, folders: Folders
) -> None:
    drafter = ({target: drafter for drafter, target in _TARGETS.items()} | _MORE).get(
        name, "medusa"
    )
    settings = GenerateSettings(drafter, max_new_tokens=12)
    here = load(name, "float64")
    expected = decode(here, settings, MESSAGES)
    # Which experts are called is known only once the card has chosen them.
    waits = here.config.moe is not None
    with fake_cuda() as card, card.waiting() if waits else nullcontext():
        there = load_target(*folders[name], options_of(name, "float64", "cuda"))
        check_same_tokens(expected, decode(there, settings, MESSAGES))


@pytest.mark.parametrize(
    ("capability", "graphs", "rule"), by_turns(ON_CARDS, list(product((False, True), EXACT)))
)
def test_drafts_change_tokens_only_at_ties_in_each_cards_dtype(
    capability: tuple[int, int],
    rule: RuleSpec,
    graphs: bool,
    load: LoadTarget,
    folders: Folders,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    settings = GenerateSettings(drafter="medusa", rule=rule.name, seed=4, max_new_tokens=16)
    with fake_cuda(capability, graphs_pay=graphs) as card:
        with card.waiting():
            target = load_target(*folders["grouped"], LoadOptions("", "cuda"))
        dtype = target.precision.name
        assert dtype == DTYPE_OF[capability]
        plain = decode(target, plainly(settings), MESSAGES)

        def look(session: object) -> None:
            with card.waiting():
                check_cache(session, target, TOLERANCE[dtype])

        drafted = decode(target, settings, MESSAGES, after_step=look)
        assert drafted.done.num_steps <= plain.done.num_steps
        with card.waiting():
            tie = check_same_but_for_ties(plain, drafted, target, load("grouped", "float64"), rule)
        report_ties([] if tie is None else [tie])
