"""Prompt lookup alone."""

from medusa_core.drafters.grown import grown_spec
from medusa_core.messages import DrafterChoice

SPEC = grown_spec(
    DrafterChoice("ngram", "Prompt lookup", "A search for the same words earlier in the text."),
    ("ngram",),
    preference=30,
)
