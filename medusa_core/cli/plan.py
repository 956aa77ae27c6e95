"""`medusa plan`: whether a model fits, and its use of memory."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from medusa_core.cli.bench_arguments import write_file
from medusa_core.cli.load_arguments import (
    add_format_arguments,
    add_tier_arguments,
    placement_options,
)
from medusa_core.cli.plan_throughput import (
    add_throughput_arguments,
    run_throughput,
)
from medusa_core.errors import RequestError
from medusa_core.hub.library.find import find_named, refuse_heads
from medusa_core.hub.settings import settings_from
from medusa_core.loading.cpu_parts import CpuPlan, plan_cpu
from medusa_core.loading.memory.budget import GIB, Budget, cuda_budget, limit_budget
from medusa_core.loading.memory.placement import CpuLayers, OffloadRoom
from medusa_core.loading.memory.recommend import (
    Recommendation,
    choices,
    plan_choice,
    plan_least,
    recommend,
)
from medusa_core.loading.offload_forecast import (
    ForecastDevice,
    OffloadPlan,
    device_with,
    plan_offload,
)
from medusa_core.loading.plan import may_shrink_cache
from medusa_core.messages import Fit, HeadsShape, LoadOptions, MemoryPlan
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.backends.native_limits import torch_note
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import shapes_dir

_DEFAULT_CONTEXT = 4096
_IMAGINED_MEMORY_BYTES = 32 * GIB  # host memory beside a GPU that isn't installed

Facts = tuple[ModelConfig, HeadsShape]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan`."""
    parser.set_defaults(run=run)
    names = ", ".join(shape_names())
    parser.add_argument(
        "model",
        nargs="?",
        default="",
        help=f"folder, GGUF file, a name that list shows, a repository, or one of {names}",
    )
    parser.add_argument("--model", dest="named_model", default="", help="the same as MODEL")
    parser.add_argument("--shape", default="", help="one of these shapes")
    parser.add_argument("--num-heads", type=int, help="Medusa heads to plan for")
    parser.add_argument("--heads", default="", help="folder, GGUF file or repository of heads")
    parser.add_argument(
        "--assistant", default="", help="a smaller model that drafts, in the same forms"
    )
    add_format_arguments(parser)
    parser.add_argument(
        "--context", type=int, default=0, help="context size in tokens (default: 4096)"
    )
    parser.add_argument("--device", default="", help="cpu, cuda or cuda:N (default: best there is)")
    parser.add_argument(
        "--vram-gib",
        type=float,
        help="plan for a card with this much memory, which needn't be here",
    )
    parser.add_argument(
        "--capability", default="8.6", help="compute capability of that card (default: 8.6)"
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="print one JSON object, or write it to this file",
    )
    add_tier_arguments(parser)
    add_throughput_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the plan; returns 0 whether the model fits or not."""
    args.model = args.model or args.named_model or args.shape
    if not args.model:
        raise RequestError("No model is named.", f"Name one of {', '.join(shape_names())}.")
    config, heads = _facts(args)
    if args.throughput:
        _print_json(args, run_throughput(args, args.model, config))
        return 0
    draft_model = _model_facts(args.assistant)[0] if args.assistant else None
    options = placement_options(args)
    device = _device(args, options)
    budget = device.budget
    context = options.context_tokens or min(_DEFAULT_CONTEXT, config.context_tokens)
    if options.context_tokens > config.context_tokens:
        raise RequestError(
            f"{args.model} reads at most {config.context_tokens:,} tokens.",
            "Ask for a shorter context.",
        )
    formats = options.formats
    best = recommend(config, heads, budget, draft_model)
    if best and not formats.linears:
        context = options.context_tokens or best.plan.context_tokens
        named = {part: how for part, how in formats._asdict().items() if how}
        formats = best.formats._replace(**named)
    elif not formats.linears and _may_use_cpu(config, options, budget):
        formats = plan_least(config, heads, budget).formats
    choice = plan_choice(
        config,
        heads,
        formats,
        budget,
        context,
        draft_model=draft_model,
        may_shrink_cache=may_shrink_cache(config, options),
    )
    in_tiers: OffloadPlan | CpuPlan | None = None
    if config.has_native_family:
        in_tiers = plan_cpu(config, heads, choice, device, options, draft_model)
    may_divide = config.has_native_family and choice.plan.fit is Fit.NO and in_tiers is None
    if may_divide and (options.memory_gib or options.has_disk):
        in_tiers = plan_offload(
            config, heads, choice, device, draft_model, may_shorten=not options.context_tokens
        )
    choice = choice if in_tiers is None else in_tiers.choice
    if args.json:
        fields = (
            as_json(choice)
            | {"runner_note": runner_note(config)}
            | {"not_compiled": _not_compiled(config, choice, budget)}
            | ({} if in_tiers is None else in_tiers.as_json())
        )
        _print_json(args, fields)
    else:
        every = choices(config, heads, budget, context, draft_model)
        print(_table(args.model, config, choice, every, best, budget))
        print("" if in_tiers is None else in_tiers.text())
    return 0


def _may_use_cpu(config: ModelConfig, options: LoadOptions, budget: Budget) -> bool:
    """Whether the processor may compute parts of a model that can be quantized for a card."""
    if not config.has_native_family or config.quantization or budget.hardware.device == "cpu":
        return False
    return any(CpuLayers.of(config, options))


def _print_json(args: argparse.Namespace, fields: dict[str, object]) -> None:
    """Print or write the JSON, if requested."""
    if args.json == "-":
        print(json.dumps(fields))
    elif args.json:
        write_file(Path(args.json), json.dumps(fields, indent=1) + "\n")


def as_json(choice: Recommendation) -> dict[str, object]:
    """Return a plan under the documented names of `--json`."""
    plan = choice.plan
    return {
        "weights_bytes": plan.weights_bytes,
        "heads_bytes": plan.heads_bytes,
        "draft_model_bytes": plan.draft_model_bytes,
        "kv_bytes": plan.kv_bytes,
        "state_bytes": plan.state_bytes,
        "scratch_bytes": plan.scratch_bytes,
        "runtime_bytes": plan.runtime_bytes,
        "other_bytes": plan.other_bytes,
        "ram_bytes": plan.ram_bytes,
        "free_bytes": plan.free_bytes,
        "total_bytes": plan.total_bytes,
        "context_tokens": plan.context_tokens,
        "max_context": plan.max_context,
        "verdict": plan.fit.value,
        "is_measured": plan.is_live,
        "lack": choice.lack,
        "formats": choice.formats._asdict(),
        "cache_type": plan.cache_type,
        "cache_note": plan.cache_note,
    }


def runner_note(config: ModelConfig) -> str:
    """Describe how transformers runs a model; empty for native families."""
    if config.has_native_family:
        return ""
    from medusa_core.models.through_transformers.sizes import sizes_of

    why = sizes_of(config).plain_why
    how = f"one token a step, as {why}" if why else "with token trees if its attention keeps masks"
    return f"runs through transformers, {how}"


def _not_compiled(config: ModelConfig, choice: Recommendation, budget: Budget) -> str:
    """Return why a processor computes a model without the compiled step; empty if not so."""
    if not config.has_native_family:
        return ""
    formats = resolve_formats(choice.formats, "", budget.hardware, config.stored)
    return torch_note(config, formats)


def shape_names() -> tuple[str, ...]:
    """Return the names of the models that can be planned without files."""
    return tuple(sorted(path.stem for path in shapes_dir().glob("*.json")))


def shape_config(name: str) -> ModelConfig:
    """Return the config of a well-known model."""
    return parse_config(read_json(shapes_dir() / f"{name}.json"), {})


def _facts(args: argparse.Namespace) -> Facts:
    """Return the sizes of model and heads of the arguments."""
    config, heads = _model_facts(args.model)
    if args.heads:
        return config, _heads_facts(args.heads)
    if args.num_heads is not None:
        if not 0 <= args.num_heads <= 32:
            raise RequestError(f"{args.num_heads} heads can't be planned.", "Choose 0 to 32.")
        return config, HeadsShape(args.num_heads, 1, config.vocab_size)
    return config, heads


def _model_facts(model: str) -> Facts:
    """Read the sizes of a shape, an installed model, or a repository of the Hub."""
    if model in shape_names():
        return shape_config(model), HeadsShape()
    path = find_named(model)
    if path is not None:
        from medusa_core.heads.kind import chosen_shape

        refuse_heads(path)
        files = ModelFiles.open(path)
        return files.config, chosen_shape(files, None, takes_own=True)
    if "/" not in model:
        raise RequestError(
            f"There is no model {model!r}.",
            f"Give a folder, a name that list shows, a repository, or one of "
            f"{', '.join(shape_names())}.",
        )
    from medusa_core.hub.remote import look_at_model

    found = look_at_model(settings_from(os.environ), model)
    return found.config, found.heads


def _heads_facts(heads: str) -> HeadsShape:
    """Return the sizes of installed heads, or of heads on the Hub."""
    settings = settings_from(os.environ)
    path = find_named(heads)
    if path is not None:
        from medusa_core.heads.kind import read_shape

        return read_shape(path)
    from medusa_core.hub.remote import look_at_heads

    return look_at_heads(settings, heads).shape


def _device(args: argparse.Namespace, options: LoadOptions) -> ForecastDevice:
    """Return the device of the arguments: this computer's, or a hypothetical GPU."""
    if args.vram_gib is None:
        from medusa_core.loading.measure.machine import MEASURED
        from medusa_core.loading.memory.probe import live_budget

        budget = limit_budget(live_budget(options.device), options.memory_gib)
        return device_with(budget, options, MEASURED if args.measure else ())
    if not 0 < args.vram_gib <= 1024:
        raise RequestError(f"A card with {args.vram_gib} GiB can't be planned for.")
    card = cuda_budget(args.vram_gib, _capability(args.capability))
    room = OffloadRoom(_IMAGINED_MEMORY_BYTES, options.tier_disk)
    return ForecastDevice(limit_budget(card, options.memory_gib), room, None)


