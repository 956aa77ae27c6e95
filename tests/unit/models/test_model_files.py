"""A model's files are the same to whoever loads them, whether a folder or a GGUF file."""

from __future__ import annotations

from pathlib import Path

import pytest

from medusa_core.api import demo_model
from medusa_core.errors import CheckpointError
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.model_files import FolderFiles, GgufFiles, ModelFiles
from medusa_core.models.quantized_cache.folder import QuantizedModels
from tests.support.models.gguf_files import write_as_gguf


@pytest.fixture(scope="module")
def plain_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model in plain numbers."""
    return write_as_gguf(demo_model()[0], tmp_path_factory.mktemp("gguf") / "x.gguf", "f32")


def test_folder_and_gguf_file_of_a_model_have_the_same_content(plain_gguf: Path) -> None:
    folder, file = ModelFiles.open(demo_model()[0]), ModelFiles.open(plain_gguf)
    assert folder.checkpoint().names == file.checkpoint().names
    assert folder.tokenizer.encode("A small tale.") == file.tokenizer.encode("A small tale.")
    assert folder.config.head_rows == file.config.head_rows
    assert not folder.is_base
    assert not file.is_base


def test_each_part_is_read_once(plain_gguf: Path) -> None:
    for files in (ModelFiles.open(demo_model()[0]), ModelFiles.open(plain_gguf)):
        assert files.config is files.config
        assert files.tokenizer is files.tokenizer
        assert files.template is files.template


def test_a_folder_without_a_model_is_not_found(plain_gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("GGUF")
    assert isinstance(ModelFiles.find(tmp_path), FolderFiles)
    assert isinstance(ModelFiles.find(plain_gguf), GgufFiles)
    assert ModelFiles.find(tmp_path / "notes.txt") is None
    assert ModelFiles.find(tmp_path / "missing") is None
    with pytest.raises(CheckpointError):
        _ = ModelFiles.open(tmp_path / "missing").config


def test_an_unquantized_gguf_file_is_cached_quantized(plain_gguf: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    options = LoadOptions(formats=WeightFormats("q8_0", lm_head="q8_0"), quantized_dir=kept)
    load_target(plain_gguf, None, options)
    assert len(QuantizedModels(kept).entries()) == 1
