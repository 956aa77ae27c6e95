"""Logits of tiny random models of every family, which a change of the model layer must keep.

`golden/FAMILY.json` describes the models of a family: their `config.json`, and of each tensor its
shape, mean and scale. The weights follow from the tensor's name, so no random generator and no
version of transformers changes them. `golden/FAMILY.npz` has what torch computes for them in
float64, `golden/bits/SET.json` digests of what the compiled step of an instruction set computes.
`python -m tests.tools.record_golden` records what is missing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from medusa_core.errors import MedusaError
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.runner import PlacedTree, Runner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system.native.binding import instruction_sets, native_library
from tests.support.models.gguf_converter import convert
from tests.support.models.tiny import write_text_files

FOLDER = Path(__file__).parent / "golden"
BITS_FOLDER = FOLDER / "bits"
RECORD = "python -m tests.tools.record_golden"

# Longer than the sliding windows of the models, so that the tree is at the edge of some.
_VOCAB_SIZE, _CAPACITY = 320, 80
PROMPT = tuple(2 + (7 * i * i + 5 * i) % 311 for i in range(37))
SHAPE = TreeShape.from_paths(
    [(0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 1, 0), (0, 1, 1), (0, 1, 0, 0)]
)
TREE = TokenTree(SHAPE, tuple(range(40, 40 + SHAPE.num_nodes)))
ACCEPTED = (0, *(1 + SHAPE.paths.index(path) for path in [(0,), (0, 1), (0, 1, 0)]))
CHAIN = TokenTree(TreeShape.chain(4), (90, 17, 203, 64))
SHORT_PROMPT, CHUNK, LAST_CHUNK = PROMPT[:9], (33, 150, 71), (208, 12, 99)

# Projections of a row. A change of any number of it changes them.
_LOGIT_COLUMNS, _STATE_COLUMNS = 4, 2
EXACT = 1e-10  # of the largest number
# Some numbers are stored otherwise in GGUF files, such as −exp(A_log).
_ROUNDED = 1e-4
# Four bytes of a hash are summed for each weight.
_MEAN, _DEVIATION = 510.0, math.sqrt(4 * (256**2 - 1) / 12)
_STEPS = 4.0

FORMATS = {
    "float32": LoadOptions("float32", "cpu"),
    # As files of q4_0 are, with a finer projection to the vocabulary.
    "q4_0": LoadOptions("float32", "cpu", WeightFormats("q4_0", "q8_0")),
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Seed and scale of a golden tensor's random numbers.

    Attributes:
        shape: Its shape.
        mean: Their mean, a multiple of 1/8.
        exponent: Their standard deviation is about 2 to this power.
    """

    shape: tuple[int, ...]
    mean: float
    exponent: int

    @classmethod
    def like(cls, tensor: Tensor) -> TensorSpec:
        """Describe a tensor of a randomly initialised model."""
        numbers = tensor.double()
        is_vector = tensor.dim() < 2
        mean = round(float(numbers.mean()) * 8) / 8 if is_vector else 0.0
        deviation = float((numbers - mean).square().mean().sqrt())
        return cls(tuple(tensor.shape), mean, round(math.log2(deviation or 0.125)))


