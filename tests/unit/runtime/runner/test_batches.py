"""Batches of a pass: each layer serves one after the other, and none changes another."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from medusa_core.engine.batch_generate import answer_all
from medusa_core.errors import TierError
from medusa_core.loading import load
from medusa_core.loading.load import load_target
from medusa_core.loading.plan import plan_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
    MemoryPlan,
    Policy,
    Shares,
    Tier,
    WeightFormats,
)
from medusa_core.runtime.kv.size import STAGING_BYTES
from medusa_core.runtime.offload.activations import ActivationStore
from medusa_core.runtime.runner.batches import Batch, batches_of
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.by_turns import by_turns
from tests.support.engine.laws import decode, user_says
from tests.support.engine.tight import with_layers_below
from tests.support.models.targets import STREAMED
from tests.support.models.tiny import write_tiny

SETTINGS = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=6)
PROMPTS = [user_says(f"number {n} " * (3 * n + 1)) for n in range(6)]
KINDS = {
    "float64": ("float64", WeightFormats()),
    "float64 and 4-bit cache": ("float64", WeightFormats(cache="q4")),
    "compiled": ("float32", WeightFormats()),
    "bfloat16": ("bfloat16", WeightFormats()),
}


def answers(target: Target, settings: GenerateSettings = SETTINGS) -> list[tuple[int, ...]]:
    """Return the answers to all prompts of one batch."""
    requests = [Generate(str(n), "", prompt, settings) for n, prompt in enumerate(PROMPTS)]
    found = {}
    for answered in answer_all(target, requests, RowPolicy(target), len(PROMPTS)):
        assert isinstance(answered.done, GenerationDone), answered.done
        found[int(answered.request.session_id)] = answered.done.token_ids
    return [found[n] for n in range(len(PROMPTS))]


def test_a_pass_is_split_by_sequences_and_by_rows() -> None:
    assert batches_of([1] * 5, 2, 64) == [
        Batch(slice(0, 2), slice(0, 2)),
        Batch(slice(2, 4), slice(2, 4)),
        Batch(slice(4, 5), slice(4, 5)),
    ]
    rows = [batch.rows for batch in batches_of([30, 30, 30, 90, 1], 8, 64)]
    assert rows == [slice(0, 60), slice(60, 90), slice(90, 180), slice(180, 181)]


CACHES = {
    "here": (),
    "the second below": (1,),
    "all below": (0, 1, 2, 3),
}


class Whole(NamedTuple):
    """A model that isn't split into batches, and its answers."""

    model: Path
    options: LoadOptions
    tapped: Tensor
    answers: list[tuple[int, ...]]


@pytest.fixture(scope="module")
def whole_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Whole]:
    @cache
    def load_whole(kind: str) -> Whole:
        dtype, formats = KINDS[kind]
        model = write_tiny(tmp_path_factory.mktemp("model"), STREAMED)
        options = LoadOptions(dtype, formats=formats, context_tokens=256, sessions=6)
        here = tapped(load_target(model, None, options))
        options = with_layers_below(model, None, options, 1)
        whole = load_target(model, None, options)
        alone = [decode(whole, SETTINGS, prompt).token_ids for prompt in PROMPTS]
        return Whole(model, options, here, alone)

    return load_whole


@pytest.mark.parametrize(
    ("kind", "states", "caches"),
    by_turns(list(KINDS), [Tier.DEVICE, Tier.MEMORY, Tier.DISK], list(CACHES)),
)
def test_split_batches_answer_like_one(
    kind: str,
    states: Tier,
    caches: str,
    whole_of: Callable[[str], Whole],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, options, here, alone = whole_of(kind)
    below = [Tier.DISK if n in CACHES[caches] else Tier.DEVICE for n in range(4)]

    def placed(*args: object, **more: object) -> MemoryPlan:
        plan = plan_target(*args, **more)  # type: ignore[arg-type]
        assert plan.placement is not None
        placement = replace(
            plan.placement,
            batch=2,
            states=states,
            pass_rows=600,
            prompt_rows=64,
            cache_tiers=tuple(below),
            tree_rows=12,
        )
        return replace(plan, placement=placement)

    monkeypatch.setattr(load, "plan_target", placed)
    target = load_target(model, None, options)
    assert answers(target) == alone
    traffic = target.runner.traffic
    assert (traffic.states_bytes > 0) == (states is not Tier.DEVICE)
    assert (traffic.rows_written_bytes > 0) == (caches != "here")
    assert traffic.num_layers > traffic.num_passes * target.config.num_layers
    trees = replace(SETTINGS, drafter="suffix")
    assert answers(target, trees) == alone
    torch.testing.assert_close(tapped(target), here, rtol=1e-4, atol=1e-4)


def tapped(target: Target) -> Tensor:
    """States of five sequences with what enters the first layer, and leaves the last."""
    target.runner.tap((0, 2, target.config.num_layers))
    caches = [target.allocate_cache(32) for _ in range(5)]
    tree = TokenTree(TreeShape.chain(3), (1, 2, 3))
    placed = [
        PlacedTree(tree, kv, decided=True, only_last=number % 2 == 1)
        for number, kv in enumerate(caches)
    ]
    return target.runner.verify(*placed)


def test_a_full_disk_ends_a_pass_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = ActivationStore(Tier.DISK, tmp_path)
    states.begin([2, 3], 4, torch.float32)
    states.put(0, torch.ones(2, 4))

    def full() -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(states, "_open", full)
    with pytest.raises(TierError, match="No space left") as raised:
        states.put(1, torch.ones(3, 4))
    assert "Make room" in raised.value.hint


@pytest.mark.parametrize("cache", ["", "q4"])
def test_planned_bytes_under_a_policy_equal_the_allocated(cache: str, tmp_path: Path) -> None:
    spec = replace(STREAMED, hidden_size=256, intermediate_size=384)
    model = write_tiny(tmp_path / "model", spec)
    policy = Policy(Shares(0.5, 0, 0.5), Shares(0.5, 0, 0.5), batch=4, num_batches=2)
    options = LoadOptions(
        "float32",
        formats=WeightFormats(cache=cache),
        context_tokens=192,
        sessions=8,
        memory_gib=0.5,
        tier_disk=tmp_path / "tiers",
        policy=policy,
    )
    target = load_target(model, None, options)
    caches = [target.allocate_cache(192) for _ in range(8)]
    for kv in caches:
        kv.fill(191)
    root = TokenTree(TreeShape.root_only(), (1,))
    target.runner.verify(*[PlacedTree(root, kv) for kv in caches])
    rows = target.runner.tiers.rows.nbytes  # type: ignore[attr-defined]
    held = target.caches.nbytes + rows
    assert held <= target.plan.kv_bytes <= held * 1.05 + 2 * STAGING_BYTES
    weights = target.weights_bytes
    assert weights <= target.plan.weights_bytes <= weights * 1.05
