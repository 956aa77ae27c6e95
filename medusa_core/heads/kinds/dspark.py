"""DSpark: DFlash with a Markov head and a confidence head."""

from __future__ import annotations

from medusa_core.heads.block_kind import block_kind

SPEC = block_kind("dspark")
