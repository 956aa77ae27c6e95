"""Measurements of `first_card.sh`: `python first_card.py PART [--dry-run]`.

Imports torch alone unless a part needs the engine, so that one missing library costs one part.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

ROW_COUNTS = (1, 2, 4, 8, 16, 32, 64)
CACHE_TOKENS = 512
SMALL_COPY = slice(0, 4096)
LIBRARIES = [
    "torch",
    "numpy",
    "triton",
    "bitsandbytes",
    "transformers",
    "safetensors",
    "tokenizers",
    "jinja2",
    "psutil",
    "filelock",
    "platformdirs",
    "llguidance",
    "gguf",
    "pytest",
    "pytest-xdist",
]
MIB = 1 << 20


class Device:
    """What is measured: the first card, or the CPU with small sizes for a dry run."""

    def __init__(self, is_dry: bool) -> None:
        self.is_dry = is_dry
        self.device = torch.device("cpu") if is_dry else torch.device("cuda", 0)
        self.repeats = 2 if is_dry else 20

    def wait(self) -> None:
        if not self.is_dry:
            torch.cuda.synchronize(self.device)

    def median_s(self, work: Callable[[], object]) -> float:
        """Median seconds of work, after runs that warm up and record graphs."""
        seconds = []
        for _ in range(5 + self.repeats):
            self.wait()
            started = time.perf_counter()
            work()
            self.wait()
            seconds.append(time.perf_counter() - started)
        return statistics.median(seconds[5:])


def describe(device: Device) -> dict[str, object]:
    """Print what the card is, and what is installed beside torch."""
    found: dict[str, object] = {"python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    found["cuda of torch"] = torch.version.cuda
    if not device.is_dry:
        properties = torch.cuda.get_device_properties(device.device)
        names = [name for name in dir(properties) if not name.startswith("_")]
        found |= {name: str(getattr(properties, name)) for name in names}
        found["free and total bytes"] = torch.cuda.mem_get_info(device.device)
        found["bfloat16"] = torch.cuda.is_bf16_supported(including_emulation=False)
    for name, value in found.items():
        print(f"{name:32}{value}")
    return found


def measure_copies(device: Device) -> dict[str, float]:
    """Print gigabytes a second of large copies, and microseconds of small ones."""
    size = (4 if device.is_dry else 1024) * MIB
    found = {}
    on_card = torch.empty(size, dtype=torch.uint8, device=device.device)
    other = torch.empty_like(on_card)
    hosts = {"pageable": torch.zeros(size, dtype=torch.uint8)}
    if not device.is_dry:
        hosts["pinned"] = torch.zeros(size, dtype=torch.uint8).pin_memory()
    for kind, host in hosts.items():
        pairs = {f"host to device, {kind}": (on_card, host)}
        pairs[f"device to host, {kind}"] = (host, on_card)
        for name, (to, source) in pairs.items():
            seconds = device.median_s(lambda to=to, source=source: to.copy_(source))
            found[f"{name}, GB/s"] = size / seconds / 1e9
            small_to, small_source = to[SMALL_COPY], source[SMALL_COPY]
            seconds = device.median_s(lambda to=small_to, source=small_source: to.copy_(source))
            found[f"{name}, 4 KiB, us"] = seconds * 1e6
    seconds = device.median_s(lambda: other.copy_(on_card))
    found["device to device, read and written, GB/s"] = 2 * size / seconds / 1e9
    for name, value in found.items():
        print(f"{name:48}{value:10.1f}")
    return found


def measure_steps(device: Device, formats: str) -> dict[str, object]:
    """Print T(n) of a random 7B as the engine runs it.

    Args:
        device: Where it runs.
        formats: Weight format of the linear layers.
    """
    from medusa_core.bench.random_target import make_random
    from medusa_core.messages import LoadOptions, WeightFormats
    from medusa_core.runtime.runner.runner import PlacedTree
    from medusa_core.runtime.tree.shape import TokenTree, TreeShape
    from tests.support.models.shapes import resized

    small = {
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "head_dim": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "vocab_size": 8192,
    }
    config = resized("vicuna-7b", **(small if device.is_dry else {}))  # Llama 2's shapes
    options = LoadOptions(
        device=str(device.device), formats=WeightFormats(formats), context_tokens=1024
    )
    started = time.perf_counter()
    target = make_random("7B", config, options, 0)
    print(f"made in {time.perf_counter() - started:.1f} s; {target.formats.names}")
    print(f"runner: {type(target.runner).__name__} {target.runner_note}")
    kv = target.allocate_cache(CACHE_TOKENS + max(ROW_COUNTS))
    kv.fill(CACHE_TOKENS)

    def verify(tree: TokenTree) -> Tensor:
        states = target.runner.verify(PlacedTree(tree, kv))
        return target.runner.logits(states).argmax(-1).cpu()

    trees = {rows: TokenTree(TreeShape.chain(rows), (0,) * rows) for rows in ROW_COUNTS}
    with torch.inference_mode():
        seconds = {
            rows: device.median_s(lambda tree=tree: verify(tree)) for rows, tree in trees.items()
        }
    return print_steps(seconds, target.weights_bytes)


def measure_kernels(device: Device) -> dict[str, object]:
    """Print which of our kernels are right, and their times by type and rows.

    Times are of a 4096 × 4096 matrix, in microseconds and as a share of the bandwidth at which the
    card copies; attention is of Llama-3-8B's heads and 8 nodes, beside torch's.
    """
    from medusa_core.models.quant.block_types import block_type
    from medusa_core.models.quant.card_linear import card_linear, working_types
    from medusa_core.models.quant.random_blocks import random_blocks
    from medusa_core.runtime.backends.cuda_blocks import card_attention
    from medusa_core.system.native.cuda import BLOCK_TYPES

    if device.is_dry:
        print("kernels: none on a CPU")
        return {}
    working, attention = working_types(device.device), card_attention(device.device)
    found: dict[str, object] = {"right": sorted(working), "attention": attention is not None}
    print(
        f"right: {', '.join(sorted(working))}; wrong: {', '.join(BLOCK_TYPES - working) or 'none'}"
    )
    print(f"attention: {'right' if attention is not None else 'WRONG or not loaded'}")
    size = 4096
    big = torch.zeros(1 << 28, dtype=torch.uint8, device=device.device)
    other = torch.empty_like(big)
    bandwidth = 2 * len(big) / device.median_s(lambda: other.copy_(big))
    for of in sorted(working):
        blocks = random_blocks(of, size, size).to(device.device)
        layer = card_linear(block_type(of), blocks, None)
        assert layer is not None
        for rows in ROW_COUNTS:
            x = torch.randn(rows, size, dtype=torch.float16, device=device.device)
            seconds = _graph_seconds(device, lambda layer=layer, x=x: layer(x))
            share = blocks.nbytes / seconds / bandwidth
            print(f"{of:8}{rows:4} rows{seconds * 1e6:10.1f} us{share:8.0%} of bandwidth")
            found[f"{of}, {rows} rows, us"] = seconds * 1e6
    for keys in (512, 4096, 16384) if attention is not None else ():
        q = torch.randn(8, 32, 128, dtype=torch.float16, device=device.device) / 11
        cache = torch.randn(2, 8, keys, 128, dtype=torch.float16, device=device.device)
        mask = torch.zeros(8, keys, dtype=torch.float16, device=device.device)
        grouped = q.view(8, 8, 4, 128).permute(1, 2, 0, 3).reshape(1, 8, 32, 128)
        wide = mask.repeat(4, 1)
        ours = _graph_seconds(device, lambda q=q, c=cache, m=mask: attention(q, c[0], c[1], m))
        torchs = _graph_seconds(
            device,
            lambda q=grouped, c=cache, m=wide: torch.nn.functional.scaled_dot_product_attention(
                q, c[:1], c[1:], attn_mask=m
            ),
        )
        print(f"attention, {keys} keys: {ours * 1e6:.1f} us, torch's {torchs * 1e6:.1f} us")
        found[f"attention, {keys} keys, us"] = [ours * 1e6, torchs * 1e6]
    return found


def _graph_seconds(device: Device, work: Callable[[], object]) -> float:
    """Seconds of work without the host's part: 20 times in one graph."""
    for _ in range(3):
        work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            work()
    return device.median_s(graph.replay) / 20


