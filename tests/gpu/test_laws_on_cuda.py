"""Laws 1 to 3 on a CUDA device, with every registered drafter and rule and with the oracle."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from medusa_core.messages import (
    Failed,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
)
from medusa_core.runtime.backends.attention import attend_by_products, attend_fused
from medusa_core.runtime.runner.rows import additive_mask
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import (
    RuleSpec,
    rule_registry,
)
from tests.support.engine import faults
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import (
    Tie,
    check_cache,
    check_same_but_for_ties,
    check_same_tokens,
    check_sources,
    decode,
    plain_scores,
    plainly,
    user_says,
)
from tests.support.models.targets import TARGET_NAMES

DEVICE = "cuda"
DTYPES = ("float64", "float32", "bfloat16", "float16")
TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "bfloat16": 0.1, "float16": 0.02}
MESSAGES = user_says("Tell me a story about a lighthouse.")
SETTINGS = GenerateSettings(drafter="medusa", temperature=0.9, top_p=0.9, seed=4, max_new_tokens=48)

RULES = pytest.mark.parametrize("rule", rule_registry().specs, ids=lambda rule: rule.name)
DRAFTERS = pytest.mark.parametrize("drafter", drafter_registry().specs, ids=lambda d: d.name)


@RULES
@DRAFTERS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_a_drafter_changes_tokens_only_at_ties(
    name: str,
    dtype: str,
    drafter: DrafterSpec,
    rule: RuleSpec,
    load: LoadTarget,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    target, exact = load(name, dtype, DEVICE), load(name, "float64", DEVICE)
    if not (drafter.serves(target) and rule.choice.is_exact):
        pytest.skip("not an exact method for this target")
    settings = replace(SETTINGS, drafter=drafter.name, rule=rule.name)
    plain = decode(target, plainly(settings), MESSAGES)
    drafted = decode(target, settings, MESSAGES)
    check_sources(drafted)
    if dtype == "float64":
        check_same_tokens(plain, drafted)
    else:
        tie = check_same_but_for_ties(plain, drafted, target, exact, rule)
        report_ties([] if tie is None else [tie])


@RULES
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_the_cache_equals_one_without_drafts_whatever_an_oracle_gets_accepted(
    name: str, dtype: str, rule: RuleSpec, load: LoadTarget
) -> None:
    target = load(name, dtype, DEVICE)
    settings = replace(SETTINGS, rule=rule.name)
    plain = decode(target, plainly(settings), MESSAGES)
    for seed in range(3):
        run = decode(
            target,
            settings,
            MESSAGES,
            drafter=oracle_spec([*plain.prompt_ids, *plain.token_ids], seed),
            rule=rule,
            after_step=lambda session: check_cache(session, target, TOLERANCE[dtype]),
        )
        assert run.done.num_steps < plain.done.num_steps


def test_planted_faults_are_caught_on_cuda_too(load: LoadTarget) -> None:
    honest = load("grouped", "float64", DEVICE)
    plain = decode(honest, plainly(SETTINGS), MESSAGES)
    drafter = oracle_spec([*plain.prompt_ids, *plain.token_ids])
    for faulty in (
        faults.with_cache(honest, faults.ReversedCommit),
        faults.with_layout(honest, faults.sibling_mask),
        faults.with_layout(honest, faults.shifted_positions),
    ):
        with pytest.raises(AssertionError):
            decode(
                faulty,
                SETTINGS,
                MESSAGES,
                drafter=drafter,
                after_step=lambda session: check_cache(session, honest, 1e-10),
            )


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_logits_equal_those_of_the_cpu(name: str, load: LoadTarget) -> None:
    ids = [3, 50, 60, 200, 9, 11, 50]
    here = plain_scores(load(name, "float64", DEVICE), ids).cpu()
    torch.testing.assert_close(here, plain_scores(load(name, "float64"), ids), atol=1e-9, rtol=0)


def test_a_seed_gives_the_same_text_as_on_the_cpu(load: LoadTarget) -> None:
    settings = replace(SETTINGS, rule="sample")
    here = decode(load("grouped", "float64", DEVICE), settings, MESSAGES)
    check_same_tokens(decode(load("grouped", "float64"), settings, MESSAGES), here)


def test_both_attention_backends_agree() -> None:
    q = torch.randn(9, 4, 64, device=DEVICE)
    keys, values = torch.randn(2, 2, 40, 64, device=DEVICE)
    mask = torch.zeros(18, 40, device=DEVICE).masked_fill_(
        torch.rand(18, 40, device=DEVICE) < 0.5, -1e9
    )
    for given in (None, mask):
        torch.testing.assert_close(
            attend_fused(q / 8, keys, values, given),
            attend_by_products(q / 8, keys, values, given),
            atol=1e-3,
            rtol=1e-3,
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_attention_handles_masks_of_any_rows_after_any_length(dtype: torch.dtype) -> None:
    for rows, length in product((2, 7, 8, 16, 33, 64), range(1, 700, 3)):
        q = torch.randn(rows, 4, 64, device=DEVICE, dtype=dtype)
        keys, values = torch.randn(2, 2, length + rows, 64, device=DEVICE, dtype=dtype)
        sees = torch.ones(rows, rows, dtype=torch.bool, device=DEVICE).tril()
        mask = additive_mask(sees, length, 2, dtype)
        assert attend_fused(q / 8, keys, values, mask).isfinite().all()


@pytest.mark.expects_errors
def test_an_absent_device_fails_with_a_message_and_the_engine_keeps_working(
    folders: dict[str, tuple[Path, Path]],
) -> None:
    # It needs all of the program's libraries; the other tests run beside torch alone.
    from tests.support.engine.harness import EngineHarness

    harness = EngineHarness()
    try:
        failed = harness.load(LoadModel("", "far", *folders["grouped"], LoadOptions("", "cuda:99")))
        assert isinstance(failed, Failed)
        assert failed.kind == "RequestError"
        assert isinstance(
            harness.load(LoadModel("", "near", *folders["grouped"], LoadOptions("", DEVICE))),
            ModelLoaded,
        )
        assert isinstance(harness.answer("hello", SETTINGS), GenerationDone)
    finally:
        harness.close()
