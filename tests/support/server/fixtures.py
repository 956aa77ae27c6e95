"""Servers in threads, each shared by all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# Libraries are imported by the fixtures: all tests load this module.
if TYPE_CHECKING:
    import anthropic
    import openai

    from tests.support.server.served import Served

TEMPLATED = ("bare_keys", "python", "typed", "xml")  # models that differ in their templates


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run a server of the demo model at 127.0.0.1 without a key."""
    from tests.support.server.served import ServedThread

    process = ServedThread(
        tmp_path_factory.mktemp("served"), "--cors-origin", "https://pages.example"
    )
    yield process
    process.close()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run a server of several models at 0.0.0.0, with a key and strict model names."""
    from tests.support.models.tiny import TinySpec, write_tiny
    from tests.support.server.served import ServedThread

    folder = tmp_path_factory.mktemp("guarded")
    tiny = write_tiny(folder / "tiny-target")
    second = write_tiny(folder / "tiny-second", TinySpec(seed=2))
    broken = write_tiny(folder / "broken-target")
    (broken / "tokenizer.json").write_text("{}", encoding="utf-8")
    templated = [_demo_model_with_template(folder / name) for name in TEMPLATED]
    models = (tiny, second, broken, *templated)
    process = ServedThread(folder, "--host", "0.0.0.0", "--strict-models", models=models)
    yield process
    process.close()


@pytest.fixture(scope="session")
def client(served: Served) -> Iterator[openai.OpenAI]:
    """Return the official client of OpenAI for `served`."""
    import openai

    with openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as found:
        yield found


@pytest.fixture(scope="session")
def claude(served: Served) -> Iterator[anthropic.Anthropic]:
    """Return the official client of Anthropic for `served`."""
    import anthropic

    with anthropic.Anthropic(base_url=served.url(""), api_key="none", max_retries=0) as found:
        yield found


def _demo_model_with_template(folder: Path) -> Path:
    from medusa_core.system.resources import demo_model_dir
    from tests.support.models.tool_call_templates import TEMPLATES

    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).symlink_to(demo_model_dir() / name)
    (folder / "chat_template.jinja").write_text(TEMPLATES[folder.name], encoding="utf-8")
    return folder
