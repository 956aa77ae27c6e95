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
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from medusa_core.loading.target import Target
    from medusa_core.runtime.kv.cache import KvCache

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
    """Device under measurement: the first card, or the CPU with small sizes for a dry run."""

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


def random_7b(device: Device, formats: str) -> Target:
    """Make a random 7B of a weight format, or a small model for a dry run."""
    from medusa_core.bench.random_target import make_random
    from medusa_core.messages import LoadOptions, WeightFormats
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
    notes = f"{target.runner_note} {target.not_compiled}"
    print(f"runner: {type(target.runner).__name__} {notes}")
    return target


def measure_steps(device: Device, formats: str) -> dict[str, object]:
    """Print T(n) of a random 7B as the engine runs it, and the most memory beside the plan.

    Args:
        device: Where it runs.
        formats: Weight format of the linear layers.
    """
    from medusa_core.messages import GenerateSettings
    from medusa_core.runtime.runner.runner import PlacedTree
    from medusa_core.runtime.tree.shape import TokenTree, TreeShape
    from medusa_core.runtime.tree.step import WalkContext
    from medusa_core.speculation.rules.sample import Sample

    target = random_7b(device, formats)
    kv = target.allocate_cache(CACHE_TOKENS + max(ROW_COUNTS))
    kv.fill(CACHE_TOKENS)
    sample = Sample(GenerateSettings(rule="sample", seed=1, top_k=40))
    context = WalkContext([1] * CACHE_TOKENS, CACHE_TOKENS)

    def verify(tree: TokenTree) -> Tensor:
        return target.runner.logits(target.runner.verify(PlacedTree(tree, kv)))

    trees = {rows: TokenTree(TreeShape.chain(rows), (0,) * rows) for rows in ROW_COUNTS}
    with torch.inference_mode():
        seconds = {
            rows: device.median_s(lambda tree=tree: verify(tree).argmax(-1).cpu())
            for rows, tree in trees.items()
        }
        sampled = device.median_s(lambda: sample.walk(trees[16], verify(trees[16]), context))
    found = print_steps(seconds, target.weights_bytes)
    print(f"a sampled step of 16 rows: {sampled * 1e3:.3f} ms")
    found |= {"sampled step of 16 rows": sampled}
    found |= compare_launches(
        target, device.device, lambda: device.median_s(lambda: verify(trees[16]).argmax(-1).cpu())
    )
    if not device.is_dry:
        plan, most = target.plan, torch.cuda.max_memory_allocated(device.device)
        planned = plan.weights_bytes + plan.kv_bytes + plan.scratch_bytes + plan.runtime_bytes
        print(f"most memory: {most / 1e9:.2f} GB, planned {planned / 1e9:.2f} GB")
        found |= {"most memory": most, "planned": planned}
        found |= print_prediction(device, target.weights_bytes, seconds)
    return found


def compare_launches(
    target: Target, device: torch.device, seconds: Callable[[], float]
) -> dict[str, object]:
    """Print how kernels are launched by their times, and a step so and as by default.

    Args:
        target: Its runner is left with the default launches.
        device: Its card.
        seconds: Measures a step.
    """
    from medusa_core.runtime.runner.static import StaticRunner
    from medusa_core.system.native.cuda import MAX_SPLITS
    from medusa_core.system.native.cuda.tuning import stored_choices

    runner = target.runner
    if not isinstance(runner, StaticRunner) or runner._fused is None:
        print("launches: the kernels of this model aren't tuned")
        return {}
    choices = stored_choices(device)
    for shape, choice in choices.items():
        times = f"{choice.default_s * 1e6:9.1f} us, {choice.chosen_s * 1e6:9.1f} by {choice.launch}"
        print(f"{shape:40} by default {times}")
    with torch.inference_mode():
        tuned_s = seconds()
        for layer, _ in runner._fused.linears:
            layer.launch = layer.launches[0]
        runner._fused.splits = MAX_SPLITS
        runner.tap(runner.taps)  # drops the graphs
        default_s = seconds()
    print(f"a step of 16 rows: by default {default_s * 1e3:.3f} ms, tuned {tuned_s * 1e3:.3f} ms")
    gains = {shape: choice.gain for shape, choice in choices.items()}
    return {"default launches": default_s, "tuned launches": tuned_s, "gains": gains}


