"""Conversations led with the demo model, written out as Markdown: all of them, none chosen."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer

from medusa_core.system.prompts import BenchPrompt
from recipe.network import PebbleNetwork
from recipe.recipe import END
from recipe.self_answers import GenerationOptions, generate_answers
from recipe.tokenizer import encode_prompt, special_id

MAX_NEW_TOKENS = 400


def converse(
    network: PebbleNetwork, tokenizer: Tokenizer, prompts: Sequence[BenchPrompt]
) -> list[list[str]]:
    """The answers to every turn of every prompt, greedy; each turn reads the ones before.

    Args:
        network: the model.
        tokenizer: its tokenizer.
        prompts: conversations.
    """
    dialogue: list[list[tuple[str, str]]] = [[] for _ in prompts]
    options = GenerationOptions(MAX_NEW_TOKENS, special_id(END))
    for turn in range(max(len(prompt.turns) for prompt in prompts)):
        questions = [index for index, prompt in enumerate(prompts) if turn < len(prompt.turns)]
        for index in questions:
            dialogue[index].append(("user", prompts[index].turns[turn]))
        encoded = [encode_prompt(tokenizer, dialogue[index]) for index in questions]
        for index, answer in zip(
            questions, generate_answers(network, encoded, options), strict=True
        ):
            text = tokenizer.decode(list(answer.answer_ids), skip_special_tokens=True)
            dialogue[index].append(("assistant", text))
    return [[text for role, text in turns if role == "assistant"] for turns in dialogue]


def as_markdown(prompts: Sequence[BenchPrompt], answers: Sequence[Sequence[str]]) -> str:
    """A section for each category; questions in bold, answers as quotes."""
    lines: list[str] = []
    category = ""
    for prompt, texts in zip(prompts, answers, strict=True):
        if prompt.category != category:
            category = prompt.category
            lines += [f"### {category[0].upper()}{category[1:]}", ""]
        for number, (question, text) in enumerate(zip(prompt.turns, texts, strict=True)):
            label = f"{prompt.prompt_id} " if number == 0 else ""
            lines += [f"{label}**{_shown(question)}**", "", *_quoted(text), ""]
    return "\n".join(lines)


def _quoted(text: str) -> list[str]:
    return [f"> {_shown(line)}  ".rstrip() for line in text.split("\n")]


def _shown(text: str) -> str:
    """The text as it is, whatever Markdown would make of it."""
    return "".join(f"\\{char}" if char in "\\`*_#<>[]|~" else char for char in text)
