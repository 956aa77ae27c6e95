"""Cached rows below a card: in the computer's memory, and on a disk below that."""

import errno
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from medusa_core.errors import EngineError, PlanError, TierError
from medusa_core.loading import plan as plan_module
from medusa_core.loading.load import load_target
from medusa_core.loading.measure.compute import model_rates
from medusa_core.loading.memory.placement import OffloadRoom
from medusa_core.messages import (
    LoadOptions,
    Placement,
    Policy,
    Shares,
    Tier,
    WeightFormats,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import hardware_of, precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.kv.offloaded.create import create_kv_store
from medusa_core.runtime.kv.offloaded.disk_store import DiskStore
from medusa_core.runtime.kv.offloaded.memory_store import MemoryKv
from medusa_core.runtime.kv.offloaded.store import KvStore
from tests.support.card import card as fake
from tests.support.card.card import fake_cuda
from tests.support.card.tensor import CARD
from tests.support.engine.cached_rows import Failing, kind_of_cache, ready
from tests.support.engine.laws import check_cache, check_same_tokens, decode
from tests.support.engine.rows_on_card import (
    PROMPTS,
    ROWS_BELOW,
    SETTINGS,
    Expected,
    answers,
    check_bytes,
    driver_on_card,
    policy_of,
)
from tests.support.models.peer_files import write_peer

STEPS = {"prompt", "tree", "cut", "fail", "renew"}


@torch.inference_mode()
@pytest.mark.parametrize(("place", "attention", "cache"), ROWS_BELOW)
def test_offloaded_kv_rows_equal_those_on_the_card(
    place: str, attention: Tier, cache: str, tmp_path: Path
) -> None:
    with fake_cuda() as card, card.waiting():
        driver = driver_on_card(cache or "float32", place, attention, tmp_path, CARD)
        assert driver.go_on(25) == STEPS
        assert driver.prefetcher.transfers.written_bytes > 0
        is_copied = place != "memory" or attention is Tier.DEVICE
        assert (driver.prefetcher.transfers.read_bytes > 0) == is_copied


def _rows_are_lost_at_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryKv, "reserved_rows", lambda rows, view: view[:, :, :0])


def _nothing_is_brought(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryKv, "committed_part", lambda rows, view: view.flatten()[:0])


def _nobody_waits_for_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fake._CopyStream, "wait", lambda stream, event, computed: None)


def _nobody_waits_for_what_went_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KvStore, "wait_for_copies", lambda store: None)


def _buffers_are_taken_too_early(patch: pytest.MonkeyPatch) -> None:
    right = fake._CopyStream.copy
    patch.setattr(
        fake._CopyStream,
        "copy",
        lambda stream, to, source, after: right(stream, to, source, None),
    )


def _trees_stay_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryKv, "speculative", lambda rows, length: [])


def _sessions_share_a_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KvStore, "acquire_slot", lambda store: 0)


