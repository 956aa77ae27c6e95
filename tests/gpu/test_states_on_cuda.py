"""Recurrent states and keys of several sizes, on a card: the laws, rollback, recorded steps."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from medusa_core.engine.session import Session
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.speculation.rules.rule import RuleSpec, rule_registry
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import (
    check_cache,
    check_same_tokens,
    check_sources,
    decode,
    plain_scores,
    plainly,
    user_says,
)
from tests.support.models.peer_files import write_peer

NAMES = ("qwen 3.5", "lfm 2", "granite 4 hybrid", "gemma 4 E2B")
WITH_STATES = NAMES[:3]
MESSAGES = user_says("Tell me a story about a lighthouse.")
SETTINGS = GenerateSettings("medusa", temperature=0.9, top_p=0.9, seed=4, max_new_tokens=48)
EXACT = [rule for rule in rule_registry().specs if rule.choice.is_exact]
IDS = [3, 50, 60, 200, 9, 11, 50, 7, 300, 41, 5, 18]
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}

Load = Callable[..., Target]


@pytest.fixture(scope="module")
def load_peer(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Random models of families, with heads."""

    @cache
    def folders(name: str) -> tuple[Path, Path]:
        root = tmp_path_factory.mktemp(name.replace(" ", "-"))
        write_peer(name, root / "model", root / "heads")
        return root / "model", root / "heads"

    @cache
    def loaded(name: str, dtype: str = "float64", device: str = "cuda") -> Target:
        return load_target(*folders(name), LoadOptions(dtype, device))

    return loaded


@pytest.mark.parametrize("rule", EXACT, ids=lambda rule: rule.name)
@pytest.mark.parametrize("drafter", ["none", "medusa", "suffix", "lookahead", "composite"])
@pytest.mark.parametrize("name", NAMES)
def test_no_drafter_changes_a_token(
    name: str, drafter: str, rule: RuleSpec, load_peer: Load
) -> None:
    target = load_peer(name)
    settings = replace(SETTINGS, drafter=drafter, rule=rule.name)
    drafted = decode(target, settings, MESSAGES)
    check_sources(drafted)
    check_same_tokens(decode(target, plainly(settings), MESSAGES), drafted)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", NAMES)
def test_the_cache_equals_one_without_drafts_whatever_an_oracle_gets_accepted(
    name: str, dtype: str, load_peer: Load
) -> None:
    target = load_peer(name, dtype)
    plain = decode(target, plainly(SETTINGS), MESSAGES)
    for seed in range(3):
        run = decode(
            target,
            SETTINGS,
            MESSAGES,
            drafter=oracle_spec([*plain.prompt_ids, *plain.token_ids], seed),
            after_step=lambda session: check_cache(session, target, TOLERANCE[dtype]),
        )
        assert run.done.num_steps < plain.done.num_steps


@pytest.mark.parametrize("name", NAMES)
def test_logits_equal_those_of_the_cpu(name: str, load_peer: Load) -> None:
    here = plain_scores(load_peer(name), IDS).cpu()
    there = plain_scores(load_peer(name, device="cpu"), IDS)
    torch.testing.assert_close(here, there, atol=1e-9, rtol=0)


@pytest.mark.parametrize("length", range(len(IDS) + 1))
@pytest.mark.parametrize("name", NAMES)
def test_states_are_rolled_back_at_every_depth(name: str, length: int, load_peer: Load) -> None:
    target = load_peer(name)
    runner, kv = target.runner, target.runner.new_cache(64)
    with torch.inference_mode():
        runner.extend(IDS[:5], kv)
        kv.checkpoint()
        runner.extend(IDS[5:], kv)
        kv.truncate(length)
        assert kv.length <= length
        again = [*IDS[kv.length : length], 77, 8]
        found = runner.logits(runner.extend(again, kv))[-2:]
        fresh = runner.new_cache(64)
        wanted = runner.logits(runner.extend([*IDS[:length], 77, 8], fresh))[-2:]
    torch.testing.assert_close(found, wanted, atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", WITH_STATES)
def test_an_edited_prompt_gets_the_answer_of_a_new_chat(name: str, load_peer: Load) -> None:
    target = load_peer(name)
    session = Session(target)
    decode(target, SETTINGS, MESSAGES, session=session)
    edited = user_says("Tell me a joke.")
    again = decode(target, SETTINGS, edited, session=session)
    assert again.token_ids == decode(target, SETTINGS, edited).token_ids


@pytest.mark.parametrize("drafter", ["none", "medusa", "suffix", "composite"])
@pytest.mark.parametrize("name", NAMES)
def test_graph_replayed_steps_keep_the_decoding_laws(
    name: str, drafter: str, load_peer: Load
) -> None:
    resident = load_peer(name)
    runner = StaticRunner(resident.runner._model, resident.precision, captures=True)
    target = replace(resident, runner=runner)
    settings = GenerateSettings(drafter, max_new_tokens=48)
    drafted = decode(target, settings, MESSAGES, after_step=lambda s: check_cache(s, target, 1e-9))
    check_same_tokens(decode(resident, plainly(settings), MESSAGES), drafted)
    assert runner.is_recorded
