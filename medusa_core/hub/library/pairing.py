"""Match heads with models by their sizes, and explain mismatches.

Headers on this computer and on the Hub are compared by the same functions; nothing is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from medusa_core.heads.checks import MOST_PADDING
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.checkpoints.gguf_config import TITLE as GGUF_TITLE
from medusa_core.models.config import text_part

# Suffixes of a stored format, which aren't part of a model's name.
_STORAGE = re.compile(
    r"[-_.](hf|bf16|fp16|f16|fp32|nf4|nf4-dq|int8|int4|8bit|4bit|bnb|bnb-4bit|bnb-8bit"
    r"|safetensors|quantized|unquantized|gguf|i?q\d(_\w+)?|f32)$"
)
# Keys of hidden size, vocabulary size and number of layers, the most common first.
_SIZES = (
    ("hidden_size", "n_embd", "d_model"),
    ("vocab_size",),
    ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers_block_type"),
)


class TargetSizes(Protocol):
    """Sizes of a target that heads must match."""

    @property
    def hidden_size(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def num_layers(self) -> int: ...

    @property
    def model_type(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """Facts of a target for matching heads.

    Attributes:
        name: Repository or folder.
        hidden_size: Width of hidden states.
        vocab_size: Size of the vocabulary.
        num_layers: Number of layers.
        title: Name in the file's metadata; empty without one.
        model_type: `model_type` of config.json; empty if unknown.
    """

    name: str
    hidden_size: int
    vocab_size: int
    num_layers: int = 0
    title: str = ""
    model_type: str = ""


@dataclass(frozen=True, slots=True)
class HeadsFacts:
    """Facts of heads for matching targets.

    Attributes:
        name: Repository or folder.
        shape: Sizes of the heads.
        base_model: Target that their configuration names; empty without one.
    """

    name: str
    shape: HeadsShape
    base_model: str = ""


class HeadsFit(Enum):
    """How well heads match a target, the best first."""

    MADE_FOR = "made for it"
    FITS = "fits"
    FOREIGN = "made for another"
    MISFIT = "doesn't fit"


@dataclass(frozen=True, slots=True)
class HeadsMatch:
    """Heads matched with a target.

    Attributes:
        fit: How well they match.
        reason: Reason, for people.
    """

    heads: HeadsFacts
    fit: HeadsFit
    reason: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """A target and all heads, the best match first.

    Attributes:
        matches: A match for each set of heads.
    """

    target: TargetFacts
    matches: tuple[HeadsMatch, ...]

    @property
    def fitting(self) -> tuple[HeadsMatch, ...]:
        """Heads that can be used with the target."""
        return tuple(match for match in self.matches if match.fit is not HeadsFit.MISFIT)


def misfit(sizes: TargetSizes, heads: HeadsShape) -> str:
    """Return why heads can't be used with a model, for people; empty if they can.

    That the sizes agree doesn't mean that they were trained for it: then few drafts are accepted,
    and the text is right all the same.
    """
    reason, width = "", heads.reads_width or heads.hidden_size
    columns = heads.columns or sizes.vocab_size
    if not heads.num_heads:
        reason = tr("these are no heads")
    elif width and width != sizes.hidden_size:
        reason = tr("hidden size {0:,} ≠ {1:,}", width, sizes.hidden_size)
    elif heads.made_for_vocab and abs(heads.made_for_vocab - sizes.vocab_size) > MOST_PADDING:
        reason = tr("vocabulary size {0:,} ≠ {1:,}", heads.made_for_vocab, sizes.vocab_size)
    elif heads.families and sizes.model_type and sizes.model_type not in heads.families:
        reason = tr("reads keys and values of {0}", " and ".join(heads.families))
    elif sizes.num_layers and heads.deepest_layer > sizes.num_layers:
        reason = tr("reads layer {0:,} of {1:,}", heads.deepest_layer, sizes.num_layers)
    elif not heads.is_reduced and abs(columns - sizes.vocab_size) > MOST_PADDING:
        reason = tr("vocabulary size {0:,} ≠ {1:,}", columns, sizes.vocab_size)
    elif heads.is_reduced and columns > sizes.vocab_size:
        reason = tr("vocabulary size {0:,} > {1:,}", columns, sizes.vocab_size)
    return reason


def match(target: TargetFacts, heads: HeadsFacts) -> HeadsMatch:
    """Match heads with a target."""
    if reason := misfit(target, heads.shape):
        return HeadsMatch(heads, HeadsFit.MISFIT, reason)
    if not heads.base_model:
        return HeadsMatch(
            heads, HeadsFit.FITS, tr("sizes agree; they don't say which model they are for")
        )
    names = (target.name, target.title) if target.title else (target.name,)
    if any(same_model(heads.base_model, name) for name in names):
        return HeadsMatch(heads, HeadsFit.MADE_FOR, tr("made for {0}", heads.base_model))
    return HeadsMatch(
        heads,
        HeadsFit.FOREIGN,
        tr("sizes agree, but made for {0}: few drafts will hold", heads.base_model),
    )


def pair(targets: Iterable[TargetFacts], heads: Iterable[HeadsFacts]) -> tuple[Pairing, ...]:
    """Match every target with all heads."""
    sets = tuple(heads)
    order = list(HeadsFit)
    return tuple(
        Pairing(
            target,
            tuple(
                sorted(
                    (match(target, one) for one in sets),
                    key=lambda found: (order.index(found.fit), found.heads.name),
                )
            ),
        )
        for target in targets
    )


def same_model(one: str, other: str) -> bool:
    """Return whether two names are of one model, whatever its owner and format."""
    return bare_name(one) == bare_name(other)


def _first_of(config: Mapping[str, Any], names: Iterable[str]) -> object:
    """Return the value of the first key that exists; of a list its length."""
    found = next((config[name] for name in names if name in config), None)
    return len(found) if isinstance(found, list) else found


def target_facts(name: str, config: Mapping[str, Any]) -> TargetFacts | None:
    """Read a target's facts from `config.json`; None if it has no sizes."""
    text = text_part(config)
    sizes = [_first_of(text, names) for names in _SIZES]
    counts = [size for size in sizes if isinstance(size, int) and size > 0]
    if len(counts) != len(sizes):
        return None
    hidden_size, vocab_size, num_layers = counts
    title, family = (str(text.get(key, "")) for key in (GGUF_TITLE, "model_type"))
    return TargetFacts(name, hidden_size, vocab_size, num_layers, title, family)


def heads_facts(
    name: str, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]
) -> HeadsFacts:
    """Read facts of heads from their header and `config.json`.

    Args:
        name: Repository or folder.
        shapes: Shapes of all tensors.
        config: Their config.json, if any; its counts are often wrong and aren't used.

    Raises:
        HeadsError: They are no heads.
    """
    from medusa_core.heads.kind import shape_of_tensors  # takes torch along

    return HeadsFacts(name, shape_of_tensors(shapes, config), _base_model(config))


def _base_model(config: Mapping[str, Any]) -> str:
    """Return the target that a configuration of Medusa or of "speculators" names."""
    speculators = config.get("speculators_config")
    verifier = speculators.get("verifier") if isinstance(speculators, Mapping) else None
    found = verifier.get("name_or_path") if isinstance(verifier, Mapping) else None
    for base in (config.get("base_model_name_or_path"), found):
        if isinstance(base, str) and base not in ("", "N/A", "None"):
            return base
    return ""


def bare_name(name: str) -> str:
    """Return a model's name without its owner and without suffixes of its stored format."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()
    while (shorter := _STORAGE.sub("", last)) != last:
        last = shorter
    return re.sub(r"[-_.\s]+", "-", last)
