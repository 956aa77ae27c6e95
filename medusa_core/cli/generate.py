"""`python -m medusa_core generate`: one answer in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from medusa_core.chats.conversation import new_id
from medusa_core.chats.trace_file import (
    Recording,
    write_trace,
)
from medusa_core.cli.arguments import (
    add_format_arguments,
    add_rule_arguments,
    add_tier_arguments,
    formats_of,
    settings_of,
)
from medusa_core.client import Client
from medusa_core.hub.library.find import installed
from medusa_core.hub.library.shipped_heads import heads_made_for
from medusa_core.messages import (
    ChatMessage,
    GenerationDone,
    LayersMoved,
    LoadModel,
    Role,
    StepDone,
    StepTrace,
)
from medusa_core.models.quant.choice import DTYPES
from medusa_core.system.resources import (
    calibrations_dir,
    kept_models_dir,
    start_model,
)
from medusa_core.system.user_folders import places

if TYPE_CHECKING:
    from medusa_core.loading.target import (
        LoadOptions,
        Target,
    )
    from medusa_core.speculation.tuning.known import Known
    from medusa_core.speculation.tuning.tuner import Tuner


# Underlined, in one colour per head: told apart without colours as well as with them.
_HEAD_STYLES = ("\x1b[4;36m", "\x1b[4;33m", "\x1b[4;35m", "\x1b[4;32m", "\x1b[4;34m")
_RESET = "\x1b[0m"


NO_HEADS = "none"  # as a value of --heads


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that choose a model; shared with the benchmark."""
    parser.add_argument(
        *("-m", "--model"),
        default="",
        help="folder, GGUF file, or repository in the cache (default: the model of the first "
        "start, or the demo model where that wasn't fetched)",
    )
    parser.add_argument(
        "--heads",
        default="",
        help="folder or repository of Medusa heads, or none (default: shipped ones that were made "
        "for the model)",
    )
    parser.add_argument(
        "--assistant", default="", help="folder or repository of a smaller model that drafts"
    )
    add_adapter_argument(parser)
    parser.add_argument(
        "--phrases", type=Path, help="folder of a phrase table (default: the model's own)"
    )
    parser.add_argument("--dtype", choices=DTYPES, default="", help="default: best on the device")
    add_format_arguments(parser)
    parser.add_argument("--context", type=int, default=0, help="tokens (default: what fits)")
    parser.add_argument(
        "--anyway", action="store_true", help="load although the plan says that it doesn't fit"
    )
    parser.add_argument("--device", default="", help="cpu, cuda or cuda:N (default: best there is)")
    add_tier_arguments(parser)
    parser.add_argument(
        "--cluster",
        default="",
        metavar="HOST:PORT",
        help="machines that have the layers, where serve-layers runs",
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="CPU threads (default: the fastest count, measured)"
    )


DRAFTER_HELP = (
    "how tokens are guessed, such as composite (all methods), medusa, ngram (prompt lookup) or "
    "none (default: the first of these that the model can use)"
)


