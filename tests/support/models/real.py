"""The real models, loaded once each."""

from functools import cache
from pathlib import Path

import pytest

from medusa_core.hub.library.shipped_heads import heads_made_for
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from tests.tools.real_models import MODELS

EVERY_MODEL = [
    pytest.param(name, marks=() if name == "smollm2" else pytest.mark.slow) for name in MODELS
]


@cache
def loaded(path: Path) -> Target:
    """A model with the heads that ship for it, if any do."""
    return load_target(path, heads_made_for(path), LoadOptions(context_tokens=512))
