"""Models that run through transformers, and their `config.json`.

transformers is imported only for models without a native architecture, as importing takes a second.
Numbers are checked before transformers reads them.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.through_transformers.quietly import quietly
from medusa_core.system.files.json_file import is_whole

# Several times the sizes of the largest published models; more is a damaged file.
_MAX = {
    "num_hidden_layers": 1 << 8,  # more take seconds to measure
    "num_attention_heads": 1 << 12,
    "num_key_value_heads": 1 << 12,
    "head_dim": 1 << 12,
    "hidden_size": 1 << 17,
    "intermediate_size": 1 << 19,
    "vocab_size": 1 << 20,
    "max_position_embeddings": 1 << 24,
}
_MAX_OR_ZERO = {"num_nextn_predict_layers": 1 << 8}
_LAYERS = dict.fromkeys(("num_layers", "n_layers", "n_layer"), "num_hidden_layers")
_FLOAT, _FLOATS = "__float__", ("Infinity", "-Infinity", "NaN")  # as transformers writes them
_MAX_NUMBER = 1 << 24
_MAX_LISTED = 1 << 16
_UNBOUNDED = ("theta", "base", "_id", "_ids")  # suffixes of numbers that aren't sizes
_CONTEXTS = ("max_position_embeddings", "context_length", "seq_length", "max_seq_len", "n_ctx")
_UNLIMITED = 1 << 17  # context offered for models without a longest context
# Fields that aren't part of the model: a classifier's labels, of which transformers allocates as
# many as it is told; code that it would download or compile; additional files; and output options.
# Names that begin with `_` are transformers' own.
_IGNORED = frozenset(
    (
        *("num_labels", "id2label", "label2id", "problem_type"),
        *("auto_map", "attn_implementation", "experts_implementation", "use_kernels"),
        *("kernel_config", "custom_pipelines", "extra_files", "extra_config_files"),
        *("dtype", "torch_dtype", "output_attentions", "output_hidden_states", "return_dict"),
        "chunk_size_feed_forward",
    )
)
_BOTH_WAYS = tr("they read a text in both directions")
_OF_ANOTHER = tr("they are one half of a model that also reads something else")
_OWN_PROGRAM = tr("they bring a program of their own, which is never executed")
_NOBODYS = tr("neither a family here nor transformers knows them as a model that writes text")
_MULTIMODAL = tr(
    "they also see or hear, and only such families as are written here run without that"
)
_REFUSED = {
    **dict.fromkeys(
        (
            *("bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "electra"),
            *("ernie", "megatron-bert", "rembert", "roberta", "roberta-prelayernorm", "roc_bert"),
            *("roformer", "xlm", "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod"),
        ),
        _BOTH_WAYS,
    ),
    **dict.fromkeys(
        (
            *("bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "marian", "mbart"),
            *("mvp", "pegasus", "plbart", "prophetnet", "trocr", "whisper", "musicgen"),
            *("musicgen_melody", "moshi", "git", "mllama", "fuyu"),
        ),
        _OF_ANOTHER,
    ),
}


class ConfigSizes(TypedDict):
    """Fields of `ModelConfig` that follow from transformers' configuration object."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context_tokens: int
    tie_embeddings: bool
    transformers_text: str


def why_not_transformers(raw: Mapping[str, Any]) -> str:
    """Return why a model can't run through transformers, as a clause; empty if it can.

    Args:
        raw: Content of `config.json`.
    """
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    model_type = raw.get("model_type")
    if not isinstance(model_type, str) or model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        if "auto_map" in raw:
            return _OWN_PROGRAM
        return _NOBODYS
    if any(isinstance(raw.get(part), Mapping) for part in ("vision_config", "audio_config")):
        return _MULTIMODAL
    return _REFUSED.get(model_type, "")


