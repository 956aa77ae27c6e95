"""Arguments for the model and for loading it, and functions that load it."""

from __future__ import annotations

import argparse
import gc
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.chats.conversation import new_id
from medusa_core.cli.program import check_first
from medusa_core.errors import MedusaError, RequestError
from medusa_core.hub.library.find import installed
from medusa_core.hub.library.shipped_heads import heads_made_for
from medusa_core.hub.settings import settings_from
from medusa_core.loading.choice import remote_choice
from medusa_core.loading.memory.placement import EXPERT_PLACES
from medusa_core.messages import (
    EndpointModel,
    LoadModel,
    LoadOptions,
    LoadRemote,
    ModelLoaded,
    WeightFormats,
)
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.choice import CACHE_TYPES, DTYPES, TABLE_PLACES
from medusa_core.remote.address import endpoint_url, host_of_url
from medusa_core.system.files.gguf import hold_headers, is_gguf
from medusa_core.system.resources import calibrations_dir, quantized_models_dir, start_model
from medusa_core.system.user_folders import places

if TYPE_CHECKING:
    from medusa_core.loading.target import Target
    from medusa_core.speculation.tuning.measurements import ModelMeasurements
    from medusa_core.speculation.tuning.row_policy import RowPolicy

NO_HEADS = "none"  # value of --heads
KEY_VARIABLE = "MEDUSA_ENDPOINT_KEY"  # not the key of `serve`


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the model and for loading it; shared with the benchmark."""
    model = parser.add_argument_group("model")
    model.add_argument(
        *("-m", "--model"),
        default="",
        help="folder, GGUF file, or a name that list shows (default: the model of the first "
        "start, or the demo model where that wasn't fetched)",
    )
    add_loading_arguments(parser, model)


def add_loading_arguments(parser: argparse.ArgumentParser, model: argparse._ArgumentGroup) -> None:
    """Add the arguments of `add_model_arguments` without `--model`."""
    model.add_argument(
        "--heads",
        default="",
        help="folder, GGUF file or repository of heads or of another drafter, or none (default: "
        "those in the model's files, or shipped ones that were made for it)",
    )
    model.add_argument(
        "--assistant", default="", help="folder or repository of a smaller model that drafts"
    )
    add_adapter_argument(model)
    model.add_argument(
        "--phrases", type=Path, help="folder of a phrase table (default: the model's own)"
    )
    model.add_argument(
        "--suffix-folder",
        type=Path,
        metavar="DIR",
        help="folder of text files that the suffix tree drafts from, too; they are read in the "
        "background",
    )
    check_first(parser, _check_suffix_folder)
    model.add_argument(
        "--dtype",
        choices=DTYPES,
        default="",
        metavar="DTYPE",
        help=f"{', '.join(DTYPES)} (default: best on the device)",
    )
    add_format_arguments(parser)
    memory = parser.add_argument_group("memory and device")
    memory.add_argument(
        "--context", type=int, default=0, help="context size in tokens (default: what fits)"
    )
    memory.add_argument(
        "--anyway", action="store_true", help="load although the plan says that it doesn't fit"
    )
    memory.add_argument("--device", default="", help="cpu, cuda or cuda:N (default: best there is)")
    add_tier_arguments(memory)
    memory.add_argument(
        "--cluster",
        default="",
        metavar="HOST:PORT",
        help="address of a cluster of machines that run serve-layers",
    )
    memory.add_argument(
        "--threads", type=int, default=0, help="CPU threads (default: the fastest count, measured)"
    )


def _check_suffix_folder(args: argparse.Namespace) -> None:
    """Check the folder of texts before a model is loaded.

    Raises:
        RequestError: It is no folder.
    """
    folder = args.suffix_folder
    if folder is not None and not folder.is_dir():
        raise RequestError(
            f"There is no folder {folder}.", "Name a folder of text files with --suffix-folder."
        )


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for weight formats; shared with `plan`."""
    names = weight_formats().names
    group = parser.add_argument_group("weight formats", f"FORMAT is {', '.join(names)}.")
    for option, part in (
        ("--quant", "format of the model (default: as it is stored, or what fits)"),
        ("--heads-quant", "format of the heads or the drafter"),
        ("--lm-head-quant", "format of the LM head"),
        ("--embedding-quant", "format of the token embeddings"),
    ):
        group.add_argument(option, choices=names, default="", metavar="FORMAT", help=part)
    group.add_argument(
        "--embedding-in-ram", action="store_true", help="keep the token embeddings in RAM"
    )
    group.add_argument(
        "--per-layer-embeddings",
        choices=TABLE_PLACES,
        default="",
        help="where Gemma 4's per-layer embeddings are stored (default: disk, in the model's file)",
    )
    group.add_argument(
        "--cache-type",
        choices=CACHE_TYPES,
        default="auto",
        metavar="TYPE",
        help=f"type of the KV cache: {', '.join(CACHE_TYPES)} (default: auto, unquantized, or "
        "q8_0 if the requested context doesn't fit otherwise)",
    )
    group.add_argument(
        "--sparse-attention",
        type=int,
        default=0,
        metavar="K",
        help="attend to the top-K KV rows only, by attention weight; not exact",
    )