@dataclass(frozen=True, slots=True)
class Variant:
    """A tiny model of a family.

    Attributes:
        family: Its `model_type`.
        name: What distinguishes it from others of the family.
        config: Its `config.json`.
        tensors: Its tensors by name.
        gguf: How far a GGUF file of it may be from the folder, as part of the largest number; None
            if such files can't hold the model, or llama.cpp's converter doesn't write it.
    """

    family: str
    name: str
    config: Mapping[str, Any]
    tensors: Mapping[str, TensorSpec]
    gguf: float | None = None

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"

    @property
    def record(self) -> dict[str, Any]:
        """Return the model's record in its family's golden file."""
        tensors = {name: [one.shape, one.mean, one.exponent] for name, one in self.tensors.items()}
        return {"gguf": self.gguf, "config": self.config, "tensors": tensors}

    def write(self, folder: Path) -> Path:
        """Write it as a folder in Hugging Face's layout."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(dict(self.config)), encoding="utf-8")
        weights = {name: weights_of(name, spec) for name, spec in self.tensors.items()}
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        write_text_files(folder)
        return folder


def weights_of(name: str, spec: TensorSpec) -> Tensor:
    """The numbers of a tensor: eight bits times a power of two, nearly normal.

    NumPy guarantees the stream of `PCG64`, unlike those of its distributions.
    """
    count = math.prod(spec.shape)
    raw = np.random.PCG64(zlib.crc32(name.encode())).random_raw((count + 1) // 2)
    sums = raw.astype("<u8").view(np.uint8).reshape(-1, 4)[:count].sum(axis=1, dtype=np.int64)
    steps = np.floor_divide(sums - int(_MEAN), int(_STEPS))
    scale = 2.0 ** (spec.exponent - round(math.log2(_DEVIATION / _STEPS)))
    numbers = spec.mean + steps * scale
    return torch.from_numpy(numbers.astype(np.float32).reshape(spec.shape))


@dataclass(frozen=True, slots=True)
class Passes:
    """Outputs of a runner for the same tokens of every model.

    Attributes:
        states: By pass, the hidden states that heads read, final ones first, then those entering
            some layers. [rows, (1 + taps) · hidden]
        logits: By pass. [rows, vocabulary]
        hidden_size: Numbers of one hidden state.
    """

    states: Mapping[str, Tensor]
    logits: Mapping[str, Tensor]
    hidden_size: int

    @property
    def digests(self) -> dict[str, str]:
        """Return a digest of all bits by pass."""
        return {
            name: hashlib.sha256(
                states.contiguous().numpy().tobytes()
                + self.logits[name].contiguous().numpy().tobytes()
            ).hexdigest()[:12]
            for name, states in self.states.items()
        }

    @property
    def projections(self) -> dict[str, np.ndarray]:
        """Return projections of each row by pass, which change with any of its numbers; the largest
        ones last.
        """
        found = {}
        for name, states in self.states.items():
            logits = self.logits[name].double().numpy()
            parts = states.double().split(self.hidden_size, dim=-1)
            of_states = [_projected(part.numpy(), _STATE_COLUMNS) for part in parts]
            columns = [_projected(logits, _LOGIT_COLUMNS), *of_states]
            found[name] = np.concatenate(columns, axis=1)
        return found


def _projected(rows: np.ndarray, count: int) -> np.ndarray:
    projected = rows @ _signs(rows.shape[1], count)
    return np.concatenate([projected, np.full((1, count), np.abs(rows).max())])


@functools.cache
def _signs(width: int, count: int) -> np.ndarray:
    raw = np.random.PCG64(width).random_raw(width * count)
    return np.where(raw.astype("<u8") >> 63, 1.0, -1.0).reshape(width, count)


@torch.inference_mode()
def passes_of(runner: Runner, config: ModelConfig) -> Passes:
    """Read a prompt, then draft, reject and go on; layers are tapped as heads tap them."""
    runner.tap(sorted({0, config.num_layers // 2, config.num_layers - 1}))
    kv, other = (runner.new_cache(_CAPACITY) for _ in range(2))
    states = dict(_states(runner, kv, other))
    logits = {name: runner.logits(rows) for name, rows in states.items()}
    return Passes(states, logits, config.hidden_size)


def _states(runner: Runner, kv: KvCache, other: KvCache) -> Iterator[tuple[str, Tensor]]:
    yield "prompt", runner.extend(PROMPT, kv)
    yield "tree", runner.verify(PlacedTree(TREE, kv))
    kv.commit(ACCEPTED)
    yield "chain", runner.verify(PlacedTree(CHAIN, kv))
    kv.commit((0,))
    yield "chunk", runner.extend(CHUNK, kv)
    yield "last of a chunk", runner.extend(LAST_CHUNK, kv, only_last=True)
    runner.extend(SHORT_PROMPT, other)
    yield "two at once", runner.verify(PlacedTree(CHAIN, kv), PlacedTree(TREE, other))


def exact_passes(folder: Path) -> Passes:
    """Return torch's outputs in float64."""
    target = load_target(folder, None, LoadOptions("float64", "cpu"))
    return passes_of(target.runner, target.config)


