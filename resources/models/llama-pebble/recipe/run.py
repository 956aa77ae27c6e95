"""The whole recipe, stage by stage; each resumes where the last run stopped."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from medusa_core.errors import TrainingError
from medusa_core.loading.load import load_target
from medusa_core.models.datastore.phrases import write_phrases
from medusa_core.training.phrase_counts import make_phrases
from medusa_core.training.precision import trains_in_bf16
from recipe.asked import phrase_questions
from recipe.export import HEADS_NAME, MODEL_NAME, export_model, write_json
from recipe.heads_stage import make_heads
from recipe.prepare import prepare
from recipe.recipe import Recipe
from recipe.rounds import polish_all
from recipe.stages import StageOptions, pretrain, tune
from recipe.templates import make_documents
from recipe.timetable import Timetable, measure_rate

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How the recipe runs.

    Attributes:
        data_dir: training rows.
        out_dir: receives the models; checkpoints go to `run` in it.
        device: of pretraining and chat tuning.
        resume: continue a run that is already there.
        slice_s: stop after about this many seconds, ready to resume; None runs to the end.
        compiled: fuse the network with torch.compile.
        within_s: do as much of the recipe as fits so many seconds; None does all of it.
    """

    data_dir: Path
    out_dir: Path
    device: str = "cpu"
    resume: bool = False
    slice_s: float | None = None
    compiled: bool = False
    within_s: float | None = None

    @property
    def run_dir(self) -> Path:
        """Folder of checkpoints."""
        return self.out_dir / "run"


def train_pebble(recipe: Recipe, options: RunOptions) -> bool:
    """Run the recipe.

    Args:
        recipe: which one.
        options: where, and how long.

    Returns:
        Whether it came to its end (else run again with `resume`).

    Raises:
        TrainingError: there are no rows, too little time, or a run is there already and `resume`
            wasn't asked for.
    """
    run_dir = options.run_dir
    _claim(recipe, options)
    ends_s = None if options.slice_s is None else time.monotonic() + options.slice_s
    bf16 = trains_in_bf16(options.device)
    timetable = Timetable(
        recipe, run_dir, options.within_s, lambda: measure_rate(recipe, run_dir, options.device)
    )
    prepare(options.data_dir, run_dir, recipe, make_documents(recipe.template_tokens, recipe.seed))
    for name, stage in (("pretrain", pretrain), ("tune", tune)):
        left_s = None if ends_s is None else max(0.0, ends_s - time.monotonic())
        with timetable.stage(name) as fitted:
            given = StageOptions(run_dir, options.device, left_s, options.compiled, bf16)
            result = stage(fitted, given)
        if not result.finished:
            log.info("stopped in stage %s at step %d of %d", name, result.step, result.num_steps)
            return False
    with timetable.stage("polish") as fitted:
        network = polish_all(fitted, run_dir)
    model_dir, heads_dir = options.out_dir / MODEL_NAME, options.out_dir / HEADS_NAME
    export_model(network, run_dir / "tokenizer", model_dir)
    with timetable.stage("heads") as fitted:
        make_heads(fitted, run_dir, model_dir, heads_dir)
    with timetable.stage("phrases") as fitted:
        questions = phrase_questions(fitted, options.data_dir)
        phrases = make_phrases(load_target(model_dir, heads_dir), questions, fitted.phrases)
        write_phrases(phrases, model_dir)
    return True


def _claim(recipe: Recipe, options: RunOptions) -> None:
    """Write down the recipe of a new run, or see that a resumed one is the same."""
    path = options.run_dir / "recipe.json"
    wanted = json.loads(json.dumps(asdict(recipe)))
    if path.is_file():
        if not options.resume:
            raise TrainingError(
                f"{options.run_dir} holds a run already.",
                "Add --resume to continue it, or name another folder.",
            )
        if json.loads(path.read_text()) != wanted:
            raise TrainingError(
                f"The run in {options.run_dir} follows another recipe.",
                "Name another folder, or the size it was started with.",
            )
        return
    options.run_dir.mkdir(parents=True, exist_ok=True)
    write_json(path, wanted)


def with_steps(recipe: Recipe, pretrain_steps: int | None, tune_steps: int | None) -> Recipe:
    """The same recipe with other lengths, where they are given."""
    pretrain, tune = recipe.pretrain, recipe.tune
    if pretrain_steps is not None:
        pretrain = replace(pretrain, num_steps=pretrain_steps)
    if tune_steps is not None:
        tune = replace(tune, num_steps=tune_steps)
    return replace(recipe, pretrain=pretrain, tune=tune)


def with_plain_heads(recipe: Recipe) -> Recipe:
    """The same recipe with heads as in Medusa's paper, which read the state alone."""
    form = replace(recipe.heads.form, reads_root=False)
    return replace(recipe, heads=replace(recipe.heads, form=form, num_columns=0))
