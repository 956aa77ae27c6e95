"""`/v1/embeddings` and llama-server's routes, with a tiny model beside the demo model."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medusa_core.models.model_files import ModelFiles
from tests.support.models.embedding_files import write_qwen3_embedding
from tests.support.server.served import Served, ServedThread

PATH = "/v1/embeddings"
NAME = "tiny-qwen3-embedding"
TEXTS = ["the cat", "a dog on the sand", "the cat"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_qwen3_embedding(tmp_path_factory.mktemp("model") / NAME)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    process = ServedThread(folder, "--embedding-model", str(model), "--device", "cpu")
    yield process
    process.close()


def embed(served: Served, inputs: Any, **fields: Any) -> np.ndarray:
    reply = served.post(PATH, {"input": inputs, **fields})
    assert reply.status_code == 200, reply.text
    data = reply.json()["data"]
    assert [one["index"] for one in data] == list(range(len(data)))
    return np.array([one["embedding"] for one in data], np.float32)


def test_texts_give_vectors_of_length_1_in_order(served: Served, model: Path) -> None:
    reply = served.post(PATH, {"model": NAME, "input": TEXTS}).json()
    vectors = np.array([one["embedding"] for one in reply["data"]], np.float32)
    assert vectors.shape == (3, 64)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert (vectors[0] == vectors[2]).all()
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    assert (reply["object"], reply["model"]) == ("list", NAME)
    assert (embed(served, TEXTS[1]) == vectors[1]).all()  # one alone
    tokenizer = ModelFiles.open(model).tokenizer
    ids = [tokenizer.encode_whole(text) for text in TEXTS]
    count = sum(map(len, ids))
    assert reply["usage"] == {"prompt_tokens": count, "total_tokens": count}
    assert (embed(served, ids) == vectors).all()
    assert (embed(served, ids[1]) == vectors[1]).all()
    served.record(PATH, prompt_tokens=len(ids[1]))


def test_base64_has_the_same_numbers(served: Served) -> None:
    reply = served.post(PATH, {"input": TEXTS, "encoding_format": "base64"}).json()
    parts = [base64.b64decode(one["embedding"]) for one in reply["data"]]
    assert (np.frombuffer(b"".join(parts), "<f4").reshape(3, -1) == embed(served, TEXTS)).all()


def test_openais_client_reads_them(served: Served) -> None:
    import openai

    with openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as client:
        found = client.embeddings.create(model="text-embedding-3-small", input=TEXTS)  # base64
        assert (
            np.array([one.embedding for one in found.data], np.float32) == embed(served, TEXTS)
        ).all()
        assert found.model == NAME
        short = client.embeddings.create(model=NAME, input=TEXTS, dimensions=32)
        assert len(short.data[0].embedding) == 32
        listed = {model.id: model for model in client.models.list()}
        assert listed[NAME].to_dict()["type"] == "embedding"
        assert client.models.retrieve(NAME).id == NAME


def test_llama_servers_routes_give_the_same(served: Served) -> None:
    expected = embed(served, TEXTS)
    for path, field in (("/embedding", "content"), ("/embeddings", "input")):
        found = served.post(path, {field: TEXTS}).json()
        assert [one["index"] for one in found] == [0, 1, 2]
        assert (np.array([one["embedding"][0] for one in found], np.float32) == expected).all()
    served.error("/embedding", {}, 400)


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({}, "input", "missing"),
        ({"input": None}, "input", "missing"),
        ({"input": []}, "input", "must be a text"),
        ({"input": 7}, "input", "must be a text"),
        ({"input": {"text": "a"}}, "input", "must be a text"),
        ({"input": ["a", 7]}, "input", "must be a text"),
        ({"input": [1, "a"]}, "input", "must be a text"),
        ({"input": [True]}, "input", "must be a text"),
        ({"input": [[5], []]}, "input", "must be a text"),
        ({"input": [[5, 1.5]]}, "input", "must be a text"),
        ({"input": ""}, "input", "Text 1 is empty"),
        ({"input": ["a", ""]}, "input", "Text 2 is empty"),
        ({"input": ["a", "b " * 600]}, "input", "Text 2 has"),
        ({"input": "b" * 600_000}, "input", "characters"),
        ({"input": [[5, 10**9]]}, "input", "vocabulary"),
        ({"input": [[5, -1]]}, "input", "vocabulary"),
        ({"input": [[5, 10**30]]}, "input", "vocabulary"),
        ({"input": ["a"] * 10_000}, "input", "at most 2,048"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", ""),
        ({"input": "a", "dimensions": 0}, "dimensions", ""),
        ({"input": "a", "dimensions": "x"}, "dimensions", ""),
        ({"input": "a", "dimensions": 8}, "dimensions", "of 32 to 64"),
        ({"input": "a", "dimensions": 65}, "dimensions", "of 32 to 64"),
        ({"input": "a", "model": "llama-pebble"}, "model", "is a chat model"),
        ({"input": "a", "model": 5}, "model", ""),
    ],
)
def test_an_invalid_request_is_a_400_that_names_the_field(
    served: Served, body: dict[str, Any], param: str, words: str
) -> None:
    error = served.error(PATH, body, 400)
    assert error["param"] == param
    assert words in error["message"]


def test_chats_and_embeddings_run_at_once(served: Served) -> None:
    expected, alone = embed(served, TEXTS * 20), served.chat("Hello", max_tokens=60)
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(embed(served, TEXTS * 20))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    beside = served.chat("Hello", max_tokens=60)
    for thread in threads:
        thread.join()
    assert beside["choices"] == alone["choices"]
    assert all((vectors == expected).all() for vectors in found)
    assert len(found) == 3


@pytest.mark.expects_errors
def test_a_model_that_went_away_is_a_503(tmp_path: Path) -> None:
    model = write_qwen3_embedding(tmp_path / NAME)
    process = ServedThread(tmp_path, "--embedding-model", str(model), "--strict-models")
    try:
        (model / "model.safetensors").unlink()
        assert "safetensors" in process.error(PATH, {"input": "a"}, 503)["message"]
        error = process.error(PATH, {"input": "a", "model": "other"}, 404)
        assert error["code"] == "model_not_found"
    finally:
        process.close()
