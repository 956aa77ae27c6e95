"""What is an embedding model, and how its files say that."""

from pathlib import Path

import pytest

from medusa_core.engine.embeddings.conventions import Pooling, conventions_of
from medusa_core.engine.embeddings.files import open_embedding_files
from medusa_core.errors import CheckpointError, MedusaError, ModelError
from medusa_core.system.files.json_file import read_json
from tests.support.models.embedding_files import (
    write_bert,
    write_json,
    write_pooling,
    write_qwen3_embedding,
    write_qwen3_gguf,
)
from tests.support.models.tiny import write_tiny


def test_pooling_comes_from_either_kind_of_file(tmp_path: Path) -> None:
    folder = write_qwen3_embedding(tmp_path / "folder")
    assert open_embedding_files(folder).pooling is Pooling.LAST
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "cls"})
    assert open_embedding_files(folder).pooling is Pooling.CLS
    for number, pooling in enumerate((Pooling.MEAN, Pooling.CLS, Pooling.LAST), start=1):
        path = write_qwen3_gguf(tmp_path / f"p{number}.gguf", number)
        assert open_embedding_files(path).pooling is pooling
    named = write_qwen3_gguf(tmp_path / "named.gguf", None, "Qwen3 Embedding 0.6B")
    assert open_embedding_files(named).pooling is Pooling.LAST  # as the family's


def test_what_has_no_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="ranks pairs"):
        open_embedding_files(write_qwen3_gguf(tmp_path / "rank.gguf", 4))
    for chat in (write_tiny(tmp_path / "chat"), write_qwen3_gguf(tmp_path / "chat.gguf", None)):
        with pytest.raises(ModelError, match="is no embedding model"):
            open_embedding_files(chat)
    folder = write_bert(tmp_path / "bert")
    write_pooling(folder, "max_tokens")
    with pytest.raises(ModelError, match="combines token vectors"):
        open_embedding_files(folder)
    folder = write_qwen3_embedding(tmp_path / "both-ways")
    raw = read_json(folder / "config.json")
    write_json(folder / "config.json", raw | {"use_bidirectional_attention": True})
    with pytest.raises(ModelError, match="both directions"):
        open_embedding_files(folder)


@pytest.mark.parametrize(
    ("modules", "kind"),
    [
        ([{"type": "sentence_transformers.models.Dense"}], ModelError),
        ([{"idx": 0}], CheckpointError),
        ({"type": 1}, CheckpointError),
    ],
)
def test_unknown_modules_are_refused(
    tmp_path: Path, modules: object, kind: type[MedusaError]
) -> None:
    folder = write_bert(tmp_path / "bert")
    write_json(folder / "modules.json", modules)
    with pytest.raises(kind):
        open_embedding_files(folder)


def test_prefixes_come_from_the_files_or_the_family(tmp_path: Path) -> None:
    folder = write_qwen3_embedding(tmp_path / "multilingual-e5-small")
    assert open_embedding_files(folder).conventions.document == "passage: "
    prompts = {"prompts": {"query": "ask: ", "document": "text: "}}
    write_json(folder / "config_sentence_transformers.json", prompts)
    found = open_embedding_files(folder).conventions
    assert (found.query, found.document) == ("ask: ", "text: ")
    assert conventions_of("all-MiniLM-L6-v2") == conventions_of("")
    assert conventions_of("BGE small-en-v1.5").query.startswith("Represent")
