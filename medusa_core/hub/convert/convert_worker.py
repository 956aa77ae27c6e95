"""The process that opens pickles.

Reads one job from its input, reports on its output, and waits for a reply after each report.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from medusa_core.errors import ConversionError, DiskFullError, HeadsError, MedusaError
from medusa_core.hub.convert.convert_process import ConversionJob
from medusa_core.hub.convert.convert_source import (
    HEADS_FILE,
    HYDRA_FILE,
    INDEX_FILE,
    MODEL_FILE,
)
from medusa_core.i18n import text_to_json, tr
from medusa_core.system.files.safetensors_header import read_header
from medusa_core.system.sandbox.channel import (
    Channel,
    limit_process,
    open_channel,
)

log = logging.getLogger(__name__)


def main() -> int:
    """Run one job; the last line of output is `done` or `error`."""
    with open_channel() as channel:
        try:
            run(_job(channel.receive()), channel)
        except MedusaError as error:
            _send_error(channel, error)
        except OSError as error:
            problem = tr("The result can't be written: {0}.", error.strerror or error)
            _send_error(channel, DiskFullError(problem, "Make space, or choose another folder."))
        else:
            channel.send(done=True)
    return 0


def _send_error(channel: Channel, error: MedusaError) -> None:
    """Report an error."""
    message, hint = text_to_json(error.message), text_to_json(error.hint)
    channel.send(error=type(error).__name__, message=message, hint=hint)


def _job(raw: dict[str, Any]) -> ConversionJob:
    """Recreate the job from JSON."""
    names = ("files", "expected_names")
    return ConversionJob(**raw | {name: tuple(raw[name]) for name in names})


def run(job: ConversionJob, channel: Channel) -> None:
    """Convert within the limits."""
    import torch  # noqa: F401 - the bound on memory is beyond what it has taken

    def report(written: int, total: int) -> None:
        """Report the progress, and wait for permission to continue."""
        channel.send(written=written, total=total)
        channel.receive()

    limit_process(job.memory_bytes, job.most_bytes)
    out = Path(job.staging) / "out"
    out.mkdir()
    weight_map: dict[str, str] = {}
    written = 0
    for number, file in enumerate(job.files, start=1):
        shard = f"model-{number:05}-of-{len(job.files):05}.safetensors"
        path = out / (shard if job.is_sharded else MODEL_FILE)
        written, names = _convert_file(Path(file), path, written, job, report)
        if doubled := sorted(names & weight_map.keys()):
            raise ConversionError(
                tr("Two weight files hold the tensor {0}.", doubled[0]), "Download the model again."
            )
        weight_map |= dict.fromkeys(sorted(names), path.name)
    _check_names(job, weight_map)
    if job.is_sharded:
        index = {"metadata": {"total_size": written}, "weight_map": weight_map}
        (out / INDEX_FILE).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    else:
        _rewrite_heads(Path(job.files[0]).name, out, job)


def _convert_file(
    source: Path, path: Path, written: int, job: ConversionJob, report: Callable[[int, int], None]
) -> tuple[int, set[str]]:
    """Convert a pickle; returns bytes written so far, and its tensor names."""
    from medusa_core.hub.convert.convert_tensors import write_tensors
    from medusa_core.hub.convert.pickles import load_tensors

    report(written, 0)
    tensors = load_tensors(source, job.most_bytes - written)
    return write_tensors(path, tensors, written, report), set(tensors)


def _check_names(job: ConversionJob, weight_map: dict[str, str]) -> None:
    """Check that the shards contain all tensors of the index."""
    if missing := sorted(set(job.expected_names) - weight_map.keys()):
        raise ConversionError(
            tr(
                "No weight file holds {0} of the tensors that the index names, such as {1}.",
                len(missing),
                missing[0],
            ),
            "Download the model again.",
        )


def _rewrite_heads(source_name: str, out: Path, job: ConversionJob) -> None:
    """Write heads in their format with a configuration; other weights stay."""
    from medusa_core.heads.kinds import hydra
    from medusa_core.heads.reader import read_head_set
    from medusa_core.heads.writer import write_heads

    shapes = {name: entry.shape for name, entry in read_header(out / MODEL_FILE).items()}
    if source_name.startswith("hydra_lm_head") or hydra.SPEC.owns(frozenset(shapes)):
        hydra.SPEC.sizes(shapes, {})
        (out / MODEL_FILE).rename(out / HYDRA_FILE)
        return
    raw = out.with_name("raw")
    raw.mkdir()
    staged = (out / MODEL_FILE).rename(raw / HEADS_FILE)
    try:
        heads, spec = read_head_set(raw, None)
        if spec.write is None:
            raise HeadsError("These weights hold a model beside the heads.")
    except HeadsError:
        if source_name.startswith("medusa_lm_head"):
            raise
        log.info("these are no heads by themselves; they are kept as weights")
        staged.rename(out / MODEL_FILE)
        return
    write_heads(heads, spec.name, out, job.base_model)