def print_prediction(
    device: Device, weights_bytes: int, seconds: dict[int, float]
) -> dict[str, object]:
    """Print what `card_model` predicts for this card, beside what was measured."""
    from tests.benchmarks.card_model import Card, Model, predict

    big = torch.zeros(1 << 28, dtype=torch.uint8, device=device.device)
    other = torch.empty_like(big)
    bandwidth = 2 * len(big) / device.median_s(lambda: other.copy_(big))
    properties = torch.cuda.get_device_properties(device.device)
    clock = getattr(properties, "clock_rate", 1_700_000) * 1e3
    capability = (properties.major, properties.minor)
    rate = properties.multi_processor_count * clock * (512 if capability >= (7, 5) else 0)
    card = Card(
        properties.name, capability, bandwidth, properties.multi_processor_count, clock, rate
    )
    model = Model("7B", weights_bytes * 8 / 4.5)
    try:
        predicted = {rows: predict(card, model, rows) for rows in seconds}
    except (KeyError, ValueError, OSError) as error:
        print(f"no prediction for this card: {error}")
        return {}
    for rows, value in predicted.items():
        times = f"predicted {value * 1e3:8.3f} ms, measured {seconds[rows] / value:.2f} x"
        print(f"{rows:4} rows: {times}")
    return {"predicted": predicted}


def check_greedy(device: Device) -> dict[str, object]:
    """Compare 500 greedy tokens of a random 7B with and without drafts, at the runner's level.

    Drafts are three true tokens and two wrong ones. Differences at near ties are counted, and the
    smallest lead of the first token that differs is printed.
    """
    from medusa_core.runtime.runner.runner import PlacedTree
    from medusa_core.runtime.tree.shape import TokenTree, TreeShape

    target, count = random_7b(device, "q4_0" if device.is_dry else "q4_k"), 500
    count = 24 if device.is_dry else count
    shape = TreeShape.from_paths([(0,), (1,), (0, 0), (0, 1), (0, 0, 0)])

    def logits(tree: TokenTree, kv: KvCache) -> Tensor:
        return target.runner.logits(target.runner.verify(PlacedTree(tree, kv)))

    with torch.inference_mode():
        kv = target.allocate_cache(count + 16)
        tokens, leads = [7], []
        for _ in range(count):
            best = logits(TokenTree(TreeShape.chain(1), (tokens[-1],)), kv)[0].float().topk(2)
            leads.append(float(best.values[0] - best.values[1]))
            kv.commit([0])
            tokens.append(int(best.indices[0]))
        kv, differing = target.allocate_cache(count + 16), []
        for place in range(0, count - 4, 4):
            true = tokens[place : place + 4]
            wrong = [(token + 1) % 100 for token in true]
            ids = {(): true[0], (0,): true[1], (1,): wrong[1], (0, 0): true[2]}
            ids |= {(0, 1): wrong[2], (0, 0, 0): true[3]}
            drafted = TokenTree(shape, tuple(ids[path] for path in shape.paths))
            best = logits(drafted, kv).argmax(-1).tolist()
            nodes = [shape.paths.index((0,) * depth) for depth in range(4)]
            found = [best[node] for node in nodes]
            differing += [place + i for i in range(4) if found[i] != tokens[place + i + 1]]
            kv.commit(nodes)
    print(f"{len(differing)} of {count} greedy tokens differ with drafts")
    for place in differing[:3]:
        print(f"at {place} the lead is {leads[place]:.4f}")
    return {"tokens": count, "differing": len(differing)}


def check_kernels(device: Device) -> dict[str, object]:
    """Print which kernels are correct, and the relative error of each type's products."""
    from medusa_core.models.quant.block_types import block_type
    from medusa_core.models.quant.card_linear import card_linear, working_types
    from medusa_core.models.quant.random_blocks import random_blocks
    from medusa_core.runtime.backends.cuda_blocks import card_attention, fused_kernels_work
    from medusa_core.system.native.cuda import BLOCK_TYPES
    from medusa_core.system.native.cuda.kernels import kernel_note

    if device.is_dry:
        print("kernels: none on a CPU")
        return {}
    working, attention = working_types(device.device), card_attention(device.device)
    found: dict[str, object] = {
        "right": sorted(working),
        "attention": attention is not None,
        "fused": fused_kernels_work(device.device),
    }
    print(f"right: {found}; wrong: {', '.join(BLOCK_TYPES - working) or 'none'}")
    print(kernel_note(device.device) or "No kernel is wrong.")
    for of in sorted(working):
        blocks = random_blocks(of, 512, 4096)
        layer = card_linear(block_type(of), blocks.to(device.device), None)
        assert layer is not None
        weights, x = block_type(of).dequantize(blocks).double(), torch.randn(64, 4096)
        expected, first = x.double() @ weights.t(), None
        for rows in ROW_COUNTS:
            y = layer(x[:rows].to(device.device)).cpu()
            first = y[0] if first is None else first
            error = float((y - expected[:rows]).norm() / expected[:rows].norm())
            print(f"{of:8}{rows:4} rows: error {error:.1e}, row 0 equal {torch.equal(y[0], first)}")
            found[f"{of}, {rows} rows, error"] = error
    return found


def measure_kernels(device: Device) -> dict[str, object]:
    """Print which of our kernels are correct, and their times by type and rows.

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
        "checks": check_kernels,
        "greedy": check_greedy,
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
