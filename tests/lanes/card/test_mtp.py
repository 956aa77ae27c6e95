"""A layer for multi-token prediction drafts on a card what it drafts on the CPU."""

from pathlib import Path

import pytest

from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from tests.support.card.card import fake_cuda
from tests.support.models.mtp_peers import drafts_of, write_mtp_peer


@pytest.mark.parametrize("name", ["qwen 3.5", "glm 4 with experts"])
def test_drafts_equal_those_of_the_cpu(name: str, tmp_path: Path) -> None:
    folder = write_mtp_peer(name, tmp_path)
    wanted = drafts_of(load_target(folder, options=LoadOptions("float64", "cpu")))
    # Which experts are called is known only once the card has chosen them.
    with fake_cuda() as card, card.waiting():
        assert drafts_of(load_target(folder, options=LoadOptions("float64", "cuda"))) == wanted
