"""A server on the demo model, one for all tests of a worker."""

from collections.abc import Iterator

import openai
import pytest

from tests.support.models.tiny import write_tiny
from tests.support.server.served import Served


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server, at 127.0.0.1 without a key."""
    process = Served(tmp_path_factory.mktemp("served"), "--cors-origin", "https://pages.example")
    yield process
    process.close()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that other computers reach: with a key that it made, and strict about models."""
    folder = tmp_path_factory.mktemp("guarded")
    tiny = write_tiny(folder / "tiny-target")
    broken = write_tiny(folder / "broken-target")
    (broken / "tokenizer.json").write_text("{}", encoding="utf-8")
    process = Served(folder, "--host", "0.0.0.0", "--strict-models", models=(tiny, broken))
    yield process
    process.close()


@pytest.fixture(scope="session")
def client(served: Served) -> Iterator[openai.OpenAI]:
    """The official client."""
    with openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as found:
        yield found
