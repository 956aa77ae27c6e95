"""Damaged and hostile GGUF files: an error of ours, soon, and without memory beyond the file's."""

import struct
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest

from medusa_core.bench.gguf_export import finish
from medusa_core.errors import CheckpointError, MedusaError
from medusa_core.heads.gguf_format import gguf_format_registry
from medusa_core.heads.head_files import open_head_files
from medusa_core.heads.kind import kind_of
from medusa_core.heads.medusa import HeadsTarget
from medusa_core.hub.library.library_folder import look_into
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import read_gguf
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.gguf_heads_files import GGUF_HEADS
from tests.support.models.hostile_gguf import _MOST_BYTES, check_mutations, load, patched
from tests.support.models.targets import GROUPED
from tests.support.models.targets import load as load_written
from tests.support.models.tiny import TinySpec, write_tiny

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=1, seed=3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    root = tmp_path_factory.mktemp("hostile")
    folder = write_tiny(root / "tiny", SPEC)
    return write_as_gguf(folder, root / "tiny.gguf", "q8_0", pre="gpt-2").read_bytes()


def test_a_hundred_mutations_are_refused_or_load(whole: bytes, tmp_path: Path) -> None:
    assert check_mutations(whole, tmp_path, range(100)) > 30


@pytest.mark.slow
def test_a_thousand_mutations_are_refused_or_load(whole: bytes, tmp_path: Path) -> None:
    assert check_mutations(whole, tmp_path, range(100, 1100)) > 300


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    folder = write_tiny(tmp_path_factory.mktemp("target") / "tiny", GROUPED)
    return load_target(folder, None, LoadOptions("float32", "cpu"))


def check_heads(name: str, target: Target, tmp_path: Path, seeds: range) -> int:
    """Return how many mutations of heads were refused."""
    head_target = load_written("gemma4", "float32") if name == "gemma4-assistant" else target

    def load_heads(path: Path) -> None:
        look_into(path)
        files = open_head_files(path)
        kind_of(files.checkpoint.names).read(
            files,
            HeadsTarget(
                head_target.config,
                head_target.precision,
                head_target.shared_weights,
                head_target.formats,
            ),
        )

    whole = GGUF_HEADS[name](tmp_path / "whole.gguf")
    load_heads(whole)
    return check_mutations(whole.read_bytes(), tmp_path, seeds, load_heads)


@pytest.mark.parametrize("name", GGUF_HEADS)
def test_mutated_heads_are_refused_or_load(name: str, target: Target, tmp_path: Path) -> None:
    assert check_heads(name, target, tmp_path, range(30)) > 8


@pytest.mark.slow
@pytest.mark.parametrize("name", GGUF_HEADS)
def test_many_mutated_heads_are_refused_or_load(name: str, target: Target, tmp_path: Path) -> None:
    assert check_heads(name, target, tmp_path, range(30, 330)) > 80


def test_every_architecture_of_heads_is_covered() -> None:
    assert set(gguf_format_registry().names) == set(GGUF_HEADS)


HOSTILE = {
    "counts": lambda data: data[:8] + struct.pack("<QQ", 2**60, 2**60) + data[24:],
    "many keys": lambda data: data[:16] + struct.pack("<Q", 60_000) + data[24:],
    "dimensions": lambda data: patched(data, b"token_embd.weight", struct.pack("<I", 2**31)),
    "rows": lambda data: patched(data, b"token_embd.weight", struct.pack("<Q", 2**50), behind=12),
    "type": lambda data: patched(data, b"token_embd.weight", struct.pack("<I", 777), behind=20),
    "unread type": lambda data: patched(
        data, b"token_embd.weight", struct.pack("<I", 17), behind=20
    ),
    "offset": lambda data: patched(
        data, b"blk.0.attn_q.weight", struct.pack("<Q", 2**40), behind=24
    ),
    "overlap": lambda data: patched(data, b"blk.0.attn_q.weight", struct.pack("<Q", 0), behind=24),
    "text": lambda data: patched(data, b"general.architecture", struct.pack("<Q", 2**62), behind=4),
    "cut": lambda data: data[: len(data) - 100],
    "twice": lambda data: data.replace(b"blk.0.attn_k.weight", b"blk.0.attn_v.weight"),
    "big-endian": lambda data: data[:4] + struct.pack(">I", 3) + data[8:],
    "old": lambda data: data[:4] + struct.pack("<I", 1) + data[8:],
    "pickle": lambda data: b"PK\x03\x04" + data[4:],
    "empty": lambda data: b"",
    "heads": lambda data: patched(
        data, b"llama.attention.head_count", struct.pack("<I", 0), behind=4
    ),
    "layers": lambda data: patched(data, b"llama.block_count", struct.pack("<I", 2**31), behind=4),
    "more layers": lambda data: patched(data, b"llama.block_count", struct.pack("<I", 9), behind=4),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_an_error_message_names_the_cause(name: str, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(HOSTILE[name](whole))
    tracemalloc.start()
    try:
        with pytest.raises(MedusaError) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] <= _MOST_BYTES
    finally:
        tracemalloc.stop()
    assert caught.value.message


@pytest.mark.parametrize("shape", [(5000, 2, 2), (64,)], ids=["far too many", "no matrices"])
def test_senseless_experts_are_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "qwen3moe")
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.add_tensor("blk.0.ffn_up_exps.weight", np.zeros(shape, np.float32))
    finish(writer)
    with pytest.raises(CheckpointError, match="each expert"):
        ModelFiles.open(tmp_path / "x.gguf").checkpoint()


def test_a_file_that_shrinks_while_it_is_read_causes_no_read_past_its_end(
    whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(whole)
    checkpoint = ModelFiles.open(path).checkpoint()
    tensors = read_gguf(path).tensors
    last = max(tensors, key=lambda name: tensors[name].start)
    path.write_bytes(whole[:-1000])
    with pytest.raises(CheckpointError):
        checkpoint.floats(GgufArchitecture().hugging_face_name(last), None)
