"""A target's own layer for multi-token prediction alone."""

from medusa_core.drafters.grown import grown_spec
from medusa_core.messages import DrafterChoice

SPEC = grown_spec(
    DrafterChoice(
        "mtp",
        "MTP layer",
        "The guesses of the layer that the model was trained with, to predict further tokens.",
    ),
    ("mtp",),
    preference=10,
)
