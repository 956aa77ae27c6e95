"""MiMo: Qwen 2; its layers for multi-token prediction are heads."""

from medusa_core.models.arch.qwen2 import SPEC as QWEN2
from medusa_core.models.architecture import Arch

SPEC = Arch("mimo", QWEN2.blocks, QWEN2.model)
