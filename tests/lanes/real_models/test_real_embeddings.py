"""Vectors equal those of other programs: all-MiniLM in transformers, a Qwen 3 in llama.cpp."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from medusa_core.engine.embeddings.embedder import Embedder, EmbeddingRun
from medusa_core.engine.embeddings.load import load_embedder
from medusa_core.messages import LoadOptions
from tests.conftest import MISSING
from tests.support.models.embedding_files import write_qwen3_gguf
from tests.tools import real_models

pytestmark = pytest.mark.slow

PASSAGES = [
    "The mitochondrion produces most of the energy of a cell.",
    "Bread rises because yeast turns sugar into carbon dioxide.",
    "Im Jahr 1989 fiel die Berliner Mauer.",
    "A list in Python is sorted in place by its method sort. " * 12,
]
QUESTIONS = ["What powers a cell?", "Why does dough grow?", "Berlin Wall", "How do I sort a list?"]


def embed(embedder: Embedder, texts: list[str]) -> np.ndarray:
    run = EmbeddingRun(embedder, texts)
    while not run.is_done:
        run.advance()
    return np.stack(run.vectors)


def test_minilm_equals_transformers_and_finds_the_passages() -> None:
    folder = real_models.find_minilm()
    if folder is None:
        pytest.skip(MISSING + real_models.MINILM)
    embedder = load_embedder(folder, LoadOptions(device="cpu"))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    tokenizer.model_max_length = 256
    taken = tokenizer(PASSAGES + QUESTIONS, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        states = model.eval()(**taken).last_hidden_state
    mask = taken["attention_mask"].unsqueeze(-1)
    mean = (states * mask).sum(dim=1) / mask.sum(dim=1)
    theirs = torch.nn.functional.normalize(mean, dim=1).numpy()
    ours = embed(embedder, PASSAGES + QUESTIONS)
    assert np.abs(ours - theirs).max() < 1e-4
    scores = ours[len(PASSAGES) :] @ ours[: len(PASSAGES)].T
    assert list(scores.argmax(axis=1)) == [0, 1, 2, 3]


@pytest.mark.parametrize("pooling_type", [1, 2, 3], ids=["mean", "cls", "last"])
def test_a_gguf_file_gives_llama_cpps_vectors(tmp_path: Path, pooling_type: int) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python isn't installed")
    path = write_qwen3_gguf(tmp_path / "tiny.gguf", pooling_type)
    texts = ["the cat", "a", "thirteen hands heard it and ran on the sand " * 3]
    theirs = llama_cpp.Llama(
        str(path),
        embedding=True,
        n_ctx=256,
        n_batch=256,
        n_ubatch=256,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
        flash_attn=False,
        verbose=False,
    )
    embedder = load_embedder(path, LoadOptions("float32", "cpu"))
    for text in texts:
        assert theirs.tokenize(text.encode()) == embedder.encode(text)
    expected = np.array(theirs.embed(texts, normalize=True))
    assert np.abs(embed(embedder, texts) - expected).max() < 1e-5
    theirs.close()
