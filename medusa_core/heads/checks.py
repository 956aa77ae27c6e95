"""Checks that all kinds of heads share; they need no tensor data and no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from medusa_core.errors import HeadsError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.system.files.safetensors_header import TensorShapes

# Vocabularies are padded differently: 32000, 32001 and 32064 may be the same.
MOST_PADDING = 128
_MOST_LISTED, _MOST_CHARS = 16, 80
Shapes = dict[str, tuple[int, ...]]


def listed(names: Iterable[str]) -> str:
    """Join the first few names for a message; a damaged file may have any number, of any length."""
    first = [name[:_MOST_CHARS] for name in islice(names, _MOST_LISTED + 1)]
    return ", ".join(first[:_MOST_LISTED]) + (", ..." if len(first) > _MOST_LISTED else "")


def names_by_part(
    names: Iterable[str],
    part_of: Callable[[str], str | None],
    unknown: Callable[[str], HeadsError],
    ignored: tuple[str, ...] = (),
) -> dict[str, str]:
    """Map the parts of heads to the names of their tensors.

    Args:
        names: Names of all tensors.
        part_of: Returns the part that a name stands for; None for unknown names.
        unknown: Makes the error that lists names without a part of their own. Such tensors may
            change the result, so that ignoring them would draft wrong tokens.
        ignored: Endings of names that no computation reads.

    Raises:
        HeadsError: A name is unknown, or stands for the same part as another.
    """
    found: dict[str, str] = {}
    others = []
    for name in sorted(names):
        part = part_of(name)
        if part is not None and part not in found:
            found[part] = name
        elif not name.endswith(ignored):
            others.append(name)
    if others:
        raise unknown(listed(others))
    return found


def check_shapes(
    shapes: TensorShapes, wanted: Iterable[tuple[str, tuple[int, ...]]], hint: str
) -> None:
    """Compare the shapes of tensors with those that the settings require.

    Raises:
        HeadsError: A tensor has another shape.
    """
    for name, shape in wanted:
        if tuple(shapes[name]) != shape:
            raise HeadsError(
                tr("{0} has shape {1}, not {2}.", name, list(shapes[name])[:8], list(shape)), hint
            )


def check_tensors(shapes: TensorShapes, wanted: TensorShapes, hint: str) -> None:
    """Compare the names and shapes of all tensors with those that the sizes of heads require.

    Raises:
        HeadsError: Tensors are missing, unknown, or have another shape.
    """
    if missing := sorted(wanted.keys() - shapes.keys()):
        raise HeadsError(
            tr(
                "The heads lack {0} of {1} tensors, such as {2}.",
                len(missing),
                len(wanted),
                missing[0],
            ),
            hint,
        )
    if extra := sorted(shapes.keys() - wanted.keys()):
        raise HeadsError(tr("Tensors that belong to no head: {0}.", listed(extra)), hint)
    check_shapes(shapes, wanted.items(), hint)


def flag(settings: Mapping[str, Any], key: str, default: bool) -> bool:
    """Read a boolean of `config.json`.

    Raises:
        HeadsError: The value is neither true nor false.
    """
    value = settings.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_setting(key)
    return value


def bad_setting(key: str) -> HeadsError:
    """Return the error for an invalid value of `config.json`."""
    return HeadsError(tr("config.json: {0} makes no sense.", key), "Download the heads again.")


def check_sizes(
    hidden: int, vocabulary: int, config: ModelConfig, padding: int = MOST_PADDING
) -> None:
    """Check that heads have the target's sizes.

    Args:
        hidden: Width of the heads.
        vocabulary: Size of their draft vocabulary.
        config: Sizes of the target.
        padding: Allowed difference of the vocabularies.

    Raises:
        HeadsError: The heads are for another target.
    """
    if hidden != config.hidden_size:
        raise HeadsError(
            tr(
                "The heads are for a hidden size of {0}, the model has {1}.",
                hidden,
                config.hidden_size,
            ),
            "Choose the heads that were trained for this model.",
            heads=hidden,
            model=config.hidden_size,
        )
    if abs(vocabulary - config.vocab_size) > padding:
        raise HeadsError(
            tr("The heads have a vocabulary of {0}, the model {1}.", vocabulary, config.vocab_size),
            "Choose the heads that were trained for this model.",
            heads=vocabulary,
            model=config.vocab_size,
        )


def llama_shapes(layers: ModelConfig, num_inputs: int) -> Shapes:
    """Return the shape of each part of a layer; kinds of heads use a subset.

    Args:
        layers: Sizes of the layers.
        num_inputs: Width of attention's input.
    """
    hidden, inner, size = layers.hidden_size, layers.intermediate_size, layers.head_dim
    queries, keys = layers.num_heads * size, layers.num_kv_heads * size
    return {
        "q": (queries, num_inputs),
        "k": (keys, num_inputs),
        "v": (keys, num_inputs),
        "o": (hidden, queries),
        "q_bias": (queries,),
        "k_bias": (keys,),
        "v_bias": (keys,),
        "o_bias": (hidden,),
        "q_norm": (size,),
        "k_norm": (size,),
        "mlp_norm": (hidden,),
        "gate": (inner, hidden),
        "up": (inner, hidden),
        "down": (hidden, inner),
    }
