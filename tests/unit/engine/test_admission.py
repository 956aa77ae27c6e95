"""Requests that make no sense are refused before any work is done for them."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.engine.admission import admit, check_threads
from medusa_core.engine.direct import generate
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, Role
from medusa_core.speculation.rules.rule import rule_registry
from tests.support.engine.laws import user_says

HALF = "\ud83d"
FLOATS = (
    *("temperature", "top_p", "min_p", "epsilon", "delta"),
    *("repetition_penalty", "presence_penalty", "frequency_penalty"),
)
BAD = [
    *({name: value} for name in FLOATS for value in (math.nan, math.inf, -math.inf)),
    *({"temperature": value} for value in (1e308, -1e-9, -1.0, 101.0)),
    *({"max_new_tokens": value} for value in (-1, -(10**9), 10**12)),
    *({"tree_rows": value} for value in (-1, 10**9)),
    {"growth": ""},
    {"stop": (HALF,)},
    {"stop": ("a" * 20_000,)},
    {"stop": ("x",) * 1000},
]


@pytest.mark.parametrize("rule", rule_registry().names)
def test_senseless_settings_are_refused_under_every_rule(rule: str, tiny: Target) -> None:
    told: dict[str, bool] = {}
    for bad in BAD:
        settings = replace(GenerateSettings(rule=rule), **bad)  # type: ignore[arg-type]
        try:
            generate(tiny, user_says("one"), settings)
        except RequestError as refused:
            told[str(bad)] = len(refused.message) <= 500
        else:
            told[str(bad)] = False
    assert [bad for bad, is_brief in told.items() if not is_brief] == []


@pytest.mark.parametrize("drafter", ["composite", "eagle", "medusa", "suffix"])
def test_a_tiny_temperature_is_greedy(drafter: str, target_of: Callable[[str], Target]) -> None:
    target = target_of(drafter)
    settings = GenerateSettings(rule="sample", temperature=1e-300, max_new_tokens=8)
    settings = replace(settings, drafter=drafter)
    greedy = generate(target, user_says("one"), replace(settings, rule="greedy"))
    assert generate(target, user_says("one"), settings).token_ids == greedy.token_ids


@pytest.mark.parametrize("text", [HALF, f"a{HALF}", "\udce4 of another encoding"])
def test_lone_surrogates_are_refused(text: str) -> None:
    with pytest.raises(RequestError, match="isn't text"):
        admit((ChatMessage(Role.USER, text),), GenerateSettings())


@pytest.mark.parametrize("count", [-3, -1, 100_000])
def test_impossible_numbers_of_threads_are_refused(
    count: int, folders: dict[str, tuple[Path, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RequestError):
        check_threads(count)
    model = str(folders["grouped"][0])
    requested = ["generate", "--prompt", "hi", "--model", model, f"--threads={count}"]
    assert main(requested) == 1
    assert "threads make no sense" in capsys.readouterr().err
