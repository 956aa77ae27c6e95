"""The whole recipe, stage by stage; each resumes where the last run stopped."""

from __future__ import annotations

import json
import logging
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from medusa_core.errors import TrainingError
from medusa_core.heads.writer import write_heads
from medusa_core.target import load_target
from medusa_core.training.accuracy import (
    best_trees,
    head_accuracies,
    path_counts,
    path_length,
    true_ranks,
)
from medusa_core.training.corpus import Document, read_mixture
from medusa_core.training.evaluate import load_exported
from medusa_core.training.export import (
    HEADS_NAME,
    MODEL_NAME,
    export_model,
    export_trees,
    write_json,
)
from medusa_core.training.heads import collect, train_heads
from medusa_core.training.loop import StageOptions, StageResult, read_checkpoint
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.optimizer import Optimizers
from medusa_core.training.packing import ANSWER, PackedRows
from medusa_core.training.phrase_table import asked_in, make_phrases
from medusa_core.training.polish import Pieces, PolishRows, PolishRun, flaws, polish
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.prepare import PROMPTS_FILE, load_tokenizer, pack_tuning, prepare
from medusa_core.training.recipe import ASSISTANT, END, HeadRecipe, PolishRecipe, Recipe
from medusa_core.training.self_answers import Answer, GenerationOptions, generate_answers
from medusa_core.training.stages import load_network, pretrain, tune
from medusa_core.training.templates import make_documents, make_sums
from medusa_core.training.timetable import Timetable, try_pace
from medusa_core.training.tokenizer import begins_word, encode_documents, ends_sentence, special_id
from medusa_core.tree.phrase_table import write_phrases
from medusa_core.tree.presets import temperature_bucket

log = logging.getLogger(__name__)

NUM_HELD_OUT = 300
TEMPLATE_SHARE = 0.12


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
    started_s = time.monotonic()
    timetable = Timetable(
        recipe, run_dir, options.within_s, lambda: try_pace(recipe, run_dir, options.device)
    )
    prepare(options.data_dir, run_dir, recipe, make_documents(recipe.template_tokens, recipe.seed))
    for name in ("pretrain", "tune"):
        with timetable.stage(name) as fitted:
            result = _run_stage(name, fitted, options, _time_left(options, started_s))
        if not result.finished:
            log.info("stopped in stage %s at step %d of %d", name, result.step, result.num_steps)
            return False
    with timetable.stage("polish") as fitted:
        network = polish_all(fitted, run_dir)
    export_model(network, run_dir / "tokenizer", options.out_dir / MODEL_NAME)
    network, _ = load_exported(options.out_dir / MODEL_NAME)  # what ships is what heads serve
    heads_dir = options.out_dir / HEADS_NAME
    with timetable.stage("heads") as fitted:
        make_heads(network, fitted, run_dir, heads_dir)
    with timetable.stage("phrases") as fitted:
        target = load_target(options.out_dir / MODEL_NAME, heads_dir)
        asked = asked_in(rows_to_ask(fitted, options.data_dir), fitted.phrases, fitted.seed)
        write_phrases(make_phrases(target, asked, fitted.phrases), options.out_dir / MODEL_NAME)
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


def _time_left(options: RunOptions, started_s: float) -> float | None:
    if options.slice_s is None:
        return None
    return max(0.0, options.slice_s - (time.monotonic() - started_s))


def _run_stage(
    name: str, recipe: Recipe, options: RunOptions, slice_s: float | None
) -> StageResult:
    run_dir = options.run_dir
    stage = StageOptions(
        run_dir / f"{name}.pt",
        recipe.seed,
        device=options.device,
        slice_s=slice_s,
        compiled=options.compiled,
        bf16=trains_in_bf16(options.device),
    )
    if name == "pretrain":
        return pretrain(recipe, run_dir, stage)
    return tune(recipe, run_dir, run_dir / "pretrain.pt", stage)


def polish_all(recipe: Recipe, run_dir: Path) -> PebbleNetwork:
    """The polishes: the chat-tuned network, trained against the flaws of its own answers.

    Each polish is kept in `polish-N.pt`; momenta go on from stage to stage.
    """
    network, source = PebbleNetwork(recipe.size), run_dir / "tune.pt"
    for index, numbers in enumerate(recipe.polishes):
        path = run_dir / f"polish-{index + 1}.pt"
        if not path.is_file():
            state = read_checkpoint(source)
            optimizers = Optimizers(network, numbers.schedule)
            network.load_state_dict(state["network"])
            optimizers.load_state_dict(state["optimizers"])
            polish_once(network, optimizers, numbers, recipe, run_dir)
            keep_some(network, state["network"], numbers.kept_share)
            state = {"network": network.state_dict(), "optimizers": optimizers.state_dict()}
            torch.save(state, path)
        source = path
    return load_network(recipe, source)