def read_sizes(raw: Mapping[str, Any]) -> ConfigSizes:
    """Read the sizes of a model that `why_not_transformers` accepts.

    Raises:
        ModelError: A value is invalid.
    """
    if raw.get("quantization_config"):
        raise ModelError(
            tr(
                "The checkpoint is quantized already, and {0} models run through transformers, "
                "which this engine gives plain numbers.",
                raw["model_type"],
            ),
            "Choose the unquantized version of this model.",
        )
    config = transformers_config(raw)
    layers, heads = (
        _size(config, f"num_{name}", 1) for name in ("hidden_layers", "attention_heads")
    )
    hidden = _size(config, "hidden_size")
    contexts = (getattr(config, name, None) for name in _CONTEXTS)
    longest = next((tokens for tokens in contexts if isinstance(tokens, int) and tokens > 0), 0)
    return ConfigSizes(
        model_type=config.model_type,
        vocab_size=_size(config, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=_size(config, "intermediate_size", 4 * hidden),
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=_size(config, "num_key_value_heads", heads),
        head_dim=_size(config, "head_dim", max(1, hidden // heads)),
        context_tokens=min(longest or _UNLIMITED, _MAX["max_position_embeddings"]),
        tie_embeddings=bool(getattr(config, "tie_word_embeddings", False)),
        transformers_text=json.dumps(dict(raw), sort_keys=True),
    )


def transformers_config(raw: Mapping[str, Any]) -> Any:
    """Make transformers' configuration object; code of the model's repository isn't executed.

    Raises:
        ModelError: A value is invalid.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind: Any = CONFIG_MAPPING[raw["model_type"]]
    standard_names = dict(_LAYERS) | {own: name for name, own in kind.attribute_map.items()}
    for path, number in _numbers(raw, ""):
        name = path.rpartition(".")[2]
        name = standard_names.get(name, name)
        most = _MAX_OR_ZERO.get(name) or _MAX.get(
            name, _MAX_NUMBER
        )  # also of nested configurations
        if abs(number) > most and not name.endswith(_UNBOUNDED):
            raise _senseless(path, number)
    for standard_name, most in _MAX.items():
        name = kind.attribute_map.get(standard_name, standard_name)
        value = _largest(raw.get(name))
        if value is not None and not is_whole(value, 1, most):
            raise _senseless(name, value)
    try:
        with quietly():
            return kind.from_dict(_without_ignored(raw))
    except Exception as error:  # classes of transformers raise anything
        raise ModelError(
            tr(
                "config.json: transformers can't read it as a {0} model ({1}).",
                raw["model_type"],
                type(error).__name__,
            ),
            "Download config.json again.",
        ) from error


def _without_ignored(value: Any) -> Any:
    """Remove the ignored fields, also of nested configurations."""
    if isinstance(value, list):
        return [_without_ignored(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {_FLOAT} and value[_FLOAT] in _FLOATS:
        return float(value[_FLOAT])
    return {
        name: _without_ignored(inner)
        for name, inner in value.items()
        if name not in _IGNORED and not str(name).startswith("_")
    }


def _numbers(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, float]]:
    """Yield all numbers of a `config.json` with their paths; too long lists are refused."""
    if isinstance(value, bool) or depth > 16:
        return
    if isinstance(value, int | float):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(inner, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list):
        if len(value) > _MAX_LISTED:
            raise _senseless(path, len(value))
        for inner in value:
            yield from _numbers(inner, path, depth + 1)


def _size(config: Any, name: str, default: int = 0) -> int:
    """Read a size; the largest where it differs by layer."""
    value = _largest(getattr(config, name, None))
    value = default if value is None else value
    if not is_whole(value, 1, _MAX[name]):
        raise _senseless(name, value)
    return int(value)


def _largest(value: Any) -> Any:
    """Return the largest of a list of sizes per layer; other values are returned as given."""
    is_listed = isinstance(value, list) and value and all(is_whole(v, 1, 1 << 62) for v in value)
    return max(value) if is_listed else value


def _senseless(name: str, value: object) -> ModelError:
    """Make the error for an impossible size."""
    return ModelError(
        tr("config.json: {0} is {1}, which no model has.", name, reprlib.repr(value)),
        "Download config.json again.",
    )
