"""Which number formats a model computes and caches in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch

from medusa_core.errors import RequestError
from medusa_core.models.quant.card_linear import working_types
from medusa_core.models.quant.choice import (
    cache_dtype,
)
from medusa_core.models.quant.format import Hardware
from medusa_core.models.quant.linear import (
    packed_dtypes,
    torch_packs_bfloat16,
)
from medusa_core.system import cuda
from medusa_core.system.native.binding import native_library

log = logging.getLogger(__name__)

Multiply = Callable[[torch.device], None]

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True)
class Precision:
    """Dtypes of a loaded model on its device.

    Attributes:
        name: Name of the compute dtype.
        compute: Dtype of weights and hidden states.
        cache: Dtype of keys and values in torch's operations.
        device: Where it runs.
        cache_format: How keys and values are kept, `q4`; empty as they are.
        attended: Rows whose values attention takes, those of the largest weights; 0 for all.
    """

    name: str
    compute: torch.dtype
    cache: torch.dtype
    device: torch.device
    cache_format: str = ""
    attended: int = 0

    @property
    def is_usual(self) -> bool:
        """Keys and values are plain numbers, and attention takes all of them."""
        return not self.cache_format and not self.attended

    @property
    def scores(self) -> torch.dtype:
        """Dtype of queries, masks and attention scores: the finer of the two."""
        return torch.promote_types(self.compute, self.cache)


def precision_of(
    compute: str, device: torch.device, cache_format: str = "", attended: int = 0
) -> Precision:
    """The dtypes to compute in `compute` on a device.

    Args:
        compute: Name of the dtype.
        device: The device.
        cache_format: As `Precision` has it, and so is the next.
        attended: Rows whose values attention takes.
    """
    capability = cuda.capability(device) if device.type == "cuda" else (0, 0)
    cache = DTYPES[cache_dtype(compute, device.type, capability)]
    return Precision(compute, DTYPES[compute], cache, device, cache_format, attended)


def hardware_of(device: torch.device) -> Hardware:
    """What weight formats may ask of a device."""
    if device.type == "cuda":
        return Hardware("cuda", cuda.capability(device), block_types=working_types(device))
    return Hardware(
        "cpu",
        multiplies_bfloat16=torch_packs_bfloat16(),
        packs=packed_dtypes(),
        compiles=native_library() is not None,
    )


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """Where a model runs.

    Attributes:
        device: The device.
        note: Why a card that is here isn't used, for people; empty if none is passed over.
    """

    device: torch.device
    note: str = ""


def choose_device(device: str) -> torch.device:
    """The device of that name, or the best there is for an empty one; see `settle_device`."""
    return settle_device(device).device


def settle_device(device: str, multiply: Multiply | None = None) -> DeviceChoice:
    """The device of that name, or the best that can compute for an empty one.

    Args:
        device: A torch device name, or empty.
        multiply: Tries a card with one product; None for `card.multiply`.

    Raises:
        RequestError: It isn't there, or it can't compute with this torch.
    """
    chosen = _named_device(device)
    reason = _why_not(chosen, multiply or cuda.multiply)
    if not reason:
        return DeviceChoice(chosen)
    if device:
        raise RequestError(reason, "Choose the device cpu, or install a torch for this card.")
    return DeviceChoice(torch.device("cpu"), f"{reason} The CPU is used instead.")


def _why_not(device: torch.device, multiply: Multiply) -> str:
    """Why a card can't compute, for people; empty if it can, or if it is only full."""
    if device.type != "cuda":
        return ""
    try:
        multiply(device)
    except torch.OutOfMemoryError:
        return ""  # what is missing is the plan's to say
    except RuntimeError as error:
        log.warning("%s can't be used", device, exc_info=error)
        major, minor = cuda.capability(device)
        reason = "no kernels for it" if "no kernel image" in str(error) else "no working driver"
        return (
            f"{cuda.name(device)} can't be used: this torch has {reason} "
            f"(compute capability {major}.{minor})."
        )
    return ""


def _named_device(device: str) -> torch.device:
    no_device = RequestError(f"There is no device {device!r}.", "Choose cpu, cuda or cuda:N.")
    try:
        chosen = torch.device(device or ("cuda" if cuda.num_cards() else "cpu"))
    except RuntimeError as error:
        raise no_device from error
    if chosen.type not in ("cpu", "cuda"):
        raise no_device
    if chosen.type == "cuda" and not cuda.num_cards():
        raise RequestError(
            "This torch finds no CUDA device.",
            "Check the driver with nvidia-smi, or choose the device cpu.",
        )
    if chosen.type == "cuda" and (chosen.index or 0) >= cuda.num_cards():
        raise no_device
    return chosen
