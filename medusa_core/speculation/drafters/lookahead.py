"""Lookahead decoding: n-grams that the target finds by itself, in rows that ride in every step.

Source: Fu et al. 2024, "Break the Sequential Dependency of LLM Inference Using Lookahead Decoding".
"""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "lookahead",
        "Lookahead",
        "The model guesses several places ahead at once; what it finds there is tried later.",
        looks_ahead=True,
    ),
    ("lookahead",),
    preference=60,
)
