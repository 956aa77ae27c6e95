"""Mamba-2 layers: the recurrence row by row, weight formats, offload, and what is refused."""

import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.errors import ClusterError, ModelError
from medusa_core.loading.load import load_target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role, WeightFormats
from medusa_core.models.blocks.spec import SILU, BlockSpec, Mamba2Spec, NormsSpec
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.linear import make_linear
from medusa_core.runtime.backends.activation import active_of
from medusa_core.runtime.backends.attention import attend_by_products
from medusa_core.runtime.backends.block import Block, Mamba2
from medusa_core.runtime.backends.caches import LayerState, RowTree, SequenceRows
from medusa_core.runtime.backends.norm import GatedNorm
from medusa_core.runtime.backends.recurrence import RecurrentSteps
from medusa_core.runtime.backends.torch_blocks import PassContext, run_block
from medusa_core.runtime.cluster.layer_range import client_config
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree
from tests.support.engine.fakes import random_shape
from tests.support.engine.laws import decode
from tests.support.engine.tight import with_layers_below
from tests.support.engine.tree_paths import path_to
from tests.support.models.mamba_files import wide
from tests.support.models.peer_runs import TOKEN_IDS, our_logits, peer_logits
from tests.support.models.peers import CONFIGS, make_peer, peer_of
from tests.support.models.tiny import write_text_files
from tests.support.models.wide_peers import wide_peer

SHAPE = StateShape(
    num_heads=6, key_dim=5, value_dim=4, num_key_heads=2, channels=24 + 2 * 10, conv_width=4
)
INNER, HIDDEN = 24, 7
EACH = ("granite 4 hybrid with experts", "bamba", "falcon h1 with norms", "nemotron h")


class OneState:
    """A cache of one recurrent layer."""

    def __init__(self) -> None:
        self.now = LayerState(draw(6, 5, 4), draw(3, 44))
        self.steps: list[RecurrentSteps] = []

    def state(self, layer: int) -> LayerState:
        return self.now

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        self.steps.append(steps)

    def put_state(self, layer: int, state: LayerState) -> None:
        raise AssertionError("of chains that are decided")

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        raise AssertionError("of layers with attention")

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        raise AssertionError("of layers with attention")

    def device_of(self, layer: int) -> torch.device:
        raise AssertionError("of layers with attention")


def draw(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64)


def random_mixer(has_norm: bool, gates_first: bool) -> Mamba2:
    """A layer with all that one may have; some of its steps are cut."""
    rows = INNER + SHAPE.channels + SHAPE.num_heads
    spec = Mamba2Spec(
        "",
        SHAPE,
        LinearSpec("in_proj", (TensorRows("in_proj", rows),), HIDDEN),
        LinearSpec("output", (TensorRows("output", HIDDEN),), INNER),
        time_step_min=0.3,
        time_step_max=0.9,
    )
    return Mamba2(
        spec,
        in_proj=make_linear(draw(rows, HIDDEN)),
        factors=draw(rows),
        conv=draw(SHAPE.channels, SHAPE.conv_width),
        conv_bias=draw(SHAPE.channels),
        rate=-draw(SHAPE.num_heads).exp(),
        skip=draw(SHAPE.num_heads),
        dt_bias=draw(SHAPE.num_heads),
        norm=GatedNorm(draw(INNER), 2, 1e-3, gates_first) if has_norm else None,
        output=make_linear(draw(HIDDEN, INNER)),
    )