def _capability(text: str) -> tuple[int, int]:
    """Parse a CUDA compute capability, such as 8.6."""
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise RequestError(f"{text!r} is no compute capability.", "Write it as 6.1 or 8.6.")
    return int(major), int(minor)


def _table(
    model: str,
    config: ModelConfig,
    choice: Recommendation,
    all_choices: tuple[Recommendation, ...],
    best: Recommendation | None,
    budget: Budget,
) -> str:
    """Format the plan with alternatives."""
    plan = choice.plan
    packing = config.packing
    stored = config.quantization.upper() if packing is None else packing.label
    stored = config.file_type or stored
    lines = [
        f"{model} as {_name(choice, stored)} on {budget.name}, context {plan.context_tokens:,}",
        "",
    ]
    notes = (runner_note(config), _not_compiled(config, choice, budget), plan.cache_note)
    lines[1:1] = [f"  {note}" for note in notes if note]
    cache = f"KV cache, {plan.cache_type}" if plan.quantizes_cache else "KV cache"
    rows = {
        "weights": plan.weights_bytes,
        "heads": plan.heads_bytes - plan.draft_model_bytes,
        "draft model": plan.draft_model_bytes,
        cache: plan.kv_bytes - plan.state_bytes,
        **({"states": plan.state_bytes} if plan.state_bytes else {}),
        "scratch": plan.scratch_bytes,
        "runtime": plan.runtime_bytes,
        "other programs": plan.other_bytes,
        "free": plan.free_bytes,
    }
    lines += [f"  {name:<16}{size / GIB:>7.2f} GiB" for name, size in rows.items()]
    lines += ["", f"  {_verdict(plan)}", ""]
    lines += [f"  {'format':<10}{'weights':>12}{'free':>12}  verdict"]
    lines += [_line(other) for other in all_choices]
    advice = (
        "no way to load it whole fits" if best is None else f"recommended: {_name(best, stored)}"
    )
    if best is not None:
        advice += f", context {best.plan.context_tokens:,}"
    return "\n".join([*lines, "", f"  {advice}"])


