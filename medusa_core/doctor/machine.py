"""Check Python, torch, the device and the compiled library."""

from __future__ import annotations

import os
import platform
import sys

from medusa_core.doctor.check import Check, CheckSpec, install_again
from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.system.installation import repair_command

_GIB = 1 << 30
_MIN_RAM_BYTES = 4 * _GIB


def machine_checks() -> tuple[CheckSpec, ...]:
    """Return the checks of this machine."""
    return (
        CheckSpec("Python", _python),
        CheckSpec("PyTorch", _torch),
        CheckSpec(tr("Device"), _device),
        CheckSpec(tr("Compiled library"), _native),
        CheckSpec(tr("Kernels for cards"), _card_kernels),
        CheckSpec(tr("Memory"), _memory),
        CheckSpec(tr("Built-in model"), _demo),
    )


def _python() -> Check:
    """Check the version of Python."""
    facts = tr(
        "Python {0} on {1} {2}", platform.python_version(), platform.system(), platform.machine()
    )
    is_known = (3, 11) <= sys.version_info[:2] < (3, 14)
    hint = "" if is_known else tr("Use Python 3.11, 3.12 or 3.13.")
    return Check("Python", is_known, tr("{0}.", facts), hint)


def _torch() -> Check:
    """Check that torch can be imported and multiplies correctly."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return Check("PyTorch", False, tr("PyTorch can't be loaded: {0}.", error), install_again())
    product = torch.ones(4, 4) @ torch.ones(4, 4)
    if float(product.sum()) != 64:
        return Check("PyTorch", False, tr("PyTorch multiplies wrongly here."), install_again())
    build = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "for processors"
    return Check("PyTorch", True, tr("PyTorch {0} {1}.", torch.__version__, build))


def _device() -> Check:
    """Check which device models run on."""
    from medusa_core.loading.memory.probe import offered_devices
    from medusa_core.models.precision import resolve_device

    try:
        resolved = resolve_device("")
    except RequestError as error:
        return Check(tr("Device"), False, error.message, error.hint)
    if resolved.note:
        hint = tr("Install a PyTorch for this card: {0}", repair_command())
        return Check(tr("Device"), False, resolved.note, hint)
    labels = {offer.device: offer.label for offer in offered_devices()}
    name = labels.get(str(resolved.device), str(resolved.device))
    return Check(tr("Device"), True, tr("Models run on: {0}.", name))


def _native() -> Check:
    """Check that the compiled step can be loaded."""
    from medusa_core.system.native.binding import (
        native_library,
        system_name,
    )

    if os.environ.get("MEDUSA_NATIVE") == "0":
        hint = tr("Unset MEDUSA_NATIVE; answers on the processor are slower without it.")
        return Check(
            tr("Compiled library"), False, tr("It is switched off: MEDUSA_NATIVE is 0."), hint
        )
    library = native_library()
    if library is None:
        message = tr("There is none that this processor ({0}) can run.", system_name())
        hint = tr("Everything works without it, only slower; a graphics card doesn't need it.")
        return Check(tr("Compiled library"), False, message, hint)
    return Check(tr("Compiled library"), True, tr("In use: {0}.", os.path.basename(library._name)))  # noqa: PTH119


def _card_kernels() -> Check:
    """Check that our kernels compute on the card what the processor computes."""
    from medusa_core.models.precision import resolve_device
    from medusa_core.models.quant.card_linear import working_types
    from medusa_core.runtime.backends.cuda_blocks import card_attention, fused_kernels_work
    from medusa_core.system.native.cuda.kernels import kernel_note
    from medusa_core.system.native.cuda.tuning import tuning_note

    try:
        device = resolve_device("").device
    except RequestError:
        device = None
    if device is None or device.type != "cuda":
        return Check(
            tr("Kernels for cards"), True, tr("They aren't needed: no graphics card is used.")
        )
    types = working_types(device)
    if types and card_attention(device) is not None:
        fused_kernels_work(device)
    note = kernel_note(device)
    if note:
        hint = tr("Update the card's driver. Until then these parts are slower, but right.")
        return Check(tr("Kernels for cards"), False, note, hint)
    facts, tuned = tr("They compute what the processor computes."), tuning_note(device)
    return Check(tr("Kernels for cards"), True, tr("{0} {1}", facts, tuned) if tuned else facts)


def _memory() -> Check:
    """Report the free memory."""
    import psutil

    memory = psutil.virtual_memory()
    facts = tr("{0:.1f} of {1:.1f} GiB are free.", memory.available / _GIB, memory.total / _GIB)
    if memory.available < _MIN_RAM_BYTES:
        hint = tr("Close other programs before you load a large model.")
        # Still enough for the built-in model, so the check doesn't fail.
        return Check(tr("Memory"), True, facts, hint)
    return Check(tr("Memory"), True, facts)


def _demo() -> Check:
    """Check that the demo model is there and can be read."""
    from medusa_core.errors import MedusaError
    from medusa_core.models.model_files import ModelFiles
    from medusa_core.system.resources import (
        demo_heads_dir,
        demo_model_dir,
    )

    for folder in (demo_model_dir(), demo_heads_dir()):
        if not any(folder.glob("*.safetensors")):
            return Check(
                tr("Built-in model"),
                False,
                tr("Its weights are missing in {0}.", folder),
                install_again(),
            )
    try:
        _ = ModelFiles.open(demo_model_dir()).config  # raises if it is damaged
    except MedusaError as error:
        return Check(tr("Built-in model"), False, error.message, install_again())
    return Check(tr("Built-in model"), True, tr("Llama-Pebble is here."))
