"""Speculative streams alone."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "streams",
        "Streams",
        "The guesses of streams that run beside the model through its last layers.",
    ),
    ("streams",),
    preference=10,
)
