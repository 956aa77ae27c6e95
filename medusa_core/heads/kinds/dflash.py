"""DFlash: a block of masked places, filled in one pass."""

from __future__ import annotations

from medusa_core.heads.block_kind import block_kind

SPEC = block_kind("dflash")
