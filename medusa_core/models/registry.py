"""Which file serves which `model_type`."""

from __future__ import annotations

from medusa_core.errors import ModelError
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.llama import MODEL_TYPES, Llama
from medusa_core.models.precision import Precision

FAMILIES = dict.fromkeys(MODEL_TYPES, Llama)


def build_model(config: ModelConfig, precision: Precision, checkpoint: Checkpoint) -> Llama:
    """Build the model of a config.

    Raises:
        ModelError: No family serves its `model_type`.
    """
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise ModelError(
            f"Models of type {config.model_type or 'unknown'!r} aren't supported.",
            f"Supported: {', '.join(sorted(FAMILIES))}.",
        )
    return family(config, precision, checkpoint)
