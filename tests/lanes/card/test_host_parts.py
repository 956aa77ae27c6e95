"""MLPs and experts that the processor computes for a model on a card."""

from collections.abc import Generator
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from medusa_core.errors import HeadsError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import CpuReason, GenerateSettings, LoadOptions
from medusa_core.models.quant.layout import linears_of
from medusa_core.runtime.backends.block import Block, host_mlps
from medusa_core.runtime.backends.host_mlp import HostMlp
from medusa_core.runtime.backends.native_blocks import NativeExperts
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.tuning import threads
from medusa_core.speculation.tuning.threads import choose_threads
from tests.support.card.card import fake_cuda
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import (
    check_cache,
    check_same_but_for_ties,
    check_same_tokens,
    decode,
    plainly,
    user_says,
)
from tests.support.models.peer_files import write_peer
from tests.support.models.targets import folder_of

MESSAGES = user_says("what the card computes, and what the processor does")
SETTINGS = GenerateSettings("medusa", "greedy", seed=5, max_new_tokens=20)
EXPERTS = {"experts": "ram", "cpu_layers": 0}
# Experts, experts in a hybrid with a shared one, a hybrid with MLPs, and a dense model.
TARGETS = {
    "lfm2_moe": EXPERTS,
    "granitemoehybrid": EXPERTS,
    "qwen3_5": {"cpu_layers": 1},
    "mistral": {"cpu_layers": 2},
}


def on_card(name: str, dtype: str, **placement: object) -> Target:
    return load_target(folder_of(name).model, options=LoadOptions(dtype, "cuda", **placement))


def blocks_of(target: Target) -> list[Block]:
    assert isinstance(target.runner, ResidentRunner)
    return target.runner._model.blocks


@pytest.mark.parametrize(("name", "rule"), list(zip(TARGETS, cycle(("greedy", "sample")))))
def test_the_place_of_an_mlp_changes_no_token(name: str, rule: str, load: LoadTarget) -> None:
    """Laws 1, 2, 3 and 7, exactly, with drafts that are often right."""
    settings = replace(SETTINGS, rule=rule)
    here = load(name, "float64")
    plain = decode(here, plainly(settings), MESSAGES)
    oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
    with fake_cuda() as card:
        there = on_card(name, "float64", **TARGETS[name])
        assert len(host_mlps(blocks_of(there))) == len(there.plan.cpu_parts.layers)
        check_same_tokens(plain, decode(there, plainly(settings), MESSAGES))

        def look(session: object) -> None:
            with card.waiting():
                check_cache(session, there, 1e-9)

        drafted = decode(there, settings, MESSAGES, drafter=oracle, after_step=look)
        check_same_tokens(plain, drafted)
    assert drafted.done.num_steps < plain.done.num_steps


