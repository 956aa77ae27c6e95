"""Policies in files: the object alone, or what `plan --throughput --json` has written."""

from __future__ import annotations

from pathlib import Path

from medusa_core.errors import CheckpointError, RequestError
from medusa_core.memory.policy.found import BatchForecast, FoundPolicy
from medusa_core.memory.policy.rules import MAX_BATCH
from medusa_core.messages import Policy, Shares, Tier
from medusa_core.models.quant.choice import CACHE_FORMATS
from medusa_core.system.files import record_json
from medusa_core.system.files.json_file import read_json

_MOST_BYTES = 1 << 20
_MOST_PROMPT_ROWS = 1 << 20
_HINT = "plan --throughput --json writes one as an example."


def read_policy(path: Path) -> Policy:
    """A policy from a file.

    Raises:
        RequestError: It is none.
    """
    try:
        raw = read_json(path, _MOST_BYTES)
    except CheckpointError as error:
        raise RequestError(f"{path} holds no policy: {error.message}", _HINT) from error
    best = raw.get("best")
    found = best.get("policy") if isinstance(best, dict) else raw
    try:
        return checked_policy(record_json.from_json(Policy, found, path.name))
    except ValueError as error:
        raise RequestError(f"{path} holds no policy: {error}", _HINT) from error


def checked_policy(policy: Policy) -> Policy:
    """A policy that makes sense.

    Raises:
        ValueError: It doesn't; the text says why.
    """
    named = {
        "weights": policy.weights,
        "cache": policy.cache,
        "activations": policy.activations,
    }
    for name, shares in named.items():
        _check_shares(name, shares)
    if max(policy.activations.device, policy.activations.memory, policy.activations.disk) < 1:
        raise ValueError("activations all lie in one place.")
    if policy.batch < 1 or policy.num_batches < 1 or policy.num_sequences > MAX_BATCH:
        raise ValueError(f"batch × num_batches is 1 to {MAX_BATCH}.")
    if not 1 <= policy.prompt_rows <= _MOST_PROMPT_ROWS:
        raise ValueError(f"prompt_rows is 1 to {_MOST_PROMPT_ROWS}.")
    if policy.cache_format not in ("", *CACHE_FORMATS):
        raise ValueError(f"cache_format is empty, or one of {', '.join(CACHE_FORMATS)}.")
    if policy.attended < 0:
        raise ValueError("attended is 0 for all rows, or more.")
    if policy.attention not in (Tier.DEVICE.value, Tier.MEMORY.value):
        raise ValueError("attention is device or memory.")
    return policy


def found_as_json(found: FoundPolicy) -> dict[str, object]:
    """A policy and what is expected of it."""
    return {
        "policy": record_json.as_json(found.policy),
        "forecast": _forecast_as_json(found.forecast),
    }


def _forecast_as_json(forecast: BatchForecast) -> dict[str, object]:
    return {
        "prefill_s": forecast.prefill_s,
        "step_s": forecast.step_s,
        "tokens_per_s": forecast.tokens_per_s,
        "rates": dict(forecast.rates),
        "binds": list(forecast.binds),
        "sizes": record_json.as_json(forecast.sizes),
    }


def _check_shares(name: str, shares: Shares) -> None:
    parts = (shares.device, shares.memory, shares.disk)
    if not all(0 <= part <= 1 for part in parts) or abs(sum(parts) - 1) > 1e-6:
        raise ValueError(f"the shares of {name} don't add up to 1.")
