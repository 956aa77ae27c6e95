"""Gemma 4 12B's text part: its other parts see and hear without towers of their own."""

from dataclasses import replace

from medusa_core.models.arch.gemma4_text import SPEC as GEMMA4
from medusa_core.models.gguf_architecture import GgufArchitecture

SPEC = replace(GEMMA4, name="gemma4_unified_text", gguf=GgufArchitecture())
