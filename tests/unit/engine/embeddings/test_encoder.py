"""Encoders of transformers as embedding models."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from medusa_core.engine.embeddings.embedder import EmbeddingRun
from medusa_core.engine.embeddings.load import load_embedder, planned_bytes
from medusa_core.errors import CheckpointError, PlanError, RequestError
from medusa_core.messages import LoadOptions
from tests.support.models.embedding_files import write_bert

TEXTS = ("the cat sat on a mat .", "dogs run", "the [SEP] sun" * 4)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
def test_vectors_equal_those_of_transformers(tmp_path: Path, pooling: str) -> None:
    folder = write_bert(tmp_path / "bert", pooling)
    embedder = load_embedder(folder, LoadOptions(device="cpu"))
    theirs = BertModel.from_pretrained(folder).eval()
    num_threads = torch.get_num_threads()
    run = EmbeddingRun(embedder, TEXTS)
    while not run.is_done:
        run.advance()
    assert torch.get_num_threads() == num_threads
    for index, text in enumerate(TEXTS):
        alone = EmbeddingRun(embedder, [text])
        alone.advance()
        assert (alone.vectors[0] == run.vectors[index]).all()
    for text, vector in zip(TEXTS, run.vectors, strict=True):
        ids = embedder.encode(text)
        assert (ids[0], ids[-1]) == (2, 3)
        assert 3 not in ids[:-1]  # [SEP] within the text is plain text
        with torch.no_grad():
            states = theirs(torch.tensor([ids])).last_hidden_state[0]
        pooled = (states.mean(dim=0) if pooling == "mean_tokens" else states[0]).numpy()
        assert np.abs(vector - pooled / np.linalg.norm(pooled)).max() < 1e-4


def test_the_files_limit_the_length(tmp_path: Path) -> None:
    embedder = load_embedder(write_bert(tmp_path / "bert"), LoadOptions(device="cpu"))
    run = EmbeddingRun(embedder, ("cat " * 46,))  # beyond the tokenizer's own truncation
    run.advance()
    assert run.num_tokens == [48]
    with pytest.raises(RequestError, match="reads at most 48"):
        EmbeddingRun(embedder, ("cat " * 47,)).advance()
    cut = EmbeddingRun(embedder, ("cat " * 5000,), truncates=True)
    cut.advance()
    assert cut.num_tokens == run.num_tokens
    assert np.array_equal(cut.vectors[0], run.vectors[0])


def test_an_incomplete_encoder_is_refused(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "bert")
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"encoder\.layer\.1\.output"):
        load_embedder(folder, LoadOptions(device="cpu"))


def test_an_encoder_needs_room(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "bert")
    weights = load_file(folder / "model.safetensors").values()
    assert planned_bytes(folder, "cpu") >= sum(tensor.nbytes for tensor in weights)
    with pytest.raises(PlanError, match="GiB more"):
        load_embedder(folder, LoadOptions(device="cpu", reserved_bytes=1 << 50))
