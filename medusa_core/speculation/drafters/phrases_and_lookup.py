"""What the model often says, and prompt lookup: drafts without heads."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "phrases",
        "Phrases and lookup",
        "A table of what the model often says, and a search for the same words in the text.",
    ),
    ("phrases", "ngram"),
    preference=20,
)
