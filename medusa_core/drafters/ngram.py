"""Prompt lookup alone."""

from medusa_core.drafters.grown import grown_spec
from medusa_core.messages import Choice

SPEC = grown_spec(
    Choice("ngram", "Prompt lookup", "A search for the same words earlier in the text."),
    ("ngram",),
    preference=30,
)
