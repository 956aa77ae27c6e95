"""GGUF files that go with a model are told in words wherever a model is taken."""

from pathlib import Path

import gguf
import numpy as np
import pytest

from medusa_core.__main__ import main
from medusa_core.bench.gguf_export import finish
from medusa_core.errors import CompanionError, HeadsFileError, UnusableRepoError
from medusa_core.hub.library.installed import list_installed
from medusa_core.hub.library.library_folder import ContentsKind, check_folder, look_into
from medusa_core.hub.listing import Listing, RemoteFile
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import read_gguf
from medusa_core.system.files.gguf_companions import is_companion, model_in_name


def written(
    path: Path,
    architecture: str,
    texts: dict[str, str] | None = None,
    tensors: tuple[str, ...] = ("a.weight",),
) -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    for key, text in (texts or {}).items():
        writer.add_string(key, text)
    for name in tensors:
        writer.add_tensor(name, np.zeros(8, np.int64))
    finish(writer)
    return path


@pytest.mark.parametrize(
    ("architecture", "texts", "what", "hint"),
    [
        ("clip", {}, "the part of a model that sees", "the model itself"),
        ("gemma5-assistant", {}, "it drafts for models of type gemma5", "Load that model"),
        ("nomic-bert", {}, "texts into vectors", "writes text"),
        ("llama", {"general.type": "adapter"}, "an adapter", "adapter_config.json"),
        ("llama", {"general.type": "imatrix"}, "statistics", "the model itself"),
        ("llama", {"general.type": "mmproj"}, "sees or hears", "the model itself"),
    ],
)
def test_companion_files_are_named_and_not_called_damaged(
    architecture: str, texts: dict[str, str], what: str, hint: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "x.gguf", architecture, texts)
    with pytest.raises(CompanionError, match=what) as caught:
        _ = ModelFiles.open(path).config
    assert hint in caught.value.hint
    with pytest.raises(CompanionError, match=what):
        check_folder(path)  # as an import does
    contents = look_into(path)
    assert contents.kind is ContentsKind.UNKNOWN
    assert what in contents.problems[0]


@pytest.mark.parametrize(
    ("architecture", "what"),
    [
        ("gemma4-assistant", "a Gemma 4 assistant, a drafter for"),
        ("gemma4_assistant", "a Gemma 4 assistant, a drafter for"),
        ("eagle3", "an EAGLE-3 drafter for"),
        ("dflash", "a DFlash drafter for"),
    ],
)
def test_heads_opened_as_a_model_say_how_to_load_them(
    architecture: str, what: str, tmp_path: Path
) -> None:
    texts = {"general.base_model.0.name": "Qwen3 8B"}
    path = written(tmp_path / "x.gguf", architecture, texts)
    with pytest.raises(HeadsFileError) as caught:
        _ = ModelFiles.open(path).config
    assert caught.value.message == f"x.gguf is {what} Qwen3 8B."
    assert "--heads" in caught.value.hint


def test_a_projector_file_names_its_modality_and_model(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_bool("clip.has_audio_encoder", True)
    writer.add_string("general.base_model.0.name", "Gemma 4\nE2B It")
    writer.add_tensor("v.weight", np.zeros(8, np.float32))
    finish(writer)
    with pytest.raises(CompanionError) as caught:
        read_gguf(tmp_path / "x.gguf")
    assert caught.value.message == (
        "x.gguf is the part of a model that sees and hears. It belongs to Gemma 4E2B It."
    )


def test_a_vocabulary_and_an_mtp_layer_are_not_models(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "vocab.gguf", "llama")
    writer.add_token_list(["a", "b"])
    finish(writer)
    with pytest.raises(CompanionError, match="a vocabulary without a model"):
        read_gguf(tmp_path / "vocab.gguf")
    writer = gguf.GGUFWriter(tmp_path / "mtp.gguf", "qwen35")
    for name in ("token_embd.weight", "blk.32.nextn.eh_proj.weight", "blk.32.attn_norm.weight"):
        writer.add_tensor(name, np.zeros(8, np.float32))
    finish(writer)
    with pytest.raises(HeadsFileError, match="MTP"):
        read_gguf(tmp_path / "mtp.gguf")


@pytest.mark.parametrize(
    ("name", "goes_with_one"),
    [
        ("mmproj-gemma-4-E2B-it-f16.gguf", True),
        ("gemma-4.mmproj-Q8_0.gguf", True),
        ("mtp-Qwen3.5-9B-Q8_0.gguf", True),
        ("Qwen3-8B-EAGLE3-Q4_0.gguf", True),
        ("Qwen3-8B-imatrix.gguf", True),
        ("Qwen3-8B-Q4_K_M-imatrix.gguf", False),
        ("Qwen3.6-27B-MTP-Q4_K_M.gguf", False),
        ("OpenAssistant-Q4_0.gguf", False),
        ("llama-2-assistant-Q4_0.gguf", False),
        ("gemma-4-E2B-it-assistant-Q8_0.gguf", True),
        ("dspark-Qwen3-8B.gguf", True),
        ("Qwen3-8B-DFlash-b16.gguf", True),
    ],
)
def test_companion_files_are_recognised_by_name(name: str, goes_with_one: bool) -> None:
    assert is_companion(name) is goes_with_one


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("mtp-Qwen3.5-9B-Q8_0.gguf", "Qwen3.5-9B-Q8_0"),
        ("Qwen3-8B-EAGLE3-Q4_0.gguf", "Qwen3-8B-Q4_0"),
        ("gemma-4-E2B-it-assistant-Q8_0.gguf", "gemma-4-E2B-it-Q8_0"),
        ("Qwen3-8B-DFlash-b16-Q8_0.gguf", "Qwen3-8B-Q8_0"),
        ("dflash-draft-q4_k_m.gguf", ""),
        ("Qwen3-8B-Q4_0.gguf", ""),
    ],
)
def test_drafter_files_name_their_target(name: str, model: str) -> None:
    assert model_in_name(name) == model


def test_a_choice_among_files_skips_companions(tmp_path: Path) -> None:
    names = ("mmproj-a-Q4_0.gguf", "a-Q4_0.gguf")
    files = tuple(RemoteFile(name, 1, name, False, name) for name in names)
    assert Listing("a/b", "main", "sha", files).only_gguf == "a-Q4_0.gguf"
    with pytest.raises(UnusableRepoError, match="go with a model"):
        Listing("a/b", "main", "sha", files[:1]).check()


@pytest.mark.expects_errors
def test_a_folder_counts_as_its_model_and_the_command_line_lists_companions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sees = written(tmp_path / "mmproj-x.gguf", "clip")
    assert main(["generate", "--model", str(sees), "--prompt", "Hello"]) == 1
    assert "the part of a model that sees" in capsys.readouterr().err
    (one,) = list_installed(tmp_path / "none", [tmp_path])
    assert one.contents.kind is ContentsKind.UNKNOWN
    assert not one.is_complete
