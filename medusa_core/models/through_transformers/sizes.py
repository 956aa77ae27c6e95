"""Measure the sizes of a model that runs through transformers, without its weights.

transformers builds it on torch's meta device, where tensors have no data, and runs three tokens
through it, which shows the sizes of its cache, too. The number of modules is limited.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import get_ident
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.layer_shapes import KvShape
from medusa_core.models.through_transformers.known import transformers_config
from medusa_core.models.through_transformers.quietly import quietly

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.config import ModelConfig

_MAX_MODULES = 1 << 17  # three times as many as the largest published models, with experts
_TOKENS = 3


@dataclass(frozen=True, slots=True)
class TransformersSizes:
    """Sizes of a model.

    Attributes:
        matrices: Rows and columns of the matrices that bitsandbytes can quantize to 4 bits.
        num_others: Number of all other parameters; tied ones are counted once.
        buffer_bytes: Bytes of buffers.
        layers: Shapes of a token's keys and values in the layers with a KV cache; the larger of
            both.
        state_bytes: Bytes of recurrent states.
        has_masks: Whether the model accepts an attention mask and position ids.
    """

    matrices: tuple[tuple[int, int], ...]
    num_others: int
    buffer_bytes: int
    layers: tuple[KvShape, ...]
    state_bytes: int
    has_masks: bool

    @property
    def num_parameters(self) -> int:
        """Number of parameters; tied ones are counted once."""
        return self.num_others + sum(rows * columns for rows, columns in self.matrices)

    @property
    def largest_matrix(self) -> int:
        """Parameters of the largest of `matrices`."""
        return max((rows * columns for rows, columns in self.matrices), default=0)

    @property
    def plain_why(self) -> str:
        """Reason why trees can't be verified, as a clause; empty if they may work."""
        if self.state_bytes:
            return tr("some of its layers carry a state that can't be taken back")
        return "" if self.has_masks else tr("its attention takes no masks")


def sizes_of(config: ModelConfig) -> TransformersSizes:
    """Return the sizes of a model that runs through transformers.

    Raises:
        ModelError: transformers can't build it, or its cache isn't supported.
    """
    return _sizes_of(config.transformers_text)


@lru_cache(maxsize=32)
def _sizes_of(text: str) -> TransformersSizes:
    """Build the model on the meta device and measure it; cached by the text of its config."""
    import torch
    from transformers.cache_utils import DynamicLayer

    config = transformers_config(json.loads(text))
    with quietly(), _bounded(config.model_type), torch.device("meta"), torch.no_grad():
        model = build_empty(config)
        kept = _layers_of_cache(model, config)
    quantized = set(_linear_names(model))
    matrices, others = [], 0
    for name, parameter in model.named_parameters():
        if name in quantized:
            rows, columns = parameter.shape
            matrices.append((rows, columns))
        else:
            others += parameter.numel()
    rows = [_kv_shape(layer) for layer in kept if isinstance(layer, DynamicLayer)]
    states = [state for layer in kept for state in _states_in(layer)]
    return TransformersSizes(
        matrices=tuple(matrices),
        num_others=others,
        buffer_bytes=sum(buffer.nbytes for buffer in model.buffers()),
        layers=tuple(rows) or (KvShape(1, 1),),  # only states
        state_bytes=sum(state.nbytes for state in states),
        has_masks={"attention_mask", "position_ids"} <= set(_arguments(body_of(model))),
    )


def build_empty(config: Any) -> Any:
    """Build a model without loading weights."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(config, trust_remote_code=False).eval()


def body_of(model: Any) -> Any:
    """Return the model without its LM head.

    Raises:
        ModelError: They can't be separated.
    """
    body = model.get_decoder()
    if body is None or body is model or model.get_output_embeddings() is None:
        raise _unknown(model.config.model_type, tr("no head of its own"))
    return body


def empty_layers(config: Any) -> list[Any]:
    """Make the layers of transformers' cache for a model.

    Raises:
        ModelError: A type of layer isn't supported.
    """
    from transformers import cache_utils

    known = (
        *(cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer),
        *(cache_utils.LinearAttentionLayer, cache_utils.DummyLayer),
        cache_utils.LinearAttentionAndFullAttentionLayer,
        cache_utils.LinearAttentionAndSlidingWindowAttentionLayer,
    )
    try:
        layers = list(cache_utils.DynamicCache(config=config).layers)
    except Exception as error:
        raise _unknown(config.model_type, type(error).__name__) from error
    other = next((type(layer).__name__ for layer in layers if type(layer) not in known), "")
    if other:
        raise _unknown(config.model_type, other)
    return layers


def cache_argument(body: Any, model_type: str) -> str:
    """Return the name of the argument in which a model takes its cache.

    Raises:
        ModelError: There is no known argument.
    """
    arguments = _arguments(body)
    for name in ("past_key_values", "cache_params"):
        if name in arguments:
            return name
    raise _unknown(model_type, tr("no cache"))


def _arguments(body: Any) -> list[str]:
    """Return the names of the arguments of a model's forward pass."""
    return list(inspect.signature(body.forward).parameters)