def add_tier_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the arguments for offloading; shared with `plan`."""
    parser.add_argument(
        "--memory-gib",
        type=float,
        default=0.0,
        help="device memory budget in GiB; layers beyond it are offloaded and streamed (default: "
        "all that is free)",
    )
    parser.add_argument(
        "--tier-disk", type=Path, help="folder on a disk for layers that don't fit in memory"
    )
    parser.add_argument(
        "--experts",
        choices=EXPERT_PLACES,
        default="auto",
        help="where the experts of a model on a card are stored and computed: ram is the CPU, card "
        "the card (default: auto, on the CPU what doesn't fit)",
    )
    parser.add_argument(
        "--cpu-layers",
        type=_cpu_layers,
        metavar="N|auto",
        help="compute the MLP, or experts, of the first N layers on the CPU; attention stays on "
        "the card (default: auto, of as many as don't fit)",
    )


def _cpu_layers(text: str) -> int | None:
    """Parse a number of layers.

    Raises:
        ValueError: It isn't a number.
    """
    return None if text == "auto" else int(text)


def add_endpoint_argument(parser: argparse._ActionsContainer) -> None:
    """Add the argument for an endpoint."""
    parser.add_argument(
        "--endpoint",
        default="",
        metavar="URL",
        help="an OpenAI-compatible address whose models answer; --model is then a name there, and "
        f"the key is taken from ${KEY_VARIABLE} or the system's keyring",
    )


def model_dirs(args: argparse.Namespace) -> tuple[Path, Path | None]:
    """Return the paths of model and heads; shipped heads are used with their model."""
    model = installed(args.model) if args.model else start_model()
    if args.heads == NO_HEADS:
        return model, None
    if args.heads:
        return model, installed(args.heads)
    if is_gguf(model):
        with suppress(MedusaError):  # the load itself reports it
            hold_headers(model)
    return model, heads_made_for(model)


def add_adapter_argument(parser: argparse._ActionsContainer) -> None:
    """Add the argument for a LoRA; shared with training."""
    parser.add_argument(
        "--adapter", default="", help="folder or repository of a LoRA that changes the model"
    )


def adapter_dir(args: argparse.Namespace) -> Path | None:
    """Return the path of the LoRA; None for none."""
    return installed(args.adapter) if args.adapter else None


def open_target(args: argparse.Namespace) -> Target:
    """Load the model of the arguments, and set its number of threads.

    Raises:
        MedusaError: The model can't be loaded.
    """
    from medusa_core.loading.load import load_target

    model_dir, heads_dir = model_dirs(args)
    return ready(args, load_target(model_dir, heads_dir, options_of(args)))


def options_of(args: argparse.Namespace) -> LoadOptions:
    """Return the load options of the arguments of `add_model_arguments`."""
    return replace(
        placement_options(args),
        dtype=args.dtype,
        ignores_plan=args.anyway,
        assistant_dir=installed(args.assistant) if args.assistant else None,
        adapter_dir=adapter_dir(args),
        phrases_dir=args.phrases,
        suffix_dir=args.suffix_folder,
        quantized_dir=quantized_models_dir(),
        takes_own_heads=args.heads != NO_HEADS,
        cluster=args.cluster,
    )


def placement_options(args: argparse.Namespace) -> LoadOptions:
    """Return the load options for formats, context and memory, which `plan` has, too."""
    return LoadOptions(
        device=args.device,
        formats=formats_of(args),
        context_tokens=args.context,
        memory_gib=args.memory_gib,
        tier_disk=args.tier_disk,
        experts=args.experts,
        cpu_layers=args.cpu_layers,
    )


def ready(args: argparse.Namespace, target: Target) -> Target:
    """Set the number of threads of the arguments, or the measured best."""
    from medusa_core.engine.admission import check_threads
    from medusa_core.speculation.tuning.threads import choose_threads
    from medusa_core.system import compute_threads

    check_threads(args.threads)
    if target.folder_texts is not None:
        target.folder_texts.wait()  # measurements would depend on how much has been read
    if args.threads:
        target.runner.use_threads(args.threads, args.threads)
    else:
        choose_threads(target, compute_threads.count())
    gc.freeze()  # the model's objects stay, so collections needn't traverse them
    return target


def open_row_policy(args: argparse.Namespace, target: Target) -> RowPolicy:
    """Return the row policy of a target, with step costs of this computer."""
    from medusa_core.speculation.tuning.row_policy import RowPolicy

    return RowPolicy(target, measurements_of(args, target).costs())


def measurements_of(args: argparse.Namespace, target: Target) -> ModelMeasurements:
    """Return the saved measurements of a target."""
    from medusa_core.speculation.tuning.measurements import ModelMeasurements

    options = options_of(args)
    named = (*model_dirs(args), options.assistant_dir, options.adapter_dir)
    return ModelMeasurements(
        calibrations_dir(), target, [folder for folder in named if folder is not None]
    )


def formats_of(args: argparse.Namespace) -> WeightFormats:
    """Return the weight formats of the arguments."""
    return WeightFormats(
        linears=args.quant,
        lm_head=args.lm_head_quant,
        embedding=args.embedding_quant,
        heads=args.heads_quant,
        embedding_in_ram=args.embedding_in_ram,
        per_layer=args.per_layer_embeddings,
        cache="" if args.cache_type == "auto" else args.cache_type,
        attended=args.sparse_attention,
    )


def load_command(args: argparse.Namespace, session_id: str) -> LoadModel | LoadRemote:
    """Return the command that loads the model of the arguments.

    Args:
        args: Arguments of `generate`.
        session_id: Session of the command's events.
    """
    if args.endpoint:
        return _load_remote(args, session_id)
    return local_load_command(args, session_id)


def local_load_command(args: argparse.Namespace, session_id: str) -> LoadModel:
    """Return the command that loads a local model."""
    options = replace(
        options_of(args),
        datastore_dir=None if args.no_learned else places().learned,
        is_raw=args.raw,
    )
    return LoadModel(
        session_id,
        new_id(),
        *model_dirs(args),
        options,
        calibrations_dir=calibrations_dir(),
        num_threads=args.threads,
    )


def model_key_of(args: argparse.Namespace, loaded: ModelLoaded) -> str:
    """Return the key of the loaded model in the history."""
    if loaded.is_remote:
        model = EndpointModel(endpoint_url(args.endpoint), loaded.name, loaded.place)
        return remote_choice(model).key
    return str(model_dirs(args)[0])


def _load_remote(args: argparse.Namespace, session_id: str) -> LoadRemote:
    """Return the command that uses a remote model."""
    url = endpoint_url(args.endpoint)
    return LoadRemote(
        session_id,
        new_id(),
        EndpointModel(url, args.model, host_of_url(url)),
        key=os.environ.get(KEY_VARIABLE, ""),
        keys_dir=places().config,
        is_offline=settings_from(os.environ).is_offline,
    )
