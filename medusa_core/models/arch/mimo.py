"""MiMo: a Qwen 2 block; its layers that guess further tokens are left out."""

from medusa_core.models.arch.qwen2 import SPEC as QWEN2
from medusa_core.models.architecture import Arch

SPEC = Arch("mimo", QWEN2.traits)
