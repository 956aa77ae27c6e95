"""A smaller model alone."""

from medusa_core.drafters.grown import grown_spec
from medusa_core.messages import DrafterChoice

SPEC = grown_spec(
    DrafterChoice(
        "draft-model",
        "Draft model",
        "The guesses of a smaller model of the same vocabulary.",
    ),
    ("draft-model",),
    preference=15,
)
