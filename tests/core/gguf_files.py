"""Writes models as GGUF files with the `gguf` package: weights, sizes, tokenizer and template."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer as RustTokenizer

from medusa_core.files.json_file import read_json
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import read_config
from medusa_core.models.gguf_names import ARCHITECTURES, hugging_face_name
from medusa_core.models.rope import interleave_rows

_PARTS = (
    *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm", "attn_k_norm"),
    *("ffn_norm", "ffn_gate", "ffn_up", "ffn_down"),
)


def write_as_gguf(
    model_dir: Path,
    to: Path,
    kind: str,
    pre: str = "qwen2",
    others: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write a folder's model, its matrices of one type.

    Args:
        model_dir: Folder in Hugging Face layout.
        to: The file.
        kind: GGUF's name of the type, in lower case; one that the package quantizes to.
        pre: How its tokenizer splits texts.
        others: Types of some parts, by the last part of their names.
    """
    config, checkpoint = read_config(model_dir), Checkpoint.open_model(model_dir)
    architecture = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}[config.model_type]
    of = ARCHITECTURES[architecture]
    writer = gguf.GGUFWriter(to, architecture)
    writer.add_context_length(config.context_tokens)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_heads)
    writer.add_head_count_kv(config.num_kv_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(config.rope.theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    _add_tokenizer(writer, model_dir, config.eos_token_ids, pre)
    blocks = [f"blk.{layer}.{part}" for layer in range(config.num_layers) for part in _PARTS]
    for stem in ("token_embd", "output_norm", "output", *blocks):
        for ending in ("weight", "bias"):
            theirs = f"{stem}.{ending}"
            ours = hugging_face_name(theirs, of)
            if ours not in checkpoint.names:
                continue
            tensor = checkpoint.floats(ours, torch.float32)
            if of.turns_pairs and stem.endswith(("attn_q", "attn_k")):
                tensor = interleave_rows(tensor, config.head_dim)
            of_part = others.get(stem.rpartition(".")[2], kind)
            add_as(writer, theirs, tensor.contiguous().numpy(), of_part)
    finish(writer)
    return to


def finish(writer: gguf.GGUFWriter) -> None:
    """Write everything."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_split(path: Path, folder: Path) -> tuple[Path, Path]:
    """The tensors of a file in two, of which the first has the entries."""
    reader = gguf.GGUFReader(path)
    files = [folder / f"{path.stem}-{number:05}-of-00002.gguf" for number in (1, 2)]
    half = len(reader.tensors) // 2
    for file, tensors in zip(files, (reader.tensors[:half], reader.tensors[half:]), strict=True):
        writer = gguf.GGUFWriter(file, "llama")
        if file == files[0]:
            for field in reader.fields.values():
                if not field.name.startswith(("GGUF.", "general.architecture")):
                    kind, more = field.types[0], field.types[-1] if len(field.types) > 1 else None
                    writer.add_key_value(field.name, field.contents(), kind, more)
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        finish(writer)
    return files[0], files[1]


def add_as(writer: gguf.GGUFWriter, name: str, numbers: np.ndarray, kind: str) -> None:
    """Add a tensor; matrices in a type that the package quantizes to."""
    of = gguf.GGMLQuantizationType[kind.upper()]
    if numbers.ndim == 1 or kind == "f32":
        writer.add_tensor(name, numbers)
    elif kind == "f16":
        writer.add_tensor(name, numbers.astype(np.float16))
    else:
        writer.add_tensor(name, gguf.quants.quantize(numbers, of), raw_dtype=of)


def _add_tokenizer(
    writer: gguf.GGUFWriter, model_dir: Path, eos_ids: tuple[int, ...], pre: str
) -> None:
    path = model_dir / "tokenizer.json"
    if not path.exists():
        writer.add_tokenizer_model("none")
        return
    add_byte_level(writer, path, pre)
    writer.add_eos_token_id(eos_ids[0])
    template = model_dir / "chat_template.jinja"
    if template.exists():
        writer.add_chat_template(template.read_text(encoding="utf-8"))


def add_byte_level(writer: gguf.GGUFWriter, path: Path, pre: str) -> None:
    """Add a byte-level BPE tokenizer, read from its `tokenizer.json`."""
    raw = read_json(path, 1 << 28)
    tokenizer = RustTokenizer.from_file(str(path))
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    texts = sorted(vocabulary, key=vocabulary.__getitem__)
    added = {entry["content"]: entry for entry in raw["added_tokens"]}
    kinds = [
        gguf.TokenType.NORMAL
        if text not in added
        else gguf.TokenType.CONTROL
        if added[text]["special"]
        else gguf.TokenType.USER_DEFINED
        for text in texts
    ]
    merges = [
        merge if isinstance(merge, str) else " ".join(merge) for merge in raw["model"]["merges"]
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