def row_by_row(
    mixer: Mamba2, rows: Tensor, before: LayerState, norm: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Reference of a layer over consecutive rows, head by head, by Dao and Gu's definition."""
    state, tail, made = before.state.clone(), list(before.tail), list[Tensor]()
    assert mixer.factors is not None
    assert mixer.conv_bias is not None
    for row in rows:
        projected = mixer.in_proj(row[None])[0] * mixer.factors
        gate, new = projected[:INNER], projected[INNER : INNER + SHAPE.channels]
        step = (projected[-6:] + mixer.dt_bias).exp().log1p().clamp(0.3, 0.9)
        tail = [*tail, new][-4:]
        mixed = F.silu((torch.stack(tail, dim=1) * mixer.conv).sum(dim=1) + mixer.conv_bias)
        heads = []
        for head in range(6):
            group = head // 3
            x = mixed[4 * head : 4 * head + 4]
            b = mixed[INNER + 5 * group : INNER + 5 * group + 5]
            c = mixed[INNER + 10 + 5 * group : INNER + 10 + 5 * group + 5]
            kept = (step[head] * mixer.rate[head]).exp()
            state[head] = kept * state[head] + torch.outer(b, step[head] * x)
            heads.append(c @ state[head] + mixer.skip[head] * x)
        made.append(mixer.output(norm(torch.cat(heads), F.silu(gate))[None])[0])
    return torch.stack(made)


@pytest.mark.parametrize(("has_norm", "gates_first"), [(True, True), (True, False), (False, True)])
def test_every_row_of_a_tree_equals_the_recurrence_along_its_path(
    has_norm: bool, gates_first: bool
) -> None:
    torch.manual_seed(5)
    mixer, cache, rows = random_mixer(has_norm, gates_first), OneState(), draw(12, HIDDEN)
    shape = random_shape(random.Random(3), 12)
    paths = [path_to(shape, node) for node in range(12)]
    sees = torch.tensor([[other in path for other in range(12)] for path in paths])
    sequence = SequenceRows(slice(0, 12), None, cache, RowTree(sees))
    context = PassContext(
        positions=torch.arange(12),
        num_positions=12,
        ropes=[],
        group=1,
        scores_dtype=torch.float64,
        attend=attend_by_products,
        attend_on_cpu=attend_by_products,
        active=active_of(SILU),
    )
    block = Block(BlockSpec(NormsSpec(), (mixer.spec,), None), (mixer,))
    found = run_block(0, block, rows, context, [sequence]) - rows
    only = run_block(0, block, rows, context, [sequence], 7) - rows[7:8]
    torch.testing.assert_close(only, found[7:8], atol=1e-12, rtol=0)

    def grouped(x: Tensor, gate: Tensor) -> Tensor:
        if mixer.norm is None:
            return x * gate
        x = x * gate if gates_first else x
        halves = [half / (half.square().mean() + 1e-3).sqrt() for half in x.chunk(2)]
        normed = torch.cat(halves) * mixer.norm.weight
        return normed if gates_first else normed * gate

    for node, path in enumerate(paths):
        alone = row_by_row(mixer, rows[list(path)], cache.now, grouped)[-1]
        torch.testing.assert_close(found[node], alone, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", EACH)
def test_quantized_logits_are_near_the_unquantized_ones(name: str, tmp_path: Path) -> None:
    folder = wide(name, tmp_path / "model")
    plain = our_logits(load_target(folder, None, LoadOptions("float32")).runner, TOKEN_IDS)
    errors = []
    for kind, dtype in (("int8", "bfloat16"), ("q4", "float32")):
        options = LoadOptions(dtype, formats=WeightFormats(kind), quantized_dir=tmp_path / "kept")
        target = load_target(folder, None, options)
        assert target.weights_bytes <= target.plan.weights_bytes
        found = our_logits(target.runner, TOKEN_IDS)
        again = load_target(folder, None, options)  # as it was kept
        assert our_logits(again.runner, TOKEN_IDS).equal(found)
        errors.append(float((found.float() - plain).std() / plain.std()))
    assert errors[0] < errors[1] < 1, errors


@pytest.mark.parametrize("name", EACH)
def test_layers_from_a_disk_equal_layers_in_memory(name: str, tmp_path: Path) -> None:
    folder, options = wide(name, tmp_path / "model"), LoadOptions("float64", context_tokens=256)
    here = load_target(folder, None, options)
    below = load_target(folder, None, with_layers_below(folder, None, options, 1))
    assert below.plan.placement is not None
    shape = random_shape(random.Random(2), 9)
    tree = TokenTree(shape, tuple(range(20, 29)))
    found = []
    for target in (here, below):
        with torch.inference_mode():
            kv = target.runner.new_cache(128)
            target.runner.extend(TOKEN_IDS[:40], kv)
            rows = target.runner.verify(PlacedTree(tree, kv))
            kv.commit(path_to(shape, 8))
            found.append(torch.cat([rows, target.runner.extend(TOKEN_IDS[:3], kv)]))
    torch.testing.assert_close(found[1], found[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", EACH)
def test_recurrent_layers_stay_on_one_machine(name: str, tmp_path: Path) -> None:
    peer_of(name).save_pretrained(tmp_path)
    with pytest.raises(ClusterError, match="states"):
        client_config(ModelFiles.open(tmp_path).config)


HUGE = {"mamba_n_heads": 4, "mamba_d_head": "auto"}


def test_a_model_with_attention_in_all_layers_is_the_same_family(tmp_path: Path) -> None:
    config = CONFIGS["bamba"]()
    config.hidden_size, config.mamba_n_heads = 64, 16
    config.attn_layer_indices = list(range(config.num_hidden_layers))
    peer = make_peer("bamba", config)
    peer.save_pretrained(tmp_path)
    write_text_files(tmp_path)
    runner = load_target(tmp_path, None, LoadOptions("float32")).runner
    theirs = peer_logits(peer, TOKEN_IDS)
    torch.testing.assert_close(our_logits(runner, TOKEN_IDS), theirs, atol=1e-4, rtol=0)


EXPERTS = "nemotron h with experts"
GRANITE, FALCON, NEMOTRON = "granite 4 hybrid", "falcon h1", "nemotron h"


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        (GRANITE, {"mamba_n_heads": 7}, "7 Mamba heads of 8"),
        (GRANITE, {"mamba_d_head": 9}, "8 Mamba heads of 9"),
        (GRANITE, {"mamba_expand": 3}, "make up the layer's 96"),
        (GRANITE, {"mamba_n_groups": 3}, "3 groups evenly"),
        (GRANITE, {"hidden_size": 8192, "mamba_d_state": 4096, **HUGE}, "so large"),
        (GRANITE, {"mamba_d_state": 1 << 40}, "mamba_d_state"),
        (GRANITE, {"mamba_d_conv": 65}, "mamba_d_conv"),
        (GRANITE, {"layer_types": ["mamba", "attention"]}, "layer_types"),
        (GRANITE, {"layer_types": ["mamba", "attention", "mlp", "mamba"]}, "layer_types"),
        (GRANITE, {"layer_types": [["mamba"]] * 4}, "layer_types"),
        (GRANITE, {"time_step_limit": [1.0, 0.5]}, "time_step_limit"),
        (GRANITE, {"time_step_limit": ["a", {}]}, "time_step_limit"),
        (GRANITE, {"num_local_experts": 2, "num_experts_per_tok": 3}, "3 of 2 experts"),
        (FALCON, {"mamba_d_ssm": 60}, "8 Mamba heads of 8"),
        (FALCON, {"ssm_multipliers": [1.0] * 4}, "ssm_multipliers"),
        (FALCON, {"mlp_multipliers": [1.0, -1.0]}, "mlp_multipliers"),
        (FALCON, {"lm_head_multiplier": 0}, "lm_head_multiplier"),
        (EXPERTS, {"num_experts_per_tok": 7}, "7 of 6 experts"),
        (EXPERTS, {"n_group": 2}, "in groups"),
        (EXPERTS, {"moe_latent_size": 16}, "another width"),
        (NEMOTRON, {"layers_block_type": ["mamba", "conv", "attention"]}, "layers_block_type"),
        (NEMOTRON, {"layers_block_type": None, "hybrid_override_pattern": "M?*"}, "block_type"),
        (NEMOTRON, {"mamba_head_dim": 1 << 40}, "mamba_d_head"),
        ("bamba", {"attn_layer_indices": ["one"]}, "attn_layer_indices"),
    ],
)
def test_inconsistent_sizes_are_refused_with_a_message(
    name: str, changes: dict[str, Any], why: str, tmp_path: Path
) -> None:
    raw = json.loads(CONFIGS[name]().to_json_string(use_diff=False))
    (tmp_path / "config.json").write_text(json.dumps(raw | changes))
    start = time.process_time()
    with pytest.raises(ModelError, match=why) as caught:
        _ = ModelFiles.open(tmp_path).config
    assert time.process_time() - start < 1
    assert caught.value.hint


def test_old_layer_names_and_letters_equal_the_new_names(tmp_path: Path) -> None:
    peer_of(NEMOTRON).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    raw, wanted = json.loads(path.read_text()), ModelFiles.open(tmp_path).config
    old = {"layers_block_type": None, "layer_types": None, "hybrid_override_pattern": "M-*-M"}
    path.write_text(json.dumps(raw | old))
    assert ModelFiles.open(tmp_path).config == wanted
    assert [type(shape).__name__ for shape, _ in pairwise(wanted.layers)] == [
        *("StateShape", "NoShape", "KvShape", "NoShape")
    ]
    mamba = wanted.blocks[0].mixers[0]
    assert isinstance(mamba, Mamba2Spec)
    assert (mamba.prefix, mamba.has_conv_bias, mamba.in_proj.has_bias) == ("mixer", True, False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_model_without_attention_answers_with_and_without_drafts(
    dtype: str, tmp_path: Path
) -> None:
    wide_peer("mamba 2").save_pretrained(tmp_path)
    write_text_files(tmp_path)
    target = load_target(tmp_path, None, LoadOptions(dtype, "cpu", context_tokens=256, sessions=2))
    assert isinstance(target.runner, NativeRunner) is (dtype == "float32")
    assert target.caches.nbytes <= target.plan.kv_bytes
    settings = GenerateSettings(rule="greedy", max_new_tokens=40, stop_on_repetition=False)
    plain, drafted = (
        decode(target, replace(settings, drafter=drafter), [ChatMessage(Role.USER, "ab ab ab")])
        for drafter in ("none", "suffix")
    )
    assert drafted.token_ids == plain.token_ids
    assert len(plain.token_ids) > 5
