"""What a run that trains heads will need: memory at its worst moment, disk, and time.

Memory is counted from the sizes; speeds are measured, for a minute at most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

import psutil

from medusa_core.errors import TrainingError
from medusa_core.loading.target import Target
from medusa_core.memory.budget import RUNTIME_BYTES
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training.answers import OwnAnswer, own_answers
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.expectation import expected_tau
from medusa_core.training.feed import num_answers, question
from medusa_core.training.heads_config import HeadsConfig, learning_rate_of
from medusa_core.training.heads_run import MakeTrainee, seconds_of_a_step
from medusa_core.training.joint import texts_of_a_step
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

log = logging.getLogger(__name__)

_ANSWER_S = 60.0
_TAKEN = 32  # answers of another run, on which speeds are measured
_OPTIMIZED = 4  # weights, gradients and two averages, all of them float32
_ANSWER_BYTES = 7  # of a token, as text


@dataclass(frozen=True, slots=True)
class HeadsPlan:
    """What a run needs.

    Attributes:
        peak_bytes: Memory of the device at its worst moment, this program included.
        disk_bytes: What the run's folder grows to.
        tokens_per_s: At which the model writes answers here; 0 where it needn't.
        hours: All of it.
        num_steps: Steps in which heads learn.
        tau: Tokens per step to expect with trees of 8 rows, about.
    """

    peak_bytes: int
    disk_bytes: int
    tokens_per_s: float
    hours: float
    num_steps: int
    tau: float

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def plan_run(
    config: HeadsConfig,
    target: Target,
    make: MakeTrainee,
    prompts: Sequence[TrainingPrompt],
    base_bytes: int,
) -> HeadsPlan:
    """Measure speeds and count bytes.

    Args:
        config: Of the run.
        target: Loaded as for the run.
        make: Makes the heads.
        prompts: What the model is asked.
        base_bytes: Memory that this program had before the target was loaded.

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
    order = ShardOrder([trainee.num_places(shard)], trainee.batch, config.seed)
    step_s = seconds_of_a_step(
        trainee.parameters(learning_rate_of(config, target.config.hidden_size)),
        lambda step, _: trainee.loss(shard, order.at(step)[1]),
    )
    num_tokens = sum(len(answer.answer_ids) for answer in answers) / len(answers)
    number = len(taken) or num_answers(config, len(prompts))
    if config.minutes and not (config.answers or taken):  # it writes in a share of the time
        share = answering_share(config)
        number = max(2, int(share * config.minutes * 60 * tokens_per_s / num_tokens))
    rows = sum(_num_rows(document, trainee) for document in documents) / len(answers) * number
    in_states = min(config.states_gib * (1 << 30), rows * trainee.row_bytes)
    places = trainee.num_places(shard) / len(answers) * number
    num_steps = heads_share(config, max(1, int(places / trainee.batch))).steps
    if config.minutes:
        learns_s = training_share(config) * config.minutes * 60
        learns_s -= number * collect_s if taken else 0.0  # else states are kept as it writes
        num_steps = max(1, int(learns_s / step_s))
    tokens_of_a_step = num_tokens * trainee.batch * len(answers) / trainee.num_places(shard)
    seconds = number * collect_s + num_steps * step_s
    seconds += number * num_tokens / tokens_per_s if tokens_per_s else 0.0
    learned = sum(parameter.nbytes for parameter in trainee.module.parameters())
    longest = max(len(document.ids) for document in documents)
    on_disk = in_states + number * num_tokens * _ANSWER_BYTES + (_OPTIMIZED + 1) * learned
    if config.joint:
        texts = texts_of_a_step(config)
        rounds = joint_share(config, max(1, number // texts)).steps
        seconds += rounds * joint_step_s(collect_s, texts, step_s)
        on_disk += joint_plan_of(config, target, longest).disk_bytes + _OPTIMIZED * learned
    return HeadsPlan(
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
    """Memory at the worst moment, where a text has `longest` tokens at most.

    Answers, states and heads that are made are held beside the target; once all states lie on the
    disk the target goes, and what training needs comes instead.
    """
    plan, module = target.plan, trainee.module
    held = [*module.parameters(), *module.buffers()]
    shared_weights = target.shared_weights.embedding.data_ptr()
    in_module = sum(one.nbytes for one in held if one.data_ptr() != shared_weights)
    is_cpu = target.precision.device.type == "cpu"
    base = base_bytes if is_cpu else RUNTIME_BYTES
    caches = plan.kv_bytes
    if is_cpu:  # which takes the pages of rows that are written
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
    if config.joint:  # its weights are read again, and heads learn on
        joint = joint_plan_of(config, target, longest)
        training += plan.weights_bytes + joint.peak_bytes
    return max(beside, training)


def joint_plan_of(config: HeadsConfig, target: Target, longest: int) -> JointPlan:
    """What it takes that the target learns, too."""
    texts = texts_of_a_step(config)
    return plan_joint(target.config, target.formats, config.rank, texts, longest)


def _rows_of_a_place(shard: Shard, trainee: Trainee) -> float:
    rows = max(len(tensor) for tensor in shard.values())
    return rows / max(1, trainee.num_places(shard))


def _num_rows(document: EncodedDocument, trainee: Trainee) -> int:
    """Rows of a document that are kept."""
    return len(document.ids) if not trainee.has_trees else int((document.kinds == 2).sum())


def _some_answers(
    config: HeadsConfig, target: Target, prompts: Sequence[TrainingPrompt]
) -> tuple[list[OwnAnswer], float]:
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
    """Bytes that it holds now."""
    held: int = psutil.Process().memory_info().rss
    return held


def plan_text(plan: HeadsPlan) -> str:
    """For people."""
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
