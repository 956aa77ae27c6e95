"""A card is tried with one product before a model is loaded."""

from unittest.mock import patch

import pytest
import torch

from app.chat.header import describe
from medusa_core.errors import RequestError
from medusa_core.loading.state import (
    ModelStatus,
    Phase,
)
from medusa_core.messages import LoadModel, ModelLoaded
from medusa_core.models.precision import resolve_device
from medusa_core.system import cuda as card
from tests.lanes.card.conftest import Folders
from tests.support.card.card import fake_cuda
from tests.support.card.sessions import EngineOnCard


def no_kernel(device: torch.device) -> None:
    raise RuntimeError("CUDA error: no kernel image is available for execution on the device")


def full(device: torch.device) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory.")


def test_a_card_that_passes_the_trial_is_used() -> None:
    with fake_cuda((6, 1)):
        assert resolve_device("").device.type == "cuda"
        assert resolve_device("", full).device.type == "cuda"  # the plan says what is missing


def test_a_requested_card_without_kernels_is_refused_by_name() -> None:
    with fake_cuda((6, 1)), pytest.raises(RequestError, match=r"no kernels.*6\.1") as refused:
        resolve_device("cuda", no_kernel)
    assert "Choose the device cpu" in refused.value.hint


def test_without_a_requested_device_the_cpu_is_used_and_the_window_says_why(
    folders: Folders,
) -> None:
    with fake_cuda((6, 1)), patch.object(card, "multiply", no_kernel):
        engine = EngineOnCard()
        *_, loaded = engine.ask(LoadModel("", "load", *folders["grouped"]))
    assert isinstance(loaded, ModelLoaded)
    assert loaded.device == "cpu"
    assert "no kernels for it (compute capability 6.1)" in loaded.device_note
    assert "the card can't be used" in describe(ModelStatus(Phase.READY, loaded=loaded))
