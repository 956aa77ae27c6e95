"""The forward pass against transformers' own, and a tree against its paths run one by one."""

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.backends.attention import attend_by_products, attend_fused
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import random_shape
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.tree_paths import path_to
from tests.support.models.peer_runs import TOKEN_IDS, our_logits, peer_logits, runner_of
from tests.support.models.tiny import LLAMA3_ROPE, TinySpec, random_weights

LINEAR_ROPE = {"rope_type": "linear", "factor": 4.0}


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of checkpoint."""

    name: str
    spec: TinySpec


CASES = (
    Case("grouped queries", TinySpec()),
    Case("one key head", TinySpec(num_kv_heads=1, seed=2)),
    Case("every head its keys", TinySpec(num_kv_heads=4, seed=3)),
    Case("tied", TinySpec(is_tied=True, seed=4)),
    Case("biases", TinySpec(has_bias=True, seed=5)),
    Case("linear rope", TinySpec(rope=LINEAR_ROPE, seed=6)),
    Case("llama3 rope", TinySpec(rope=LLAMA3_ROPE, seed=7)),
    Case("llama3 rope, tied, biases", TinySpec(rope=LLAMA3_ROPE, is_tied=True, has_bias=True)),
)


def peer_of(spec: TinySpec) -> LlamaForCausalLM:
    """Transformers' model with random weights, float32."""
    torch.manual_seed(spec.seed)
    config = LlamaConfig(
        vocab_size=spec.vocab_size,
        hidden_size=spec.hidden_size,
        intermediate_size=spec.intermediate_size,
        num_hidden_layers=spec.num_layers,
        num_attention_heads=spec.num_heads,
        num_key_value_heads=spec.num_kv_heads,
        max_position_embeddings=spec.context_tokens,
        rope_parameters={"rope_theta": 10000.0, "rope_type": "default", **spec.rope},
        tie_word_embeddings=spec.is_tied,
        attention_bias=spec.has_bias,
        mlp_bias=spec.has_bias,
        initializer_range=0.3,
        eos_token_id=1,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        # Biases and norms start as zeros and ones, which would hide that they are not read.
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


@pytest.mark.parametrize(("case", "max_shard_size"), by_turns(CASES, ["1GB", "30KB"]))
def test_logits_equal_those_of_transformers(
    case: Case, max_shard_size: str, tmp_path: Path
) -> None:
    peer = peer_of(case.spec)
    peer.save_pretrained(tmp_path, max_shard_size=max_shard_size)
    is_sharded = (tmp_path / "model.safetensors.index.json").exists()
    assert is_sharded == (max_shard_size == "30KB")
    ours = our_logits(runner_of(tmp_path), TOKEN_IDS)
    theirs = peer_logits(peer, TOKEN_IDS)
    assert float(theirs.abs().max()) > 1  # something to compare
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_old_config_with_rope_scaling_equals_a_new_one(case: Case, tmp_path: Path) -> None:
    peer_of(case.spec).save_pretrained(tmp_path)
    new = ModelFiles.open(tmp_path).config
    raw: dict[str, Any] = json.loads((tmp_path / "config.json").read_text())
    rope = raw.pop("rope_parameters")
    raw["rope_theta"] = rope.pop("rope_theta")
    raw["rope_scaling"] = rope if case.spec.rope else None
    (tmp_path / "config.json").write_text(json.dumps(raw))
    assert ModelFiles.open(tmp_path).config == new


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_prefill_in_chunks_equals_prefill_at_once(chunk: int, load: LoadTarget) -> None:
    runner = load("grouped", "float64").runner
    whole, chunked = our_logits(runner, TOKEN_IDS), our_logits(runner, TOKEN_IDS, chunk)
    torch.testing.assert_close(chunked, whole, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["grouped", "tied"])
def test_every_tree_row_equals_its_path_run_alone(name: str, load: LoadTarget) -> None:
    runner = load(name, "float64").runner
    rng = random.Random(11)
    for num_prefix in (0, 1, 13):
        prefix = list(TOKEN_IDS[:num_prefix])
        shape = random_shape(rng, 20)
        tree = TokenTree(shape, tuple(rng.choices(range(320), k=shape.num_nodes)))
        with torch.inference_mode():
            kv = runner.new_cache(64)
            if prefix:
                runner.extend(prefix, kv)
            rows = runner.logits(runner.verify(PlacedTree(tree, kv)))
        for node in range(1, shape.num_nodes, 3):
            path = [tree.token_ids[step] for step in path_to(shape, node)]
            alone = our_logits(runner, [*prefix, *path])[-1]
            torch.testing.assert_close(rows[node], alone, atol=1e-10, rtol=0)


def test_tree_rows_equal_those_of_transformers(tmp_path: Path) -> None:
    peer = peer_of(CASES[-1].spec)
    peer.save_pretrained(tmp_path)
    runner, rng = runner_of(tmp_path), random.Random(2)
    shape = random_shape(rng, 12)
    tree = TokenTree(shape, tuple(rng.choices(range(320), k=12)))
    with torch.inference_mode():
        kv = runner.new_cache(64)
        runner.extend(TOKEN_IDS[:9], kv)
        rows = runner.logits(runner.verify(PlacedTree(tree, kv)))
    for node in range(12):
        path = [tree.token_ids[step] for step in path_to(shape, node)]
        theirs = peer_logits(peer, [*TOKEN_IDS[:9], *path])[-1]
        torch.testing.assert_close(rows[node], theirs, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("num_rows", "num_q", "num_kv"), [(1, 4, 4), (1, 4, 2), (9, 4, 1), (9, 6, 3)]
)
def test_both_attention_backends_agree(num_rows: int, num_q: int, num_kv: int) -> None:
    torch.manual_seed(1)
    q = torch.randn(num_rows, num_q, 8, dtype=torch.float64)
    keys, values = torch.randn(2, num_kv, 21, 8, dtype=torch.float64)
    sees = torch.rand(num_rows, 21) < 0.5
    sees[:, 0] = True
    mask = torch.zeros(num_rows, 21, dtype=torch.float64).masked_fill_(~sees, float("-inf"))
    for given in (None, mask.repeat(num_q // num_kv, 1)):
        torch.testing.assert_close(
            attend_by_products(q, keys, values, given), attend_fused(q, keys, values, given)
        )


def test_attention_equals_softmax_of_products_per_head() -> None:
    torch.manual_seed(2)
    q = torch.randn(3, 4, 8, dtype=torch.float64)
    keys, values = torch.randn(2, 2, 5, 8, dtype=torch.float64)
    mixed = attend_by_products(q, keys, values, None).view(3, 4, 8)
    for row in range(3):
        for head in range(4):
            weights = torch.softmax(keys[head // 2] @ q[row, head], dim=0)
            torch.testing.assert_close(mixed[row, head], weights @ values[head // 2])


def test_lower_precision_stays_near_float64(load: LoadTarget) -> None:
    exact = our_logits(load("grouped", "float64").runner, TOKEN_IDS)
    for dtype, tolerance in (("float32", 1e-4), ("float16", 0.1), ("bfloat16", 0.8)):
        near = our_logits(load("grouped", dtype).runner, TOKEN_IDS).double()
        assert float((near - exact).abs().max()) < tolerance


def test_tied_weights_are_counted_once(load: LoadTarget) -> None:
    tied = load("tied", "float32")
    spec = TinySpec(num_layers=3, num_kv_heads=4, is_tied=True, has_bias=True, seed=4)
    assert tied.num_parameters == sum(t.numel() for t in random_weights(spec).values())


def test_a_tied_model_may_store_its_output_projection(tmp_path: Path) -> None:
    spec = TinySpec(is_tied=True)
    peer_of(spec).save_pretrained(tmp_path)
    before = our_logits(runner_of(tmp_path), TOKEN_IDS[:5])
    weights = load_file(tmp_path / "model.safetensors")
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    save_file(weights, tmp_path / "model.safetensors")
    torch.testing.assert_close(our_logits(runner_of(tmp_path), TOKEN_IDS[:5]), before)


def test_the_rope_table_grows_beyond_the_first_cache(load: LoadTarget) -> None:
    target = load("grouped", "float64")
    ids = random.Random(9).choices(range(320), k=300)
    runner = replace(target).runner
    with torch.inference_mode():
        kv = runner.new_cache(16)
        runner.extend(ids[:16], kv)
        larger = runner.new_cache(300)
        larger.take_over(kv)
        kv = larger
        grown = runner.logits(runner.extend(ids[16:], kv))[-1]
    torch.testing.assert_close(grown, our_logits(runner, ids)[-1], atol=1e-10, rtol=0)
