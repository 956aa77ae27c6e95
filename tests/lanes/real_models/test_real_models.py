"""Tokens of odd texts on real models: SmolLM2 in the usual run, all as slow tests.

`ids.json` holds what llama.cpp's `llama_tokenize` (llama-cpp-python 0.3.36, vocabulary alone,
`add_special` off, `parse_special` on) makes of each of `odd_texts.py`, by model.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from medusa_core.models.model_files import ModelFiles
from tests.lanes.real_models.odd_texts import ODD_TEXTS
from tests.tools.real_models import MODELS

Find = Callable[[str], Path]

EVERY_MODEL = [
    pytest.param(name, marks=() if name == "smollm2" else pytest.mark.slow) for name in MODELS
]


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_odd_texts_have_the_ids_that_llama_cpp_gives_them(name: str, real_model: Find) -> None:
    tokenizer = ModelFiles.open(real_model(name)).tokenizer
    table = json.loads(Path(__file__).with_name("ids.json").read_text(encoding="utf-8"))
    assert len(ODD_TEXTS) == 200
    different = [
        text
        for text, ids in zip(ODD_TEXTS, table[name], strict=True)
        if tokenizer.encode(text) != ids
    ]
    assert different == []
