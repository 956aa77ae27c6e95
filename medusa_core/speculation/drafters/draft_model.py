"""A smaller model alone."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "draft-model",
        "Draft model",
        "The guesses of a smaller model of the same vocabulary.",
    ),
    ("draft-model",),
    preference=15,
)
