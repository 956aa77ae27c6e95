"""Every family's `config.json` with each of its keys broken: a model, or a typed error at once."""

import json
import reprlib
import time
import tracemalloc
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import pytest
import torch
from transformers import Cohere2Config, MixtralConfig, PreTrainedConfig, StableLmConfig

from medusa_core.errors import ModelError
from medusa_core.loading.memory.plan import weights_bytes
from medusa_core.messages import WeightFormats
from medusa_core.models.architecture import arch_registry
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.precision import hardware_of
from medusa_core.models.quant.choice import PartFormats, resolve_formats
from medusa_core.runtime.backends.rope import inverse_frequencies
from medusa_core.runtime.kv.size import row_bytes, state_bytes
from tests.support.models.peers import CONFIGS, RENAMED, SIZES

MOST_S, MOST_BYTES = 1.0, 32 << 20
FIRST_OF_FAMILY = {CONFIGS[name]().model_type: name for name in reversed(CONFIGS)}
# Of families whose first has little of what they may have.
OTHERS = {"granitemoehybrid, hybrid": "granite 4 hybrid with experts"}
NOT_READ = frozenset(PreTrainedConfig().to_dict()) - {"tie_word_embeddings"}
WORDS = "wide" * 25_000
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 1 << 20, 1 << 31, 1 << 62, 10**400),
    *(0.5, -0.5, 1e-320, 1e12, 1e308, float("nan"), float("inf")),
    *("", "wide", WORDS, [], [None], [0], [-1], [1 << 62], ["wide"], [[[]]], {}, {"wide": 1}),
    *([1] * 100_000, ["full_attention"] * 100_000, dict.fromkeys(map(str, range(10_000)), 1)),
)


def broken(
    raw: Mapping[str, Any], keys: Container[str] | None = None
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Configurations of which one value is another or missing, at any depth.

    Args:
        raw: A whole configuration.
        keys: Which of its keys are broken; None for all.

    Yields:
        Which key, the value that it has now, and the configuration.
    """
    for key, value in raw.items():
        if key in NOT_READ or (keys is not None and key not in keys):
            continue  # no family reads the former; model_type is among them
        yield key, "nothing", {name: kept for name, kept in raw.items() if name != key}
        for other in (*VALUES, *_of_wrong_length(value)):
            yield key, other, {**raw, key: other}
        if isinstance(value, Mapping):
            for inner, other, changed in broken(value):
                yield f"{key}.{inner}", other, {**raw, key: changed}


def _of_wrong_length(value: object) -> list[Any]:
    """Lists like one, but shorter, longer, and with something else in it."""
    if not isinstance(value, list) or not value:
        return []
    others = [value[0], *value[1:-1], "wide"], [None, *value[1:]], [value[-1]] * len(value)
    return [value[1:], value[:1], [*value, value[-1]], value * 1000, *others]


def use(config: ModelConfig, formats: PartFormats) -> None:
    """Use a configuration in all ways in which it is used before weights are read."""
    assert weights_bytes(config, formats) > 0
    if not config.has_native_family:
        return
    assert len(config.layers) == config.num_layers
    assert len(config.windows) == config.num_layers
    assert row_bytes(config, 4) + state_bytes(config, 4) > 0
    turned = config.head_rows.rotary_dim
    assert inverse_frequencies(config.rope, turned, config.context_tokens).isfinite().all()


def refusal(raw: Mapping[str, Any], formats: PartFormats) -> ModelError | None:
    """Return the error of a refused configuration."""
    try:
        use(parse_config(raw, {}), formats)
    except ModelError as error:
        return error
    return None


@contextmanager
def named(what: str) -> Iterator[None]:
    """Add the cause to an untyped error."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise


@contextmanager
def quick(what: str) -> Iterator[None]:
    """Fail where something takes long."""
    start = time.process_time()
    yield
    assert time.process_time() - start < MOST_S, what


@contextmanager
def small(what: str) -> Iterator[None]:
    """Fail where something takes much memory."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES, what
    finally:
        tracemalloc.stop()


def is_large(value: object) -> bool:
    """Could someone reserve much because of it? Only then memory is traced, which is slow."""
    if isinstance(value, int | float):
        return value > 1 << 16
    return isinstance(value, str | list | dict) and len(value) > 1000


@pytest.fixture(scope="module")
def formats() -> PartFormats:
    return resolve_formats(WeightFormats(), "float32", hardware_of(torch.device("cpu")))


FAMILIES = (*arch_registry().names, *OTHERS)


@cache
def raw_of(family: str) -> dict[str, Any]:
    """The configuration of a family, with all of its keys."""
    known = OTHERS.get(family) or FIRST_OF_FAMILY.get(family) or RENAMED[family]
    raw: dict[str, Any] = json.loads(CONFIGS[known]().to_json_string(use_diff=False))
    return raw | ({} if family in OTHERS else {"model_type": family})


@cache
def number_of_families(key: str) -> int:
    """Return the number of families that have a key."""
    return sum(key in raw_of(family) for family in FAMILIES)


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_broken_configuration_loads_or_raises_a_typed_error_at_once(
    family: str, is_whole: bool, formats: PartFormats
) -> None:
    raw, turn = raw_of(family), FAMILIES.index(family)
    assert refusal(raw, formats) is None
    num_refused = 0
    # Daily, keys that most families have take turns.
    keys = [key for key in sorted(raw) if key not in NOT_READ]
    tried = {
        key
        for number, key in enumerate(keys)
        if is_whole or number_of_families(key) < 8 or (number + turn) % 5 == 0
    }
    for key, value, changed in broken(raw, tried):
        what = f"{key} = {reprlib.repr(value)}"
        with named(what), quick(what), small(what) if is_large(value) else nullcontext():
            error = refusal(changed, formats)
        if error is not None:
            num_refused += 1
            assert error.hint
            assert len(error.message) <= 500
    assert num_refused > (100 if is_whole else 20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Cohere2Config, MixtralConfig, StableLmConfig])
def test_models_run_by_transformers_raise_no_other_error(
    kind: type[PreTrainedConfig], formats: PartFormats
) -> None:
    config = kind(**SIZES, pad_token_id=0)
    raw = json.loads(config.to_json_string(use_diff=False))
    assert refusal(raw, formats) is None
    for key, value, changed in broken(raw):
        with named(f"{key} = {reprlib.repr(value)}"):
            refusal(changed, formats)
