"""Cached rows below a CUDA device, in memory and on a disk: attended there, or brought ahead."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.loading.load import load_target
from medusa_core.messages import Shares, Tier
from tests.support.engine.rows_on_card import (
    ROWS_BELOW,
    Expected,
    answers,
    check_bytes,
    driver_on_card,
    policy_of,
)

DEVICE = torch.device("cuda", 0)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return Expected(tmp_path_factory.mktemp("rows"))


@torch.inference_mode()
@pytest.mark.parametrize(("place", "attention", "cache"), ROWS_BELOW)
def test_offloaded_kv_rows_equal_those_on_the_card(
    place: str, attention: Tier, cache: str, tmp_path: Path
) -> None:
    driver_on_card(cache or "float32", place, attention, tmp_path, DEVICE).go_on(200)


@pytest.mark.parametrize(("place", "attention", "cache"), ROWS_BELOW)
def test_texts_equal_those_of_a_resident_model(
    place: str, attention: Tier, cache: str, expected: Expected, tmp_path: Path
) -> None:
    policy = policy_of(place, attention, cache)
    options = replace(expected.options(cache, "cuda"), policy=policy, tier_disk=tmp_path)
    target = load_target(expected.model, None, options)
    assert answers(target) == expected.answers(cache)
    traffic = target.runner.traffic
    assert traffic.rows_written_bytes > 0
    if place != "memory" or attention is Tier.DEVICE:
        assert traffic.rows_read_bytes > 0
        assert traffic.rows_read_s > 0
    check_bytes(target, policy)


def test_layers_offloaded_to_memory_report_their_wait(expected: Expected, tmp_path: Path) -> None:
    policy = replace(policy_of("memory", Tier.DEVICE, ""), weights=Shares(0, 1, 0))
    options = replace(expected.options("", "cuda"), policy=policy, tier_disk=tmp_path)
    target = load_target(expected.model, None, options)
    assert answers(target) == expected.answers("")
    assert target.runner.traffic.weights_bytes > 0
    assert target.runner.traffic.weights_s > 0
