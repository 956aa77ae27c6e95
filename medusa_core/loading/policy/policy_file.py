"""Policy files: the JSON object alone, or the output of `plan --throughput --json`."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from medusa_core.errors import CheckpointError, RequestError
from medusa_core.i18n import tr
from medusa_core.loading.policy.result import FoundPolicy
from medusa_core.loading.policy.rules import MAX_SEQUENCES
from medusa_core.messages import Policy, Tier
from medusa_core.models.quant.choice import CACHE_FORMATS
from medusa_core.system.files import record_json
from medusa_core.system.files.json_file import read_json

_MAX_BYTES = 1 << 20
_MAX_PROMPT_ROWS = 1 << 20
_HINT = tr("plan --throughput --json writes one as an example.")


def read_policy(path: Path) -> Policy:
    """Read a policy from a file.

    Raises:
        RequestError: The file holds no valid policy.
    """
    try:
        raw = read_json(path, _MAX_BYTES)
    except CheckpointError as error:
        raise RequestError(tr("{0} holds no policy: {1}", path, error.message), _HINT) from error
    best = raw.get("best")
    found = best.get("policy") if isinstance(best, dict) else raw
    try:
        return _checked(record_json.from_json(Policy, found, path.name))
    except ValueError as error:
        raise RequestError(tr("{0} holds no policy: {1}", path, error), _HINT) from error


def found_as_json(found: FoundPolicy) -> dict[str, object]:
    """Return a policy and its forecast for JSON."""
    return record_json.as_json(found)


def _checked(policy: Policy) -> Policy:
    """Check a policy's values.

    Raises:
        ValueError: A value is out of range; the text says which.
    """
    for name in ("weights", "cache", "activations"):
        parts = astuple(getattr(policy, name))
        if not all(0 <= part <= 1 for part in parts) or abs(sum(parts) - 1) > 1e-6:
            raise ValueError(f"the shares of {name} don't add up to 1.")
    if max(astuple(policy.activations)) < 1:
        raise ValueError("activations all lie in one place.")
    if policy.batch < 1 or policy.num_batches < 1 or policy.num_sequences > MAX_SEQUENCES:
        raise ValueError(f"batch × num_batches is 1 to {MAX_SEQUENCES}.")
    if not 1 <= policy.prompt_rows <= _MAX_PROMPT_ROWS:
        raise ValueError(f"prompt_rows is 1 to {_MAX_PROMPT_ROWS}.")
    if policy.cache_format not in ("", *CACHE_FORMATS):
        raise ValueError(f"cache_format is empty, or one of {', '.join(CACHE_FORMATS)}.")
    if policy.attended < 0:
        raise ValueError("attended is 0 for all rows, or more.")
    if policy.attention not in (Tier.DEVICE.value, Tier.MEMORY.value):
        raise ValueError("attention is device or memory.")
    return policy