def keep_some(network: PebbleNetwork, before: Mapping[str, Tensor], share: float) -> None:
    """Go back a share of the way to earlier weights: what was learned stays, less is forgotten.

    Source: Wortsman et al., "Robust fine-tuning of zero-shot models" (2022), section 3.
    """
    after = network.state_dict()
    network.load_state_dict({name: after[name].lerp(before[name], share) for name in after})


def polish_once(
    network: PebbleNetwork,
    optimizers: Optimizers,
    numbers: PolishRecipe,
    recipe: Recipe,
    run_dir: Path,
) -> None:
    """All rounds of one polish.

    Args:
        network: changed in place.
        optimizers: of the network, with the polish's schedule.
        numbers: of the polish.
        recipe: the recipe that it belongs to.
        run_dir: holds the rows and the prompts.
    """
    tokenizer = load_tokenizer(run_dir)
    end_id = special_id(END)
    equals_id = tokenizer.encode("1 =", add_special_tokens=False).ids[-1]
    pieces = Pieces(begins_word(tokenizer), ends_sentence(tokenizer))
    num_sums = numbers.schedule.num_steps * numbers.num_sum_rows * recipe.tune.row_length // 25
    rows = PolishRows(
        tune=PackedRows.load(run_dir / "tune.npz"),
        short=PackedRows.load(run_dir / "polish.npz"),
        sums=pack_tuning(tokenizer, make_sums(num_sums, recipe.seed), recipe),
    )
    bf16 = trains_in_bf16("cpu")
    options = GenerationOptions(numbers.max_new_tokens, end_id, bf16=bf16)
    for number in range(numbers.num_rounds if numbers.schedule.num_steps else 0):
        seed = recipe.seed + 1 + number
        prompts = asked_prompts(run_dir, recipe, seed)
        answers = generate_answers(network.eval(), prompts, options)
        rng = random.Random(seed)
        found = flaws(answers, numbers.gram, numbers.times, pieces, rng)
        if not numbers.end_weight:  # then there is nothing to learn from those that only don't end
            found = [flaw for flaw in found if flaw.repeated]
        log.info("%d of %d own answers have flaws", len(found), len(prompts))
        run = PolishRun(numbers, number, recipe.seed, equals_id, end_id, bf16)
        polish(network.train(), optimizers, rows, found, run)


def asked_prompts(run_dir: Path, recipe: Recipe, seed: int) -> list[list[int]]:
    """The prompts of a round: so many of each source as the recipe says, chosen by the seed."""
    known: dict[str, list[list[int]]] = json.loads((run_dir / PROMPTS_FILE).read_text())
    rng = random.Random(seed)
    asked = []
    for source in recipe.sources:
        prompts = known.get(source.name, [])
        asked += rng.sample(prompts, min(source.num_asked, len(prompts)))
    return asked


def make_heads(network: PebbleNetwork, recipe: Recipe, run_dir: Path, folder: Path) -> None:
    """Own answers, heads on them, accuracies on held-out ones, trees; written to `folder`.

    Args:
        network: the finished model.
        recipe: numbers.
        run_dir: holds the packed rows of chat tuning; keeps the answers.
        folder: receives heads and trees.
    """
    numbers = recipe.heads
    answers = own_answers(network, recipe, run_dir)
    training = [answer for made in answers.values() for answer in made[NUM_HELD_OUT:]]
    data = collect(network, training, numbers.num_heads)
    log.info("%d positions for the heads", len(data.hidden))
    heads = train_heads(network, data, numbers, recipe.seed)
    token_ids = frequent_tokens(training, numbers.num_columns) if numbers.num_columns else None
    ranks = {
        temperature: true_ranks(
            heads,
            collect(network, made[:NUM_HELD_OUT], numbers.num_heads),
            numbers.num_ranks,
            token_ids,
            temperature,
        )
        for temperature, made in answers.items()
    }
    tables = {t: head_accuracies(found, numbers.num_ranks) for t, found in ranks.items()}
    counts = path_counts(ranks[0.0], numbers.num_ranks)
    trees = best_trees(counts, numbers.tree_rows)
    write_heads(heads.weights(token_ids), _format_of(numbers), folder, MODEL_NAME)
    num_positions = len(ranks[0.0])
    drawn = {temperature_bucket(t): table for t, table in tables.items() if t}
    export_trees(folder, tables[0.0], drawn, trees, num_positions, numbers.default_rows)
    for temperature, table in tables.items():
        for head, row in enumerate(table):
            log.info(
                "at %.1f, head %d: top 1 %.3f, 5 %.3f", temperature, head, row[0], sum(row[:5])
            )
    for rows, paths in trees.items():
        length = path_length(counts, paths, num_positions)
        log.info("tree of %d rows: %.2f tokens per step", rows, length)