def test_swapped_rows_on_the_processor_are_detected(
    load: LoadTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = HostMlp._by_torch
    monkeypatch.setattr(HostMlp, "_by_torch", lambda *of: compute(*of).flip(0))
    plain = decode(load("mistral", "float64"), plainly(SETTINGS), MESSAGES)
    with fake_cuda():
        there = on_card("mistral", "float64", cpu_layers=2)
        with pytest.raises(AssertionError):
            check_same_tokens(plain, decode(there, plainly(SETTINGS), MESSAGES))


@pytest.mark.parametrize("name", ["lfm2_moe", "granitemoehybrid", "mistral"])
def test_kernels_of_the_processor_compute_for_a_model_on_a_card(
    name: str, load: LoadTarget
) -> None:
    rule = rule_registry().get("greedy")
    with fake_cuda() as card:
        there = on_card(name, "float32", **TARGETS[name])
        mlps = host_mlps(blocks_of(there))
        is_moe = there.config.moe is not None
        assert all(isinstance(one._compute, NativeExperts) == is_moe for one in mlps)
        plain = decode(there, plainly(SETTINGS), MESSAGES)
        oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
        drafted = decode(there, SETTINGS, MESSAGES, drafter=oracle)
        with card.waiting():
            exact = load(name, "float64")
            check_same_but_for_ties(plain, drafted, there, exact, rule)
            check_same_but_for_ties(
                decode(exact, plainly(SETTINGS), MESSAGES), plain, there, exact, rule
            )


def test_only_activations_cross_the_bus() -> None:
    with fake_cuda() as card:
        there = on_card("lfm2_moe", "float32", **EXPERTS)
        layers, hidden = len(there.plan.cpu_parts.layers), there.config.hidden_size
        kv = there.allocate_cache(32)
        there.runner.extend([5], kv)  # uploads what every pass needs
        card.journal.clear()
        there.runner.extend([6], kv)
        row = 4 * hidden
        assert card.journal.downloads == [row] * layers
        assert card.journal.uploads.count(row) == layers
        assert max(card.journal.uploads) <= row


@pytest.mark.parametrize("name", TARGETS)
def test_the_plan_counts_layers_moved_to_the_processor(name: str) -> None:
    """Law 4, for a card and for host memory."""
    with fake_cuda() as card:
        with card.waiting():  # for the numbers of experts
            whole = on_card(name, "float32", experts="card", cpu_layers=0)
        there = on_card(name, "float32", **TARGETS[name])
        parts = there.plan.cpu_parts
        assert whole.plan.cpu_parts is None
        assert parts is not None
        assert parts.reason is CpuReason.REQUESTED
        assert there.weights_bytes <= there.plan.weights_bytes <= 1.05 * there.weights_bytes
        assert there.plan.weights_bytes < whole.plan.weights_bytes
        held = sum(
            linear.nbytes for mlp in host_mlps(blocks_of(there)) for linear in linears_of(mlp.mlp)
        )
        assert held <= parts.nbytes <= 1.05 * held
        assert there.plan.ram_bytes == whole.plan.ram_bytes + parts.nbytes
        assert there.num_parameters == whole.num_parameters


def test_the_processor_computes_with_all_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def two(*_: object) -> Generator[None, None, int]:
        yield
        return 2

    monkeypatch.setattr(threads, "_best", two)
    with fake_cuda():
        there = on_card("mistral", "float32", cpu_layers=1)
        assert choose_threads(there, 2) == 2
        assert isinstance(there.runner, ResidentRunner)
        assert there.runner._workers is not None
        assert there.runner._workers.decoding.num_workers == 2
        there.runner.use_threads(1, 1)


def test_speculative_streams_run_beside_layers_on_the_card_only() -> None:
    with fake_cuda():
        options = LoadOptions("float64", "cuda", cpu_layers=6)
        with pytest.raises(HeadsError, match="of which the processor computes"):
            load_target(*folder_of("streams"), options)


def test_as_few_layers_as_needed_move_to_the_processor() -> None:
    with fake_cuda():
        whole = on_card("mistral", "float32", cpu_layers=0).plan
        one = on_card("mistral", "float32", cpu_layers=1).plan
    least = one.total_bytes - one.free_bytes
    with fake_cuda(total_bytes=least):
        fitting = on_card("mistral", "float32")
    assert fitting.plan.cpu_parts == replace(one.cpu_parts, reason=CpuReason.ONLY_WAY)
    assert whole.total_bytes - whole.free_bytes > least


def test_experts_parallel_to_a_dense_mlp_are_computed(tmp_path: Path) -> None:
    """The MLP stays on the card, and the router reads other rows than the experts."""
    write_peer("gemma 4 26B", tmp_path / "model")
    here = load_target(tmp_path / "model", options=LoadOptions("float64", "cpu"))
    settings = replace(SETTINGS, drafter="suffix")
    with fake_cuda():
        options = LoadOptions("float64", "cuda", **EXPERTS)
        there = load_target(tmp_path / "model", options=options)
        assert host_mlps(blocks_of(there))
        check_same_tokens(decode(here, settings, MESSAGES), decode(there, settings, MESSAGES))
