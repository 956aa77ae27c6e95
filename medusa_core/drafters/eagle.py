"""An EAGLE head alone."""

from medusa_core.drafters.grown import grown_spec
from medusa_core.messages import DrafterChoice

SPEC = grown_spec(
    DrafterChoice(
        "eagle",
        "EAGLE head",
        "The guesses of a head that goes on from the model's own states, token by token.",
    ),
    ("eagle",),
    preference=10,
)
