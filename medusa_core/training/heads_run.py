"""A run that trains heads for any target: answers, states, training, evaluation.

A run with a time limit works in slices: the target writes some answers, heads are trained on all so
far, the target writes more. So heads are trained from the beginning, and the last half of the time
is training alone. A run with a fixed number of steps has one slice, and is reproducible.

Each stage resumes from the files in the run's folder, so that a run may be killed at any time.

Source: Cai et al., "Medusa" (2024), sections 2.2.1 (Medusa-1) and 2.2.2 (Medusa-2).
"""

from __future__ import annotations

import gc
import logging
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.errors import Cancelled, TrainingError
from medusa_core.loading.target import Target
from medusa_core.system.garbage import trim_heap
from medusa_core.system.jobs.heads_gain import write_gain
from medusa_core.training.accuracy import head_accuracies
from medusa_core.training.answers import OwnAnswer
from medusa_core.training.curve import Curve
from medusa_core.training.expectation import expected_tau
from medusa_core.training.heads_config import HeadsConfig, learning_rate_of
from medusa_core.training.heads_eval import HeadsEval
from medusa_core.training.joint import JointTrainee
from medusa_core.training.loop import LoopOptions, train
from medusa_core.training.model_card import model_card
from medusa_core.training.optimizer import Optimizers, adam_w_groups, cosine_rate
from medusa_core.training.order import ShardOrder
from medusa_core.training.precision import flush_denormals
from medusa_core.training.prompts import TrainingPrompt
from medusa_core.training.run_folder import LEAST_ANSWERS, RunFolder
from medusa_core.training.stage import (
    ASKED,
    Slice,
    TrainingStage,
    heads_end,
    heads_share,
    joint_share,
    slices_of,
    training_share,
)
from medusa_core.training.states import Shard
from medusa_core.training.trainee import Trainee
from medusa_core.training.training_data import AnswerWriter, TrainingData, WrittenAnswer
from medusa_core.training.trees import TreesRecipe, write_trees

log = logging.getLogger(__name__)

_CURVE_PLACES = 1024
_SEEDS = 1_000_003
_TIMED_STEPS = 6
_REPORT_EVERY = 10  # steps
_RECOUNTS = 3  # of the steps that time allows, without joint training

ShouldStop = Callable[[], bool]
MakeTrainee = Callable[[Target, Sequence[OwnAnswer]], Trainee]
MakeJoint = Callable[[Trainee], JointTrainee]


@dataclass(frozen=True, slots=True)
class RunParts:
    """Functions that a run calls to load, train and evaluate; tests replace them.

    Attributes:
        load: Loads the target; called once.
        trainee: Builds untrained heads, given the target and its answers.
        prompts: Returns the prompts in order, once enough time has passed to know them.
        joint: Trains heads together with their target; None to leave the target unchanged.
        evaluate: Measures the heads of a folder, if there is time.
        stop: Whether the run should pause.
    """

    load: Callable[[], Target]
    trainee: MakeTrainee
    prompts: Callable[[Target, ShouldStop], Sequence[TrainingPrompt]]
    evaluate: Callable[[Path], HeadsEval | None]
    stop: ShouldStop
    joint: MakeJoint | None = None