def compiled_passes(folder: Path, weight_format: str) -> Passes | None:
    """Return the outputs of the compiled step; None if it doesn't support this model."""
    target = load_target(folder, None, FORMATS[weight_format])
    if not isinstance(target.runner, NativeRunner):
        return None
    return passes_of(target.runner, target.config)


def gguf_passes(folder: Path) -> Passes:
    """Return torch's outputs in float64 for the GGUF file of a folder's model."""
    return exact_passes(convert(folder, folder / "model.gguf"))


def with_gguf(variant: Variant, folder: Path, exact: Mapping[str, np.ndarray]) -> Variant:
    """Find out whether a GGUF file can hold a model.

    Args:
        variant: The model.
        folder: Where it was written.
        exact: What torch computes for the folder.
    """
    try:
        found = gguf_passes(folder).projections
    except (MedusaError, LookupError, AssertionError, struct.error):
        return variant  # the converter has no name or no number for a part of it
    for tolerance in (EXACT, _ROUNDED):
        if not differences(found, exact, tolerance):
            return replace(variant, gguf=tolerance)
    return variant


def sets_of_this_cpu() -> list[str]:
    """Instruction sets of this CPU that have a compiled step; the one that is named, if one is."""
    wanted = os.environ.get("MEDUSA_NATIVE", "")
    return [name for name in instruction_sets() if wanted in ("", name)]


@contextmanager
def computing_with(instruction_set: str) -> Iterator[None]:
    """Load targets with the compiled step of an instruction set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDUSA_NATIVE", instruction_set)
        native_library.cache_clear()
        yield
    native_library.cache_clear()


def differences(
    found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], tolerance: float = EXACT
) -> list[str]:
    """Return which passes differ by more than a share of the largest number, and by how much."""
    if found.keys() != wanted.keys():
        return [f"passes {sorted(found)} instead of {sorted(wanted)}"]
    lines = []
    for name, numbers in found.items():
        if numbers.shape != wanted[name].shape:
            lines.append(f"{name}: shape {numbers.shape} instead of {wanted[name].shape}")
            continue
        errors = relative_errors(numbers, wanted[name])
        if not errors.max() <= tolerance:  # also for NaN
            row, column = np.unravel_index(np.argmax(errors), errors.shape)
            part = (column - _LOGIT_COLUMNS) // _STATE_COLUMNS
            of = "logits" if part < 0 else f"hidden states {part}"
            lines.append(f"{name}: {of} of row {row} by {errors.max():.2g} of the largest")
    return lines


def relative_errors(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Differences of projections, as parts of the largest number that was projected."""
    return np.abs(found - wanted) / wanted[-1]


def families() -> list[str]:
    """Return the families that have golden files."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


@functools.cache
def variants_of(family: str) -> tuple[Variant, ...]:
    """The models of a family, as its file describes them."""
    described = json.loads((FOLDER / f"{family}.json").read_text(encoding="utf-8"))
    return tuple(
        Variant(
            family,
            name,
            one["config"],
            {
                tensor: TensorSpec(tuple(shape), mean, exponent)
                for tensor, (shape, mean, exponent) in one["tensors"].items()
            },
            one["gguf"],
        )
        for name, one in described.items()
    )


@functools.cache
def recorded_projections(family: str) -> dict[str, dict[str, np.ndarray]]:
    """Return recorded projections by variant and pass."""
    recorded: dict[str, dict[str, np.ndarray]] = {}
    with np.load(FOLDER / f"{family}.npz") as arrays:
        for key in arrays:
            name, _, of_pass = key.rpartition("/")
            recorded.setdefault(name, {})[of_pass] = arrays[key]
    return recorded


def recorded_bits(instruction_set: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return recorded digests by variant, weight format and pass; empty if none were recorded."""
    path = BITS_FOLDER / f"{instruction_set}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
