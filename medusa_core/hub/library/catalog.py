"""The shipped catalog of recommended models, heads and drafters; no network."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from medusa_core.hub.drafters import DrafterOffer
from medusa_core.hub.job import Pair
from medusa_core.hub.library.offers import PairOffer
from medusa_core.hub.library.pairing import same_model
from medusa_core.loading.memory.plan import heads_bytes, weights_bytes
from medusa_core.messages import HeadsShape, WeightFormats
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import (
    resources_dir,
    shapes_dir,
)

_EAGLE_TOKENS = 32_000


def read_catalog() -> tuple[PairOffer, ...]:
    """Return all recommendations: current models before earlier ones, then by size."""
    offers = map(_offer, _read()["pairs"])
    return tuple(sorted(offers, key=lambda offer: (offer.is_earlier, offer.download_bytes)))


def published_drafters(names: Iterable[str]) -> tuple[DrafterOffer, ...]:
    """Return the catalog's drafters for a model.

    Args:
        names: Names of the model and its base models.
    """
    known = tuple(names)
    entries = [one for one in _read()["drafters"] if any(same_model(one["for"], n) for n in known)]
    return tuple(
        DrafterOffer(
            one["repo"],
            one["kind"],
            one["for"],
            is_pickled=bool(one.get("is_pickled")),
            is_unverified=bool(one.get("is_unverified")),
        )
        for one in entries
    )


@cache
def _read() -> dict[str, Any]:
    """Read `catalog.json`."""
    found: dict[str, Any] = json.loads(
        (resources_dir() / "catalog.json").read_text(encoding="utf-8")
    )
    return found


def _eagle_3(config: ModelConfig) -> HeadsShape:
    """Return sizes of a published EAGLE-3 head: one layer, draft vocabulary of 32,000 tokens.

    Source: SafeAILab/EAGLE, `eagle/model/cnets.py`.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    queries, keys = (count * config.head_dim for count in (config.num_heads, config.num_kv_heads))
    return HeadsShape(
        num_heads=1,
        columns=_EAGLE_TOKENS,
        hidden_size=hidden,
        is_reduced=True,
        matrices=(
            (hidden, 3 * hidden),
            (queries + 2 * keys, 2 * hidden),
            (hidden, queries),
            (2 * inner, hidden),
            (hidden, inner),
            (_EAGLE_TOKENS, hidden),
        ),
        num_norm_numbers=4 * hidden,
        cache_row=2 * keys,
        kind="eagle-3",
    )


def _offer(entry: dict[str, object]) -> PairOffer:
    """Return an entry as an offer with memory sizes."""
    config = parse_config(read_json(shapes_dir() / f"{entry['shape']}.json"), {})
    num_heads = int(str(entry["num_heads"]))
    heads = HeadsShape(num_heads, 1, config.vocab_size, config.hidden_size)
    heads = heads if num_heads else HeadsShape()
    if entry.get("head_kind") == "eagle-3":
        heads = _eagle_3(config)
    file = str(entry.get("file", ""))
    published_bytes = round(float(str(entry.get("download_gb", 0))) * 1e9)
    published = WeightFormats("q4" if file else "" if config.holds_blocks else "bf16")
    formats = resolve_formats(published, "bfloat16", Hardware("cpu"), config.stored)
    whole = resolve_formats(WeightFormats("bf16"), "bfloat16", Hardware("cpu"), config.stored)
    bytes_of_heads = heads_bytes(config, heads, whole)
    model, base = str(entry["model"]), str(entry.get("base", entry["model"]))
    return PairOffer(
        title=str(entry["title"]),
        pair=Pair(model, str(entry["heads"]), file=file),
        licence=str(entry["licence"]),
        is_gated=bool(entry["is_gated"]),
        is_pickled=bool(entry["is_pickled"]),
        note=str(entry["note"]),
        config=config,
        heads=heads,
        download_bytes=(published_bytes or weights_bytes(config, formats)) + bytes_of_heads,
        is_earlier=bool(entry.get("is_earlier")),
        is_curated=True,
        bases=(base,),
        heads_bytes=bytes_of_heads,
        drafters=published_drafters((model, base)),
    )
