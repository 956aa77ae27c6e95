"""Make targets of well-known shapes with random weights: meaningless text, real times.

They use the built-in model's tokenizer, whose token ids every larger vocabulary contains.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.heads.medusa import MedusaHeads, SharedWeights
from medusa_core.heads.weights import HeadWeights
from medusa_core.loading.decoder import lower_tiers, offload_store
from medusa_core.loading.plan import plan_target
from medusa_core.loading.target import Target, make_caches, share_workers
from medusa_core.messages import HeadsShape, LoadOptions
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import choose_device, hardware_of, precision_of
from medusa_core.models.quant.choice import (
    resolve_formats,
)
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.random_weights import RandomWeights
from medusa_core.models.text.grammar_compiler import GrammarCompiler
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.runner.choice import (
    choose_runner,
)
from medusa_core.runtime.tree.tables import typical_table
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import (
    demo_model_dir,
    shapes_dir,
)


def random_target(name: str, options: LoadOptions, num_heads: int) -> Target:
    """Make a target with random weights.

    Args:
        name: Name of a shape in `resources/shapes`.
        options: Options of a load.
        num_heads: Medusa heads with one layer each, which share the output projection.

    Raises:
        OutOfMemoryError: The device ran out of memory.
        PlanError: The plan doesn't fit the device.
        RequestError: There is no such shape.
    """
    return make_random(name, shape_config(name), options, num_heads)


def shape_config(name: str) -> ModelConfig:
    """Read the configuration of a well-known model.

    Raises:
        RequestError: There is no such shape.
    """
    path = shapes_dir() / f"{name}.json"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in shapes_dir().glob("*.json")))
        raise RequestError(f"There is no shape {name!r}.", f"Choose one of {names}.")
    return parse_config(read_json(path), {})


def make_random(name: str, config: ModelConfig, options: LoadOptions, num_heads: int) -> Target:
    """Make a target of a configuration; see `random_target`."""
    device = choose_device(options.device)
    formats = resolve_formats(options.formats, options.dtype, hardware_of(device))
    precision = precision_of(formats.compute, device, formats.cache_format, formats.attended)
    plan = plan_target(config, HeadsShape(num_heads), formats, options)
    config = replace(config, context_tokens=plan.context_tokens)
    weights = RandomWeights(config, precision, formats)
    made_from = {"random": name, "config": repr(config), "formats": formats.names}
    with offload_store(plan, precision, options, made_from) or nullcontext() as store:
        loader = weights if store is None else store.wrap(weights)
        model = Decoder(config, precision, loader)
    demo = ModelFiles.open(demo_model_dir())

    def make(weight: Tensor, bias: Tensor | None) -> QuantLinear:
        """Quantize a linear layer of the heads."""
        spec = formats.fitting(formats.heads, *weight.shape)
        return spec.build(spec.quantize(weight), len(weight), bias, precision.compute)

    shared_weights = SharedWeights(model.lm_head, config.vocab_size, model.embedding, model)
    runner = choose_runner(model, precision, lower_tiers(plan, config, precision, options))
    heads = None
    if num_heads:
        heads = MedusaHeads(
            _random_heads(weights, config, num_heads), shared_weights, build_linear=make
        )
        share_workers(runner, heads)
    return Target(
        name=f"random {name}",
        config=config,
        precision=precision,
        formats=formats,
        plan=plan,
        runner=runner,
        caches=make_caches(config, runner, precision, options.sessions),
        tokenizer=demo.tokenizer,
        grammars=GrammarCompiler(demo.tokenizer, (), config.vocab_size),
        template=demo.template,
        eos_token_ids=frozenset(),
        shared_weights=shared_weights,
        heads=heads,
        phrases=None,
        trees=typical_table(num_heads) if num_heads else None,
        num_parameters=model.num_parameters,
        weights_bytes=model.nbytes + runner.buffer_bytes,
    )


def _random_heads(
    weights: RandomWeights, config: ModelConfig, num_heads: int
) -> Iterator[HeadWeights]:
    """Yield the random weights of each head."""
    for _ in range(num_heads):
        yield HeadWeights(((weights.matrix(config.hidden_size, config.hidden_size), None),), None)
