"""GGUF files of every architecture: the tensors, sizes and scores of the models they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    PreTrainedModel,
)

from medusa_core.bench.gguf_export import finish
from medusa_core.errors import CheckpointError, ModelError
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.architecture import arch_registry, gguf_archs
from medusa_core.models.blocks.spec import (
    SILU,
    AttentionSpec,
    BlockSpec,
    Mamba2Spec,
    MlpSpec,
    MoeSpec,
)
from medusa_core.models.blocks.tensors import TensorRows
from medusa_core.models.checkpoints.gguf_config import config_of
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.backends.rope import inverse_frequencies
from medusa_core.system.files.gguf import read_beginning, read_gguf
from tests.support.engine.by_turns import by_turns
from tests.support.models.gguf_converter import convert
from tests.support.models.gguf_files import LEAST_COLUMNS
from tests.support.models.gguf_peers import CONFIGS, peer_of
from tests.support.models.hostile_gguf import check_mutations
from tests.support.models.peer_runs import TOKEN_IDS, our_logits, peer_logits, runner_of

BLOCKS = (
    "granite hybrid with experts",
    "nemotron_h",
    "lfm2",
    "lfm2moe",
    "qwen35",
    "qwen3moe",
    "ministral3",
    "llama",
    "mistral nemo",
    "qwen2",
    "gemma3",
    "gemma4",
    "gemma4, keys as values",
    "gemma4, experts",
    "granite",
    "olmo3",
    "phi4, longer",
    "smollm3",
    "hunyuan-dense",
    "glm4",
    "ernie4_5",
)
# Those of which a file has the same tensors as a folder.
ALIKE = tuple(n for n in CONFIGS if n != "gpt-oss" and not n.startswith(("granite hyb", "falcon")))
RUNS = tuple(n for n in CONFIGS if CONFIGS[n]().model_type in arch_registry().names)


def saved(name: str, folder: Path) -> tuple[PreTrainedModel, Path]:
    """A model in Hugging Face's layout, and its GGUF file beside it."""
    peer = peer_of(name)
    peer.save_pretrained(folder)
    return peer, convert(folder, folder / "x.gguf")


def test_every_architecture_is_compared() -> None:
    families = {CONFIGS[name]().model_type for name in CONFIGS}
    families |= {"mistral"}  # of mistral3 without growing queries
    assert {family.name for family in gguf_archs().values()} <= families, (
        "CONFIGS of peers.py, and gguf_converter.py"
    )


@pytest.mark.parametrize("name", ALIKE)
def test_tensors_have_the_names_and_values_of_the_checkpoint(name: str, tmp_path: Path) -> None:
    _, path = saved(name, tmp_path)
    theirs, ours = (ModelFiles.open(each).checkpoint() for each in (tmp_path, path))
    assert ours.names == theirs.names
    for tensor_name in theirs.names:
        assert ours.shape(tensor_name) == theirs.shape(tensor_name)
        found, wanted = (each.floats(tensor_name, torch.float32) for each in (ours, theirs))
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)


def test_gates_of_granite_are_separate_in_a_gguf_file(tmp_path: Path) -> None:
    _, path = saved("granite hybrid with experts", tmp_path)
    theirs, ours = load_file(tmp_path / "model.safetensors"), ModelFiles.open(path).checkpoint()
    block = "model.layers.1"
    shared = theirs[f"{block}.shared_mlp.input_linear.weight"].chunk(2)
    experts = theirs[f"{block}.block_sparse_moe.input_linear.weight"][4].chunk(2)
    for part, of_all, of_one in zip(("gate", "up"), shared, experts, strict=True):
        found = ours.floats(f"{block}.shared_mlp.{part}_proj.weight", None)
        assert torch.equal(found, of_all)
        found = ours.floats(f"{block}.block_sparse_moe.experts.4.{part}_proj.weight", None)
        assert torch.equal(found, of_one)


