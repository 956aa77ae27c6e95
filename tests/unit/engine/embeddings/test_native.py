"""Decoders as embedding models: equal to transformers, whatever the passes and batches."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Qwen3Model

from medusa_core.engine.embeddings.embedder import MOST_ROWS, Embedder, EmbeddingRun
from medusa_core.engine.embeddings.load import load_embedder, planned_bytes
from medusa_core.errors import PlanError, RequestError
from medusa_core.messages import LoadOptions, Purpose
from tests.support.models.embedding_files import write_qwen3_embedding, write_qwen3_gguf

TEXTS = ("the cat", "a", "thirteen hands heard it and ran on the sand " * 4, "soon <|end|> again")
EOS = 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_qwen3_embedding(tmp_path_factory.mktemp("qwen3") / "tiny-qwen3-embedding")


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return load_embedder(folder, LoadOptions("float32", "cpu"))


def embed(
    embedder: Embedder,
    texts: tuple[str, ...],
    max_rows: int = MOST_ROWS,
    dimensions: int = 0,
    token_ids: tuple[tuple[int, ...], ...] = (),
) -> np.ndarray:
    run = EmbeddingRun(embedder, texts, token_ids, dimensions=dimensions)
    while not run.is_done:
        run.advance(max_rows)
    return np.stack(run.vectors)


def test_vectors_equal_those_of_transformers(folder: Path, embedder: Embedder) -> None:
    theirs = Qwen3Model.from_pretrained(folder, dtype=torch.float32).eval()
    for text, vector in zip(TEXTS, embed(embedder, TEXTS), strict=True):
        ids = embedder.encode(text)
        assert ids[-1] == EOS
        assert EOS not in ids[:-1]  # its name within the text is plain text
        with torch.no_grad():
            state = theirs(torch.tensor([ids])).last_hidden_state[0, -1].numpy()
        assert np.abs(vector - state / np.linalg.norm(state)).max() < 1e-4


def test_neither_batch_nor_chunks_change_a_bit(embedder: Embedder) -> None:
    alone = np.concatenate([embed(embedder, (text,)) for text in TEXTS])
    for max_rows in (3, 16, MOST_ROWS):
        assert (embed(embedder, TEXTS, max_rows) == alone).all(), max_rows


def test_a_pass_takes_as_many_short_texts_as_the_cache_has_room_for(
    tmp_path: Path, embedder: Embedder
) -> None:
    folder = write_qwen3_embedding(tmp_path / "short-qwen3-embedding")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 64}')
    short = load_embedder(folder, LoadOptions("float32", "cpu"))
    assert short.context_tokens == 64
    assert (embed(short, ("the cat",) * 70) == embed(embedder, ("the cat",))).all()


def test_mean_pooling_of_chunks_is_that_of_the_whole(tmp_path: Path) -> None:
    folder = write_qwen3_embedding(tmp_path / "mean", "mean_tokens")
    embedder = load_embedder(folder, LoadOptions("float32", "cpu"))
    theirs = Qwen3Model.from_pretrained(folder, dtype=torch.float32).eval()
    whole, chunks = embed(embedder, TEXTS), embed(embedder, TEXTS, 5)
    assert np.abs(whole - chunks).max() < 1e-6
    with torch.no_grad():
        states = theirs(torch.tensor([embedder.encode(TEXTS[2])])).last_hidden_state[0]
    mean = states.mean(dim=0).numpy()
    assert np.abs(whole[2] - mean / np.linalg.norm(mean)).max() < 1e-4


def test_a_gguf_file_gives_the_same_vectors(tmp_path: Path, embedder: Embedder) -> None:
    path = write_qwen3_gguf(tmp_path / "tiny.gguf")
    ours = load_embedder(path, LoadOptions("float32", "cpu"))
    assert ours.encode("the cat") == embedder.encode("the cat")  # EOS by its key
    assert np.abs(embed(ours, TEXTS) - embed(embedder, TEXTS)).max() < 1e-5


def test_dimensions_truncate_where_the_model_is_trained_for_it(
    tmp_path: Path, embedder: Embedder
) -> None:
    whole, kept = embed(embedder, TEXTS), embed(embedder, TEXTS, dimensions=32)
    expected = whole[:, :32] / np.linalg.norm(whole[:, :32], axis=1, keepdims=True)
    assert np.abs(kept - expected).max() < 1e-6
    with pytest.raises(RequestError, match="of 32 to 64 dimensions"):
        embed(embedder, TEXTS, dimensions=16)  # Qwen3-Embedding's least
    other = load_embedder(
        write_qwen3_embedding(tmp_path / "unknown"), LoadOptions("float32", "cpu")
    )
    with pytest.raises(RequestError, match="of 64 dimensions only"):
        embed(other, TEXTS, dimensions=32)


@pytest.mark.parametrize(
    ("texts", "token_ids", "words"),
    [
        ((), (), "no text"),
        (("the cat", ""), (), "Text 2 is empty"),
        (("the cat", "a b " * 300), (), "reads at most 256"),
        (("a b " * 9999,), (), "reads at most 256"),
        ((), ((5, 6), (5, 320)), "Text 2 has a token"),
        ((), ((5, -1),), "Text 1 has a token"),
        ((), ((5,) * 257,), "reads at most 256"),
    ],
)
def test_invalid_texts_are_refused(
    embedder: Embedder, texts: tuple[str, ...], token_ids: tuple[tuple[int, ...], ...], words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        embed(embedder, texts, token_ids=token_ids)


def test_queries_have_the_prefix_of_their_family(embedder: Embedder) -> None:
    embedder.conventions = embedder.conventions._replace(document="passage: ")
    for purpose, prefix in zip(Purpose, ("", embedder.conventions.query, "passage: "), strict=True):
        run = EmbeddingRun(embedder, ("cats",), purpose=purpose)
        while not run.is_done:
            run.advance()
        assert (run.vectors[0] == embed(embedder, (prefix + "cats",))[0]).all()
    assert embedder.conventions.query.startswith("Instruct: ")


def test_the_plan_counts_weights_and_cache(folder: Path, embedder: Embedder) -> None:
    assert planned_bytes(folder, "cpu") >= embedder.nbytes
    with pytest.raises(PlanError):
        load_embedder(folder, LoadOptions("float32", "cpu", reserved_bytes=1 << 50))
