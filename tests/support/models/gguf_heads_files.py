"""Random heads as GGUF files, written as llama.cpp's conversion scripts do.

Source: llama.cpp, `conversion/{llama,qwen,gemma}.py`; names by its `gguf-py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import gguf
import torch
from torch import Tensor

from medusa_core.bench.gguf_export import finish
from tests.support.models.assistant_files import GLOBAL, AssistantSpec
from tests.support.models.assistant_files import tensors_of as assistant_tensors
from tests.support.models.block_files import DSPARK, GROUP, RANK, WIDTH, BlockSpec
from tests.support.models.block_files import parts_of as block_parts_of
from tests.support.models.eagle_files import EagleSpec, parts_of
from tests.support.models.gguf_files import add_as

GEMMA_DSPARK = replace(DSPARK, layout="gemma4")
BASE_MODEL = "them/target"
_EAGLE = {
    "fc": "fc.weight",
    "q": "blk.0.attn_q.weight",
    "k": "blk.0.attn_k.weight",
    "v": "blk.0.attn_v.weight",
    "o": "blk.0.attn_output.weight",
    "gate": "blk.0.ffn_gate.weight",
    "up": "blk.0.ffn_up.weight",
    "down": "blk.0.ffn_down.weight",
    "embed_norm": "blk.0.attn_norm.weight",
    "hidden_norm": "blk.0.attn_norm_2.weight",
    "mlp_norm": "blk.0.ffn_norm.weight",
    "norm": "output_norm.weight",
    "lm_head": "output.weight",
    "input_norm": "enc.output_norm.weight",
}


def write_eagle_gguf(
    path: Path,
    spec: EagleSpec,
    kind: str = "f32",
    without: tuple[str, ...] = (),
    base_model: str = BASE_MODEL,
) -> Path:
    """Write an EAGLE-3 head as one file, but for some parts; returns it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "eagle3")
    add_base_model(writer, base_model)
    writer.add_context_length(2048)
    writer.add_embedding_length(spec.hidden)
    writer.add_block_count(1)
    writer.add_feed_forward_length(spec.inner)
    writer.add_head_count(spec.heads)
    writer.add_head_count_kv(spec.kv_heads)
    writer.add_rope_freq_base(spec.theta)
    writer.add_rope_dimension_count(spec.hidden // spec.heads)
    writer.add_layer_norm_rms_eps(spec.eps)
    writer.add_vocab_size(spec.vocab)
    writer.add_array("eagle3.target_layers", list(spec.taps))
    writer.add_uint32("eagle3.target_hidden_size", spec.hidden)
    normed = spec.more.get("norm_before_residual", False)
    writer.add_bool("eagle3.norm_before_residual", normed)
    writer.add_bool("eagle3.norm_before_fc", spec.more.get("norm_before_fc", False))
    for part, tensor in parts_of(spec).items():
        if part in without:
            continue
        if part == "d2t":  # the tokens themselves
            tokens = tensor.long() + torch.arange(len(tensor))
            writer.add_tensor("d2t", tokens.numpy(), raw_dtype=gguf.GGMLQuantizationType.I64)
            continue
        heads = {"q": spec.heads, "k": spec.kv_heads}.get(part)
        stored = tensor.float() if heads is None else paired(tensor.float(), heads)
        add_as(writer, _EAGLE[part], stored.contiguous().numpy(), kind)
    finish(writer)
    return path


def add_base_model(writer: gguf.GGUFWriter, repo: str) -> None:
    """Write the base model's name, if any, as metadata."""
    if not repo:
        return
    writer.add_base_model_count(1)
    writer.add_base_model_name(0, repo.rpartition("/")[2])
    writer.add_base_model_repo_url(0, f"https://huggingface.co/{repo}")


def paired(rows: Tensor, num_heads: int) -> Tensor:
    """Rows of heads in halves as llama.cpp turns them: neighbouring pairs."""
    shape = rows.shape
    halves = rows.reshape(num_heads, 2, shape[0] // num_heads // 2, *shape[1:])
    return halves.swapaxes(1, 2).reshape(shape)


_BLOCK_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_BLOCK = {
    "fc.weight": "fc.weight",
    "hidden_norm.weight": "enc.output_norm.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "markov_head.markov_w1.weight": "markov_w1.weight",
    "markov_head.markov_w2.weight": "markov_w2.weight",
    "confidence_head.proj.weight": "conf_proj.weight",
    "confidence_head.proj.bias": "conf_proj.bias",
    "candidate_selector.predecessor_codebook": "selector_predecessor.weight",
    "candidate_selector.successor_codebook": "selector_successor.weight",
    "candidate_selector.hidden_projection.weight": "selector_hidden.weight",
}
_CONVOLUTIONS = {
    "attention_conv.base_kernel": "attn_conv_base",
    "attention_conv.kernel_projection.weight": "attn_conv_proj.weight",
    "mlp_conv.base_kernel": "ffn_conv_base",
    "mlp_conv.kernel_projection.weight": "ffn_conv_proj.weight",
}


def write_block_gguf(
    path: Path,
    spec: BlockSpec,
    kind: str = "f32",
    own: Mapping[str, Tensor] = MappingProxyType({}),
) -> Path:
    """Write a DFlash or DSpark drafter as one file; returns it.

    Args:
        path: The file.
        spec: The drafter.
        kind: GGUF's name of the type of its matrices, in lower case.
        own: Token vectors and a projection, so that llama.cpp runs it without its model.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "dflash")
    add_base_model(writer, BASE_MODEL)
    writer.add_context_length(2048)
    writer.add_embedding_length(spec.hidden)
    if spec.layout == "gemma4":
        writer.add_embedding_scale(spec.hidden**0.5)
        writer.add_attention_scale(1.0)
        writer.add_string("dflash.hidden_activation", "gelu_pytorch_tanh")
        pairs = spec.head_dim // 2  # of which half turns
        factors = torch.tensor([1.0] * (pairs // 2) + [1e30] * (pairs - pairs // 2))
        writer.add_tensor("rope_freqs.weight", factors.numpy())
    writer.add_block_count(spec.num_layers)
    writer.add_feed_forward_length(spec.inner)
    writer.add_head_count(spec.heads)
    writer.add_head_count_kv(spec.kv_heads)
    writer.add_key_length(spec.head_dim)
    writer.add_value_length(spec.head_dim)
    writer.add_rope_freq_base(spec.theta)
    writer.add_layer_norm_rms_eps(spec.eps)
    writer.add_token_list([str(token) for token in range(spec.vocab)])
    writer.add_mask_token_id(spec.mask)
    _add_own(writer, own)
    writer.add_uint32("dflash.block_size", spec.num_places)
    writer.add_array("dflash.target_layers", list(spec.taps))
    if any(spec.windows):
        writer.add_sliding_window(next(window for window in spec.windows if window))
        writer.add_sliding_window_pattern([window is not None for window in spec.windows])
    if spec.selected:
        for key, number in (
            *(("conv_kernel_size", WIDTH), ("conv_group_size", GROUP)),
            *(("selector_rank", RANK), ("selector_top_k", spec.selected)),
        ):
            writer.add_uint32(f"dflash.{key}", number)
    if spec.layout == "jetspec":
        writer.add_causal_attention(True)
    if spec.rank:
        writer.add_bool("dflash.sample_from_anchor", spec.first_place == 0)
        writer.add_bool("dflash.has_confidence_head", spec.confidence)
    for key, name in (
        ("embedding_scale", "input_embedding_scale"),
        ("logit_scale", "output_multiplier"),
        ("final_logit_softcapping", "final_logit_softcapping"),
    ):
        if name in spec.own:
            writer.add_float32(f"dflash.{key}", spec.own[name])
    for name, tensor in block_parts_of(spec).items():
        if name == "d2t":
            tokens = tensor.long() + torch.arange(len(tensor))
            writer.add_tensor("d2t", tokens.numpy(), raw_dtype=gguf.GGMLQuantizationType.I64)
        else:
            stored = _block_name(name, spec.layout == "gemma4")
            add_as(writer, stored, tensor.float().contiguous().numpy(), kind)
    finish(writer)
    return path


def _add_own(writer: gguf.GGUFWriter, tensors: Mapping[str, Tensor]) -> None:
    """Add the model's own tensors: its token embeddings and output projection."""
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor.numpy())
    if tensors:
        writer.add_tokenizer_model("no_vocab")
        writer.add_vocab_size(len(tensors["token_embd"]))


def _block_name(name: str, is_gemma: bool) -> str:
    if name in _BLOCK:
        return _BLOCK[name]
    _, layer, rest = name.split(".", 2)
    if is_gemma and rest in _ASSISTANT:
        return f"blk.{layer}.{_ASSISTANT[rest]}"
    if rest in _CONVOLUTIONS:
        return f"blk.{layer}.{_CONVOLUTIONS[rest]}"
    stem, _, ending = rest.rpartition(".")
    return f"blk.{layer}.{_BLOCK_LAYER[stem]}.{ending}"


_ASSISTANT = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "layer_scalar": "layer_output_scale.weight",
}
_BESIDE_BLOCKS = {
    "pre_projection.weight": "nextn.pre_projection.weight",
    "post_projection.weight": "nextn.post_projection.weight",
    "model.norm.weight": "output_norm.weight",
    "model.embed_tokens.weight": "token_embd.weight",
}


