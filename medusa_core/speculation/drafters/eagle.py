"""An EAGLE head alone."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "eagle",
        "EAGLE head",
        "The guesses of a head that goes on from the model's own states, token by token.",
    ),
    ("eagle",),
    preference=10,
)
