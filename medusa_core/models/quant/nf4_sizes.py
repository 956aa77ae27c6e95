"""Sizes of nf4 weights; nothing here needs torch."""

from __future__ import annotations

BLOCK = 64  # numbers that share a scale
NESTED_BLOCK = 256  # blocks whose largest numbers share a scale
