"""Start the process that opens pickles, and watch it.

The worker reports each piece that it wrote and waits for a reply; so it stops when it is cancelled,
and when its parent has died.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from medusa_core import errors
from medusa_core.errors import Cancelled, ConversionError, MedusaError
from medusa_core.i18n import text_from_json, tr
from medusa_core.system.sandbox.process import Sandbox

log = logging.getLogger(__name__)

_TORCH_BYTES = 1 << 30
_KINDS: dict[str, type[MedusaError]] = {
    kind.__name__: kind
    for kind in (
        *(errors.ConversionError, errors.CheckpointError, errors.HeadsError),
        *(errors.ModelError, errors.DiskFullError),
    )
}


@dataclass(frozen=True, slots=True)
class ConversionJob:
    """Job of the worker process.

    Attributes:
        files: Pickles, in order.
        staging: Folder that it may write to; the result goes to its subfolder `out`.
        is_sharded: Whether they are shards of one model.
        expected_names: Tensor names of the index; empty without one.
        base_model: Target that the heads' configuration names.
        memory_bytes: Address space in addition to torch's.
        most_bytes: Upper limit of a result's bytes.
    """

    files: tuple[str, ...]
    staging: str
    is_sharded: bool
    expected_names: tuple[str, ...]
    base_model: str
    memory_bytes: int
    most_bytes: int


def run_job(
    job: ConversionJob,
    time_s: float,
    on_progress: Callable[[int, int], None] | None,
    is_cancelled: Callable[[], bool],
) -> None:
    """Run a job in a process of its own, and wait for its end.

    Args:
        time_s: Longest time without progress.
        on_progress: Called with bytes written and bytes to write.
        is_cancelled: Called while waiting.

    Raises:
        Cancelled: It was stopped.
        ConversionError: The worker ended without a result, or fell silent.
        MedusaError: The worker's error.
    """
    sandbox = Sandbox("medusa_core.hub.convert.convert_worker")

    def check_limits() -> None:
        """Raise if the user cancels or the worker uses too much memory."""
        if is_cancelled():
            raise Cancelled(tr("The conversion was stopped."), tr("Nothing was changed."))
        # Only on Linux can the child limit itself.
        if sandbox.resident_bytes() > _TORCH_BYTES + job.memory_bytes:
            raise ConversionError(
                "The conversion takes far more memory than its file explains, and was stopped.",
                "Nothing was changed. Don't use this file.",
            )

    try:
        sandbox.send(asdict(job))
        while (report := sandbox.receive(time_s, check_limits)) is not None:
            if "done" in report:
                return
            if "error" in report:
                raise _as_error(report)
            if on_progress is not None:
                on_progress(int(report["written"]), int(report["total"]))
            check_limits()
            sandbox.send({"go": True})
        raise _ended(sandbox)
    except TimeoutError:
        raise ConversionError(
            tr("The conversion has done nothing for {0:.0f} s and was stopped.", time_s),
            "Nothing was changed. Get the weights as safetensors instead.",
        ) from None
    finally:
        sandbox.close()


def _as_error(report: dict[str, Any]) -> MedusaError:
    """Recreate the error that the worker reported."""
    kind = _KINDS.get(str(report["error"]), ConversionError)
    return kind(text_from_json(report.get("message", "")), text_from_json(report.get("hint", "")))


def _ended(sandbox: Sandbox) -> ConversionError:
    """Make the error for a worker that died without a report."""
    code = sandbox.wait()
    log.debug("the converter said: %s", sandbox.last_words())
    return ConversionError(
        tr(
            "The converter ended unexpectedly ({0}).",
            f"signal {-code}" if code < 0 else f"code {code}",
        ),
        "Nothing was changed. It may have run out of memory: close other programs and try again.",
        code=code,
    )
