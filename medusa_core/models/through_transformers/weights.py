"""Load a model into transformers, split into the base model and its LM head.

Nothing is downloaded, and code of the model's repository isn't executed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from medusa_core.errors import CheckpointError, ModelError, OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.folder_checkpoint import weight_files
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import DenseLinear
from medusa_core.models.through_transformers.known import transformers_config
from medusa_core.models.through_transformers.quietly import quietly
from medusa_core.models.through_transformers.sizes import body_of, cache_argument, sizes_of
from medusa_core.models.token_table import DenseTable

_HARMLESS = ("rotary_emb.inv_freq", "medusa_head", "mtp_layers", ".masked_bias", ".attn.bias")


class TransformersModel:
    """A model that runs through transformers.

    Attributes:
        hf_config: transformers' configuration object.
        body: The model without its LM head.
        layers: Blocks of the body; empty if they can't be found.
        cache_argument: Name of the body's argument for the KV cache.
        embedding: Token embeddings.
        lm_head: LM head, which draft heads may share.
        num_parameters: Number of parameters; tied ones are counted once.
        nbytes: Bytes of parameters and buffers.
    """

    def __init__(self, config: ModelConfig, model: Any) -> None:
        self.config = config
        self.hf_config: Any = model.config
        self.body: Any = body_of(model)
        self.layers: tuple[nn.Module, ...] = _blocks_of(self.body, config.num_layers)
        self.cache_argument = cache_argument(self.body, config.model_type)
        self.embedding = DenseTable(model.get_input_embeddings().weight.detach())
        projection: Any = model.get_output_embeddings()
        self.lm_head: QuantLinear = DenseLinear(projection.weight.detach(), _detached(projection))
        self.num_parameters = sizes_of(config).num_parameters
        self.nbytes = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
        self._model = model
        self._output: Any = None

    def states(self, **takes: Any) -> Tensor:
        """Run the body for one sequence and return the hidden states. [n, hidden]"""
        output = self.body(**takes)
        self._output = type(output)
        states: Tensor = output.last_hidden_state[0]
        return states

    def logits(self, states: Tensor) -> Tensor:
        """Compute the logits of hidden states. [n, hidden] → [n, vocabulary]

        The model may do more than project, such as scaling: so the whole model runs, with a body
        that returns these states.
        """
        placeholder = torch.zeros(1, len(states), dtype=torch.long, device=states.device)
        given = self._output(last_hidden_state=states.unsqueeze(0))
        self.body.forward = lambda *_, **__: given
        try:
            return self.whole(placeholder)
        finally:
            del self.body.forward  # restores the method of the class

    def whole(self, token_ids: Tensor) -> Tensor:
        """Compute the logits of a text with body and LM head. [1, n] → [n, vocabulary]"""
        scores: Tensor = self._model(input_ids=token_ids, use_cache=False).logits[0]
        return scores


def read_transformers_model(
    folder: Path, config: ModelConfig, precision: Precision, formats: PartFormats
) -> TransformersModel:
    """Load a model by transformers, quantized if the formats ask for it.

    Args:
        folder: Folder of the model, in Hugging Face layout.
        precision: Compute dtype and device.
        formats: Weight formats.

    Raises:
        CheckpointError: A tensor is missing, misshapen, or unexpected; or a file isn't safetensors,
            because transformers would unpickle it.
        ModelError: transformers can't read it.
        OutOfMemoryError: The device has too little memory.
    """
    from transformers import AutoModelForCausalLM

    model, found = load_pretrained(
        AutoModelForCausalLM,
        folder,
        json.loads(config.transformers_text),
        dtype=precision.compute,
        **_placing(precision, formats),
    )
    _check_tensors(config, found)
    return TransformersModel(config, model)


def load_pretrained(
    auto_class: Any, folder: Path, raw_config: dict[str, Any], **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Load safetensors by transformers for inference; nothing is downloaded or executed.

    Args:
        auto_class: transformers' class, such as `AutoModel`.
        folder: Folder of the model, in Hugging Face layout.
        raw_config: The fields of its `config.json`.
        options: More arguments of `from_pretrained`.

    Returns:
        The model, and transformers' report of missing and unexpected tensors.

    Raises:
        CheckpointError: A file isn't safetensors, because transformers would unpickle it.
        ModelError: transformers can't read it.
        OutOfMemoryError: The device has too little memory.
    """
    weight_files(folder)
    theirs = transformers_config(raw_config)
    try:
        with quietly():
            model, found = auto_class.from_pretrained(
                folder,
                config=theirs,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
                **options,
            )
            model = model.eval().requires_grad_(requires_grad=False)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(
            tr("The weights of {0} don't fit the memory.", folder.name),
            "Close other programs, or choose a smaller model.",
        ) from error
    except Exception as error:  # a damaged file can raise anything
        raise ModelError(
            tr("transformers can't read {0}: {1}: {2}", folder.name, type(error).__name__, error),
            "Download the model again; its tensors and config.json may be of different models.",
        ) from error
    return model, found


def _placing(precision: Precision, formats: PartFormats) -> dict[str, Any]:
    """Return the arguments for device and quantization."""
    # transformers' grouped products of experts don't support float64.
    one_by_one = {"experts_implementation": "eager"}
    placing: dict[str, Any] = one_by_one if precision.compute == torch.float64 else {}
    if precision.device.type != "cpu" or not formats.linears.is_dense:
        placing["device_map"] = {"": precision.device}
    if not formats.linears.is_dense:
        from transformers import BitsAndBytesConfig

        placing["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=precision.compute,
            bnb_4bit_use_double_quant=formats.linears.name == "nf4-dq",
        )
    return placing


def _check_tensors(config: ModelConfig, found: Any) -> None:
    """Refuse missing and unexpected tensors, with which it would be another model."""
    missing = sorted(found["missing_keys"])
    if missing:
        raise CheckpointError(
            tr(
                "{0} tensors of a {1} model are missing: {2}.",
                len(missing),
                config.model_type,
                ", ".join(missing[:8]),
            ),
            "The weights and config.json belong to different models; download both again.",
        )
    unread = sorted(
        name for name in found["unexpected_keys"] if not any(part in name for part in _HARMLESS)
    )
    if unread:
        raise CheckpointError(
            tr(
                "A {0} model has no place for {1} of the tensors: {2}.",
                config.model_type,
                len(unread),
                ", ".join(unread[:8]),
            ),
            "Without them it would be another model: choose a checkpoint of a supported kind.",
        )


def _blocks_of(body: nn.Module, count: int) -> tuple[nn.Module, ...]:
    """Return the model's transformer blocks: the module list of that length; empty if unknown."""
    lists = (module for module in body.modules() if isinstance(module, nn.ModuleList))
    return next((tuple(blocks) for blocks in lists if len(blocks) == count), ())


def _detached(projection: Any) -> Tensor | None:
    """Return a projection's bias without autograd; None without bias."""
    return None if projection.bias is None else projection.bias.detach()
