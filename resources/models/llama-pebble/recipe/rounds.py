"""All polishes, round after round: the model answers, its flaws are found, it unlearns them."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from medusa_core.training.checkpoint import read_checkpoint, save
from medusa_core.training.optimizer import Optimizers
from medusa_core.training.precision import trains_in_bf16
from recipe.flaws import Pieces, flaws
from recipe.muon import network_optimizers
from recipe.network import PebbleNetwork
from recipe.packing import PackedRows
from recipe.polish import PolishRows, PolishRun, polish
from recipe.prepare import PROMPTS_FILE, load_tokenizer, pack_tuning
from recipe.recipe import END, PolishRecipe, Recipe
from recipe.self_answers import GenerationOptions, generate_answers
from recipe.stages import load_network
from recipe.templates import make_sums
from recipe.tokenizer import begins_word, ends_sentence, special_id

log = logging.getLogger(__name__)


def polish_all(recipe: Recipe, run_dir: Path) -> PebbleNetwork:
    """The chat-tuned network, trained against the flaws of its own answers.

    Each polish is kept in `polish-N.pt`; momenta go on from stage to stage.
    """
    network, source = PebbleNetwork(recipe.size), run_dir / "tune.pt"
    for index, numbers in enumerate(recipe.polishes):
        path = run_dir / f"polish-{index + 1}.pt"
        if not path.is_file():
            state = read_checkpoint(source)
            optimizers = network_optimizers(network, numbers.schedule)
            network.load_state_dict(state["module"])
            optimizers.load_state_dict(state["optimizers"])
            polish_once(network, optimizers, numbers, recipe, run_dir)
            keep_some(network, state["module"], numbers.kept_share)
            save(path, network, optimizers, numbers.schedule.num_steps)
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
        prompts = prompts_asked(run_dir, recipe, seed)
        answers = generate_answers(network.eval(), prompts, options)
        rng = random.Random(seed)
        found = flaws(answers, numbers.gram, numbers.times, pieces, rng)
        if not numbers.end_weight:  # then there is nothing to learn from those that only don't end
            found = [flaw for flaw in found if flaw.repeated]
        log.info("%d of %d own answers have flaws", len(found), len(prompts))
        run = PolishRun(numbers, number, recipe.seed, equals_id, end_id, bf16)
        polish(network.train(), optimizers, rows, found, run)


def prompts_asked(run_dir: Path, recipe: Recipe, seed: int) -> list[list[int]]:
    """The prompts of a round: so many of each source as the recipe says, chosen by the seed."""
    known: dict[str, list[list[int]]] = json.loads((run_dir / PROMPTS_FILE).read_text())
    rng = random.Random(seed)
    questions = []
    for source in recipe.sources:
        prompts = known.get(source.name, [])
        questions += rng.sample(prompts, min(source.num_asked, len(prompts)))
    return questions
