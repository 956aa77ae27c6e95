"""The commands `train heads` and `train streams`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from medusa_core.errors import PlanError
from medusa_core.hub.library.find import installed
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.lora.adapter_shape import (
    ADAPTER,
    is_adapter,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.speculation.tuning.threads import choose_threads
from medusa_core.system import compute_threads
from medusa_core.system.jobs.heads_training import HeadsNeeds
from medusa_core.system.prompts import read_prompts
from medusa_core.system.resources import (
    demo_model_dir,
    prompts_dir,
)
from medusa_core.system.sandbox.stopping import (
    stop_with_input,
    stopped_by_signals,
)
from medusa_core.training.adapted import check_family, load_adapted
from medusa_core.training.answers import OwnAnswer
from medusa_core.training.dspark_trainee import DSparkTrainee
from medusa_core.training.eagle_trainee import EagleTrainee
from medusa_core.training.heads_config import HeadsConfig, config_of, vocabulary_of
from medusa_core.training.heads_eval import HeadsEval, evaluate_heads
from medusa_core.training.heads_plan import memory_of_this_program, plan_run
from medusa_core.training.heads_run import HeadsRun, MakeJoint, RunParts, drafted_tokens
from medusa_core.training.hydra_trainee import HydraTrainee, open_trained
from medusa_core.training.joint import JointTrainee
from medusa_core.training.lora import LoraSpec
from medusa_core.training.medusa_trainee import MedusaTrainee
from medusa_core.training.own_prompts import own_prompts
from medusa_core.training.prompts import (
    TrainingPrompt,
    bundled_training_prompts,
    in_order,
    prompts_of_chats,
    read_training_prompts,
    write_training_prompts,
)
from medusa_core.training.run_folder import RunFolder
from medusa_core.training.streams_trainee import StreamsTrainee
from medusa_core.training.trainee import Trainee

_JUDGED_S, _JUDGED, _JUDGED_TOKENS = 180.0, 0.05, 64  # maximum share of the run's time
_TRAINEES: Mapping[str, Callable[[Target, HeadsConfig, Tensor | None], Trainee]] = {
    "dspark": DSparkTrainee,
    "eagle": EagleTrainee,
    "hydra": HydraTrainee,
}
_OWN_PROMPTS = 400  # prompts that a model writes itself, if the time isn't limited
_MOST_OWN_PROMPTS = 20_000  # in a limited time: a question that is asked again teaches little
SESSIONS = (16, 8, 4, 2, 1)  # parallel conversations, if memory allows


def train_heads(args: argparse.Namespace) -> bool:
    """Start or resume a run; return whether it finished.

    Raises:
        MedusaError: The run can't start or resume.
    """
    folder = RunFolder(args.out)
    with stopped_by_signals() as stopped:
        if not args.resume:
            folder.begin(config_of(args))
            if history := folder.config().own_chats:  # one snapshot for all slices of the run
                write_training_prompts(prompts_of_chats(Path(history)), folder.chats)
        config = folder.config()
        check_model(config)  # fail now rather than after hours
        if args.watched:
            stop_with_input(stopped)
        leaves: list[
            Callable[[], None]
        ] = []  # a machine serves one client: this run, then evaluate

        def load() -> Target:
            """Load the target; a divided one must be released before the evaluation."""
            target = load_for_training(config)
            if target.is_divided:  # all references must be released
                leaves.append(target.runner.leave)
            return target

        def evaluate_learned(heads_dir: Path) -> HeadsEval:
            """Release the training's target, then evaluate the heads."""
            while leaves:
                leaves.pop()()
            return evaluate_run(config, heads_dir)

        parts = RunParts(
            load=load,
            trainee=lambda target, answers: trainee_of(config, target, answers),
            prompts=lambda target, is_over: prompts_of(folder, target, is_over),
            evaluate=evaluate_learned,
            stop=stopped.is_set,
            joint=joint_of(config),
        )
        return HeadsRun(folder, parts).run()


def plan_heads(args: argparse.Namespace) -> HeadsNeeds:
    """Print what a run would need, without starting it.

    Raises:
        MedusaError: The model can't be loaded, or the configuration is invalid.
    """
    config = config_of(args)
    check_model(config)
    base_bytes = memory_of_this_program()
    target = load_for_training(config)

    def make(target: Target, answers: Sequence[OwnAnswer]) -> Trainee:
        """Return untrained heads."""
        return trainee_of(config, target, answers)

    prompts = configured_prompts(config)
    if config.own_chats:
        prompts = in_order([*prompts, *prompts_of_chats(Path(config.own_chats))], config.seed)
    return plan_run(config, target, make, prompts, base_bytes)


def check_model(config: HeadsConfig) -> None:
    """Check that a run's model can be trained, and that heads to start from fit it.

    Raises:
        MedusaError: It can't, or they don't.
    """
    sizes = ModelFiles.open(model_dir_of(config)).config
    if config.joint:
        check_family(sizes)
    if config.from_heads:
        open_trained(config, sizes)