def test_experts_of_gpt_oss_are_separate_tensors(tmp_path: Path) -> None:
    _, path = saved("gpt-oss", tmp_path)
    theirs, ours = load_file(tmp_path / "model.safetensors"), ModelFiles.open(path).checkpoint()
    fused = {name for name in theirs if ".experts." in name}
    one_by_one = {name for name in ours.names if ".experts." in name}
    assert ours.names - one_by_one == theirs.keys() - fused
    assert len(one_by_one) == 3 * 4 * 3 * 2
    for expert in range(4):
        mlp = "model.layers.1.mlp.experts"
        both = theirs[f"{mlp}.gate_up_proj"][expert].T
        for part, rows in (("gate", both[::2]), ("up", both[1::2])):
            found = ours.floats(f"{mlp}.{expert}.{part}_proj.weight", None)
            assert torch.equal(found, rows.float())
        bias = ours.floats(f"{mlp}.{expert}.up_proj.bias", None)
        assert torch.equal(bias, theirs[f"{mlp}.gate_up_proj_bias"][expert][1::2].float())


@pytest.mark.parametrize("name", RUNS)
def test_sizes_equal_those_of_config_json(name: str, tmp_path: Path) -> None:
    _, path = saved(name, tmp_path)
    theirs, ours = ModelFiles.open(tmp_path).config, ModelFiles.open(path).config
    frequencies = [
        inverse_frequencies(config.rope, config.head_rows.rotary_dim, config.context_tokens)
        for config in (theirs, ours)
    ]
    torch.testing.assert_close(frequencies[1], frequencies[0], rtol=1e-6, atol=0)
    if theirs.model_type == "mistral":  # without a window it is a Llama
        theirs = replace(theirs, model_type="llama")
    assert replace(ours, rope=theirs.rope) == in_a_file(theirs)


def in_a_file(config: ModelConfig) -> ModelConfig:
    """Return a model's tensors in a GGUF file: Granite's gates apart, Falcon-H1's factors in
    weights.
    """
    if config.model_type == "granitemoehybrid":
        return config.with_blocks(list(map(with_separate_gate, config.blocks)))
    if config.model_type != "falcon_h1":
        return config
    (block,) = set(config.blocks)
    attention, mamba = (
        replace(mixer, input_multiplier=1.0, output_multiplier=1.0) for mixer in block.mixers
    )
    assert isinstance(attention, AttentionSpec)
    assert isinstance(mamba, Mamba2Spec)
    mixers = (
        replace(attention, scale=1 / config.head_dim**0.5),
        replace(mamba, multipliers=(1.0,) * 5),
    )
    plain = replace(block, mixers=mixers, mlp_multiplier=1.0)
    config = config.with_blocks([plain] * config.num_layers)
    return replace(config, activation=SILU, embedding_multiplier=1.0, logits_scaling=1.0)


def with_separate_gate(block: BlockSpec) -> BlockSpec:
    shared = block.mlp.shared if isinstance(block.mlp, MoeSpec) else block.mlp
    assert shared is not None
    gate, up = (TensorRows(f"shared_mlp.{part}_proj", shared.width) for part in ("gate", "up"))
    (down,) = shared.down.pieces
    own = MlpSpec(
        replace(shared.gate_up, pieces=(gate, up)),
        replace(shared.down, pieces=(replace(down, name="shared_mlp.down_proj"),)),
    )
    is_moe = isinstance(block.mlp, MoeSpec)
    return replace(block, mlp=replace(block.mlp, shared=own) if is_moe else own)


@pytest.mark.parametrize("name", RUNS)
def test_logits_equal_those_of_transformers(name: str, tmp_path: Path) -> None:
    peer, path = saved(name, tmp_path)
    theirs = peer_logits(peer, TOKEN_IDS)
    assert float(theirs.abs().max()) > 1
    torch.testing.assert_close(our_logits(runner_of(path), TOKEN_IDS), theirs, atol=1e-4, rtol=0)


def rounded(peer: PreTrainedModel, kind: str) -> None:
    """Give a model's matrices the numbers that blocks of a type hold."""
    of = gguf.GGMLQuantizationType[kind.upper()]
    with torch.no_grad():
        for parameter in peer.parameters():
            if parameter.dim() > 1 and parameter.shape[-1] >= LEAST_COLUMNS:
                stored = gguf.quants.quantize(parameter.numpy(), of)
                numbers = gguf.quants.dequantize(stored, of).astype(np.float32)
                parameter.copy_(torch.from_numpy(numbers))


