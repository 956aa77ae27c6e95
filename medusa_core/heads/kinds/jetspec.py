"""JetSpec: DFlash whose places look back alone."""

from __future__ import annotations

from medusa_core.heads.block_kind import block_kind

SPEC = block_kind("jetspec")
