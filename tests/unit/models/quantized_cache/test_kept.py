"""Kept quantized models: what isn't what was kept reaches no kernel, and is made anew."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.checkpoints.checkpoint import Checkpoint, checksum
from medusa_core.models.quant.format import (
    QuantSpec,
    quant_registry,
)
from medusa_core.models.quantized_cache.folder import QuantizedModels
from medusa_core.models.quantized_cache.writer import QuantizedWriter
from medusa_core.system.files.json_file import read_json
from medusa_core.system.files.safetensors_header import (
    read_header,
    read_metadata,
)
from tests.support.engine.by_turns import by_turns
from tests.support.engine.laws import plain_scores
from tests.support.models.tiny import TinySpec, write_tiny

WIDE = TinySpec(num_layers=1, hidden_size=128, intermediate_size=192, has_bias=True, seed=21)
QUANTS = ("int8", "q4")
IDS = [3, 50, 60, 200, 9, 11, 50]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "wide", WIDE)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def load(model: Path, kept: Path | None, quant: str) -> Target:
    # The projection in the same format: its shapes are checked like the blocks'.
    return load_target(
        model, None, LoadOptions(formats=WeightFormats(quant, lm_head=quant), quantized_dir=kept)
    )


@dataclass
class Kept:
    """Parts of a cache file.

    Attributes:
        header: Its JSON.
        body: The bytes of its tensors.
    """

    header: dict[str, Any]
    body: bytearray

    @classmethod
    def read(cls, path: Path) -> "Kept":
        whole = path.read_bytes()
        begin = 8 + int.from_bytes(whole[:8], "little")
        return cls(json.loads(whole[8:begin]), bytearray(whole[begin:]))

    def write(self, path: Path) -> None:
        header = json.dumps(self.header).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header + self.body)

    def first(self, key: str) -> str:
        """Return the first tensor of a key such as `scale`, also of weights in blocks."""
        endings = ("/weight", "/blocks") if key == "weight" else (f"/{key}",)
        return next(name for name in self.header if name.endswith(endings))

    def cut(self, name: str, shape: list[int], nbytes: int) -> None:
        """Give a tensor another shape and fewer bytes."""
        start, end = self.header[name]["data_offsets"]
        gone = end - start - nbytes
        del self.body[end - gone : end]
        self.header[name] |= {"shape": shape, "data_offsets": [start, end - gone]}
        for other, entry in self.header.items():
            if other != "__metadata__" and entry["data_offsets"][0] >= end:
                entry["data_offsets"] = [place - gone for place in entry["data_offsets"]]


def tensors_of(kept: Kept) -> list[str]:
    return [name for name in kept.header if name != "__metadata__"]


Damage = Callable[[Kept], object]


def flip(share: float) -> Damage:
    """Flip one bit of the body at a relative position."""

    def damage(kept: Kept) -> None:
        kept.body[int(share * (len(kept.body) - 1))] ^= 0x10

    return damage


def zero_a_page(kept: Kept) -> None:
    start = len(kept.body) // 2
    kept.body[start : start + 4096] = bytes(4096)


def swap_two_pages(kept: Kept) -> None:
    kept.body[:512], kept.body[512:1024] = kept.body[512:1024], kept.body[:512]


def drop_a_tensor(kept: Kept) -> None:
    name = max(tensors_of(kept), key=lambda name: kept.header[name]["data_offsets"][1])
    start, _ = kept.header.pop(name)["data_offsets"]
    del kept.body[start:]


def add_a_tensor(kept: Kept) -> None:
    end = len(kept.body)
    kept.header["extra"] = {"dtype": "U8", "shape": [4], "data_offsets": [end, end + 4]}
    kept.body += bytes(4)


def rename_a_tensor(kept: Kept) -> None:
    name = tensors_of(kept)[-1]
    kept.header[f"{name}x"] = kept.header.pop(name)


def forget_checksums(kept: Kept) -> None:
    del kept.header["__metadata__"]


def forget_one_checksum(kept: Kept) -> None:
    kept.header["__metadata__"].popitem()


def checksums_of_another_kind(kept: Kept) -> None:
    kept.header["__metadata__"] = {"a": 1}


def exchange_two_norms(kept: Kept) -> None:
    names = [name for name in tensors_of(kept) if name.endswith("_layernorm")][:2]
    first, second = (kept.header[name]["data_offsets"] for name in names)
    kept.header[names[0]]["data_offsets"], kept.header[names[1]]["data_offsets"] = second, first
    sums = kept.header["__metadata__"]
    sums[names[0]] = "00000000"


def shorten(key: str) -> Damage:
    """Halve a tensor and correct its checksum, so that only its shape differs."""

    def damage(kept: Kept) -> None:
        name = kept.first(key)
        entry = kept.header[name]
        start, end = entry["data_offsets"]
        half = (end - start) // 2
        shape = [entry["shape"][0] // 2, *entry["shape"][1:]]
        kept.cut(name, shape, half)
        body = torch.frombuffer(kept.body, dtype=torch.uint8)[start : start + half].clone()
        kept.header["__metadata__"][name] = checksum(body)

    return damage


def another_dtype(kept: Kept) -> None:
    """Declare the same bytes as another dtype."""
    name = kept.first("weight")
    kept.header[name]["dtype"] = "U8" if kept.header[name]["dtype"] == "I8" else "I8"


DAMAGES: dict[str, Damage] = {
    "a bit at the start": flip(0),
    "a bit in the middle": flip(0.5),
    "a bit at the end": flip(1),
    "a page of zeros": zero_a_page,
    "two pages swapped": swap_two_pages,
    "a missing tensor": drop_a_tensor,
    "a tensor too many": add_a_tensor,
    "a tensor of another name": rename_a_tensor,
    "no checksums": forget_checksums,
    "a missing checksum": forget_one_checksum,
    "checksums that are no text": checksums_of_another_kind,
    "two norms exchanged": exchange_two_norms,
    "a weight of half the rows": shorten("weight"),
    "half a bias": shorten("bias"),
    "a weight of another dtype": another_dtype,
}
OWN: dict[str, tuple[str, ...]] = {
    "int8": ("scale",),
    "q4": ("blocks",),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path, Tensor]]:
    """Return, for each weight format, a model, its cache files and its logits."""
    made = {}
    for quant in QUANTS:
        folder = tmp_path_factory.mktemp(quant)
        model = write_tiny(folder / "wide", WIDE)
        scores = plain_scores(load(model, folder / "kept", quant), IDS)
        made[quant] = (model, folder / "kept", scores)
    return made


def check_made_anew(
    quant: str,
    damage: Damage,
    whole: dict[str, tuple[Path, Path, Tensor]],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The damage is seen before a kernel sees the tensor, and the next load finds a good file."""
    model, quantized_dir, scores = whole[quant]
    shutil.copytree(quantized_dir, folder)
    (path,) = folder.iterdir()
    good = path.read_bytes()
    taken_apart = Kept.read(path)
    damage(taken_apart)
    taken_apart.write(path)
    assert path.read_bytes() != good
    kept = QuantizedModels(folder)
    assert torch.equal(plain_scores(load(model, folder, quant), IDS), scores)
    assert "will be made again" in caplog.text
    caplog.clear()
    (entry,) = kept.entries()
    assert entry.path == path
    assert Kept.read(path) == Kept.read(quantized_dir / path.name)
    monkeypatch.setattr(QuantizedModels, "writer", lambda *_: pytest.fail("it was made once more"))
    assert torch.equal(plain_scores(load(model, folder, quant), IDS), scores)
    assert not caplog.text