def _name(choice: Recommendation, stored: str) -> str:
    """Format the weight formats of a choice."""
    formats = choice.formats
    name = formats.linears or stored or "dense"
    name += f", heads {formats.heads}" if formats.heads else ""
    name += f", lm_head {formats.lm_head}" if formats.lm_head else ""
    name += ", token embeddings in RAM" if formats.embedding_in_ram else ""
    return name + (f", per-layer embeddings: {formats.per_layer}" if formats.per_layer else "")


def _verdict(plan: MemoryPlan) -> str:
    """Format whether a plan fits."""
    if plan.free_bytes >= 0:
        return f"{plan.fit.value}: {plan.free_bytes / GIB:.2f} GiB are left"
    fits = f"fits if context ≤ {plan.max_context:,}" if plan.max_context else "fits at no context"
    return f"{plan.fit.value}: {-plan.free_bytes / GIB:.2f} GiB are missing; {fits}"


def _line(choice: Recommendation) -> str:
    """Format an alternative in a line."""
    plan = choice.plan
    verdict = choice.lack or plan.fit.value
    weights, free = plan.weights_bytes / GIB, plan.free_bytes / GIB
    return f"  {choice.formats.linears:<10}{weights:>8.2f} GiB{free:>8.2f} GiB  {verdict}"
