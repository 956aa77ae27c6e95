"""Choose the device of a model, and the dtypes of computation and KV cache."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.models.quant.card_linear import working_types
from medusa_core.models.quant.choice import cache_dtype
from medusa_core.models.quant.format import Hardware
from medusa_core.models.quant.linear import packed_dtypes, torch_packs_bfloat16
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
        cache: Dtype of the KV cache in torch backends.
        cache_format: Quantized format of the KV cache, `q8_0` or `q4`; empty for none.
        attended: Number of cached rows whose values attention reads, those of the largest weights;
            0 for all.
    """

    name: str
    compute: torch.dtype
    cache: torch.dtype
    device: torch.device
    cache_format: str = ""
    attended: int = 0

    @property
    def is_standard(self) -> bool:
        """Whether the KV cache is unquantized, and attention reads all of it."""
        return not self.cache_format and not self.attended

    @property
    def scores(self) -> torch.dtype:
        """Dtype of queries, masks and attention scores."""
        return torch.promote_types(self.compute, self.cache)


def precision_of(
    compute: str, device: torch.device, cache_format: str = "", attended: int = 0
) -> Precision:
    """Return the dtypes of a model on a device.

    Args:
        compute: Name of the compute dtype.
        cache_format: As in `Precision`.
        attended: As in `Precision`.
    """
    has_tensor_cores = device.type != "cuda" or cuda.has_tensor_cores(device)
    cache = DTYPES[cache_dtype(compute, device.type, has_tensor_cores)]
    return Precision(compute, DTYPES[compute], cache, device, cache_format, attended)


def hardware_of(device: torch.device) -> Hardware:
    """Return the properties of a device on which weight formats depend."""
    if device.type == "cuda":
        return Hardware(
            "cuda",
            cuda.capability(device),
            block_types=working_types(device),
            has_tensor_cores=cuda.has_tensor_cores(device),
        )
    return Hardware(
        "cpu",
        multiplies_bfloat16=torch_packs_bfloat16(),
        packs=packed_dtypes(),
        compiles=native_library() is not None,
    )


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """A device, and why a GPU isn't used.

    Attributes:
        note: Why the GPU can't be used, as a sentence; empty if it is used or there is none.
    """

    device: torch.device
    note: str = ""


def choose_device(device: str) -> torch.device:
    """Return the device with a name; see `resolve_device`."""
    return resolve_device(device).device


def resolve_device(device: str, multiply: Multiply | None = None) -> DeviceChoice:
    """Return the device with a name, or the best one that works.

    Args:
        device: Name of a torch device; empty for the best.
        multiply: Tries a GPU with one product; None for `cuda.multiply`.

    Raises:
        RequestError: The device doesn't exist, or doesn't work with this torch.
    """
    chosen = _named_device(device)
    reason = _why_not(chosen, multiply or cuda.multiply)
    if not reason:
        return DeviceChoice(chosen)
    if device:
        raise RequestError(reason, "Choose the device cpu, or install a torch for this card.")
    return DeviceChoice(torch.device("cpu"), tr("{0} The CPU is used instead.", reason))


def _why_not(device: torch.device, multiply: Multiply) -> str:
    """Return why a GPU can't be used, as a sentence; empty if it can, or is only full."""
    if device.type != "cuda":
        return ""
    try:
        multiply(device)
    except torch.OutOfMemoryError:
        return ""  # the memory plan reports that
    except RuntimeError as error:
        log.warning("%s can't be used", device, exc_info=error)
        major, minor = cuda.capability(device)
        reason = (
            tr("no kernels for it") if "no kernel image" in str(error) else tr("no working driver")
        )
        return (
            f"{cuda.name(device)} can't be used: this torch has {reason} "
            f"(compute capability {major}.{minor})."
        )
    return ""


def _named_device(device: str) -> torch.device:
    """Parse a device name; by default the first GPU if there is one."""
    no_device = RequestError(
        tr("There is no device {0}.", repr(device)), "Choose cpu, cuda or cuda:N."
    )
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
