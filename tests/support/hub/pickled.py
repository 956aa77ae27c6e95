"""Pickles to convert, and what must come of them."""

import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from medusa_core.hub.convert import convert_worker
from medusa_core.hub.convert.convert import ConversionLimits, Converted, convert
from medusa_core.hub.convert.convert_process import ConversionJob
from medusa_core.hub.convert.convert_source import find_source

HIDDEN, VOCABULARY = 16, 40
LIMITS = ConversionLimits(time_s=120, floor_bytes=0)
MAX_BYTES = 1 << 30


class Runs:
    """Object whose unpickling calls a given function."""

    def __init__(self, call: Callable[..., object], *args: object) -> None:
        self._reduced = call, args

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self._reduced


def head_tensors() -> dict[str, Tensor]:
    return {
        name: tensor
        for head in range(3)
        for name, tensor in (
            (f"{head}.0.linear.weight", torch.randn(HIDDEN, HIDDEN).half()),
            (f"{head}.0.linear.bias", torch.randn(HIDDEN).half()),
            (f"{head}.1.weight", torch.randn(VOCABULARY, HIDDEN).half()),
        )
    }


def shards(folder: Path) -> dict[str, Tensor]:
    """Two shards with every dtype, views, shared and tied tensors, scalars and empties."""
    folder.mkdir(exist_ok=True)
    tied = torch.randn(VOCABULARY, HIDDEN)
    whole = torch.randn(6, HIDDEN)
    first = {
        "model.embed_tokens.weight": tied,
        "lm_head.weight": tied,
        "transposed": torch.randn(4, 8).t(),
        "every other": torch.arange(10.0)[::2],
        "expanded": torch.ones(1).expand(3, 2),
        "upper": whole[:4],
        "overlapping": whole[2:],
    }
    second = {
        "bf16": torch.randn(5, 3).bfloat16(),
        "f64": torch.randn(2).double(),
        "bool": torch.tensor([True, False, True]),
        "i64": torch.tensor(-(2**62)),
        "empty": torch.empty(0, HIDDEN),
        "nan": torch.tensor([float("nan"), float("inf"), -0.0]).half(),
    }
    weight_map = {}
    for number, tensors in enumerate((first, second), start=1):
        name = f"pytorch_model-{number:05}-of-00002.bin"
        torch.save(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return first | second


def run(path: Path, output: Path | None = None) -> Converted:
    return convert(find_source(path, output), is_consented=True, limits=LIMITS)


class LocalChannel:
    """Channel to the caller of a conversion that runs in this process."""

    def __init__(self, on_progress: Callable[[int, int], None]) -> None:
        self._on_progress = on_progress

    def send(self, **message: int) -> None:
        self._on_progress(message["written"], message["total"])

    def receive(self) -> dict[str, bool]:
        return {"go": True}


def run_in_process(
    job: ConversionJob,
    time_s: float,
    on_progress: Callable[[int, int], None] | None,
    is_cancelled: Callable[[], bool],
) -> None:
    """Replace `run_job`: convert in this process, as a new one imports torch for a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convert_worker, "limit_process", lambda *_: None)
        convert_worker.run(job, LocalChannel(on_progress or (lambda *_: None)))  # type: ignore[arg-type]


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        as_bytes = (t.contiguous().reshape(-1).view(torch.uint8) for t in (found[name], tensor))
        assert torch.equal(*as_bytes), name


def leftovers(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def write_archive(path: Path, data_pkl: bytes, **members: bytes) -> Path:
    """A zip as torch writes it, around any pickle."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", data_pkl)
        archive.writestr("archive/byteorder", b"little")
        archive.writestr("archive/version", b"3\n")
        for name, data in members.items():
            archive.writestr(f"archive/data/{name.removeprefix('_')}", data)
    return path


def storage_pickle(num_elements: int, size: tuple[int, ...], stride: tuple[int, ...]) -> bytes:
    """The pickle of {"w": a float32 tensor} in storage 0."""

    def integer(value: int) -> bytes:
        data = pickle.encode_long(value)
        return b"\x8a" + bytes([len(data)]) + data

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def sizes(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(integer, values)) + b"t"

    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu")
    storage += integer(num_elements) + b"tQ"
    hooks = b"\x89ccollections\nOrderedDict\n)R"
    args = b"(" + storage + integer(0) + sizes(size) + sizes(stride) + hooks + b"t"
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n" + args + b"R"
    return b"\x80\x02}" + text("w") + rebuild + b"s."
