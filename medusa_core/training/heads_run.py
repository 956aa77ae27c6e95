"""A run that trains heads for any target: answers, states, training, what came of it.

Each stage goes on from what lies in the run's folder, so that a run may be cut anywhere.

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
from medusa_core.heads_gain import write_gain
from medusa_core.memory.heap import give_back_heap
from medusa_core.pace.tuner import Tuner
from medusa_core.target import Target
from medusa_core.training.accuracy import head_accuracies
from medusa_core.training.answers import Answer, Question, own_answers
from medusa_core.training.asked import Asked
from medusa_core.training.heads_config import HeadsConfig, learning_rate_of
from medusa_core.training.heads_eval import HeadsEval
from medusa_core.training.joint import JointTrainee
from medusa_core.training.loop import LoopOptions, train
from medusa_core.training.model_card import model_card
from medusa_core.training.optimizer import Optimizers, adam_w_groups, cosine_rate
from medusa_core.training.packing import EncodedDocument, places_at
from medusa_core.training.precision import denormals_are_zero
from medusa_core.training.run_folder import RunFolder, answer_line
from medusa_core.training.stage import ANSWERED, Stage, heads_share, joint_share
from medusa_core.training.states import SHARD_BYTES, Shard, States, grouped
from medusa_core.training.trainee import Trainee
from medusa_core.training.trees import TreesRecipe, write_trees

log = logging.getLogger(__name__)

_HELD_OUT_BYTES = 1 << 32  # all of it
_MOST_HELD_OUT = 20_000  # tokens
_HELD_OUT_EACH = 20  # every so many-th answer isn't learned from
_USUAL_ANSWERS = 4000
_CURVE_EVERY = 40  # points of a curve, about
_CURVE_PLACES = 4096
_SYNC_S = 5.0
_TIMED_STEPS = 6

Stop = Callable[[], bool]
MakeTrainee = Callable[[Target, Sequence[Answer]], Trainee]
MakeJoint = Callable[[Trainee], JointTrainee]


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run works with.

    Attributes:
        load: Loads the target; called once.
        trainee: Makes heads for it, by its answers.
        asked: What the target is asked, in order.
        joint: Lets heads go on together with their target; None leaves that as it is.
        judge: Measures the heads of a folder, as far as there is time.
        stop: Says that the run shall pause.
    """

    load: Callable[[], Target]
    trainee: MakeTrainee
    asked: Sequence[Asked]
    judge: Callable[[Path], HeadsEval | None]
    stop: Stop
    joint: MakeJoint | None = None


