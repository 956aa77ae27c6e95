"""Forecast of a training run: peak memory, disk, and time.

Memory is computed from sizes; speeds are measured, for a minute at most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import closing

import psutil

from medusa_core.errors import TrainingError
from medusa_core.loading.memory.budget import RUNTIME_BYTES
from medusa_core.loading.target import Target
from medusa_core.models.token_table import DenseTable
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.jobs.heads_training import HeadsNeeds
from medusa_core.training.answers import OwnAnswer, own_answers
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.expectation import expected_tau
from medusa_core.training.heads_config import HeadsConfig, learning_rate_of
from medusa_core.training.heads_run import MakeTrainee, seconds_per_step
from medusa_core.training.joint import texts_per_step
from medusa_core.training.joint_plan import JointPlan, joint_step_s, plan_joint
from medusa_core.training.losses import CHUNK_ROWS
from medusa_core.training.matrices import UNITS
from medusa_core.training.order import ShardOrder
from medusa_core.training.prompts import TrainingPrompt
from medusa_core.training.run_folder import answers_taken
from medusa_core.training.stage import (
    answering_share,
    heads_share,
    joint_share,
    training_share,
)
from medusa_core.training.states import SHARD_BYTES, Shard
from medusa_core.training.trainee import Trainee, collected
from medusa_core.training.training_data import num_answers, question

log = logging.getLogger(__name__)

_ANSWER_S = 60.0
_TAKEN = 32  # answers of another run that speeds are measured on
_OPTIMIZED = 4  # weights, gradients and Adam's two moments in float32
_ANSWER_BYTES = 7  # bytes of a token as text


def plan_run(
    config: HeadsConfig,
    target: Target,
    make: MakeTrainee,
    prompts: Sequence[TrainingPrompt],
    base_bytes: int,
) -> HeadsNeeds:
    """Measure speeds and compute sizes.

    Args:
        config: Configuration of the run.
        target: The target, loaded as for the run.
        make: Builds the heads.
        base_bytes: Memory of this program before the target was loaded.

    Raises:
        TrainingError: No prompt fits the model's context.
    """
    taken = answers_taken(config) if config.answers_of else []
    answers, tokens_per_s = (
        (taken[:_TAKEN], 0.0) if taken else _some_answers(config, target, prompts)
    )
    trainee = make(target, answers)
    documents = [answer.document for answer in answers]
    started = time.perf_counter()
    shard = collected(trainee, target, documents)
    collect_s = (time.perf_counter() - started) / len(answers)
    order = ShardOrder([trainee.num_samples(shard)], trainee.batch, config.seed)
    step_s = seconds_per_step(
        trainee.parameters(learning_rate_of(config, target.config.hidden_size)),
        lambda step, _: trainee.loss(shard, order.at(step)[1]),
    )
    num_tokens = sum(len(answer.answer_ids) for answer in answers) / len(answers)
    number = len(taken) or num_answers(config, len(prompts))
    if config.minutes and not (config.answers or taken):  # writing takes a share of the time
        share = answering_share(config)
        number = max(2, int(share * config.minutes * 60 * tokens_per_s / num_tokens))
    rows = sum(_num_rows(document, trainee) for document in documents) / len(answers) * number
    in_states = min(config.states_gib * (1 << 30), rows * trainee.row_bytes)
    places = trainee.num_samples(shard) / len(answers) * number
    num_steps = heads_share(config, max(1, int(places / trainee.batch))).steps
    if config.minutes:
        learns_s = training_share(config) * config.minutes * 60
        learns_s -= number * collect_s if taken else 0.0  # else states are recorded during writing
        num_steps = max(1, int(learns_s / step_s))
    tokens_of_a_step = num_tokens * trainee.batch * len(answers) / trainee.num_samples(shard)
    seconds = number * collect_s + num_steps * step_s
    seconds += number * num_tokens / tokens_per_s if tokens_per_s else 0.0
    learned = sum(parameter.nbytes for parameter in trainee.module.parameters())
    longest = max(len(document.ids) for document in documents)
    on_disk = in_states + number * num_tokens * _ANSWER_BYTES + (_OPTIMIZED + 1) * learned
    if config.joint:
        texts = texts_per_step(config)
        rounds = joint_share(config, max(1, number // texts)).steps
        seconds += rounds * joint_step_s(collect_s, texts, step_s)
        on_disk += joint_plan_of(config, target, longest).disk_bytes + _OPTIMIZED * learned
    return HeadsNeeds(
        peak_bytes=peak_bytes(config, target, trainee, shard, longest, base_bytes),
        disk_bytes=int(on_disk),
        tokens_per_s=round(tokens_per_s, 2),
        hours=config.minutes / 60 if config.minutes else seconds / 3600,
        num_steps=num_steps,
        tau=round(expected_tau(num_steps * tokens_of_a_step), 2),
    )


def peak_bytes(
    config: HeadsConfig,
    target: Target,
    trainee: Trainee,
    shard: Shard,
    longest: int,
    base_bytes: int,
) -> int:
    """Return the peak memory, given that texts have at most `longest` tokens.

    Answers, states and heads are held beside the target; once all states are on the disk, the
    target is
    released before training needs its memory.
    """
    plan, module = target.plan, trainee.module
    held = [*module.parameters(), *module.buffers()]
    table = target.shared_weights.embedding
    shared = table.matrix().data_ptr() if isinstance(table, DenseTable) else 0
    in_module = sum(one.nbytes for one in held if one.data_ptr() != shared)
    is_cpu = target.precision.device.type == "cpu"
    base = base_bytes if is_cpu else RUNTIME_BYTES
    caches = plan.kv_bytes
    if is_cpu:  # pages are allocated when rows are written
        row_bytes = plan.kv_bytes / target.caches.num_rows
        caches = int(min(caches, target.num_sessions * longest * row_bytes))
    beside = base + plan.weights_bytes + plan.scratch_bytes + caches + in_module
    beside += UNITS * (2 * target.config.vocab_size + target.config.hidden_size) * 4
    beside += 2 * min(SHARD_BYTES, sum(tensor.nbytes for tensor in shard.values()))
    learned = sum(parameter.nbytes for parameter in module.parameters())
    scores = 3 * CHUNK_ROWS * target.config.vocab_size * 4
    rows = trainee.batch * max(1, _rows_of_a_place(shard, trainee))
    passed = rows * target.config.hidden_size * 4 * 8 * config.num_heads
    training = base + in_module + (_OPTIMIZED - 1) * learned + scores + int(passed) + SHARD_BYTES
    if config.joint:  # its weights are loaded again, and heads continue training
        joint = joint_plan_of(config, target, longest)
        training += plan.weights_bytes + joint.peak_bytes
    return max(beside, training)


def joint_plan_of(config: HeadsConfig, target: Target, longest: int) -> JointPlan:
    """Plan the memory for training a LoRA of the target together with the heads."""
    texts = texts_per_step(config)
    return plan_joint(target.config, target.formats, config.rank, texts, longest)


def _rows_of_a_place(shard: Shard, trainee: Trainee) -> float:
    """Return how many rows of tensors a sample takes."""
    rows = max(len(tensor) for tensor in shard.values())
    return rows / max(1, trainee.num_samples(shard))


def _num_rows(document: EncodedDocument, trainee: Trainee) -> int:
    """Return the rows of a document that are kept."""
    return len(document.ids) if not trainee.has_trees else int((document.kinds == 2).sum())


def _some_answers(
    config: HeadsConfig, target: Target, prompts: Sequence[TrainingPrompt]
) -> tuple[list[OwnAnswer], float]:
    """Let the target write for a limited time; return the answers and their seconds."""
    questions = [question(config, prompts, number) for number in range(min(256, len(prompts)))]
    found, started = [], time.monotonic()
    answers = own_answers(target, questions, config.max_new_tokens, RowPolicy(target))
    with closing(answers):
        for answer in answers:
            found.append(answer)
            if time.monotonic() - started > _ANSWER_S:
                break
    if not found:
        raise TrainingError("No prompt fits the model's context.", "Name shorter ones by --data.")
    seconds = time.monotonic() - started
    return found, sum(len(answer.answer_ids) for answer in found) / seconds


def memory_of_this_program() -> int:
    """Return the bytes that this process uses now."""
    held: int = psutil.Process().memory_info().rss
    return held


def plan_text(plan: HeadsNeeds) -> str:
    """Return the plan as text."""
    answers = [f"{'answers':14}{plan.tokens_per_s:8.1f} tokens/s"] if plan.tokens_per_s else []
    return "\n".join(
        [
            f"{'memory':14}{plan.peak_bytes / 1e9:8.2f} GB at the worst moment",
            f"{'disk':14}{plan.disk_bytes / 1e9:8.2f} GB",
            *answers,
            f"{'time':14}{plan.hours:8.2f} hours",
            f"{'training':14}{plan.num_steps:8,} steps",
            f"{'to expect':14}{plan.tau:8.2f} tokens per step, about, with trees of 8 rows",
        ]
    )
