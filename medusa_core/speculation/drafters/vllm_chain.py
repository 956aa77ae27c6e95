"""Medusa as vLLM runs it: the best guess of every head, one behind the other, no branches.

Heads of a reduced vocabulary (`token_map`) guess the tokens that their columns stand for. As there,
drafts don't know the noise of sampling: the text is exact, but fewer drafts are right than those of
`medusa-chain`.

Source: vLLM's `MedusaProposer` (vllm/v1/spec_decode/medusa.py), and its `Medusa` model.
"""

from __future__ import annotations

from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.medusa_chain import (
    build_chain,
    chain_accuracies,
)
from medusa_core.speculation.drafters.sources.heads_source import SPEC as HEADS
from medusa_core.speculation.drafters.sources.heads_source import has_heads

SPEC = DrafterSpec(
    DrafterChoice(
        "vllm",
        "Medusa as in vLLM",
        "Each head's best guess, without branches and without regard to chance.",
    ),
    has_heads,
    lambda target, budget: build_chain(target, budget, knows_chance=False),
    preference=13,
    sources=(HEADS.name,),
    accuracies=chain_accuracies,
    is_offered=False,
)