def rows_to_ask(recipe: Recipe, data_dir: Path) -> list[Document]:
    """Rows of chat tuning, and a few of the recipe's own templates, which repeat themselves."""
    templates = make_documents(recipe.template_tokens, recipe.seed)
    few = random.Random(recipe.seed).sample(templates, round(TEMPLATE_SHARE * len(templates)))
    return read_mixture(data_dir, recipe.sources, recipe.seed).tune + few


def frequent_tokens(answers: Sequence[Answer], number: int) -> Tensor:
    """The tokens that come most often in some answers, by id. int64 [number or fewer]"""
    counts = Counter(token_id for answer in answers for token_id in answer.answer_ids)
    return torch.tensor(sorted(token_id for token_id, _ in counts.most_common(number)))


def _format_of(numbers: HeadRecipe) -> str:
    """The format that can say what these heads are."""
    if numbers.reads_root:
        return "rooted"
    if numbers.num_columns:
        return "vllm"
    return "v0.1" if numbers.own_lm_head else "v2"


def own_answers(network: PebbleNetwork, recipe: Recipe, run_dir: Path) -> dict[float, list[Answer]]:
    """By temperature, answers to prompts of the tuning rows; the first of each are held out."""
    path = run_dir / "answers.pt"
    if path.is_file():
        kept = torch.load(path, weights_only=True)
        return {
            temperature: [Answer(tuple(p), tuple(a), bool(f), int(s)) for p, a, f, s in made]
            for temperature, made in kept.items()
        }
    numbers = recipe.heads.num_answers
    num_prompts = sum(numbers.values()) + NUM_HELD_OUT * len(numbers)
    rows = PackedRows.load(run_dir / "tune.npz")
    prompts = tuning_prompts(rows, num_prompts, recipe, recipe.seed, load_tokenizer(run_dir))
    answers = {}
    for temperature, number in numbers.items():
        asked, prompts = prompts[: number + NUM_HELD_OUT], prompts[number + NUM_HELD_OUT :]
        options = _options(recipe.heads, temperature, recipe.seed)
        answers[temperature] = generate_answers(network, asked, options)
    torch.save(
        {
            temperature: [
                (list(a.prompt_ids), list(a.answer_ids), a.finished, a.seed) for a in made
            ]
            for temperature, made in answers.items()
        },
        path,
    )
    return answers


def _options(heads: HeadRecipe, temperature: float, seed: int) -> GenerationOptions:
    return GenerationOptions(heads.max_new_tokens, special_id(END), temperature, seed=seed)


def tuning_prompts(
    rows: PackedRows, num_prompts: int, recipe: Recipe, seed: int, tokenizer: Tokenizer
) -> list[list[int]]:
    """First prompts of tuning documents, in a seeded order; none longer than half a context.

    The recipe's own templates are most of the documents but little of the text: only a few of
    their prompts are taken.
    """
    rng = np.random.default_rng([seed, 7])
    templates = template_prompts(recipe, tokenizer)
    prompts: list[list[int]] = []
    for index in rng.permutation(len(rows)):
        for number in range(int(rows.document_ids[index].max()) + 1):
            prompt = _prompt_of(rows, int(index), number)
            if prompt is None:
                continue
            if tuple(prompt) in templates and rng.random() > TEMPLATE_SHARE:
                continue
            prompts.append(prompt)
            if len(prompts) == num_prompts:
                return prompts
    return prompts


def template_prompts(recipe: Recipe, tokenizer: Tokenizer) -> set[tuple[int, ...]]:
    """First prompts of the recipe's own templates."""
    documents = make_documents(recipe.template_tokens, recipe.seed)
    prompts = set()
    for encoded in encode_documents(tokenizer, documents):
        first_answer = int((encoded.kinds == ANSWER).argmax())
        prompts.add(tuple(encoded.ids[:first_answer].tolist()))
    return prompts


def _prompt_of(rows: PackedRows, index: int, number: int) -> list[int] | None:
    inside = rows.document_ids[index] == number
    ids: Sequence[int] = rows.ids[index][inside].tolist()
    kinds = rows.kinds[index][inside]
    first_answer = int((kinds == ANSWER).argmax())
    if ids[first_answer - 1] != special_id(ASSISTANT) or first_answer > rows.ids.shape[1] // 2:
        return None
    return list(ids[:first_answer])


def with_steps(recipe: Recipe, pretrain_steps: int, tune_steps: int) -> Recipe:
    """The same recipe with other lengths."""
    return replace(
        recipe,
        pretrain=replace(recipe.pretrain, num_steps=pretrain_steps),
        tune=replace(recipe.tune, num_steps=tune_steps),
    )


def with_plain_heads(recipe: Recipe) -> Recipe:
    """The same recipe with heads as in Medusa's paper, which read the state alone."""
    return replace(recipe, heads=replace(recipe.heads, reads_root=False, num_columns=0))