def measure_linears(device: Device) -> dict[str, object]:
    """Print T(n) of a 7B's linear layers in float16, by torch alone: what a step costs at least."""
    hidden, inner, vocab, layers = (
        (256, 512, 8192, 2) if device.is_dry else (4096, 11008, 32000, 32)
    )
    dtype = torch.float32 if device.is_dry else torch.float16
    shapes = [(hidden, hidden)] * 4 + [(inner, hidden)] * 2 + [(hidden, inner)]
    layer_bytes = sum(rows * columns for rows, columns in shapes) * dtype.itemsize
    if not device.is_dry:
        free = torch.cuda.mem_get_info(device.device)[0]
        fitting = min(layers, int(0.85 * free - 2 * vocab * hidden) // layer_bytes)
        print(f"{fitting} of {layers} layers fit")
        layers = fitting

    def random(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, dtype=dtype, device=device.device) * 0.02

    weights = [random(*shape) for _ in range(layers) for shape in shapes] + [random(vocab, hidden)]
    seconds = {}
    with torch.inference_mode():
        for rows in ROW_COUNTS:
            inputs = {columns: random(rows, columns) for columns in (hidden, inner)}

            def multiply(inputs: dict[int, Tensor] = inputs) -> None:
                for weight in weights:
                    torch.nn.functional.linear(inputs[weight.shape[1]], weight)

            seconds[rows] = device.median_s(multiply)
    return print_steps(seconds, sum(weight.nbytes for weight in weights))


def print_steps(seconds: dict[int, float], weights_bytes: int) -> dict[str, object]:
    """Print a table of T(n) and return it."""
    print(f"weights: {weights_bytes / 1e9:.2f} GB")
    print(f"{'rows':>6}{'ms':>12}{'x T(1)':>10}{'GB/s of weights':>18}")
    for rows, value in seconds.items():
        rate = weights_bytes / value / 1e9
        print(f"{rows:6}{value * 1e3:12.3f}{value / seconds[1]:10.2f}{rate:18.1f}")
    return {"weights_bytes": weights_bytes, "seconds": seconds}


def main() -> None:
    """Run one part, and close with its figures as a line of JSON."""
    parts = {
        "card": describe,
        "copies": measure_copies,
        "kernels": measure_kernels,
        "gguf": lambda device: measure_steps(device, "q4_0" if device.is_dry else "q4_k"),
        "nf4": lambda device: measure_steps(device, "q4_0" if device.is_dry else "nf4"),
        "fp16": lambda device: measure_steps(device, "fp32" if device.is_dry else "fp16"),
        "linears": measure_linears,
    }
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=parts)
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    if not (options.dry_run or torch.cuda.is_available()):
        sys.exit("No card: torch finds no CUDA device.")
    try:
        found = parts[options.part](Device(options.dry_run))
    except ModuleNotFoundError as error:
        sys.exit(f"This part needs {error.name}, which isn't installed.")
    print(json.dumps({options.part: found}))


if __name__ == "__main__":
    main()