@pytest.mark.expects_errors
@pytest.mark.parametrize(("name", "quant"), by_turns(list(DAMAGES), QUANTS))
def test_a_damaged_cached_model_is_deleted_and_quantized_again(
    name: str,
    quant: str,
    whole: dict[str, tuple[Path, Path, Tensor]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    check_made_anew(quant, DAMAGES[name], whole, tmp_path / "kept", monkeypatch, caplog)


@pytest.mark.expects_errors
@pytest.mark.parametrize(
    ("quant", "key"), [(quant, key) for quant, keys in OWN.items() for key in keys]
)
def test_a_table_that_is_too_short_for_its_weight_is_never_used(
    quant: str,
    key: str,
    whole: dict[str, tuple[Path, Path, Tensor]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    check_made_anew(quant, shorten(key), whole, tmp_path / "kept", monkeypatch, caplog)


def test_every_tensor_is_checked_before_a_layer_is_built_of_it(
    model: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(model, kept, "int8")
    checked: list[str] = []
    summed = Checkpoint.summed

    def counted(self: Checkpoint, name: str) -> tuple[Tensor, str]:
        checked.append(name)
        return summed(self, name)

    monkeypatch.setattr(Checkpoint, "summed", counted)
    load(model, kept, "int8")
    (entry,) = QuantizedModels(kept).entries()
    assert sorted(checked) == sorted(read_header(entry.path))


@pytest.mark.parametrize("spec", quant_registry().specs, ids=lambda spec: spec.name)
@pytest.mark.parametrize("shape", [(96, 128), (32, 64), (320, 1088)], ids=str)
def test_a_format_declares_the_tensors_that_it_makes(
    spec: QuantSpec, shape: tuple[int, int]
) -> None:
    compute = spec.compute[0]
    made = spec.quantize(torch.randn(shape).to(getattr(torch, compute)))
    output = spec.tensors(*shape, compute)
    assert output.keys() == made.keys()
    for key, (dtype, sizes) in output.items():
        assert made[key].dtype == getattr(torch, dtype)
        assert len(sizes) == made[key].ndim
        assert all(size in (-1, found) for size, found in zip(sizes, made[key].shape, strict=True))


@pytest.mark.parametrize("name", ["nf4", "nf4-dq"])
@pytest.mark.parametrize("key", ["absmax", "quant_map", "nested_absmax", "nested_quant_map"])
def test_inconsistent_statistics_reach_no_kernel(name: str, key: str) -> None:
    spec = quant_registry().get(name)
    tensors = spec.quantize(torch.randn(320, 1088))
    if key not in tensors:
        pytest.skip("a plain format has no nested tables")
    for wrong in (tensors[key][:-1], tensors[key].repeat(2), tensors[key].double()):
        with pytest.raises(CheckpointError):
            spec.build(tensors | {key: wrong}, 320, None, torch.float32)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [320, 1152]},
        {"shape": None},
        {"shape": [[1]]},
        {"blocksize": 128},
        {"blocksize": -64},
        {"quant_type": "fp4"},
        {"dtype": "Tensor"},
        {"dtype": "int8"},
        {"nested_blocksize": 64},
        {"nested_blocksize": "x"},
        {"nested_dtype": "nothing"},
        {"nested_offset": "x"},
    ],
    ids=str,
)
def test_an_inconsistent_state_reaches_no_kernel(changes: dict[str, object]) -> None:
    spec, key = quant_registry().get("nf4-dq"), "quant_state.bitsandbytes__nf4"
    tensors = spec.quantize(torch.randn(320, 1088))
    state = json.loads(bytes(tensors[key].tolist()))
    assert changes.keys() <= state.keys()
    text = json.dumps(state | changes).encode()
    tensors[key] = torch.tensor(list(text), dtype=torch.uint8)
    with pytest.raises(CheckpointError):
        spec.build(tensors, 320, None, torch.float32)


@pytest.mark.parametrize("num_bytes", [0, 1, 1000, (4 << 20) - 1, 4 << 20, (12 << 20) + 5])
def test_a_checksum_changes_with_every_bit(num_bytes: int) -> None:
    tensor = torch.arange(num_bytes, dtype=torch.int64).to(torch.uint8)
    expected = checksum(tensor)
    assert checksum(tensor.clone()) == expected
    for place in {0, num_bytes // 2, num_bytes - 1} if num_bytes else ():
        tensor[place] ^= 1
        assert checksum(tensor) != expected
        tensor[place] ^= 1
    assert checksum(tensor) == expected


def test_a_checksum_covers_the_bytes_whatever_their_dtype() -> None:
    tensor = torch.randn(64, 32).bfloat16()
    assert checksum(tensor) == checksum(tensor.view(torch.uint8)) == checksum(tensor.view(-1))
    assert checksum(tensor.t()) != checksum(tensor)
    assert checksum(torch.tensor(1.5)) == checksum(torch.tensor([1.5]))


def test_the_writers_metadata_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with QuantizedWriter(path) as writer:
        writer.keep("x", torch.ones(3))
    assert read_metadata(path) == {"x": checksum(torch.ones(3))}
    assert read_header(path).keys() == {"x"}


def test_a_hostile_quantized_checkpoint_reaches_no_kernel(model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    from medusa_core.models.quant.nf4_tensors import quantize

    tensors: dict[str, Tensor] = {}
    for name, tensor in load_file(model / "model.safetensors").items():
        parts = quantize(tensor, is_nested=True) if name.endswith("proj.weight") else {}
        for key, part in (parts or {"weight": tensor}).items():
            is_cut = key == "nested_absmax" and name.endswith("k_proj.weight")
            own = name if key == "weight" else f"{name}.{key}"
            tensors[own] = part[:0].contiguous() if is_cut else part
    save_file(tensors, model / "model.safetensors")
    raw = read_json(model / "config.json")
    raw["quantization_config"] = {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
    }
    (model / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(CheckpointError, match="fit"):
        load_target(model, None, LoadOptions())
