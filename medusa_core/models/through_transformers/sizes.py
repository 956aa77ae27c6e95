"""How large a model is that transformers runs, found out without its weights.

transformers builds it on torch's meta device, where tensors have shapes and no numbers, and takes
three tokens through it: so what a session holds is known, too, whatever the family. The number of
modules is bounded.
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
from medusa_core.models.layer_shapes import RowShape
from medusa_core.models.through_transformers.known import transformers_config
from medusa_core.models.through_transformers.quietly import quietly

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.config import ModelConfig

_MOST_MODULES = 1 << 17  # the largest published models have a third of it, experts included
_TOKENS = 3


@dataclass(frozen=True, slots=True)
class TransformersSizes:
    """Sizes of a model.

    Attributes:
        matrices: Rows and columns of those that bitsandbytes can hold in 4 bits.
        num_others: Numbers of all other parameters, tied ones counted once.
        buffer_bytes: Of what isn't trained, such as angles.
        layers: Keys and values of those that keep them for every token; of layers whose keys and
            values differ in size, the larger one.
        state_bytes: What a session holds besides, however long it is.
        has_masks: Attention takes a mask of its own.
    """

    matrices: tuple[tuple[int, int], ...]
    num_others: int
    buffer_bytes: int
    layers: tuple[RowShape, ...]
    state_bytes: int
    has_masks: bool

    @property
    def num_parameters(self) -> int:
        """Parameters, tied ones counted once."""
        return self.num_others + sum(rows * columns for rows, columns in self.matrices)

    @property
    def largest_matrix(self) -> int:
        """Numbers of the largest of `matrices`."""
        return max((rows * columns for rows, columns in self.matrices), default=0)

    @property
    def plain_why(self) -> str:
        """Why one token is decoded at a time, as far as sizes tell; empty where trees may do."""
        if self.state_bytes:
            return "some of its layers carry a state that can't be taken back"
        return "" if self.has_masks else "its attention takes no masks"


def sizes_of(config: ModelConfig) -> TransformersSizes:
    """Sizes of a model that transformers runs.

    Raises:
        ModelError: transformers can't build it, or holds what this engine doesn't know.
    """
    return _sizes_of(config.transformers_text)


@lru_cache(maxsize=32)
def _sizes_of(text: str) -> TransformersSizes:
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
    rows = [_row_shape(layer) for layer in kept if isinstance(layer, DynamicLayer)]
    states = [state for layer in kept for state in _states_in(layer)]
    return TransformersSizes(
        matrices=tuple(matrices),
        num_others=others,
        buffer_bytes=sum(buffer.nbytes for buffer in model.buffers()),
        layers=tuple(rows) or (RowShape(1, 1),),  # a cache of states alone has room for nothing
        state_bytes=sum(state.nbytes for state in states),
        has_masks={"attention_mask", "position_ids"} <= set(_arguments(body_of(model))),
    )


def build_empty(config: Any) -> Any:
    """The model of a configuration, its parameters not filled in."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(config, trust_remote_code=False).eval()


def body_of(model: Any) -> Any:
    """What makes states of tokens: the model without the head that scores them.

    Raises:
        ModelError: It can't be told from the rest.
    """
    body = model.get_decoder()
    if body is None or body is model or model.get_output_embeddings() is None:
        raise _unknown(model.config.model_type, "no head of its own")
    return body


def empty_layers(config: Any) -> list[Any]:
    """What transformers makes to hold what a session has read, layer by layer.

    Raises:
        ModelError: A layer holds it in a way that this engine doesn't know.
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


def carrier_of(body: Any, model_type: str) -> str:
    """The argument in which a body takes what the session has read.

    Raises:
        ModelError: There is none that this engine knows.
    """
    arguments = _arguments(body)
    for name in ("past_key_values", "cache_params"):
        if name in arguments:
            return name
    raise _unknown(model_type, "no cache")


def _arguments(body: Any) -> list[str]:
    return list(inspect.signature(body.forward).parameters)


def _layers_of_cache(model: Any, config: Any) -> list[Any]:
    """Layers of a cache that has read three tokens."""
    import torch
    from transformers import Cache

    for module in model.modules():
        if "Experts" in type(module).__name__:  # which ask numbers who is chosen
            module.forward = _pass_on
    body, cache = body_of(model), Cache(layers=empty_layers(config))
    carried = {carrier_of(body, config.model_type): cache}
    try:
        body(input_ids=torch.zeros(1, _TOKENS, dtype=torch.long), use_cache=True, **carried)
    except Exception as error:
        raise _unknown(config.model_type, type(error).__name__) from error
    if any(_is_empty_state(layer) for layer in cache.layers):
        raise _unknown(config.model_type, "states outside of its cache")
    return list(cache.layers)


def _pass_on(hidden: Tensor, *_: object, **__: object) -> Tensor:
    return hidden


def _linear_names(model: Any) -> Iterator[str]:
    """Names of the weights that bitsandbytes holds in few bits where it is asked to."""
    from torch import nn
    from transformers.pytorch_utils import Conv1D
    from transformers.quantizers.base import get_keys_to_not_convert

    kept = get_keys_to_not_convert(model)
    for name, module in model.named_modules():
        is_kept = any(name == one or name.startswith(f"{one}.") for one in kept)
        if isinstance(module, nn.Linear | Conv1D) and not is_kept:
            yield f"{name}.weight"


def _row_shape(layer: Any) -> RowShape:
    """What a layer of a cache holds of one token."""
    sides = [side for side in (layer.keys, layer.values) if side is not None]
    return RowShape(
        max((side.shape[1] for side in sides), default=1),
        max((side.shape[3] for side in sides), default=1),
    )


def _is_empty_state(layer: Any) -> bool:
    """Whether a layer of a cache is there for states, and holds none."""
    return hasattr(layer, "recurrent_states") and next(_states_in(layer), None) is None


def _states_in(layer: Any) -> Iterator[Tensor]:
    """The states that a layer of a cache carries."""
    for kind in ("conv_states", "recurrent_states"):
        yield from (state for state in getattr(layer, kind, {}).values() if state is not None)


@contextmanager
def _bounded(model_type: str) -> Iterator[None]:
    """End what this thread builds once it has more modules than any model has."""
    from torch.nn.modules import module as modules

    thread, num_modules = get_ident(), 0

    def count(*_: object) -> None:
        nonlocal num_modules
        num_modules += get_ident() == thread
        if num_modules > _MOST_MODULES:
            raise _TooManyError

    hooks = (
        modules.register_module_module_registration_hook(count),
        modules.register_module_parameter_registration_hook(count),
    )
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # whatever the class of a family thinks of its sizes
        raise ModelError(
            f"config.json: transformers can't build a {model_type} model of it "
            f"({type(error).__name__}).",
            "Download config.json again.",
        ) from error
    finally:
        for hook in hooks:
            hook.remove()


class _TooManyError(Exception):
    """A model of more parts than any has."""


def _unknown(model_type: str, what: str) -> ModelError:
    return ModelError(
        f"Models of type {model_type} keep what they have read in a way that this engine doesn't "
        f"know ({what}).",
        "Choose a model of another family.",
    )