def _layers_of_cache(model: Any, config: Any) -> list[Any]:
    """Run three tokens; return the layers of the cache."""
    import torch
    from transformers import Cache

    for module in model.modules():
        if "Experts" in type(module).__name__:  # routing needs data
            module.forward = _pass_on
    body, cache = body_of(model), Cache(layers=empty_layers(config))
    carried = {cache_argument(body, config.model_type): cache}
    try:
        body(input_ids=torch.zeros(1, _TOKENS, dtype=torch.long), use_cache=True, **carried)
    except Exception as error:
        raise _unknown(config.model_type, type(error).__name__) from error
    if any(_is_empty_state(layer) for layer in cache.layers):
        raise _unknown(config.model_type, tr("states outside of its cache"))
    return list(cache.layers)


def _pass_on(hidden: Tensor, *_: object, **__: object) -> Tensor:
    """Forward of a module that is skipped: return the hidden states unchanged."""
    return hidden


def _linear_names(model: Any) -> Iterator[str]:
    """Yield the names of the weights that bitsandbytes can quantize."""
    from torch import nn
    from transformers.pytorch_utils import Conv1D
    from transformers.quantizers.base import get_keys_to_not_convert

    kept = get_keys_to_not_convert(model)
    for name, module in model.named_modules():
        is_kept = any(name == one or name.startswith(f"{one}.") for one in kept)
        if isinstance(module, nn.Linear | Conv1D) and not is_kept:
            yield f"{name}.weight"


def _kv_shape(layer: Any) -> KvShape:
    """Return the shape of a token's keys and values in a layer of a cache."""
    sides = [side for side in (layer.keys, layer.values) if side is not None]
    return KvShape(
        max((side.shape[1] for side in sides), default=1),
        max((side.shape[3] for side in sides), default=1),
    )


def _is_empty_state(layer: Any) -> bool:
    """Whether a layer of a cache is for states, but has none."""
    return hasattr(layer, "recurrent_states") and next(_states_in(layer), None) is None


def _states_in(layer: Any) -> Iterator[Tensor]:
    """Yield the states in a layer of a cache."""
    for kind in ("conv_states", "recurrent_states"):
        yield from (state for state in getattr(layer, kind, {}).values() if state is not None)


@contextmanager
def _bounded(model_type: str) -> Iterator[None]:
    """Limit the number of modules that this thread builds."""
    from torch.nn.modules import module as modules

    thread, num_modules = get_ident(), 0

    def count(*_: object) -> None:
        """Count modules of this thread only: the hook is global to torch."""
        nonlocal num_modules
        num_modules += get_ident() == thread
        if num_modules > _MAX_MODULES:
            raise _TooManyError

    hooks = (
        modules.register_module_module_registration_hook(count),
        modules.register_module_parameter_registration_hook(count),
    )
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # classes of transformers raise anything
        raise ModelError(
            tr(
                "config.json: transformers can't build a {0} model of it ({1}).",
                model_type,
                type(error).__name__,
            ),
            "Download config.json again.",
        ) from error
    finally:
        for hook in hooks:
            hook.remove()


class _TooManyError(Exception):
    """A model has too many modules."""


def _unknown(model_type: str, reason: str) -> ModelError:
    """Make the error for a cache layout that the engine doesn't know."""
    return ModelError(
        tr(
            "Models of type {0} keep what they have read in a way that this engine doesn't know "
            "({1}).",
            model_type,
            reason,
        ),
        "Choose a model of another family.",
    )
