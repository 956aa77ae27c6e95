"""What the recipe makes from its seed is what the shipped weights learned from, byte for byte."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from recipe.corpus import Document, read_mixture
from recipe.recipe import RECIPES, SEED
from recipe.sentences import read_sentences
from recipe.templates import make_documents, make_sums
from tests.lanes.recipe.toy_recipe import tiny_recipe, write_rows

ROWS = {"nano": "3e4f97d88b8ce5fc", "small": "8d62ca65be395a59", "medium": "212b5b2417948874"}


def digest(documents: Sequence[Document]) -> str:
    rows = [[d.source, [[s.role, s.text] for s in d.segments]] for d in documents]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


@pytest.mark.parametrize("size", ROWS)
def test_the_bundled_chat_rows_are_those_of_the_shipped_weights(size: str) -> None:
    recipe = RECIPES[size]
    assert digest(make_documents(recipe.template_tokens, recipe.seed)) == ROWS[size]


def test_checksums_match_the_shipped_weights() -> None:
    assert digest(make_sums(50_000, SEED)) == "0624e862ef1791de"


def test_rows_are_shuffled_in_the_same_order(tmp_path: Path) -> None:
    recipe = tiny_recipe()
    mixture = read_mixture(write_rows(tmp_path / "rows"), recipe.sources, recipe.seed)
    assert [digest(part) for part in (mixture.pretrain, mixture.tune, mixture.polish)] == [
        "6cd13291fe6031dd",
        "07367b4adffc18af",
        "1d0fcfeec5feeb37",
    ]


def test_no_sentence_and_no_fact_comes_twice_in_its_list() -> None:
    known = read_sentences()
    assert sum(map(len, known.lists.values())) > 400
    assert all(len(set(texts)) == len(texts) > 0 for texts in known.lists.values())
    assert all(len(dict(facts)) == len(facts) > 0 for facts in known.facts.values())
    assert len(known.heroes) == 20
