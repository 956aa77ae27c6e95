"""Medusa with a tree of its own for every step, grown by how sure the heads are."""

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.grown import grown_spec

SPEC = grown_spec(
    DrafterChoice(
        "medusa-dynamic",
        "Medusa, dynamic tree",
        "The heads' guesses, in a tree that is larger where the heads are unsure.",
    ),
    ("medusa",),
    preference=11,
)
