"""A GGUF file says what it is and what to get instead; a damaged one gives an error of ours."""

import struct
from pathlib import Path

import pytest

from medusa_core.errors import CheckpointError, ConversionError
from medusa_core.hub.convert_source import find_source
from medusa_core.hub.gguf import GgufInfo, explain_gguf, read_gguf

UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


ENTRIES = [
    entry("general.architecture", STRING, text("llama")),
    entry("tokenizer.ggml.scores", ARRAY, struct.pack("<IQ3f", FLOAT32, 3, 1, 2, 3)),
    entry("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, 2) + text("a") + text("bc")),
    entry("llama.rope", FLOAT32, struct.pack("<f", 1.5)),
    entry("tokenizer.add_bos", BOOL, b"\1"),
    entry("general.name", STRING, text("Vicuna 7B v1.3")),
    entry("general.size_label", STRING, text("7B")),
    entry("general.file_type", UINT32, struct.pack("<I", 15)),
]
SOURCE = entry(
    "general.base_model.0.repo_url", STRING, text("https://huggingface.co/lmsys/vicuna-7b-v1.3")
)


def gguf(*entries: bytes, version: int = 3, num_tensors: int = 291) -> bytes:
    counts = struct.pack("<IQQ", version, num_tensors, len(entries))
    return b"GGUF" + counts + b"".join(entries) + b"\0" * 64


def write(folder: Path, data: bytes) -> Path:
    path = folder / "vicuna.Q4_K_M.gguf"
    path.write_bytes(data)
    return path


def test_the_header_is_read_past_lists_of_any_kind(tmp_path: Path) -> None:
    info = read_gguf(write(tmp_path, gguf(*ENTRIES, SOURCE)))
    assert info == GgufInfo(
        3, 291, "llama", "Vicuna 7B v1.3", "Q4_K_M", "7B", "lmsys/vicuna-7b-v1.3"
    )


def test_it_says_what_it_is_and_what_to_get(tmp_path: Path) -> None:
    known = explain_gguf(write(tmp_path, gguf(*ENTRIES, SOURCE)))
    assert "Vicuna 7B v1.3" in known.message
    assert "7B, llama, Q4_K_M" in known.message
    assert "lmsys/vicuna-7b-v1.3" in known.hint
    assert "Vicuna 7B v1.3" in explain_gguf(write(tmp_path, gguf(*ENTRIES))).hint
    assert "safetensors" in explain_gguf(write(tmp_path, gguf())).hint


def test_names_can_not_play_tricks_on_a_terminal(tmp_path: Path) -> None:
    name = entry("general.name", STRING, text("a\x1b[2J\nb" + "c" * 1000))
    info = read_gguf(write(tmp_path, gguf(name)))
    assert info.name.startswith("a[2Jbc")
    assert len(info.name) == 200


def test_conversion_of_a_gguf_file_is_refused_with_the_explanation(tmp_path: Path) -> None:
    path = write(tmp_path, gguf(*ENTRIES, SOURCE))
    for source in (path, tmp_path):
        with pytest.raises(ConversionError, match="GGUF") as caught:
            find_source(source)
        assert "lmsys/vicuna-7b-v1.3" in caught.value.hint


def test_a_header_that_is_cut_gives_an_error_of_ours(tmp_path: Path) -> None:
    whole = gguf(*ENTRIES)[:-64]
    for length in range(len(whole)):
        with pytest.raises(CheckpointError):
            read_gguf(write(tmp_path, whole[:length]))
    read_gguf(write(tmp_path, whole))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK\3\4" + b"\0" * 64, "begin"),
        (gguf(version=77), "version 77"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "promises"),
        (gguf(struct.pack("<Q", 1 << 50)), "promises"),
        (gguf(entry("a", ARRAY, struct.pack("<IQ", UINT32, 1 << 60))), "promises"),
        (gguf(entry("a", ARRAY, struct.pack("<IQ", UINT32, 1 << 20))), "ends"),
        (gguf(entry("a", ARRAY, struct.pack("<IQ", ARRAY, 1))), "unknown kind 9"),
        (gguf(entry("a", 99, b"")), "unknown kind 99"),
    ],
)
def test_damage_is_named(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(CheckpointError, match=reason):
        read_gguf(write(tmp_path, data))