class HeadsRun:
    """One slice of a run.

    Attributes:
        config: What is asked for.
        folder: Where all of it lies.
    """

    def __init__(self, folder: RunFolder, parts: RunParts) -> None:
        self.config: HeadsConfig = folder.config()
        self.folder = folder
        self._parts = parts
        self._settled = folder.settled()
        self._started_s = time.monotonic()
        self._spent_s = float(self._settled.get("spent_s", 0.0))

    def run(self) -> bool:
        """Work to the end; returns False where the run pauses before."""
        try:
            target = self._parts.load()
            name = target.name
            width = target.config.hidden_size
            with denormals_are_zero():
                answers = self._answers(target)
                trainee = self._parts.trainee(target, answers)
                held_out, states = self._states(answers, trainee)
                if states.is_whole:
                    trainee.forget_target()
                    del target
                    gc.collect()
                    give_back_heap()
                self._train(self._heads_stage(trainee, held_out, states, width))
                held = held_out.shard(0)
                if self._parts.joint is not None:
                    held = self._train_jointly(trainee, held_out, states, name)
                self._write(trainee, held, answers, name)
        except Cancelled:
            self._tell("paused", 0, 1)
            return False
        finally:
            self._settle(spent_s=self._seconds())
        return True

    def _answers(self, target: Target) -> list[Answer]:
        done = self.folder.answers()
        wanted, end_s = num_answers(self.config, len(self._parts.asked)), self._end_s(ANSWERED)
        if self._settled.get("num_answers") is None:
            written = {answer.number for answer in done}
            missing = [n for n in range(wanted) if n not in written]
            self._write_answers(target, missing, wanted, end_s)
            done = self.folder.answers()
            self._settle(num_answers=len(done))
        if len(done) < 2:
            raise TrainingError(
                "The model wrote too few answers to learn from.",
                "Give the run more time, or check that the prompts fit its context.",
            )
        return done

    def _write_answers(
        self, target: Target, missing: Sequence[int], wanted: int, end_s: float
    ) -> None:
        questions = [question(self.config, self._parts.asked, number) for number in missing]
        tuner, num_tokens, synced_s = Tuner(target), 0, 0.0
        begun_s = time.monotonic()
        answers = own_answers(target, questions, self.config.max_new_tokens, tuner)
        with self.folder.open_answers() as file, closing(answers):
            for answer in answers:
                file.write(answer_line(answer))
                num_tokens += len(answer.answer_ids)
                now_s = time.monotonic()
                if now_s - synced_s > _SYNC_S:
                    synced_s = now_s
                    file.flush()
                    os.fsync(file.fileno())
                    self.folder.check_space()
                    num_done = wanted - len(missing) + answer.number - missing[0] + 1
                    share_s = (now_s - self._started_s + self._spent_s) / max(end_s, 1e-9)
                    done = share_s if self.config.minutes and not self.config.answers else 0.0
                    self._tell(
                        "answers",
                        max(done, min(1.0, num_done / wanted)),
                        1,
                        tokens_per_s=num_tokens / (now_s - begun_s),
                    )
                self._check_stop()
                if self._seconds() > end_s:
                    return

    def _states(self, answers: Sequence[Answer], trainee: Trainee) -> tuple[States, States]:
        """What accuracies are measured on, and what is learned from."""
        held: list[EncodedDocument] = []
        learned: list[EncodedDocument] = []
        num_held = 0
        for place, answer in enumerate(answers):
            is_held = place % _HELD_OUT_EACH == 0 and num_held < _MOST_HELD_OUT
            num_held += len(answer.answer_ids) * is_held
            (held if is_held else learned).append(answer.document)
        most_bytes = int(self.config.states_gib * (1 << 30))
        folder = self.folder.states
        groups = grouped(learned, max(1, SHARD_BYTES // trainee.row_bytes))
        held_out = States(
            folder / "held-out", [held], trainee.collect, trainee.num_places, _HELD_OUT_BYTES
        )
        states = States(folder, groups, trainee.collect, trainee.num_places, most_bytes)
        list(held_out.prepare())
        for num_ready in states.prepare():
            self._tell("states", num_ready, len(groups))
            self.folder.check_space()
            self._check_stop()
        return held_out, states

    def _heads_stage(self, trainee: Trainee, held_out: States, states: States, width: int) -> Stage:
        order = Order(states.lengths, trainee.batch, self.config.seed)
        share = heads_share(self.config, order.steps_of_a_round)

        def loss_at(step: int, _: float) -> Tensor:
            shard, places = order.at(step)
            return trainee.loss(states.shard(shard), places)

        return Stage(
            name="training",
            kept_as="num_steps",
            module=trainee.module,
            groups=trainee.parameters(learning_rate_of(self.config, width)),
            loss_at=loss_at,
            accuracy=lambda: _top_shares(trainee, held_out.shard(0)),
            batch=trainee.batch,
            checkpoint=self.folder.checkpoint,
            num_steps=share.steps,
            first_step=0,
            ends=share.ends,
        )

    def _joint_stage(
        self, joint: JointTrainee, trainee: Trainee, held_out: States, states: States
    ) -> Stage:
        shards = range(len(states.lengths))
        lengths = [joint.num_texts(states.documents(shard)) for shard in shards]
        order = Order(lengths, joint.batch, self.config.seed)
        share = joint_share(self.config, order.steps_of_a_round)
        held = held_out.documents(0)

        def loss_at(step: int, progress: float) -> Tensor:
            shard, texts = order.at(step)
            return joint.loss(states.documents(shard), states.shard(shard), texts, progress)

        def accuracy() -> list[float]:
            shard = joint.adapted(held, held_out.shard(0), most=_CURVE_PLACES)
            return _top_shares(trainee, shard)

        return Stage(
            name="joint",
            kept_as="num_joint_steps",
            module=joint.module,
            groups=joint.parameters(learning_rate_of(self.config)),  # so that the target stays near
            loss_at=loss_at,
            accuracy=accuracy,
            batch=joint.batch,
            checkpoint=self.folder.joint_checkpoint,
            num_steps=share.steps,
            first_step=int(self._settled["num_steps"]),
            ends=share.ends,
        )

    def _train(self, stage: Stage) -> None:
        num_steps = self._num_steps(stage)
        every = max(1, num_steps // _CURVE_EVERY)
        last_s, begun_s = self._end_s(1.0), time.monotonic()
        first: int | None = None

        def loss_at(step: int) -> Tensor:
            return stage.loss_at(step, (step + 1) / num_steps)

        def after_step(step: int, loss: float) -> bool:
            nonlocal first
            first = step - 1 if first is None else first
            if step % every == 0 or step == num_steps:
                point = {"step": stage.first_step + step, "loss": loss, "top1": stage.accuracy()}
                self.folder.add_to_curve(point)
            elif step % 10:
                return self._parts.stop() or self._seconds() > last_s
            per_step_s = (time.monotonic() - begun_s) / (step - first)
            self._tell(stage.name, step, num_steps, seconds_left=(num_steps - step) * per_step_s)
            return self._parts.stop() or self._seconds() > last_s

        optimizers = Optimizers([adam_w_groups(stage.groups)], cosine_rate(num_steps))
        options = LoopOptions(stage.checkpoint, num_steps, stage.batch)
        result = train(stage.module, optimizers, loss_at, options, after_step)
        if not result.finished and self._seconds() <= last_s:
            raise Cancelled("The run pauses.")

    def _num_steps(self, stage: Stage) -> int:
        if stage.kept_as not in self._settled:
            num_steps = stage.num_steps
            if not num_steps:
                left_s = max(0.0, self._end_s(stage.ends) - self._seconds())
                num_steps = max(10, int(left_s / seconds_of_a_step(stage.groups, stage.loss_at)))
            self._settle(**{stage.kept_as: num_steps})
        return int(self._settled[stage.kept_as])

    def _train_jointly(
        self, trainee: Trainee, held_out: States, states: States, base_model: str
    ) -> Shard:
        """Let the target learn, too; returns what it makes of the held-out answers then."""
        make = self._parts.joint
        assert make is not None  # as `run` has seen
        joint = make(trainee)
        self._train(self._joint_stage(joint, trainee, held_out, states))
        joint.write(self.folder.out, base_model)
        return joint.adapted(held_out.documents(0), held_out.shard(0))

    def _write(
        self, trainee: Trainee, held: Shard, answers: Sequence[Answer], base_model: str
    ) -> None:
        token_ids = None
        if self.config.vocabulary:
            token_ids = frequent_tokens(answers, self.config.vocabulary)
        trainee.write(self.folder.out, base_model, token_ids)
        if trainee.has_trees:
            recipe = TreesRecipe()
            ranks = trainee.ranks(held, recipe.num_ranks, token_ids)
            write_trees(self.folder.out, {0.0: _greedy(ranks, held)}, recipe)
        self._tell("judging", 0, 1)
        found = self._parts.judge(self.folder.out)
        if found is not None:
            write_gain(self.folder.out, found.gain)
        curve = self.folder.curve()
        card = model_card(self.config, base_model, len(answers), curve, found)
        (self.folder.out / "README.md").write_text(card, encoding="utf-8")
        self._tell("done", 1, 1)
        self.folder.finish()

    def _seconds(self) -> float:
        """Seconds that the run has taken, earlier slices too."""
        return self._spent_s + time.monotonic() - self._started_s

    def _end_s(self, share: float) -> float:
        return share * 60 * self.config.minutes if self.config.minutes else float("inf")

    def _check_stop(self) -> None:
        if self._parts.stop():
            raise Cancelled("The run pauses.")

    def _settle(self, **values: float) -> None:
        self._settled.update(values)
        self.folder.write_settled(self._settled)

    def _tell(self, stage: str, done: float, of: float, **more: float) -> None:
        self.folder.tell(
            stage=stage,
            done=done,
            of=of,
            spent_s=self._seconds(),
            told_at=time.time(),
            pid=os.getpid(),
            **more,
        )


def num_answers(config: HeadsConfig, num_asked: int) -> int:
    """How many answers are written at most, by what was asked for."""
    if config.answers:
        return config.answers
    return 10**6 if config.minutes else min(_USUAL_ANSWERS, 2 * num_asked)


def question(config: HeadsConfig, asked: Sequence[Asked], number: int) -> Question:
    """A question by its number: each is asked greedily or drawn; asked again, it is drawn anew."""
    again, place = divmod(number, len(asked))
    is_drawn = again > 0 or (place * 61 % 100) / 100 < config.drawn_share
    temperature = config.temperature if is_drawn and config.drawn_share else 0.0
    return Question(number, asked[place].messages, temperature)


def seconds_of_a_step(
    groups: Sequence[dict[str, Any]], loss_at: Callable[[int, float], Tensor]
) -> float:
    """Seconds of a step of training: of a few that change nothing."""
    still = [{**group, "lr": 0.0} for group in groups]
    optimizer, seconds = adam_w_groups(still), []
    for step in range(_TIMED_STEPS):
        begun = time.perf_counter()
        loss_at(step, 1.0).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


class Order:
    """Which places of which shard each step reads: shards and places in a seeded order a round.

    Attributes:
        steps_of_a_round: Steps in which every shard is read once.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self._lengths, self._batch, self._seed = lengths, batch, seed
        self._steps = [max(1, length // batch) for length in lengths]
        self.steps_of_a_round = sum(self._steps)

    def at(self, step: int) -> tuple[int, Tensor]:
        """The shard of a step, and places in it. int64 [batch or fewer]"""
        turn, place = divmod(step, self.steps_of_a_round)
        for shard in places_at(turn, len(self._steps), len(self._steps), self._seed):
            if place < self._steps[shard]:
                break
            place -= self._steps[shard]
        step_of_shard = turn * self._steps[shard] + place
        places = places_at(step_of_shard, self._lengths[shard], self._batch, self._seed + 1)
        return int(shard), torch.from_numpy(places)


def _top_shares(trainee: Trainee, shard: Shard) -> list[float]:
    """How often the best guess of each head is right, at some places."""
    ranks = trainee.ranks(shard, 1, most=_CURVE_PLACES)
    return [round(row[0], 4) for row in head_accuracies(ranks, 1)]


def _greedy(ranks: Tensor, shard: dict[str, Tensor]) -> Tensor:
    """Ranks in greedy answers; in all where there are no others."""
    is_greedy = shard["seeds"] == 0
    return ranks[is_greedy] if bool(is_greedy.any()) else ranks


def frequent_tokens(answers: Sequence[Answer], number: int) -> Tensor:
    """The tokens that come most often in some answers, by id. int64 [number or fewer]"""
    counts = Counter(token_id for answer in answers for token_id in answer.answer_ids)
    return torch.tensor(sorted(token_id for token_id, _ in counts.most_common(number)))
