"""MiMo: a Qwen 2 block; its layers that guess further tokens are left out."""

from medusa_core.models.families.qwen2 import SPEC as QWEN2
from medusa_core.models.family import FamilySpec

SPEC = FamilySpec("mimo", QWEN2.traits)
