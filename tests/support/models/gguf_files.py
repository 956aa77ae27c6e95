"""Writes models as GGUF files with the `gguf` package: weights, sizes, tokenizer and template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np
from tokenizers import Tokenizer as RustTokenizer

from medusa_core.bench.gguf_export import finish, open_writer, tensors_of
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.system.files.json_file import read_json

LEAST_COLUMNS = 32  # of a block; convolutions have fewer, and are never rounded


def write_as_gguf(
    model_dir: Path,
    to: Path,
    kind: str,
    pre: str = "qwen2",
    others: Mapping[str, str] = MappingProxyType({}),
    name: str = "",
    add_keys: Callable[[gguf.GGUFWriter], None] = lambda _: None,
) -> Path:
    """Write a folder's model, its matrices of one type.

    Args:
        model_dir: Folder in Hugging Face layout.
        to: The file.
        kind: GGUF's name of the type, in lower case.
        pre: How its tokenizer splits texts.
        others: Types of some parts, by the last part of their names.
        name: What the metadata calls the model; empty for nothing.
        add_keys: Adds further metadata.
    """
    config = ModelFiles.open(model_dir).config
    writer = open_writer(config, to)
    if name:
        writer.add_name(name)
    _add_tokenizer(writer, model_dir, config.eos_token_ids, pre)
    add_keys(writer)
    for name, tensor in tensors_of(model_dir, config):
        of_part = others.get(name.split(".")[-2], kind)
        add_as(writer, name, tensor.contiguous().numpy(), of_part)
    finish(writer)
    return to


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
    """Add a tensor; matrices in a type that the package doesn't quantize to are noise."""
    of = gguf.GGMLQuantizationType[kind.upper()]
    if numbers.ndim == 1 or kind == "f32" or numbers.shape[-1] < LEAST_COLUMNS:
        writer.add_tensor(name, numbers)
    elif kind == "f16":
        writer.add_tensor(name, numbers.astype(np.float16))
    elif kind.startswith("iq"):
        writer.add_tensor(name, random_blocks(kind, *numbers.shape).numpy(), raw_dtype=of)
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
