"""Filling in the middle: its tokens, and the prompt of a gap."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tokenizers import AddedToken

from medusa_core.messages import FillTokens
from medusa_core.models.text.tokenizer import Tokenizer, find_fill_tokens
from medusa_core.server.context import ServerContext
from medusa_core.server.text_prompts import ExtraFile, GapPrompt, prompt_ids
from tests.support.models.tiny import make_tokenizer
from tests.support.server.served import ServedProcess
from tests.tools import real_models

QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|repo_name|>")
CODELLAMA = ("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>")


def tokenizer_with(*names: str) -> Tokenizer:
    rust = make_tokenizer()
    rust.add_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return Tokenizer(rust)


def context_of(tokenizer: Tokenizer) -> ServerContext:
    """A context whose model has this tokenizer."""

    async def tokenize(
        model: str, text: str, *, opens_prompt: bool, is_literal: bool = False
    ) -> Any:
        encode = tokenizer.encode_literal if is_literal else tokenizer.encode
        ids = tokenizer.encode_prompt(text) if opens_prompt else encode(text)
        return SimpleNamespace(token_ids=tuple(ids))

    facts = SimpleNamespace(fill_tokens=find_fill_tokens(tokenizer))
    return cast(
        "ServerContext", SimpleNamespace(tokenize=tokenize, models=SimpleNamespace(facts=facts))
    )


def written(tokenizer: Tokenizer, prompt: GapPrompt) -> str:
    """The prompt of a gap with the names of its tokens."""
    names = {tokenizer.token_id(name): name for name in (*QWEN, *CODELLAMA)}
    ids = asyncio.run(prompt_ids(context_of(tokenizer), "", prompt))
    return "".join(names.get(one) or tokenizer.decode([one]) for one in ids)


@pytest.mark.parametrize("names", [QWEN, CODELLAMA], ids=["qwen", "codellama"])
def test_fim_tokens_are_found_by_their_names(names: tuple[str, ...]) -> None:
    tokenizer = tokenizer_with(*names)
    found = find_fill_tokens(tokenizer)
    ids = [tokenizer.token_id(name) for name in names]
    assert found == FillTokens(*ids)  # type: ignore[arg-type]


def test_incomplete_fim_tokens_are_not_used() -> None:
    assert find_fill_tokens(tokenizer_with(QWEN[0], QWEN[1], CODELLAMA[2])) is None


def test_a_gap_is_rendered_between_its_tokens_and_names_in_text_are_text() -> None:
    gap = GapPrompt("a <|fim_middle|>", "b")
    found = written(tokenizer_with(*QWEN), gap)
    assert found == "<|fim_prefix|>a <|fim_middle|><|fim_suffix|>b<|fim_middle|>"
    ids = asyncio.run(prompt_ids(context_of(tokenizer_with(*QWEN)), "", gap))
    assert ids.count(tokenizer_with(*QWEN).token_id("<|fim_middle|>") or 0) == 1


def test_other_files_precede_the_gap() -> None:
    gap = GapPrompt("a", "b", (ExtraFile(text="x", filename="x.py"),))
    assert written(tokenizer_with(*QWEN), gap) == (
        "<|repo_name|>repository\n<|file_sep|>x.py\nx<|file_sep|>file\n"
        "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"
    )
    assert written(tokenizer_with(*CODELLAMA), gap) == ("x\n\n\u2581<PRE>a\u2581<SUF>b\u2581<MID>")


@pytest.mark.slow
def test_a_code_model_fills_a_gap(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = real_models.find("qwen2.5-coder")
    process = ServedProcess(tmp_path_factory.mktemp("filling"), "--model", str(model), threads=2)
    before, after = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"
    options = {"temperature": 0, "max_tokens": 16}
    try:
        body = {"input_prefix": before, "input_suffix": after, **options}
        filled = process.post("/infill", body).json()
        wanted = {"prompt": before, "suffix": after, **options}
        completed = process.post("/v1/completions", wanted).json()
    finally:
        process.close()
    assert filled["content"].startswith("a + b")
    assert completed["choices"][0]["text"] == filled["content"]