class HeadsRun:
    """One process of a run, from start or resumption to end or pause.

    Attributes:
        config: Configuration of the run.
        folder: Folder of the run.
    """

    def __init__(self, folder: RunFolder, parts: RunParts) -> None:
        self.config: HeadsConfig = folder.config()
        self.folder = folder
        self._parts = parts
        self._resolved = folder.resolved()
        self._started_s = time.monotonic()
        self._spent_s = float(self._resolved.get("spent_s", 0.0))

    def run(self) -> bool:
        """Run to the end; return False if the run pauses before."""
        try:
            with flush_denormals():
                self._run()
        except Cancelled:
            self._report("paused", 0, 1)
            return False
        finally:
            self._store(spent_s=self._seconds())
        return True

    def _run(self) -> None:
        """Run all stages in order."""
        target = self._parts.load()
        name, width = target.name, target.config.hidden_size
        trainee, feed = self._feed(target, width)
        if feed.release_target():
            del target
            gc.collect()
            trim_heap()
        stage = self._heads_stage(trainee, feed, width)
        for ends in self._ends_of_training(stage):
            self._train(stage, ends)
        held = feed.held_out.joined()
        if self._parts.joint is not None:
            held = self._train_jointly(trainee, feed, name)
        self._write(trainee, held, name)

    def _feed(self, target: Target, width: int) -> tuple[Trainee, TrainingData]:
        """Write answers and compute states, with training between the slices."""
        slices = slices_of(self.config)
        counts = [int(count) for count in self._resolved.get("slices", ())]
        written = self.folder.answers()
        trainee: Trainee | None = None
        is_written = len(counts) == len(slices)
        prompts = () if is_written else self._parts.prompts(target, self._has_prompts_enough)
        with closing(AnswerWriter(self.folder, self.config, prompts)) as writing:
            for number, part in enumerate(slices):
                first = counts[number - 1] if number else 0
                if number < len(counts):
                    some = [
                        WrittenAnswer(answer, None) for answer in written[first : counts[number]]
                    ]
                else:
                    rest = [WrittenAnswer(answer, None) for answer in written[first:]]
                    some = [*rest, *self._answers(target, writing, part, first + len(rest))]
                    written = written[: first + len(rest)]
                    written += [one.answer for one in some[len(rest) :]]
                    counts = [*counts, len(written)]
                    self._store(slices=counts)
                if len(slices) == 1:
                    some.sort(key=lambda one: one.answer.number)
                if trainee is None:
                    trainee = self._parts.trainee(target, [one.answer for one in some])
                    feed = TrainingData(self.folder, self.config, trainee, target)
                feed.add(some, self._states_reporter(), self._on_shard)
                if number + 1 < len(slices):
                    self._train(self._heads_stage(trainee, feed, width), part.trained)
        assert trainee is not None  # there are slices
        return trainee, feed

    def _has_prompts_enough(self) -> bool:
        """Whether the time for prompts that the model writes itself is over."""
        self._report("prompts", min(1.0, self._seconds() / self._end_s(ASKED)), 1)
        self._check_stop()
        return self._seconds() > self._end_s(ASKED)

    def _answers(
        self, target: Target, writing: AnswerWriter, part: Slice, num_before: int
    ) -> list[WrittenAnswer]:
        """Return the new answers of a slice.

        Raises:
            TrainingError: There are too few to train on.
        """
        ends_s, started_s, last_s = self._end_s(part.answered), time.monotonic(), 0.0
        num_answers = num_tokens = 0

        def on_answer(answer: OwnAnswer) -> bool:
            """Count an answer and report progress; return whether to stop."""
            nonlocal num_answers, num_tokens, last_s
            num_answers, num_tokens = num_answers + 1, num_tokens + len(answer.answer_ids)
            now_s = time.monotonic()
            if now_s - last_s > 1.0:
                last_s = now_s
                done = min(1.0, (num_before + num_answers) / writing.num_wanted)
                if self.config.minutes and not self.config.answers:
                    done = max(done, min(1.0, self._seconds() / ends_s))
                self._report("answers", done, 1, tokens_per_s=num_tokens / (now_s - started_s))
            self._check_stop()
            has_enough = num_before + num_answers >= LEAST_ANSWERS
            return has_enough and self._seconds() > ends_s

        is_over = num_before >= LEAST_ANSWERS and self._seconds() > ends_s
        found = [] if is_over else writing.slice(target, on_answer)
        if num_before + len(found) < LEAST_ANSWERS:
            raise TrainingError(
                "The model wrote too few answers to learn from.",
                "Give the run more time, or check that the prompts fit its context.",
            )
        return found

    def _states_reporter(self) -> Callable[[int, int], None]:
        """Return a callback that reports the progress of states, and the time left."""
        started_s, last_s = time.monotonic(), 0.0

        def on_states(done: int, total: int) -> None:
            """Report progress at most once per second."""
            nonlocal last_s
            now_s = time.monotonic()
            if done in (0, total) or now_s - last_s > 1.0:
                last_s = now_s
                left = {"seconds_left": (total - done) * (now_s - started_s) / done} if done else {}
                self._report("states", done, total, **left)

        return on_states

    def _on_shard(self) -> None:
        """Before each shard of hidden states, check the disk space and for a stop request."""
        self.folder.check_space()
        self._check_stop()

    def _heads_stage(self, trainee: Trainee, feed: TrainingData, width: int) -> TrainingStage:
        """Return the stage that trains heads alone."""
        states = feed.states
        order = ShardOrder(states.lengths, trainee.batch, self.config.seed)
        share = heads_share(self.config, order.steps_per_epoch)

        def loss_at(step: int, _: float) -> Tensor:
            """Return the loss of a step; it doesn't depend on the progress."""
            shard, places = order.at(step)
            return trainee.loss(states.shard(shard), places)

        return TrainingStage(
            name="training",
            kept_as="num_steps",
            module=trainee.module,
            groups=trainee.parameters(learning_rate_of(self.config, width)),
            loss_at=loss_at,
            accuracy=lambda: _top_shares(trainee, feed.held_out.joined()),
            tokens_per_step=max(1, feed.num_tokens // order.steps_per_epoch),
            checkpoint=self.folder.checkpoint,
            num_steps=share.steps,
            first_step=0,
            ends=share.ends,
        )

    def _joint_stage(
        self, joint: JointTrainee, trainee: Trainee, feed: TrainingData
    ) -> TrainingStage:
        """Return the stage that trains heads and LoRA."""
        states = feed.states
        lengths = [joint.num_texts(states.documents(shard)) for shard in range(len(states.lengths))]
        order = ShardOrder(lengths, joint.batch, self.config.seed)
        share = joint_share(self.config, order.steps_per_epoch)

        def loss_at(step: int, progress: float) -> Tensor:
            """Return the loss of a step."""
            shard, texts = order.at(step)
            return joint.loss(states.documents(shard), states.shard(shard), texts, progress)

        def accuracy() -> list[float]:
            """Return the top-1 accuracy of each head on held-out states with the LoRA."""
            held = feed.held_out
            return _top_shares(
                trainee, joint.adapted(held.all_documents, held.joined(), most=_CURVE_PLACES)
            )

        return TrainingStage(
            name="joint",
            kept_as="num_joint_steps",
            module=joint.module,
            groups=joint.parameters(
                learning_rate_of(self.config)
            ),  # to keep the target close to itself
            loss_at=loss_at,
            accuracy=accuracy,
            tokens_per_step=max(1, feed.num_tokens // order.steps_per_epoch),
            checkpoint=self.folder.joint_checkpoint,
            num_steps=share.steps,
            first_step=int(self._resolved["num_steps"]),
            ends=share.ends,
        )

    def _ends_of_training(self, stage: TrainingStage) -> Sequence[float]:
        """Return the shares of the time at which remaining steps are re-estimated."""
        if stage.num_steps:
            return (stage.ends,)
        now = min(stage.ends, self._seconds() / self._end_s(1.0))
        return tuple(
            now + (stage.ends - now) * part / _RECOUNTS for part in range(1, _RECOUNTS + 1)
        )

    def _train(self, stage: TrainingStage, end_share: float) -> None:
        """Train until a share of the run's time is over, or all steps are done."""
        num_steps = self._num_steps(stage)
        curve = Curve(self.folder, num_steps, is_timed=not stage.num_steps)
        ends_s, started_s = self._end_s(end_share), time.monotonic()
        first: int | None = None

        def loss_at(step: int) -> Tensor:
            """Return the loss of a step, seeded so that a resumed run computes the same."""
            torch.manual_seed(self.config.seed * _SEEDS + step)
            return stage.loss_at(step, (step + 1) / num_steps)

        def after_step(step: int, loss: float) -> bool:
            """Add to the learning curve, report, and return whether to stop."""
            nonlocal first
            first = step - 1 if first is None else first
            if curve.is_due(step):
                curve.add(stage.first_step + step, loss, stage.accuracy)
            if step % _REPORT_EVERY == 0 or step == num_steps:
                per_step_s = (time.monotonic() - started_s) / (step - first)
                left_s = (num_steps - step) * per_step_s
                self._report(stage.name, step, num_steps, seconds_left=left_s)
            return self._parts.stop() or self._seconds() > ends_s

        optimizers = Optimizers([adam_w_groups(stage.groups)], cosine_rate(num_steps))
        options = LoopOptions(stage.checkpoint, num_steps, stage.tokens_per_step)
        result = train(stage.module, optimizers, loss_at, options, after_step)
        self._store(**{f"{stage.kept_as}_done": result.step}, spent_s=self._seconds())
        if not result.finished and self._seconds() <= ends_s:
            raise Cancelled("The run pauses.")
        if not result.finished and end_share == stage.ends:  # time is over
            self._store(**{stage.kept_as: result.step})
            curve.add(stage.first_step + result.step, result.loss, stage.accuracy)

    def _num_steps(self, stage: TrainingStage) -> int:
        """Return the total steps of a stage, with a time limit as many as fit into it."""
        done = int(self._resolved.get(f"{stage.kept_as}_done", 0))
        num_steps = stage.num_steps
        if not num_steps:
            step_s = seconds_per_step(stage.groups, stage.loss_at)
            left_s = self._training_left(stage.ends) * self._end_s(1.0)
            num_steps = done + max(1 if done else 10, int(left_s / step_s))
        if self._resolved.get(stage.kept_as) != num_steps:
            self._store(**{stage.kept_as: num_steps})
            num_tokens = num_steps * stage.tokens_per_step
            log.info(
                "%d steps planned, reading %.2f M tokens; about %.1f tokens per step to expect",
                num_steps,
                num_tokens / 1e6,
                expected_tau(num_tokens),
            )
        return num_steps

    def _training_left(self, end_share: float) -> float:
        """Return the share of the run's time that a stage has left for training."""
        now = self._seconds() / self._end_s(1.0)
        if end_share == heads_end(self.config):
            return training_share(self.config, now)
        return max(0.0, end_share - now)

    def _train_jointly(self, trainee: Trainee, feed: TrainingData, base_model: str) -> Shard:
        """Train the target, too; return its data of the held-out answers after that."""
        make = self._parts.joint
        assert make is not None  # as `run` has seen
        joint = make(trainee)
        stage = self._joint_stage(joint, trainee, feed)
        for ends in self._ends_of_training(stage):
            self._train(stage, ends)
        joint.write(self.folder.out, base_model)
        held = feed.held_out
        return joint.adapted(held.all_documents, held.joined())

    def _write(self, trainee: Trainee, held: Shard, base_model: str) -> None:
        """Write heads, trees and model card, and measure the heads."""
        trainee.write(self.folder.out, base_model)
        if trainee.has_trees:
            recipe = TreesRecipe()
            ranks = trainee.ranks(held, recipe.num_ranks)
            write_trees(self.folder.out, {0.0: _greedy(ranks, held)}, recipe)
        self._report("judging", 0, 1)
        found = self._parts.evaluate(self.folder.out)
        num_answers = int(self._resolved["slices"][-1])
        card = model_card(self.config, base_model, num_answers, self.folder.curve(), found)
        (self.folder.out / "README.md").write_text(card, encoding="utf-8")
        if found is not None:
            write_gain(self.folder.out, found.gain)
        self._report("done", 1, 1)
        self.folder.finish()

    def _seconds(self) -> float:
        """Return the seconds that the run has taken, including earlier processes."""
        return self._spent_s + time.monotonic() - self._started_s

    def _end_s(self, share: float) -> float:
        """Return the second of the run at which a share of its time is over."""
        return share * 60 * self.config.minutes if self.config.minutes else float("inf")

    def _check_stop(self) -> None:
        """Raise `Cancelled` if the run should pause."""
        if self._parts.stop():
            raise Cancelled("The run pauses.")

    def _store(self, **values: Any) -> None:
        """Add resolved settings to the run's file."""
        self._resolved.update(values)
        self.folder.write_resolved(self._resolved)

    def _report(self, stage: str, done: float, total: float, **more: float) -> None:
        """Write the progress of a stage to the run's folder."""
        self.folder.report(
            stage=stage,
            done=done,
            of=total,
            spent_s=self._seconds(),
            reported_at=time.time(),
            pid=os.getpid(),
            **more,
        )


def seconds_per_step(
    groups: Sequence[dict[str, Any]], loss_at: Callable[[int, float], Tensor]
) -> float:
    """Measure the seconds of a training step with a few that change nothing."""
    still = [{**group, "lr": 0.0} for group in groups]
    optimizer, seconds = adam_w_groups(still), []
    for step in range(_TIMED_STEPS):
        started = time.perf_counter()
        loss_at(step, 1.0).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _top_shares(trainee: Trainee, shard: Shard) -> list[float]:
    """Return the top-1 accuracy of each head on some samples."""
    ranks = trainee.ranks(shard, 1, most=_CURVE_PLACES)
    return [round(row[0], 4) for row in head_accuracies(ranks, 1)]


def _greedy(ranks: Tensor, shard: Shard) -> Tensor:
    """Return the ranks in greedy answers, or in all if there are none."""
    is_greedy = shard["seeds"] == 0
    return ranks[is_greedy] if bool(is_greedy.any()) else ranks


def frequent_tokens(answers: Sequence[OwnAnswer], number: int) -> Tensor:
    """Return the most frequent tokens of some answers, sorted by id. int64 [number or fewer]"""
    counts = Counter(token_id for answer in answers for token_id in answer.answer_ids)
    return torch.tensor(sorted(token_id for token_id, _ in counts.most_common(number)))


def drafted_tokens(answers: Sequence[OwnAnswer], number: int) -> Tensor:
    """Return `frequent_tokens`, filled up with the lowest token ids. int64 [number]

    Tokenizers number tokens in the order of their merges, frequent ones first.
    """
    frequent = frequent_tokens(answers, number)
    others = torch.arange(number + len(frequent))
    others = others[~torch.isin(others, frequent)][: number - len(frequent)]
    return torch.cat([frequent, others]).sort().values
