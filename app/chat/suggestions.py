"""Suggested questions for an empty conversation, chosen by the size of the loaded model."""

from __future__ import annotations

import re

from medusa_core.messages import ModelLoaded

SMALL_PARAMETERS = 400_000_000  # models below repeat themselves and get most facts wrong

# Each was answered ten times by the model that it is shown with: medusa batch --rule sample
# --temperature 0.4 --repetition-penalty 1.1 --seed 1 to 10 (the defaults of new chats), top-p 0.95.
# Within 700 tokens SmolLM2 ended 9 of 10 bear stories and all other answers of SMALL, and no
# phrase of six words came five times. At 0.3 and 1.05 six of ten bear stories loop, at 0.7 and 1.1
# four don't end.
DEMO = (
    "Write a bedtime story about a small bear.",
    "Who are you?",
    "What is the capital of France?",
    "Write a podcast about the moon.",
)
SMALL = (
    "Tell me a short story about a small bear.",
    "Explain in simple words why it rains.",
    "Give me three tips for a good night's sleep.",
    "Why is the sky blue?",
    "What is a Python list? Show a short example.",
)
CODE = (
    "Write a Python function that removes duplicates from a list and keeps the order.",
    "What is the difference between a list and a tuple in Python?",
    "Write a SQL query that finds the ten customers with the highest total of orders.",
    "Explain what git rebase does, with an example.",
)
GENERAL = (
    "Plan a relaxed weekend in the mountains for two.",
    "Explain how a vaccine works, to a ten-year-old.",
    "Write a polite email that moves our meeting to Friday.",
    "Tell me a short story about a lighthouse keeper.",
)
CONTINUED = ("Once upon a time, there was a small bear", "The three most important inventions are")


def is_small(loaded: ModelLoaded) -> bool:
    """Return whether a model is too small to be trusted with facts or titles."""
    return not loaded.is_remote and loaded.num_parameters < SMALL_PARAMETERS


def suggestions_for(loaded: ModelLoaded, is_demo: bool) -> tuple[str, ...]:
    """Return the questions that an empty conversation offers.

    Args:
        loaded: The loaded model.
        is_demo: Whether it is the built-in demo model.
    """
    if is_demo:
        return DEMO
    if loaded.continues_text:
        return CONTINUED
    if re.search(r"cod(e|er|ing)\b|starcoder|codellama", loaded.name, re.IGNORECASE):
        return CODE
    return SMALL if is_small(loaded) else GENERAL
