"""Decoding steps by fused kernels: as torch's, in few launches, one graph for all caches."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import Gemma2Config, Gemma3TextConfig

from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.plan import step_buffer_bytes
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    LoadOptions,
    StepDone,
    WeightFormats,
)
from medusa_core.runtime.backends.cuda_step import FusedDecoder
from medusa_core.runtime.runner import graphs
from medusa_core.runtime.runner.buckets import LENGTH_BUCKETS
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.card.card import fake_cuda
from tests.support.card.host_kernels import HostKernels
from tests.support.card.tensor import CardMode
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import decode, plainly, take_step, user_says
from tests.support.models.gguf_converter import convert
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.gguf_peers import CONFIGS, GEMMA
from tests.support.models.peers import make_peer
from tests.support.models.tiny import TinySpec, write_tiny

IDS = [7 + (5 * i) % 290 for i in range(30)]
TREE = TokenTree(
    TreeShape.from_paths([(0,), (1,), (0, 0), (0, 0, 0), (2,)]), (40, 41, 42, 43, 44, 45)
)
MESSAGES = user_says("Tell me a story about a lighthouse.")
SIZES = {"hidden_size": 64, "intermediate_size": 96, "seed": 51}
FAMILIES = {
    "llama": TinySpec(**SIZES),
    "biases": TinySpec("qwen2", **SIZES),
    "norms of heads": TinySpec("qwen3", **SIZES),
    "a window": TinySpec("mistral", **SIZES),
}
# Soft-capped scores; norms after each sublayer; windows; norms of heads with two RoPEs; experts
# beside attention with sinks.
PEERS: dict[str, Callable[[], Any]] = {
    "gemma2": lambda: Gemma2Config(
        **GEMMA | {"num_hidden_layers": 2}, query_pre_attn_scalar=16, sliding_window=24
    ),
    "gemma3": lambda: Gemma3TextConfig(
        **GEMMA | {"num_hidden_layers": 6}, query_pre_attn_scalar=16, sliding_window=24
    ),
    "gpt-oss": CONFIGS["gpt-oss"],
}


def peer_file(name: str, folder: Path) -> Path:
    """A tiny model of transformers, as a GGUF file with Q4_0 weights."""
    make_peer(name, PEERS[name]()).save_pretrained(folder / "peer")
    return convert(folder / "peer", folder / "x.gguf", "q4_0")


@contextmanager
def on_card(
    path: Path,
    kernels: HostKernels,
    capability: tuple[int, int] = (8, 6),
    graphs: bool = False,
    cache: str = "",
) -> Iterator[tuple[CardMode, Target]]:
    """A card with a loaded GGUF file."""
    with fake_cuda(capability, kernels=kernels, graphs_pay=graphs) as card:
        with card.waiting():
            options = LoadOptions(device="cuda", formats=WeightFormats(cache=cache))
            target = load_target(path, None, options)
        yield card, target


def verified(runner: ResidentRunner, length: int, tree: TokenTree = TREE) -> torch.Tensor:
    kv = runner.new_cache(64)
    runner.extend(IDS[:length], kv)
    return runner.verify(PlacedTree(tree, kv)).cpu().float()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("capability", [(6, 1), (7, 5), (8, 6)], ids=["dp4a", "fp16", "bf16"])
def test_a_fused_step_equals_torch(
    family: str, capability: tuple[int, int], kernels: HostKernels, tmp_path: Path
) -> None:
    folder = write_tiny(tmp_path / "tiny", FAMILIES[family])
    path = write_as_gguf(folder, tmp_path / "x.gguf", "q4_0", others={"attn_v": "q8_0"})
    check_fused(path, kernels, capability)


@pytest.mark.parametrize("capability", [(6, 1), (8, 6)], ids=["dp4a", "bf16"])
@pytest.mark.parametrize("name", ["gemma2", "gemma3"])
def test_caps_windows_and_norms_of_gemma_are_fused(
    name: str, capability: tuple[int, int], kernels: HostKernels, tmp_path: Path
) -> None:
    check_fused(peer_file(name, tmp_path), kernels, capability)


def check_fused(path: Path, kernels: HostKernels, capability: tuple[int, int]) -> None:
    """The fused step gives what torch gives, after a long prompt and a short one with taps."""
    with on_card(path, kernels, capability) as (_, target), torch.inference_mode():
        runner = target.runner
        assert isinstance(runner, StaticRunner)
        assert runner._fused is not None
        resident = ResidentRunner(runner._model, target.precision)
        for taps, length in (((), 30), ((0, 2), 3)):
            for each in (runner, resident):
                each.tap(taps)
            found, expected = (verified(each, length) for each in (runner, resident))
            error = (found - expected).norm() / expected.norm()
            assert error < (1e-5 if target.precision.compute == torch.float32 else 0.03)


# Heads of 64 numbers, for tensor cores.
@pytest.mark.parametrize("capability", [(6, 1), (8, 6)], ids=["dp4a", "tensor cores"])
def test_steps_read_and_write_keys_and_values_in_8_bits(
    capability: tuple[int, int], kernels: HostKernels, tmp_path: Path
) -> None:
    spec = TinySpec(hidden_size=128, intermediate_size=96, num_heads=2, num_kv_heads=1, seed=51)
    path = write_as_gguf(write_tiny(tmp_path / "tiny", spec), tmp_path / "x.gguf", "q4_0")
    settings = GenerateSettings("medusa", max_new_tokens=12, tree_rows=12)
    with on_card(path, kernels, capability, cache="q8_0") as (_, target):
        runner = target.runner
        assert isinstance(runner, StaticRunner)
        assert runner._fused is not None
        assert target.caches.nbytes == target.plan.kv_bytes
        plain = decode(target, plainly(settings), MESSAGES)
        kernels.launched.clear()
        oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
        drafted = decode(target, settings, MESSAGES, drafter=oracle)
        assert kernels.launched["attend_dot" if capability == (6, 1) else "attend_mma_q8_64"]
        assert drafted.token_ids == plain.token_ids
        assert len(drafted.done.accept_lengths) < len(plain.token_ids) - 1
        with torch.inference_mode():
            resident = ResidentRunner(runner._model, target.precision)  # it dequantizes
            found, expected = (verified(each, 30) for each in (runner, resident))
        assert (found - expected).norm() / expected.norm() < 0.03


def test_one_graph_serves_every_cache_and_length(kernels: HostKernels, tmp_path: Path) -> None:
    spec = TinySpec(context_tokens=1024, **SIZES)
    path = write_as_gguf(write_tiny(tmp_path / "tiny", spec), tmp_path / "x", "q4_0")
    with on_card(path, kernels, (6, 1), graphs=True) as (card, target), torch.inference_mode():
        runner = target.runner
        assert isinstance(runner, StaticRunner)
        resident = ResidentRunner(runner._model, target.precision)
        for capacity, length in ((64, 5), (700, 600), (90, 30)):
            both = []
            for each in (runner, resident):
                kv = each.new_cache(capacity)
                for first in range(0, length, 200):
                    each.extend([9 + i % 280 for i in range(first, min(length, first + 200))], kv)
                card.journal.clear()
                both.append(each.verify(PlacedTree(TREE, kv)).cpu())
                assert (card.journal.num_replayed > 0) == (each is runner)
            assert (both[0] - both[1]).norm() / both[1].norm() < 1e-5
        assert length < LENGTH_BUCKETS[0] < 600
        assert len(runner._steps) == 1


@pytest.mark.parametrize("capability", [(6, 1), (8, 6)], ids=["dp4a", "tensor cores"])
def test_a_step_of_32_layers_takes_few_launches(
    capability: tuple[int, int], kernels: HostKernels, tmp_path: Path
) -> None:
    """Of more than eight rows, too, which cards without tensor cores multiply in parts.

    Four layers are counted, each with as many launches.
    """
    spec = TinySpec(num_layers=4, num_heads=2, num_kv_heads=1, **SIZES)
    path = write_as_gguf(write_tiny(tmp_path / "tiny", spec), tmp_path / "x.gguf", "q4_0")
    counted = {}
    not_tried = patch.object(graphs, "choose_static", lambda *of: None)
    on_it = on_card(path, kernels, capability)
    tree = TokenTree(TreeShape.chain(9), tuple(range(40, 49)))
    with not_tried, on_it as (card, target), torch.inference_mode():
        resident = target.runner
        assert isinstance(resident, ResidentRunner)
        model, precision = resident._model, target.precision
        with card.waiting():
            kernels_of = FusedDecoder.of(model, precision)
            assert kernels_of is not None
            planned = step_buffer_bytes(target.config, target.formats)
            assert sum(buffer.nbytes for buffer in kernels_of.buffers) <= planned
            fused = StaticRunner(model, precision, fused=kernels_of)
        for name, runner in (("torch", resident), ("fused", fused)):
            kv = runner.new_cache(64)
            runner.extend(IDS, kv)
            runner.verify(PlacedTree(tree, kv))  # allocates its buffers
            card.journal.clear()
            runner.logits(runner.verify(PlacedTree(tree, kv)))
            counted[name] = card.journal.num_computing
    around = counted["fused"] - 9 * spec.num_layers
    assert 0 < around <= 6, counted
    assert 9 * 32 + around <= 300
    assert counted["torch"] > 24 * spec.num_layers, counted


@pytest.mark.parametrize("rule", ["greedy", "sample"])
def test_a_step_synchronizes_once_and_drafts_change_no_token(
    rule: str, kernels: HostKernels, tmp_path: Path
) -> None:
    path = write_as_gguf(write_tiny(tmp_path / "tiny", FAMILIES["llama"]), tmp_path / "x", "q4_0")
    assert max(count_downloads(path, rule, kernels)) <= 1


@pytest.mark.parametrize("name", PEERS)
def test_drafts_change_no_token_of_models_with_caps_windows_and_sinks(
    name: str, kernels: HostKernels, tmp_path: Path
) -> None:
    has_experts = name == "gpt-oss"
    kernels.launched.clear()
    downloads = count_downloads(peer_file(name, tmp_path), "greedy", kernels, waits=has_experts)
    assert has_experts or max(downloads) <= 1
    assert kernels.launched["merge_splits"]  # torch computes experts, but not their attention
    assert (kernels.launched["norm_rows"] > 0) != has_experts


def count_downloads(path: Path, rule: str, kernels: HostKernels, waits: bool = False) -> list[int]:
    """Decode with an oracle's drafts and without, and return the downloads of each step."""
    settings = GenerateSettings("medusa", rule, seed=4, top_k=40, max_new_tokens=16, tree_rows=12)
    with on_card(path, kernels, graphs=True) as (card, target), ExitStack() as stack:
        if waits:
            stack.enter_context(card.waiting())
        plain = decode(target, plainly(settings), MESSAGES)
        oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
        request = Generate("s", "r", MESSAGES, settings)
        generation = start_generation(request, target, Session(target), RowPolicy(target), oracle)
        token_ids, downloads = [], []
        while not generation.is_done:
            card.journal.clear()
            for event in take_step(generation):
                if isinstance(event, StepDone):
                    token_ids += event.token_ids
                    if event.step:
                        downloads.append(len(card.journal.downloads))
    assert tuple(token_ids) == plain.token_ids
    assert len(downloads) < 12  # of 16 tokens
    return downloads
