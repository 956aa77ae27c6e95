"""What the model is asked, to learn from its answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from medusa_core.messages import ChatMessage, Role
from medusa_core.training.documents import ANSWER, EncodedDocument
from recipe.corpus import Document, read_mixture
from recipe.packing import PackedRows
from recipe.recipe import ASSISTANT, Recipe
from recipe.templates import make_documents
from recipe.tokenizer import encode_documents, special_id

TEMPLATE_SHARE = 0.12
MOST_OF_A_SOURCE = 0.125  # among what is asked for the phrases
FIRST_TURNS = 4  # of a conversation; one of its first questions is asked


def tuning_prompts(
    rows: PackedRows, num_prompts: int, recipe: Recipe, seed: int, tokenizer: Tokenizer
) -> list[list[int]]:
    """First prompts of tuning documents, in a seeded order; none longer than half a context.

    The recipe's own templates are most of the documents but little of the text: only a few of
    their prompts are taken.
    """
    rng = np.random.default_rng([seed, 7])
    templates = template_prompts(recipe, tokenizer)
    prompts: list[list[int]] = []
    for index in rng.permutation(len(rows)):
        for document in rows.documents([int(index)]):
            prompt = _prompt_of(document, rows.ids.shape[1] // 2)
            if prompt is None:
                continue
            if tuple(prompt) in templates and rng.random() > TEMPLATE_SHARE:
                continue
            prompts.append(prompt)
            if len(prompts) == num_prompts:
                return prompts
    return prompts


def template_prompts(recipe: Recipe, tokenizer: Tokenizer) -> set[tuple[int, ...]]:
    """First prompts of the recipe's own templates."""
    documents = make_documents(recipe.template_tokens, recipe.seed)
    prompts = set()
    for encoded in encode_documents(tokenizer, documents):
        first_answer = int((encoded.kinds == ANSWER).argmax())
        prompts.add(tuple(encoded.ids[:first_answer].tolist()))
    return prompts


def _prompt_of(document: EncodedDocument, longest: int) -> list[int] | None:
    first_answer = int((document.kinds == ANSWER).argmax())
    if document.ids[first_answer - 1] != special_id(ASSISTANT) or first_answer > longest:
        return None
    prompt: list[int] = document.ids[:first_answer].tolist()
    return prompt


def phrase_questions(recipe: Recipe, data_dir: Path) -> list[tuple[ChatMessage, ...]]:
    """What is asked for the phrases: rows of chat tuning, and a few of the recipe's own templates.

    The templates repeat themselves.
    """
    templates = make_documents(recipe.template_tokens, recipe.seed)
    few = random.Random(recipe.seed).sample(templates, round(TEMPLATE_SHARE * len(templates)))
    documents = read_mixture(data_dir, recipe.sources, recipe.seed).tune + few
    return asked_in(documents, recipe.phrases.num_answers, recipe.seed)


def asked_in(
    documents: Sequence[Document], number: int, seed: int, most: float = MOST_OF_A_SOURCE
) -> list[tuple[ChatMessage, ...]]:
    """What the model is asked: chat rows up to one of their first questions, none twice.

    Args:
        documents: Rows, those that aren't chats among them.
        number: How many are wanted; fewer come back if there are no more.
        seed: Of the choice.
        most: Share of one source.
    """
    rng = random.Random(seed)
    left = {document.source: round(most * number) for document in documents}
    found: dict[tuple[ChatMessage, ...], None] = {}
    for document in rng.sample(documents, len(documents)):
        turns = [i for i, segment in enumerate(document.segments) if segment.role == "user"]
        if not turns or not left[document.source]:
            continue
        last = rng.choice(turns[:FIRST_TURNS])
        spoken = document.segments[: last + 1]
        questions = tuple(ChatMessage(Role(segment.role), segment.text) for segment in spoken)
        if questions not in found:
            found[questions] = None
            left[document.source] -= 1
        if len(found) == number:
            break
    return list(found)
