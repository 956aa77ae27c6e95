"""Random tiny embedding models on disk: a Qwen 3 as Qwen3-Embedding is published, and a BERT."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import TinySpec, config_of, make_tokenizer, write_tiny

WORDS = ("the", "cat", "sat", "on", "a", "mat", "dog", "sun", "##s", "##ning", "run", ".")
_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[", "]", "sep")
# Wide enough for the compiled step.
_QWEN3 = TinySpec(
    "qwen3", is_tied=True, hidden_size=64, intermediate_size=128, context_tokens=256, seed=7
)


def write_qwen3_embedding(folder: Path, pooling: str = "lasttoken") -> Path:
    """Write a decoder whose tensors lack the prefix `model.`, and whose texts end with EOS."""
    from safetensors.torch import load_file, save_file

    write_tiny(folder, _QWEN3)
    write_json(folder / "config.json", config_of(_QWEN3) | {"head_dim": _QWEN3.head_dim})
    weights = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    save_file(bare, folder / "model.safetensors", {"format": "pt"})
    tokenizer = make_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    write_pooling(folder, pooling)
    return folder


def write_qwen3_gguf(to: Path, pooling_type: int | None = 3, name: str = "tiny") -> Path:
    """Write such a decoder as GGUF, with llama.cpp's number of its pooling."""
    folder = write_tiny(to.parent / f"{to.stem}-folder", _QWEN3)

    def add_keys(writer: object) -> None:
        if pooling_type is not None:
            writer.add_uint32("qwen3.pooling_type", pooling_type)  # type: ignore[attr-defined]
        writer.add_add_eos_token(True)  # type: ignore[attr-defined]

    return write_as_gguf(folder, to, "f32", name=name, add_keys=add_keys)


def write_bert(folder: Path, pooling: str = "mean_tokens") -> Path:
    """Write a BERT with sentence-transformers' files."""
    import torch
    from transformers import BertConfig, BertModel

    vocabulary = {text: index for index, text in enumerate((*_SPECIALS, *WORDS))}
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(_SPECIALS[:5]))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(8)  # as all-MiniLM's file says, which sentence-transformers ignores
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 48})
    write_pooling(folder, pooling)
    return folder


def write_pooling(folder: Path, pooling: str) -> None:
    """Write sentence-transformers' list of modules, and its configuration of the pooling."""
    modes = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    write_json(
        folder / "1_Pooling" / "config.json",
        {f"pooling_mode_{mode}": mode == pooling for mode in modes},
    )
    kinds = ("Transformer", "Pooling", "Normalize")
    write_json(
        folder / "modules.json",
        [{"type": f"sentence_transformers.models.{kind}"} for kind in kinds],
    )


def write_json(path: Path, value: object) -> None:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
