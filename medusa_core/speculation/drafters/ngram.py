"""Prompt lookup alone."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice("ngram", "Prompt lookup", "A search for the same words earlier in the text."),
    ("ngram",),
    preference=30,
)
