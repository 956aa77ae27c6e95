"""What GGUF files are called, and what is said of those that can't be read."""

from pathlib import Path

import gguf
import numpy as np
import pytest

from medusa_core.bench.gguf_export import finish
from medusa_core.errors import CheckpointError
from medusa_core.hub.library.library_folder import check_folder
from medusa_core.models.checkpoints.gguf_naming import (
    file_type,
    model_name,
)
from medusa_core.system.files.gguf import read_gguf


def written(path: Path, file_type: int | None = None, **general: str) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    for key, text in general.items():
        writer.add_string(f"general.{key}", text)
    if file_type is not None:
        writer.add_file_type(file_type)
    writer.add_tensor("token_embd.weight", np.zeros((8, 32), np.float32))
    finish(writer)
    return path


@pytest.mark.parametrize(
    ("file", "general", "name"),
    [
        (
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            {
                "name": "Qwen2.5 Coder 0.5B Instruct AWQ",
                "basename": "Qwen2.5-Coder",
                "finetune": "Instruct-AWQ",
            },
            "Qwen2.5 Coder 0.5B Instruct",
        ),
        ("gemma-3-270m-q4_k_m.gguf", {"name": "Gemma 3 270m"}, "Gemma 3 270m"),
        (
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            {
                "name": "Smollm2 135M 8k Lc100K Mix1 Ep2",
                "basename": "smollm2",
                "finetune": "8k-lc100k-mix1-ep2",
            },
            "SmolLM2-135M-Instruct.Q4_1",
        ),
        ("model.gguf", {"name": "Llama 3", "basename": "Llama", "finetune": "Chat"}, "Llama 3"),
        ("model.gguf", {"name": "/home/me/models/llama-7b"}, "llama-7b"),
        ("a.gguf", {"name": "C:\\models\\llama-7b"}, "llama-7b"),
        (
            "x.gguf",
            {
                "name": "Model",
                "basename": "Qwen2.5-Coder",
                "size_label": "0.5B",
                "finetune": "Instruct-AWQ",
            },
            "Qwen2.5 Coder 0.5B Instruct",
        ),
        ("tiny-chat.gguf", {"name": "/tmp/checkpoint-1200"}, "tiny-chat"),
        ("x.gguf", {"name": " two \n lines\x00\u202e "}, "two lines"),
        ("x.gguf", {"name": "a" * 5000}, "a" * 80),
        ("x.gguf", {"name": "GGUF"}, "x"),
        ("x.q8_0.gguf", {"name": "  "}, "x.q8_0"),
        ("x.gguf", {}, "x"),
    ],
)
def test_a_model_is_named_by_its_metadata_or_its_file(
    file: str, general: dict[str, str], name: str, tmp_path: Path
) -> None:
    assert model_name(read_gguf(written(tmp_path / file, **general))) == name


@pytest.mark.parametrize(
    ("file", "number", "kind"),
    [
        ("x.gguf", 15, "Q4_K_M"),
        ("x-q4_0.gguf", 15, "Q4_K_M"),
        ("qwen-q4_k_m.gguf", None, "Q4_K_M"),
        ("x.IQ4_NL.gguf", None, "IQ4_NL"),
        ("x.gguf", 27, "IQ3_M"),
        ("x-TQ2_0.gguf", None, "TQ2_0"),
        ("x-BF16.gguf", None, "BF16"),
        ("x-q6_k.gguf", 999, "Q6_K"),
        ("x-seq4_0.gguf", None, ""),
        ("x.gguf", None, ""),
    ],
)
def test_the_quantization_is_named_by_metadata_or_file_name(
    file: str, number: int | None, kind: str, tmp_path: Path
) -> None:
    assert file_type(read_gguf(written(tmp_path / file, number))) == kind


def test_an_error_of_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").write_text("not a model", encoding="utf-8")
    (tmp_path / "empty.gguf").touch()
    whole = written(tmp_path / "x.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:-100])
    (tmp_path / "begun.gguf").write_bytes(whole[:40])
    for name, output in {
        "notes.gguf": "notes.gguf isn't a GGUF model.",
        "empty.gguf": "empty.gguf isn't a GGUF model.",
        "cut.gguf": "cut.gguf is incomplete (the download broke off?).",
        "begun.gguf": "begun.gguf is incomplete (the download broke off?).",
        "nope.gguf": f"No such file: {tmp_path / 'nope.gguf'}",
    }.items():
        with pytest.raises(CheckpointError) as caught:
            check_folder(tmp_path / name)
        assert caught.value.message == output