def trainee_of(config: HeadsConfig, target: Target, answers: Sequence[OwnAnswer]) -> Trainee:
    """Return untrained heads of the configured kind."""
    if config.kind == "streams":
        return StreamsTrainee(target, config)
    if config.from_heads:
        return HydraTrainee.from_heads(target, config)
    columns = vocabulary_of(config)
    is_whole = not 0 < columns < target.config.vocab_size
    token_ids = None if is_whole else drafted_tokens(answers, columns)
    return _TRAINEES.get(config.kind, MedusaTrainee)(target, config, token_ids)


def joint_of(config: HeadsConfig) -> MakeJoint | None:
    """Return what trains heads together with the target, if configured."""
    if not config.joint:
        return None
    form = LoraSpec(config.rank, config.alpha)

    def make(trainee: Trainee) -> JointTrainee:
        """Load the target with an untrained LoRA."""
        target = load_adapted(model_dir_of(config), form, config.quant, config.device, config.seed)
        return JointTrainee(target, trainee, config)

    return make


def model_dir_of(config: HeadsConfig) -> Path:
    """Return the folder or file of the model."""
    return installed(config.model) if config.model else demo_model_dir()


def adapter_dir_of(config: HeadsConfig) -> Path | None:
    """Return the folder of the LoRA that the model is loaded with."""
    return installed(config.adapter) if config.adapter else None


def load_for_training(config: HeadsConfig) -> Target:
    """Load the target with as much memory for parallel conversations as there is.

    Raises:
        MedusaError: It can't be loaded.
    """
    options = options_of(config)
    whole = options.with_layers_in(None)
    tries = [replace(whole, sessions=sessions) for sessions in SESSIONS]
    if options.has_disk:  # fewer conversations are better than layers on disk
        tries += [replace(options, sessions=sessions) for sessions in SESSIONS]
    lacking: PlanError | None = None
    for one in tries:
        try:
            target = load_target(model_dir_of(config), options=one)
        except PlanError as error:
            lacking = error
            continue
        # Large batches use every thread well, even beside other programs.
        target.runner.use_threads(compute_threads.count(), compute_threads.count())
        return target
    assert lacking is not None  # `session_counts` isn't empty
    raise lacking


def options_of(config: HeadsConfig) -> LoadOptions:
    """Return the load options of the target."""
    sizes = ModelFiles.open(model_dir_of(config)).config
    # The processor's kernels have no gradients.
    whole = config.joint or config.kind == "streams"
    return LoadOptions(
        device=config.device,
        formats=WeightFormats(config.quant),
        context_tokens=min(config.context, sizes.context_tokens),
        adapter_dir=adapter_dir_of(config),
        memory_gib=config.memory_gib,
        cluster=config.cluster,
        experts="card" if whole else "auto",
        cpu_layers=0 if whole else None,
    ).with_layers_in(config.layers_dir)


def evaluate_run(config: HeadsConfig, heads_dir: Path) -> HeadsEval:
    """Measure heads on the bundled benchmark prompts, in a share of the run's time."""
    options, learned = options_of(config), heads_dir / ADAPTER
    if is_adapter(learned):
        options = replace(options, adapter_dir=learned)
    target = load_target(model_dir_of(config), heads_dir, options)
    choose_threads(target, compute_threads.count())
    prompts = read_prompts(prompts_dir() / "general.jsonl")
    most_s = _JUDGED_S if not config.minutes else min(_JUDGED_S, config.minutes * 60 * _JUDGED)
    return evaluate_heads(target, prompts, _JUDGED_TOKENS, lambda *_: None, most_s)


def prompts_of(
    folder: RunFolder, target: Target, is_over: Callable[[], bool]
) -> list[TrainingPrompt]:
    """Return the prompts in order; those that the target writes are stored in the folder.

    Args:
        folder: Folder of the run.
        is_over: Called after each prompt that the target writes; True stops it.
    """
    config = folder.config()
    prompts = configured_prompts(config, folder.chats)
    if config.data or config.answers_of or config.prompts == "bundled":
        return prompts
    if not folder.prompts.is_file():
        number = config.answers // 2 or (_MOST_OWN_PROMPTS if config.minutes else _OWN_PROMPTS)
        write_training_prompts(own_prompts(target, number, config.seed, is_over), folder.prompts)
    own = read_training_prompts([folder.prompts]) if folder.prompts.stat().st_size else []
    return in_order([*prompts, *own], config.seed)


def configured_prompts(config: HeadsConfig, chats: Path | None = None) -> list[TrainingPrompt]:
    """Return the prompts that need no target, in order.

    Args:
        config: Configuration of the run.
        chats: File of questions from the user's own chats, if any.
    """
    data = [Path(name) for name in config.data]
    prompts = (
        read_training_prompts(data)
        if data
        else bundled_training_prompts()
        if config.prompts != "own"
        else []
    )
    if chats is not None and chats.is_file() and chats.stat().st_size:
        prompts += read_training_prompts([chats])
    return in_order(prompts, config.seed)
