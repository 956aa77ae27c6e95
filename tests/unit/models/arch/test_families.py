"""Every architecture family against transformers' own, and what is no family of ours."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from medusa_core.errors import CheckpointError, MedusaError, ModelError
from medusa_core.loading.memory.plan import weights_bytes
from medusa_core.messages import WeightFormats
from medusa_core.models.architecture import arch_registry
from medusa_core.models.blocks.sizes import block_tensors, num_parameters
from medusa_core.models.config import parse_config
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import hardware_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import TokenTree
from tests.reference import golden
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import random_shape
from tests.support.engine.tree_paths import path_to
from tests.support.models.peer_files import peer_folder
from tests.support.models.peer_runs import TOKEN_IDS, our_logits, peer_logits, runner_of
from tests.support.models.peers import CONFIGS, RENAMED, first_of_family, peer_of


def test_every_family_is_compared_with_transformers() -> None:
    compared = {CONFIGS[name]().model_type for name in CONFIGS}
    assert compared | set(RENAMED) == set(arch_registry().names), "CONFIGS or RENAMED of peers.py"


def test_every_compared_model_has_golden_logits() -> None:
    recorded = {one.name for family in golden.families() for one in golden.variants_of(family)}
    missing = sorted(set(CONFIGS) - recorded)
    assert not missing, f"Run `{golden.RECORD}`, which records {', '.join(missing)}."


@pytest.mark.parametrize("model_type", RENAMED)
def test_a_family_under_another_model_type_is_the_same(model_type: str, tmp_path: Path) -> None:
    saved(RENAMED[model_type], tmp_path / "one")
    renamed = saved(RENAMED[model_type], tmp_path / "two", model_type=model_type)
    tensors = load_file(renamed / "model.safetensors")
    guessers = {"model.mtp_layers.0.input_proj.weight": torch.ones(4, 4)}
    save_file(tensors | guessers, renamed / "model.safetensors")
    wanted = our_logits(runner_of(tmp_path / "one"), TOKEN_IDS)
    assert our_logits(runner_of(renamed), TOKEN_IDS).equal(wanted)


@pytest.mark.parametrize(("name", "max_shard_size"), by_turns(list(CONFIGS), ["1GB", "30KB"]))
def test_logits_equal_those_of_transformers(name: str, max_shard_size: str, tmp_path: Path) -> None:
    peer = peer_of(name)
    peer.save_pretrained(tmp_path, max_shard_size=max_shard_size)
    is_sharded = (tmp_path / "model.safetensors.index.json").exists()
    assert is_sharded == (max_shard_size == "30KB")
    theirs = peer_logits(peer, TOKEN_IDS)
    assert float(theirs.abs().max()) > 1
    torch.testing.assert_close(
        our_logits(runner_of(tmp_path), TOKEN_IDS), theirs, atol=1e-4, rtol=0
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    by_turns(list(CONFIGS), [ResidentRunner, StaticRunner], daily=first_of_family().values()),
)
def test_trees_and_chunks_equal_single_paths_at_the_edges_of_windows(
    name: str, kind: type[ResidentRunner]
) -> None:
    resident = runner_of(peer_folder(name), "float64")
    runner = kind(resident._model, resident._precision)
    whole = our_logits(resident, TOKEN_IDS)
    torch.testing.assert_close(our_logits(runner, TOKEN_IDS, chunk=7), whole, atol=1e-9, rtol=0)
    rng = random.Random(4)
    for num_prefix in (1, 14, 23, 31):
        shape = random_shape(rng, 9)
        tree = TokenTree(shape, tuple(rng.choices(range(320), k=9)))
        with torch.inference_mode():
            kv = runner.new_cache(64)
            runner.extend(TOKEN_IDS[:num_prefix], kv)
            rows = runner.logits(runner.verify(PlacedTree(tree, kv)))
            kept = path_to(shape, 8)
            kv.commit(kept)  # what was rejected leaves nothing behind
            path = [tree.token_ids[node] for node in kept]
            behind = runner.logits(runner.extend(TOKEN_IDS[:3], kv))
        for node in (2, 5, 8):
            ids = [tree.token_ids[step] for step in path_to(shape, node)]
            alone = our_logits(resident, [*TOKEN_IDS[:num_prefix], *ids])[-1]
            torch.testing.assert_close(rows[node], alone, atol=1e-9, rtol=0)
        wanted = our_logits(resident, [*TOKEN_IDS[:num_prefix], *path, *TOKEN_IDS[:3]])[-3:]
        torch.testing.assert_close(behind, wanted, atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_plan_knows_every_weight_to_the_byte(name: str) -> None:
    folder = peer_folder(name)
    config, model = ModelFiles.open(folder).config, runner_of(folder)._model
    formats = resolve_formats(WeightFormats(), "float32", hardware_of(torch.device("cpu")))
    norms = [block_tensors(config, index).norms for index in range(config.num_layers)]
    num_norms = sum(map(len, norms)) + 1 + (config.per_layer_embeddings is not None)
    assert all(norms)
    # A norm keeps its epsilon beside its weight.
    assert weights_bytes(config, formats) == model.nbytes + 4 * num_norms
    assert num_parameters(config) == model.num_parameters


def test_within_the_original_context_longrope_equals_transformers(tmp_path: Path) -> None:
    peer = peer_of("phi 4 mini")
    peer.save_pretrained(tmp_path)
    config = ModelFiles.open(tmp_path).config
    assert (config.default_context, config.context_tokens) == (64, 512)
    default = replace(config, context_tokens=config.default_context)
    for ids in (TOKEN_IDS[:5], TOKEN_IDS[:33], TOKEN_IDS[:64]):
        ours = our_logits(runner_of(tmp_path, config=default), ids)
        torch.testing.assert_close(ours, peer_logits(peer, ids), atol=1e-4, rtol=0)


@pytest.mark.parametrize("prefix", ["language_model.", "model.language_model."])
def test_the_text_part_of_a_multimodal_model_is_loaded(prefix: str, tmp_path: Path) -> None:
    peer = peer_of("gemma 3")
    peer.save_pretrained(tmp_path)
    wanted = our_logits(runner_of(tmp_path), TOKEN_IDS)
    tensors = load_file(tmp_path / "model.safetensors")
    own = prefix if prefix == "language_model." else "model.language_model."
    moved = {
        own + (name if own == "language_model." else name.removeprefix("model.")): tensor
        for name, tensor in tensors.items()
    }
    moved["vision_tower.embeddings.weight"] = torch.ones(3, 3)
    save_file(moved, tmp_path / "model.safetensors")
    path = tmp_path / "config.json"
    text = json.loads(path.read_text())
    path.write_text(
        json.dumps({"model_type": "gemma3", "text_config": text, "vision_config": {"a": 1}})
    )
    assert our_logits(runner_of(tmp_path), TOKEN_IDS).equal(wanted)
    assert ModelFiles.open(tmp_path).config.is_multimodal


def saved(name: str, folder: Path, **changes: object) -> Path:
    """A checkpoint with changes in its config.json."""
    peer_of(name).save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


@pytest.mark.parametrize(
    ("name", "changes", "context"),
    [
        ("mistral", {}, 128),
        ("mistral without a window", {}, 512),
        ("qwen 2.5", {"sliding_window": 64, "use_sliding_window": False}, 512),
        ("qwen 2.5", {"sliding_window": 64, "use_sliding_window": True}, 64),
        ("qwen 3", {"sliding_window": 64, "use_sliding_window": True}, 64),
    ],
)
def test_the_context_is_limited_to_the_window(
    name: str, changes: dict[str, object], context: int, tmp_path: Path
) -> None:
    assert ModelFiles.open(saved(name, tmp_path, **changes)).config.context_tokens == context


@pytest.mark.parametrize("model_type", ["their_own", "bert", ""])
def test_an_unsupported_family_is_named_with_the_supported_ones(
    model_type: str, tmp_path: Path
) -> None:
    saved("llama 3", tmp_path, model_type=model_type)
    with pytest.raises(ModelError, match=model_type or "unknown") as caught:
        _ = ModelFiles.open(tmp_path).config
    for name in ("Llama", "Qwen", "Gemma", "through transformers"):
        assert name in caught.value.hint


def sizes_of(name: str) -> dict[str, Any]:
    sizes: dict[str, Any] = json.loads(CONFIGS[name]().to_json_string())
    return sizes


@pytest.mark.parametrize("name", [name for name in CONFIGS if parse_config(sizes_of(name), {}).moe])
def test_more_chosen_experts_than_there_are_is_refused(name: str) -> None:
    sizes = sizes_of(name)
    key = next(key for key in ("top_k_experts", "num_experts_per_tok") if key in sizes)
    with pytest.raises(ModelError, match="each token takes 900 of"):
        parse_config({**sizes, key: 900}, {})


def test_an_unused_tensor_is_refused_by_name(tmp_path: Path) -> None:
    # A Qwen2 that says it is a Llama: without the biases its answers would be nonsense.
    saved("qwen 2.5", tmp_path, model_type="llama")
    with pytest.raises(CheckpointError, match=r"6 of the tensors: .*k_proj\.bias"):
        runner_of(tmp_path)


def test_a_missing_norm_is_named(tmp_path: Path) -> None:
    saved("mistral", tmp_path, model_type="qwen3")
    with pytest.raises(CheckpointError, match="q_norm"):
        runner_of(tmp_path)


def test_stored_frequencies_and_heads_beside_the_model_are_ignored(tmp_path: Path) -> None:
    saved("llama 3", tmp_path)
    expected = our_logits(runner_of(tmp_path), TOKEN_IDS)
    tensors = load_file(tmp_path / "model.safetensors")
    more = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
        "medusa_head.0.0.linear.weight": torch.ones(32, 32),
    }
    save_file(tensors | more, tmp_path / "model.safetensors")
    assert our_logits(runner_of(tmp_path), TOKEN_IDS).equal(expected)


@pytest.mark.parametrize("window", [0, -1, "wide", True, 1.5])
def test_a_senseless_window_is_refused(window: object, tmp_path: Path) -> None:
    saved("mistral", tmp_path, sliding_window=window)
    with pytest.raises(MedusaError, match="sliding_window"):
        _ = ModelFiles.open(tmp_path).config
