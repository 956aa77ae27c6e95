"""The targets of the engine's tests, for a CUDA device."""

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a CUDA device."""
    for item in items:
        if item.path.parent.name != "gpu":
            continue
        item.add_marker(pytest.mark.gpu)
        if not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
