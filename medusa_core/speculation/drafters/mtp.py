"""A target's own layer for multi-token prediction alone."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "mtp",
        "MTP layer",
        "The guesses of the layer that the model was trained with, to predict further tokens.",
    ),
    ("mtp",),
    preference=10,
)