def write_assistant_gguf(
    path: Path, spec: AssistantSpec, kind: str = "f32", architecture: str = "gemma4-assistant"
) -> Path:
    """Write a Gemma 4 assistant as one file, without its clusters; returns it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture)
    add_base_model(writer, BASE_MODEL)
    windows = [its != GLOBAL for its in spec.kinds]
    count, heads = len(windows), (spec.kv_heads, spec.global_kv_heads)
    writer.add_context_length(512)
    writer.add_embedding_length(spec.hidden)
    writer.add_embedding_length_out(spec.width)
    writer.add_block_count(count)
    writer.add_nextn_predict_layers(count)
    writer.add_feed_forward_length(spec.inner)
    writer.add_head_count(spec.heads)
    kv = [heads[0] if local else heads[1] for local in windows] if heads[1] else heads[0]
    writer.add_head_count_kv(kv)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_rope_freq_base_swa(1e4)
    writer.add_sliding_window(spec.window)
    writer.add_sliding_window_pattern(windows)
    writer.add_shared_kv_layers(count)
    writer.add_embedding_length_per_layer_input(0)
    for add, size in (
        (writer.add_key_length, spec.global_head_dim),
        (writer.add_value_length, spec.global_head_dim),
        (writer.add_key_length_swa, spec.head_dim),
        (writer.add_value_length_swa, spec.head_dim),
        (writer.add_rope_dimension_count, spec.global_head_dim),
        (writer.add_rope_dimension_count_swa, spec.head_dim),
    ):
        add(size)
    pairs = spec.global_head_dim // 2  # of which a quarter turns
    factors = torch.tensor([1.0] * (pairs // 4) + [1e30] * (pairs - pairs // 4))
    writer.add_tensor("rope_freqs.weight", factors.numpy())
    for name, tensor in assistant_tensors(spec).items():
        if name.startswith("masked_embedding"):
            continue
        if name.startswith("model.layers."):
            _, _, layer, rest = name.split(".", 3)
            stored = f"blk.{layer}.{_ASSISTANT[rest]}"
        else:
            stored = _BESIDE_BLOCKS[name]
        add_as(writer, stored, tensor.float().contiguous().numpy(), kind)
    finish(writer)
    return path


def write_mtp_gguf(path: Path, model: Path, num_layers: int) -> Path:
    """Write a GGUF file of the MTP layer and shared tensors, as `--mtp` does, and return it."""
    reader = gguf.GGUFReader(model)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(path, architecture)
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")):
            kind, more = field.types[0], field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), kind, more)
    for tensor in reader.tensors:
        layer = tensor.name.split(".")[1] if tensor.name.startswith("blk.") else str(num_layers)
        if int(layer) >= num_layers:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    return path


# By architecture: writes heads for the target of `GROUPED`, or of Gemma 4.
GGUF_HEADS: dict[str, Callable[[Path], Path]] = {
    "eagle3": lambda path: write_eagle_gguf(path, EagleSpec("eagle3")),
    "dflash": lambda path: write_block_gguf(path, DSPARK),
    "dflash-gemma4": lambda path: write_block_gguf(path, GEMMA_DSPARK),
    "gemma4-assistant": lambda path: write_assistant_gguf(path, AssistantSpec()),
}
