"""Random checkpoints with the true shapes and names of large models, and heads in every format.

    python -m tests.support.models.checkpoints vicuna-7b FOLDER [--heads 3] [--heads-format v0.1]

Numbers repeat within a file: size and layout are what is tested, and random numbers take long.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from medusa_core.heads.format import format_registry
from medusa_core.heads.weights import HeadSet, HeadWeights
from medusa_core.heads.writer import write_heads
from medusa_core.models.blocks.sizes import EMBEDDING, FINAL_NORM, block_tensors, lm_head_spec
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.system.resources import shapes_dir
from tests.support.models.tiny import SPECIALS, TEMPLATE

SHARD_BYTES = 2 << 30
NUMBERS = 1 << 22  # as many as are really random


def main() -> int:
    """Write a checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=sorted(path.stem for path in shapes_dir().glob("*.json")))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--heads", type=int, default=0)
    parser.add_argument("--heads-format", default="v0.1", choices=format_registry().names)
    parser.add_argument("--shard-bytes", type=int, default=SHARD_BYTES)
    args = parser.parse_args()
    raw = json.loads((shapes_dir() / f"{args.shape}.json").read_text(encoding="utf-8"))
    write_checkpoint(args.folder, raw, args.shard_bytes)
    if args.heads:
        write_random_heads(
            args.folder.with_name(args.folder.name + "-medusa"),
            parse_config(raw, {}),
            args.heads,
            args.heads_format,
        )
    return 0


def write_checkpoint(folder: Path, raw: dict[str, object], shard_bytes: int = SHARD_BYTES) -> Path:
    """Write a target with random bfloat16 weights.

    Args:
        folder: Where to.
        raw: What its config.json says.
        shard_bytes: Most bytes of a file; smaller models lie in one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = parse_config(raw, {})
    (folder / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    write_text_files(folder, config.vocab_size)
    shards = list(_shards(dict(_tensors(config)), shard_bytes))
    if len(shards) == 1:
        _write_file(folder / "model.safetensors", shards[0])
        return folder
    weight_map = {}
    for index, shard in enumerate(shards, start=1):
        name = f"model-{index:05}-of-{len(shards):05}.safetensors"
        _write_file(folder / name, shard)
        weight_map.update(dict.fromkeys(shard, name))
    total = sum(2 * math.prod(shape) for shard in shards for shape in shard.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def write_random_heads(folder: Path, config: ModelConfig, num_heads: int, format_name: str) -> Path:
    """Write random heads for a target."""
    numbers = torch.randn(NUMBERS).mul_(0.02).bfloat16()

    def take(*shape: int) -> torch.Tensor:
        count = math.prod(shape)
        return numbers.repeat(-(-count // NUMBERS))[:count].view(shape)

    hidden = config.hidden_size
    heads = tuple(
        HeadWeights(((take(hidden, hidden), take(hidden)),), take(config.vocab_size, hidden))
        for _ in range(num_heads)
    )
    write_heads(HeadSet(heads), format_name, folder, "random")
    return folder


def write_text_files(folder: Path, vocab_size: int) -> None:
    """Write a byte-level tokenizer with the given number of tokens, and a chat template."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate((*SPECIALS, *alphabet))}
    for number in range(len(vocabulary), vocab_size):
        vocabulary[f"w{number}"] = number
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIALS])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<|bos|>", "eos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")


def _tensors(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of all tensors, block by block."""
    yield f"{EMBEDDING}.weight", (config.vocab_size, config.hidden_size)
    blocks = [block_tensors(config, index) for index in range(config.num_layers)]
    for part in (part for block in blocks for part in block.linears):
        for piece in part.pieces:
            yield f"{piece.name}.weight", (piece.rows, part.columns)
            if part.has_bias:
                yield f"{piece.name}.bias", (piece.rows,)
    for name, size in (pair for block in blocks for pair in block.norms.items()):
        yield f"{name}.weight", (size,)
    yield f"{FINAL_NORM}.weight", (config.hidden_size,)
    if not config.tie_embeddings:
        part = lm_head_spec(config)
        yield "lm_head.weight", (part.rows, part.columns)


def _shards(
    tensors: dict[str, tuple[int, ...]], shard_bytes: int
) -> Iterator[dict[str, tuple[int, ...]]]:
    shard: dict[str, tuple[int, ...]] = {}
    size = 0
    for name, shape in tensors.items():
        nbytes = 2 * math.prod(shape)
        if shard and size + nbytes > shard_bytes:
            yield shard
            shard, size = {}, 0
        shard[name] = shape
        size += nbytes
    yield shard


def _write_file(path: Path, tensors: dict[str, tuple[int, ...]]) -> None:
    generator = np.random.default_rng(len(path.name))
    numbers = generator.standard_normal(NUMBERS, dtype=np.float32) * 0.02
    # The upper half of a float32 is a bfloat16.
    chunk = (numbers.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    ones = b"\x80\x3f"
    header: dict[str, object] = {}
    end = 0
    for name, shape in tensors.items():
        start, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in tensors.values():
            left = 2 * math.prod(shape)
            if len(shape) == 1:
                file.write(ones * (left // 2))
                continue
            while left > 0:
                file.write(chunk[:left])
                left -= len(chunk)


if __name__ == "__main__":
    sys.exit(main())
