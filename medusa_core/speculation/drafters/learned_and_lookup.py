"""What the model said in earlier answers, what it often says, and prompt lookup: no heads."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "learned",
        "Earlier answers",
        "What the model said in earlier answers and often says, and a search for the same words.",
    ),
    ("learned", "phrases", "ngram"),
    preference=25,
    needs_all=False,
    needs="learned",
)
