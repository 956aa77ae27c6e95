"""The compiled step over every family that it knows: right, and the same to the bit however cut."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from medusa_core.errors import EngineError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.models.blocks.spec import GatedDeltaNetSpec
from medusa_core.runtime.backends.native_blocks import NativeDecoder, native_decoder
from medusa_core.runtime.backends.native_limits import why_not
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.offload_native import OffloadNativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.rules.rule import RuleSpec
from medusa_core.system.native.binding import open_library
from medusa_core.system.native.constants import MAX_KERNEL_SIZE
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import random_shape
from tests.support.engine.law_models import MESSAGES, oracle_of, settings_of
from tests.support.engine.law_settings import EXACT
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly
from tests.support.engine.tight import with_layers_below
from tests.support.engine.tree_paths import path_to
from tests.support.models import peers
from tests.support.models.natives import libraries
from tests.support.models.peer_runs import TOKEN_IDS, peer_logits
from tests.support.models.peer_runs import runner_of as resident_of
from tests.support.models.peers import CONFIGS, first_of_family, make_peer
from tests.support.models.tiny import write_text_files
from tests.support.models.wide_peers import (
    FULLEST,
    is_known,
    scores,
    sizes_of,
    wide_config,
    wide_peer,
)

COMPILED = [name for name in CONFIGS if is_known(wide_config(name))]


def runners_of(
    name: str, folder: Path, dtype: str = "float32"
) -> tuple[NativeRunner, ResidentRunner]:
    """The compiled step and torch's operations over the same weights."""
    wide_peer(name).save_pretrained(folder)
    resident = resident_of(folder, dtype)
    native = native_decoder(resident._model, resident._precision)
    assert native is not None
    return NativeRunner(resident._model, resident._precision, native), resident


def test_all_families_are_compiled() -> None:
    assert set(COMPILED) == set(CONFIGS)


@pytest.mark.parametrize(
    ("name", "num_prefix"),
    by_turns(COMPILED, [1, 14, 23, 31, 40], daily=first_of_family().values()),
)
def test_compiled_logits_equal_transformers_and_chunks_and_trees_change_no_bit(
    name: str, num_prefix: int, tmp_path: Path
) -> None:
    runner, resident = runners_of(name, tmp_path)
    ids = list(TOKEN_IDS)
    whole = scores(runner, ids, 1000)
    torch.testing.assert_close(whole, peer_logits(wide_peer(name), ids), atol=1e-4, rtol=0)
    torch.testing.assert_close(whole, scores(resident, ids, 1000), atol=1e-4, rtol=0)
    assert torch.equal(scores(runner, ids, 7), whole)
    assert torch.equal(scores(runner, ids, 1), whole)
    rng = random.Random(4)
    shape = random_shape(rng, 24)
    tree = TokenTree(shape, tuple(rng.choices(range(320), k=24)))
    kv = runner.new_cache(96)
    runner.extend(ids[:num_prefix], kv)
    rows = runner.logits(runner.verify(PlacedTree(tree, kv)))
    for node in (5, 11, 17, 23):
        path = [tree.token_ids[step] for step in path_to(shape, node)]
        assert torch.equal(rows[node], scores(runner, [*ids[:num_prefix], *path], 1000)[-1])
    kept = path_to(shape, 23)
    kv.commit(kept)
    path = [tree.token_ids[node] for node in kept]
    behind = runner.logits(runner.extend(ids[:3], kv))
    assert torch.equal(behind, scores(runner, [*ids[:num_prefix], *path, *ids[:3]], 1000)[-3:])


@pytest.mark.parametrize("name", FULLEST)
def test_every_cpu_and_any_number_of_threads_compute_the_same_bits(
    name: str, tmp_path: Path
) -> None:
    runner, resident = runners_of(name, tmp_path)
    whole = scores(runner, list(TOKEN_IDS), 1000)
    for path in libraries():
        native = NativeDecoder(open_library(path), resident._model)
        other = NativeRunner(resident._model, resident._precision, native)
        assert torch.equal(scores(other, list(TOKEN_IDS), 1000), whole), path
    for threads in (1, 3):
        runner.use_threads(threads, threads)
        assert torch.equal(scores(runner, list(TOKEN_IDS), 20), whole), threads


def test_a_convolution_wider_than_the_compiled_step_supports_runs_in_torch() -> None:
    sizes = sizes_of(wide_config("qwen 3.5"))
    net = sizes.blocks[0].mixers[0]
    assert isinstance(net, GatedDeltaNetSpec)
    wide = replace(net, state=replace(net.state, conv_width=MAX_KERNEL_SIZE + 1))
    block = replace(sizes.blocks[0], mixers=(wide,))
    assert why_not(sizes) is None
    why = why_not(sizes.with_blocks([block, *sizes.blocks[1:]]))
    assert why is not None
    assert f"more than {MAX_KERNEL_SIZE}" in why


@pytest.mark.parametrize("name", FULLEST)
def test_half_precision_is_as_accurate_as_torch(name: str, tmp_path: Path) -> None:
    runner, resident = runners_of(name, tmp_path, "bfloat16")
    exact = resident_of(tmp_path, "float64")
    wanted = scores(exact, list(TOKEN_IDS), 1000)
    # Of the better rows: where rounding chooses another expert, a row is off by far more than that.
    ours, torchs = (
        (scores(each, list(TOKEN_IDS), 1000).double() - wanted).norm(dim=-1).quantile(0.25).item()
        for each in (runner, resident)
    )
    assert ours <= 1.5 * torchs
    ids = list(TOKEN_IDS)
    assert torch.equal(scores(runner, ids, 9), scores(runner, ids, 1000))