@torch.inference_mode()
@pytest.mark.parametrize(
    "plant",
    [
        _rows_are_lost_at_leave,
        _nothing_is_brought,
        _nobody_waits_for_rows,
        _nobody_waits_for_what_went_down,
        _buffers_are_taken_too_early,
        _trees_stay_as_they_are,
        _sessions_share_a_slot,
    ],
)
def test_the_law_detects_a_planted_fault(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with fake_cuda() as card, card.waiting():
        driver = driver_on_card("float32", "memory", Tier.DEVICE, tmp_path, CARD)
        with pytest.raises(AssertionError):
            driver.go_on(60)


@torch.inference_mode()
@pytest.mark.parametrize("attention", [Tier.DEVICE, Tier.MEMORY])
def test_a_disk_error_below_a_card_is_reported_and_the_next_attempt_works(
    attention: Tier, tmp_path: Path
) -> None:
    with fake_cuda() as card, card.waiting():
        driver = driver_on_card("float32", "disk", attention, tmp_path, CARD)
        ready(driver)
        assert isinstance(driver.store, DiskStore)
        file = driver.store._file
        reader, writer = file._reader, file._writer
        file._reader = Failing(reader, "readinto", errno.EIO)
        with pytest.raises(TierError, match="can't be read"):
            driver.run({0: 1})
        file._reader, file._writer = reader, Failing(writer, "write", errno.ENOSPC)
        driver.check()
        driver.run({0: 10})
        with pytest.raises(TierError, match="disk is full"):
            driver.each(0, "commit", range(10))
        with pytest.raises(TierError, match="disk is full"):
            driver.run({0: 64}, decided=True)
        driver.check()
        file._writer = writer
        driver.run({0: 10})
        driver.each(0, "commit", range(10))
        driver.check()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    return Expected(tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize(("place", "attention", "cache"), ROWS_BELOW)
def test_texts_equal_those_of_a_resident_model(
    place: str, attention: Tier, cache: str, expected: Expected, tmp_path: Path
) -> None:
    policy = policy_of(place, attention, cache)
    options = replace(expected.options(cache, "cuda"), policy=policy, tier_disk=tmp_path)
    with fake_cuda() as card:
        target = load_target(expected.model, None, options)
        assert answers(target) == expected.answers(cache)
        traffic = target.runner.traffic
        assert traffic.rows_written_bytes > 0
        assert (traffic.rows_read_bytes > 0) == (place != "memory" or attention is Tier.DEVICE)
        check_bytes(target, policy)
        if not cache:
            with card.waiting():
                once = partial(check_cache, honest=target, tolerance=1e-10)
                decode(target, SETTINGS, PROMPTS[0], after_step=once)


def test_offloaded_kv_without_room_in_memory_is_refused(expected: Expected, tmp_path: Path) -> None:
    policy = policy_of("memory", Tier.MEMORY, "")
    options = replace(expected.options("", "cuda"), policy=policy, tier_disk=tmp_path)
    with (
        fake_cuda(),
        patch.object(plan_module, "offload_room", lambda _: OffloadRoom(1000, tmp_path)),
        pytest.raises(PlanError, match="more of the computer's memory than is free") as told,
    ):
        load_target(expected.model, None, options)
    assert "on the disk" in told.value.hint


@pytest.mark.parametrize(
    ("device", "tiers", "why"),
    [
        (torch.device("cpu"), (Tier.MEMORY,) * 5, "no memory below"),
        (CARD, (Tier.MEMORY, *(Tier.DISK,) * 4), "both in memory and on a disk"),
    ],
)
def test_tiers_that_cannot_hold_kv_rows_are_refused(
    device: torch.device, tiers: tuple[Tier, ...], why: str, tmp_path: Path
) -> None:
    kind = kind_of_cache("float32")._replace(device=device)
    placement = Placement(tiers, (0,) * len(tiers), 0, cache_tiers=tiers)
    with fake_cuda(), pytest.raises(EngineError, match=why):
        create_kv_store(placement, kind.config, kind.precision, 1, tmp_path)


@pytest.mark.parametrize(
    ("name", "attended"), [("gpt-oss", 0), ("gemma 2", 0), ("gemma 4 31B", 0), ("llama 3", 8)]
)
def test_attention_on_the_processor_equals_every_familys_own(
    name: str, attended: int, tmp_path: Path
) -> None:
    write_peer(name, tmp_path / "model")
    formats = WeightFormats(attended=attended)
    options = LoadOptions("float64", "cpu", formats, context_tokens=200)
    whole = load_target(tmp_path / "model", None, options)
    plain = decode(whole, SETTINGS, PROMPTS[1])
    policy = Policy(
        cache=Shares(0, 1, 0), batch=2, num_batches=1, attended=attended, attention="memory"
    )
    with fake_cuda() as card, card.waiting():  # as experts do
        options = replace(options, device="cuda", policy=policy)
        target = load_target(tmp_path / "model", None, options)
        check_same_tokens(plain, decode(target, SETTINGS, PROMPTS[1]))
        assert target.runner.traffic.rows_written_bytes > 0


@pytest.mark.slow
def test_attention_on_the_processor_has_a_measured_rate_of_its_own(expected: Expected) -> None:
    config = ModelFiles.open(expected.model).config
    with fake_cuda() as card, card.waiting():
        formats = resolve_formats(WeightFormats(), "float16", hardware_of(CARD), config.stored)
        there = model_rates(config, formats, precision_of("float16", CARD), 64, 1)
    assert 0 < there.host != there.cache


@torch.inference_mode()
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_processor_rounds_at_least_as_finely_as_the_card(
    dtype: str, expected: Expected
) -> None:
    def states(options: LoadOptions) -> Tensor:
        target = load_target(expected.model, None, options)
        return target.runner.extend(range(5, 45), target.runner.new_cache(64)).cpu().double()

    with fake_cuda() as card, card.waiting():
        exact = expected.options("", "cuda")
        given = replace(exact, dtype=dtype)
        policies = (None, *(policy_of("memory", where, "") for where in (Tier.DEVICE, Tier.MEMORY)))
        whole, brought, below = (states(replace(given, policy=each)) for each in policies)
        off = [float((each - states(exact)).norm()) for each in (whole, below)]
    assert torch.equal(whole, brought)
    assert 0 < off[1] < 1.2 * off[0]