def add_generate_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `generate`."""
    parser.add_argument("-p", "--prompt", required=True, help="what to ask; - reads standard input")
    add_model_arguments(parser)
    parser.add_argument("--drafter", default="", help=DRAFTER_HELP)
    parser.add_argument(
        "--no-learned",
        action="store_true",
        help="draft without what the model said in earlier conversations",
    )
    add_rule_arguments(parser)
    parser.add_argument(
        "--raw",
        action="store_true",
        help="go on with the prompt as it stands, without the model's chat template",
    )
    parser.add_argument(
        "--max-new-tokens",
        type=int,
        default=0,
        help="longest answer; default: what the context leaves",
    )
    parser.add_argument("--stop", action="append", default=[], help="end before this string")
    parser.add_argument("--json", action="store_true", help="print one JSON object, don't stream")
    parser.add_argument("--trace", type=Path, help="write a trace of every step to this file")


def model_dirs(args: argparse.Namespace) -> tuple[Path, Path | None]:
    """The model and heads that the arguments choose; shipped heads pair with their model."""
    model = installed(args.model) if args.model else start_model()
    if args.heads == NO_HEADS:
        return model, None
    return model, installed(args.heads) if args.heads else heads_made_for(model)


def assistant_dir(args: argparse.Namespace) -> Path | None:
    """The smaller model that the arguments choose."""
    return installed(args.assistant) if args.assistant else None


def add_adapter_argument(parser: argparse.ArgumentParser) -> None:
    """The argument that chooses a LoRA; shared with training."""
    parser.add_argument(
        "--adapter", default="", help="folder or repository of a LoRA that changes the model"
    )


def adapter_dir(args: argparse.Namespace) -> Path | None:
    """The LoRA that the arguments choose."""
    return installed(args.adapter) if args.adapter else None


def open_target(args: argparse.Namespace) -> Target:
    """Load what the arguments choose, with the threads that they ask for or that serve best.

    Raises:
        MedusaError: It can't be loaded.
    """
    from medusa_core.loading.target import load_target

    model_dir, heads_dir = model_dirs(args)
    return ready(args, load_target(model_dir, heads_dir, options_of(args)))


def options_of(args: argparse.Namespace) -> LoadOptions:
    """How the arguments want a target loaded."""
    from medusa_core.loading.target import LoadOptions
    from medusa_core.models.quantized_cache.kept import KeptModels
    from medusa_core.runtime.cluster.joining import join_cluster

    return LoadOptions(
        dtype=args.dtype,
        device=args.device,
        formats=formats_of(args),
        context_tokens=args.context,
        ignores_plan=args.anyway,
        memory_gib=args.memory_gib,
        tier_disk=args.tier_disk,
        assistant_dir=assistant_dir(args),
        adapter_dir=adapter_dir(args),
        phrases_dir=args.phrases,
        takes_own_heads=args.heads != NO_HEADS,
        kept=KeptModels(kept_models_dir()),
        cluster=join_cluster(args.cluster),
    )


def ready(args: argparse.Namespace, target: Target) -> Target:
    """The target, with the threads that the arguments ask for or that serve best."""
    import torch

    from medusa_core.engine.admission import check_threads
    from medusa_core.speculation.tuning.threads import settle_threads

    check_threads(args.threads)
    if args.threads:
        target.runner.use_threads(args.threads, args.threads)
    else:
        settle_threads(target, torch.get_num_threads())
    gc.freeze()  # what was loaded stays: nothing in it needs to be looked through again
    return target


def open_tuner(args: argparse.Namespace, target: Target) -> Tuner:
    """What chooses trees for a target, with step costs of this machine."""
    from medusa_core.speculation.tuning.tuner import Tuner

    return Tuner(target, known_of(args, target).costs())


def known_of(args: argparse.Namespace, target: Target) -> Known:
    """What is known on this computer of a target that the arguments chose."""
    from medusa_core.speculation.tuning.known import Known

    named = (*model_dirs(args), assistant_dir(args), adapter_dir(args))
    return Known(calibrations_dir(), target, [folder for folder in named if folder is not None])


def run_generate(args: argparse.Namespace) -> int:
    """Answer the prompt and print it with a line of statistics."""
    return asyncio.run(_generate(args))


async def _generate(args: argparse.Namespace) -> int:
    prompt = sys.stdin.read() if args.prompt == "-" else args.prompt
    messages = (ChatMessage(Role.USER, prompt),)
    printer = None if args.json else _Printer(sys.stdout)
    traces: list[StepTrace] = []
    async with Client() as client:
        loaded = await client.load(load_command(args))
        drafter = args.drafter or loaded.drafters[0].name
        settings = settings_of(args, drafter, args.tree_rows, tuple(args.stop))
        if drafter != "none" and not args.tree_rows:
            await client.calibrate()
        answer = client.answer(new_id(), messages, settings, records=args.trace is not None)
        async with aclosing(answer) as events:
            async for event in events:
                if isinstance(event, StepDone) and printer is not None:
                    printer.print_step(event)
                elif isinstance(event, LayersMoved):
                    print(event.move.text, file=sys.stderr)
                elif isinstance(event, StepTrace):
                    traces.append(event)
                elif isinstance(event, GenerationDone):
                    done = event
    if printer is None:
        print(json.dumps(as_json(done, loaded.name), ensure_ascii=False))
    else:
        printer.end()
        print(statistics_line(done))
    if args.trace is not None:
        write_trace(args.trace, Recording(loaded.name, tuple(traces), done))
    return 0


def load_command(args: argparse.Namespace) -> LoadModel:
    """The command that loads what the arguments choose."""
    model_dir, heads_dir = model_dirs(args)
    return LoadModel(
        "generate",
        new_id(),
        model_dir,
        heads_dir,
        dtype=args.dtype,
        device=args.device,
        formats=formats_of(args),
        context_tokens=args.context,
        ignores_plan=args.anyway,
        kept_dir=kept_models_dir(),
        calibrations_dir=calibrations_dir(),
        num_threads=args.threads,
        memory_gib=args.memory_gib,
        tier_disk=args.tier_disk,
        assistant_dir=assistant_dir(args),
        phrases_dir=args.phrases,
        learned_dir=None if args.no_learned else places().learned,
        adapter_dir=adapter_dir(args),
        cluster=args.cluster,
        is_raw=args.raw,
        takes_own_heads=args.heads != NO_HEADS,
    )


def as_json(done: GenerationDone, model: str) -> dict[str, object]:
    """The figures of an answer under the names that `--json` promises."""
    return {
        "text": done.text,
        "token_ids": list(done.token_ids),
        "num_tokens": len(done.token_ids),
        "num_steps": done.num_steps,
        "accept_lengths": list(done.accept_lengths),
        "mean_acceptance_length": done.mean_acceptance_length,
        "time_to_first_token_s": done.time_to_first_token_s,
        "prefill_s": done.prefill_s,
        "decode_s": done.decode_s,
        "tokens_per_s": done.tokens_per_s,
        "stop_reason": done.stop_reason.value,
        "drafter": done.settings.drafter,
        "rule": done.settings.rule,
        "model": model,
        "seed": done.settings.seed,
    }


def statistics_line(done: GenerationDone) -> str:
    """One line on how the answer came about."""
    return (
        f"{len(done.token_ids)} tokens · {done.tokens_per_s:.0f} tokens/s · "
        f"{done.mean_acceptance_length:.2f} tokens per step · "
        f"first after {done.time_to_first_token_s * 1000:.0f} ms · "
        f"{done.settings.drafter}, {done.settings.rule} · ended by {done.stop_reason.value}"
    )


class _Printer:
    """Streams an answer; in a terminal accepted tokens are coloured and underlined by head."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_colour = stream.isatty()
        self._held: list[tuple[bytes, int]] = []
        self._num_shown = 0

    def print_step(self, step: StepDone) -> None:
        """Print what has become visible."""
        heads = (source.head for source in step.sources)
        self._held.extend(zip(step.pieces, heads, strict=True))
        while self._held and self._num_shown < step.num_visible_bytes:
            piece, head = self._held.pop(0)
            room = step.num_visible_bytes - self._num_shown
            self._write(piece[:room], head)
            if len(piece) > room:
                self._held.insert(0, (piece[room:], head))
        self._stream.flush()

    def end(self) -> None:
        """Close the answer with an empty line."""
        self._stream.write("\n\n")

    def _write(self, piece: bytes, head: int) -> None:
        text = piece.decode("utf-8", "replace")
        self._num_shown += len(piece)
        if head and self._has_colour and text.strip():
            style = _HEAD_STYLES[(head - 1) % len(_HEAD_STYLES)]
            text = f"{style}{text}{_RESET}"
        self._stream.write(text)