@pytest.mark.parametrize(("name", "kind"), by_turns(list(BLOCKS), ["q8_0", "q4_0"]))
def test_block_quantized_logits_equal_the_dequantized_ones(
    name: str, kind: str, tmp_path: Path
) -> None:
    peer = peer_of(name)
    rounded(peer, kind)
    peer.save_pretrained(tmp_path)
    path = convert(tmp_path, tmp_path / "x.gguf", kind)
    theirs = peer_logits(peer, TOKEN_IDS)
    exactly = our_logits(runner_of(path), TOKEN_IDS)
    torch.testing.assert_close(exactly, theirs, atol=1e-4, rtol=0)
    target = load_target(path)
    assert target.formats.keeps_blocks
    assert target.weights_bytes <= target.plan.weights_bytes
    # Inputs of blocks are rounded to 8 bits, so are numbers of bfloat16.
    halved = load_target(path, None, LoadOptions("bfloat16", formats=WeightFormats("bf16")))
    # The median: where rounding chooses another expert for a token, its scores are far off.
    errors = [
        float((our_logits(one.runner, TOKEN_IDS) - theirs).abs().median())
        for one in (target, halved)
    ]
    assert errors[0] < 4 * errors[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "gpt-oss"])
def test_llama_cpps_logits_equal_transformers(name: str, tmp_path: Path) -> None:
    """The files are what llama.cpp takes them for; of GPT-OSS it rounds the bounds of yarn."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python isn't installed")
    peer, path = saved(name, tmp_path)
    model = llama_cpp.Llama(
        str(path),
        n_ctx=512,
        logits_all=True,
        flash_attn=False,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
        verbose=False,
    )
    model.eval(list(TOKEN_IDS))
    found = torch.from_numpy(np.array(model.scores[: len(TOKEN_IDS)]))
    # Its GELU is a table of numbers in 16 bits.
    of_gemma = 0.04 if name.startswith("gemma4") else 0.02
    most = of_gemma if name.startswith("gemma") else 1e-3
    torch.testing.assert_close(found, peer_logits(peer, TOKEN_IDS), atol=most, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("gemma3, longer", "phi4, longer", "qwen3moe", "gpt-oss", "olmo3"),
        *("exaone4, longer", "hunyuan-dense", "glm4", "ernie4_5", "seed_oss"),
        *("qwen35", "qwen35moe"),
        *("granite hybrid with experts", "falcon-h1", "nemotron_h", "nemotron_h_moe"),
    ],
)
def test_mutations_of_other_architectures_are_refused_or_load(name: str, tmp_path: Path) -> None:
    _, path = saved(name, tmp_path)
    assert check_mutations(path.read_bytes(), tmp_path, range(200)) > 60


# What only some families have, by the names in their config.json.
MORE = {
    "phi4, longer": {"original_max_position_embeddings"},
    "qwen3moe": {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob"},
    "ministral3": {"head_dim", "model_type"},
    "gpt-oss": {
        *("num_local_experts", "num_experts_per_tok", "sliding_window", "layer_types"),
        *("swiglu_limit", "head_dim", "attention_bias"),
    },
}


@pytest.mark.parametrize("name", sorted(MORE))
def test_settings_of_a_file_equal_config_json(name: str, tmp_path: Path) -> None:
    peer, path = saved(name, tmp_path)
    found, _, _ = config_of(read_gguf(path))
    wanted, rope = peer.config, peer.config.rope_parameters
    sizes = {"num_hidden_layers", "intermediate_size", "vocab_size", "tie_word_embeddings"}
    for key in MORE[name] | sizes:
        assert found[key] == getattr(wanted, key), key
    assert found["rope_theta"] == rope["rope_theta"]
    for key, value in found.get("rope_scaling", {}).items():
        assert value == pytest.approx(rope[key]), key


@pytest.mark.parametrize("name", ["llama 3, tied", "phi4, longer"])
def test_a_partial_file_gives_its_sizes(name: str, tmp_path: Path) -> None:
    _, path = saved(name, tmp_path)
    whole, size = ModelFiles.open(path).config, path.stat().st_size
    header = min(tensor.start for tensor in read_gguf(path).tensors.values())
    path.write_bytes(path.read_bytes()[:header] + bytes(size - header))  # as a sparse file reads
    started = parse_config(*config_of(read_beginning(path, header)))
    assert replace(started, rope=whole.rope) == whole


def test_the_first_shard_gives_the_sizes(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_uint16("split.count", 2)
    writer.add_token_list([f"token {number}" for number in range(40)])
    finish(writer)
    sizes, _, _ = config_of(
        read_beginning(tmp_path / "x.gguf", (tmp_path / "x.gguf").stat().st_size)
    )
    assert sizes["vocab_size"] == 40
    assert not sizes["tie_word_embeddings"]
    with pytest.raises(CheckpointError, match="no tensors"):
        config_of(read_gguf(tmp_path / "x.gguf"))


def written(
    path: Path,
    architecture: str,
    entries: Mapping[str, int | float | bool] = MappingProxyType({}),
    tokens: Sequence[str] = (),
) -> Path:
    """A file with keys, tokens and a table of their vectors."""
    writer = gguf.GGUFWriter(path, architecture)
    add = {int: writer.add_uint32, float: writer.add_float32, bool: writer.add_bool}
    for key, value in entries.items():
        add[type(value)](key, value)
    if tokens:
        writer.add_token_list(list(tokens))
    writer.add_tensor("token_embd.weight", np.zeros((8, 4), np.float32))
    finish(writer)
    return path


@pytest.mark.parametrize(
    ("architecture", "reason", "instead"),
    [
        ("qwen3next", "safetensors", "Qwen3.5"),
        ("gemma3n", "streams", "Gemma 4"),
        ("jamba", "isn't known", "llama"),
        ("clip", "part of a model that sees", "model itself"),
        ("gptj", "isn't known", "llama"),
    ],
)
def test_an_unsupported_architecture_is_named_with_an_alternative(
    architecture: str, reason: str, instead: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=reason) as caught:
        _ = ModelFiles.open(written(tmp_path / "x.gguf", architecture)).config
    assert instead in caught.value.hint


def test_a_mixtral_is_not_loaded_as_llama(tmp_path: Path) -> None:
    path = written(tmp_path / "x.gguf", "llama", {"llama.expert_count": 8})
    with pytest.raises(ModelError, match="experts"):
        _ = ModelFiles.open(path).config


def test_a_granite_without_rope_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "x.gguf", "granite", {"granite.rope.scaling.finetuned": False})
    with pytest.raises(ModelError, match="RoPE"):
        config_of(read_gguf(path))


@pytest.mark.parametrize(
    ("tokens", "ends"),
    [
        (("a", "<eos>", "<end_of_turn>"), [1, 2]),
        (("a", "<eos>", "<turn|>", "<|tool_response>"), [1, 2, 3]),
        (("<|eot_id|>", "<s>", "<|eom_id|>"), [0, 1, 2]),
        (("<|end|>", "<|endoftext|>"), [0, 1]),
        (("<|end|>", "<|return|>", "<|call|>"), [1, 2]),
    ],
    ids=["gemma", "gemma 4", "llama 3", "phi", "gpt-oss"],
)
def test_all_end_tokens_of_a_file_are_found(
    tokens: tuple[str, ...], ends: list[int], tmp_path: Path
) -> None:
    path = written(tmp_path / "x.gguf", "llama", {"tokenizer.ggml.eos_token_id": 1}, tokens)
    assert config_of(read_gguf(path))[1]["eos_token_id"] == ends


def test_recommended_sampling_is_read_from_the_file(tmp_path: Path) -> None:
    entries = {"temp": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.05}
    path = written(
        tmp_path / "x.gguf", "llama", {f"general.sampling.{k}": v for k, v in entries.items()}
    )
    found = config_of(read_gguf(path))[1]
    entries["temperature"] = entries.pop("temp")
    assert entries.items() <= found.items()


def test_vision_and_audio_tensors_are_ignored(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "gemma3")
    for name in ("token_embd.weight", "v.blk.0.attn_q.weight", "mm.soft_emb_norm.weight"):
        writer.add_tensor(name, np.zeros((8, 4), np.float32))
    finish(writer)
    names = ModelFiles.open(tmp_path / "x.gguf").checkpoint().names
    assert names == {"model.embed_tokens.weight"}


def test_sliding_windows_follow_the_files_pattern(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "gemma3")
    writer.add_block_count(4)
    writer.add_sliding_window_pattern([True, False, False, True])
    writer.add_tensor("token_embd.weight", np.zeros((8, 4), np.float32))
    finish(writer)
    found = config_of(read_gguf(tmp_path / "x.gguf"))[0]["layer_types"]
    assert [kind == "sliding_attention" for kind in found] == [True, False, False, True]