@cache
def deep_peer(name: str) -> PreTrainedModel:
    """Return `wide_peer` with more layers, and large recurrent states if it has some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(peers.SIZES, "num_hidden_layers", 6)  # some have more to say than two
        config = wide_config(name)
    if not sizes_of(config).state_layers:
        return make_peer(name, config)
    config.num_hidden_layers, config.intermediate_size = 8, 1024
    if "layer_types" in vars(config):
        config.layer_types = config.layer_types * 2
    return make_peer(name, config)


def loaded(peer: PreTrainedModel, folder: Path, num_here: int = 0) -> Target:
    """Return a target in float32; with `num_here`, with so many resident layers."""
    peer.save_pretrained(folder / "model")
    write_text_files(folder / "model")
    options = LoadOptions("float32", "cpu", context_tokens=512)
    if num_here:
        options = with_layers_below(folder / "model", None, options, num_here)
    return load_target(folder / "model", None, options)


@pytest.mark.parametrize(
    "name",
    [
        *("gemma 3", "gemma 4 E2B", "qwen 3 with experts"),
        *("qwen 3.5", "lfm 2", "falcon h1 with norms"),
        "qwen 3.5 with experts",
    ],
)
def test_layers_from_a_disk_compute_the_same_bits(name: str, tmp_path: Path) -> None:
    here, below = (loaded(deep_peer(name), tmp_path / str(count), count) for count in (0, 1))
    assert isinstance(here.runner, NativeRunner)
    assert isinstance(below.runner, OffloadNativeRunner)
    for runner in (here.runner, below.runner):
        runner.tap([0, 2])
    tree, found = TokenTree(random_shape(random.Random(3), 6), tuple(range(40, 46))), []
    for runner in (here.runner, below.runner):
        kv = runner.new_cache(96)
        rows = [runner.extend(TOKEN_IDS[:30], kv)]
        rows.append(runner.verify(PlacedTree(tree, kv)))
        kv.commit(path_to(tree.shape, 5))
        found.append(torch.cat([*rows, runner.extend(TOKEN_IDS[30:], kv, True)]))
    assert torch.equal(*found)


@pytest.mark.parametrize(
    "sizes",
    [
        {"linear_num_key_heads": 1, "linear_num_value_heads": 8, "linear_conv_kernel_dim": 1},
        {"linear_num_key_heads": 3, "linear_num_value_heads": 6, "linear_conv_kernel_dim": 2},
    ],
    ids=["one key head, no tail", "a tail of one"],
)
@torch.inference_mode()
def test_states_of_odd_sizes_equal_torchs(sizes: dict[str, int], tmp_path: Path) -> None:
    config = wide_config("qwen 3.5")
    for key, value in sizes.items():
        setattr(config, key, value)
    make_peer(str(sizes), config).save_pretrained(tmp_path)
    resident = resident_of(tmp_path, "float32")
    native = native_decoder(resident._model, resident._precision)
    assert native is not None
    runner, ids = NativeRunner(resident._model, resident._precision, native), list(TOKEN_IDS)
    whole = scores(runner, ids, 1000)
    torch.testing.assert_close(whole, scores(resident, ids, 1000), atol=1e-4, rtol=0)
    assert torch.equal(scores(runner, ids, 1), whole)
    shapes = [TreeShape.chain(64), TreeShape.from_paths([(child,) for child in range(63)])]
    trees = [TokenTree(shape, tuple(range(100, 164))) for shape in shapes]
    caches = [runner.new_cache(128) for _ in shapes]
    for kv in caches:
        runner.extend(ids[:9], kv)
    rows = runner.logits(runner.verify(*map(PlacedTree, trees, caches)))
    deep, wide = [*range(100, 164)], [100, 163]
    for row, path in ((63, deep), (127, wide)):
        assert torch.equal(rows[row], scores(runner, [*ids[:9], *path], 1000)[-1])


def test_a_pass_that_fails_before_it_begins_changes_no_state(tmp_path: Path) -> None:
    runner, _ = runners_of("qwen 3.5", tmp_path)
    kv, full = runner.new_cache(96), runner.new_cache(16)
    runner.extend(TOKEN_IDS[:20], kv)
    runner.extend(TOKEN_IDS[:16], full)
    trees = [PlacedTree(TokenTree(random_shape(random.Random(1), 4), (1, 2, 3, 4)), kv)]
    with pytest.raises(EngineError, match="don't fit"):
        runner.verify(*trees, trees[0]._replace(kv=full))
    behind = runner.logits(runner.extend(TOKEN_IDS[20:30], kv))
    assert torch.equal(behind, scores(runner, list(TOKEN_IDS[:30]), 1000)[20:])
    kv.reserve(4)  # a pass that never comes
    kv.truncate(0)
    runner.extend(TOKEN_IDS[:5], kv)
    assert torch.equal(kv.committed(), committed(runner, TOKEN_IDS[:5]))


def committed(runner: NativeRunner, token_ids: Sequence[int]) -> Tensor:
    kv = runner.new_cache(96)
    runner.extend(token_ids, kv)
    return kv.committed()


@pytest.mark.parametrize(("name", "rule"), by_turns(list(FULLEST), EXACT))
def test_laws_1_to_3_hold_with_an_oracle_in_the_compiled_step(
    name: str, rule: RuleSpec, tmp_path: Path
) -> None:
    target = loaded(wide_peer(name), tmp_path)
    settings = settings_of(rule, "composite")
    plain = decode(target, plainly(settings), MESSAGES)
    run = decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle_of(plain),
        after_step=lambda session: check_cache(session, target, 0.0),
    )
    check_same_tokens(plain, run)
    assert run.done.num_steps < plain.done.num_steps
