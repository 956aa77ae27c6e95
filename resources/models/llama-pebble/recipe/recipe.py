"""Every number of the Llama-Pebble recipe: sizes, mixture, step counts, learning rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from medusa_core.training.heads import MedusaSizes
from medusa_core.training.phrase_counts import PhraseRecipe
from medusa_core.training.trees import TreesRecipe

SEED = 20261120
BOS, END, SYSTEM, USER, ASSISTANT, PAD = (
    "<|bos|>",
    "<|end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|pad|>",
)
SPECIAL_TOKENS = (BOS, END, SYSTEM, USER, ASSISTANT, PAD)
TEMPLATES = "templates"


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The shape of one size of the model, in the words of a Hugging Face config."""

    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    vocab_size: int
    max_positions: int = 1024
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_heads


@dataclass(frozen=True, slots=True)
class Source:
    """One source of the mixture; shares above 1 repeat rows.

    Attributes:
        name: file name without `.jsonl.xz`.
        pretrain_share: share of its rows in pretraining, taken from the front.
        tune_share: share of its rows in chat tuning, taken from the back.
        polish_share: share of its rows in the polish, taken from the back.
        polish_chars: longest answer there, so that the model learns to come to an end.
        is_shortened: whether longer answers lose their middle there; else their rows are left out.
        num_asked: how many of its prompts the model answers in each round of the polish.
    """

    name: str
    pretrain_share: float
    tune_share: float
    polish_share: float = 0.0
    polish_chars: int | None = None
    is_shortened: bool = False
    num_asked: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """Length, batch and learning rates of one training stage.

    Attributes:
        num_steps: steps of the stage.
        num_rows: rows of a batch.
        row_length: tokens of a row.
        warmup_steps: over which the learning rates rise from 0.
        matrix_lr: Muon's, at its highest.
        vector_lr: AdamW's, at its highest.
        prompt_weight: of the loss on prompts; answers and plain text weigh 1.
        first_rate: share of both rates at the first step; between, they change linearly.
        last_rate: share of both after the last.
    """

    num_steps: int
    num_rows: int
    row_length: int
    warmup_steps: int
    matrix_lr: float
    vector_lr: float
    prompt_weight: float
    first_rate: float = 1.0
    last_rate: float = 1.0

    @property
    def tokens_per_step(self) -> int:
        """Token positions in one batch."""
        return self.num_rows * self.row_length


@dataclass(frozen=True, slots=True)
class HeadRecipe:
    """How the Medusa heads are trained on the model's own answers.

    Attributes:
        form: what they are made of.
        num_columns: size of the vocabulary that they draft from, the most frequent tokens of the
            answers; 0 for all.
        num_answers: own answers to learn from, by temperature; 0 is greedy.
        max_new_tokens: their length.
        num_epochs: passes over them.
        batch_size: positions of a step.
        matrix_lr: Muon's learning rate, of the ResBlocks' matrices.
        vector_lr: AdamW's, of biases and own projections.
        trees: which are shipped.
    """

    form: MedusaSizes
    num_columns: int
    num_answers: Mapping[float, int]
    max_new_tokens: int
    num_epochs: int
    batch_size: int
    matrix_lr: float
    vector_lr: float
    trees: TreesRecipe


@dataclass(frozen=True, slots=True)
class PolishRecipe:
    """How the model unlearns the flaws of its own answers and learns small sums by heart.

    Attributes:
        schedule: steps on chat rows, all rounds together.
        num_rounds: how often answers are made anew and unlearned; rounds share the steps.
        num_tune_rows: rows of chat tuning beside the short ones at each step.
        num_sum_rows: rows of sums beside the chat rows at each step.
        sum_weight: of the loss on their results.
        max_new_tokens: length of the own greedy answers that are searched for flaws.
        gram: tokens of a run that counts as repeated.
        times: how often it must occur.
        num_flawed: flawed answers at each step.
        repetition_weight: of the loss on repeated tokens.
        end_weight: of the loss on ends that are missing.
        end_probability: from which on an end counts as given.
        kept_share: share of the weights as they were before in the weights that come out.
    """

    schedule: Schedule
    num_rounds: int
    num_tune_rows: int
    num_sum_rows: int
    sum_weight: float
    max_new_tokens: int
    gram: int
    times: int
    num_flawed: int
    repetition_weight: float
    end_weight: float
    end_probability: float
    kept_share: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """One complete recipe.

    Attributes:
        template_tokens: the recipe's own chat rows, all of them in chat tuning.
        polish_template_share: the share of them in the polish.
    """

    name: str
    size: ModelSize
    pretrain: Schedule
    tune: Schedule
    polishes: tuple[PolishRecipe, ...]
    heads: HeadRecipe
    sources: tuple[Source, ...]
    template_tokens: int
    polish_template_share: float = 0.3
    phrases: PhraseRecipe = field(default_factory=PhraseRecipe)
    seed: int = SEED


SOURCES = (
    Source("snakes_stories", 0.42, 0.75, 0.06, 2000, num_asked=24),
    Source("snakes_scripts", 0.45, 0.75, 0.06, 1250, is_shortened=True, num_asked=96),
    Source("snakes_scenes", 0.65, 1.30, 0.05),
    Source("snakes_words", 0.75, 1.30, 0.10, 1250, num_asked=96),
    Source("snakes_qa", 0.75, 1.20, 0.10, 1250, num_asked=96),
    Source("snakes_short", 0.45, 0.80, 0.10, num_asked=72),
    Source("snakes_structured", 0.40, 0.35, 0.03, 1250, num_asked=48),
    Source("snakes_textbook", 0.05, 0.0),
    Source("gsm8k_train", 0.80, 1.0, 0.15, num_asked=96),
    Source("fairytaleqa", 0.50, 0.70, 0.10, num_asked=12),
    Source("fairytaleqa_stories", 0.20, 0.0),
    Source("synthetic_persona_chat", 0.80, 1.50, 0.15),
    Source("taskmaster3_bc", 0.80, 1.0, 0.20),
    Source("taskmaster4", 0.80, 1.0, 0.20, num_asked=12),
    Source("self_dialogue", 0.25, 0.15, 0.01),
    Source("pd_children_books", 0.04, 0.0),
    Source("asp_source", 0.5, 0.0),
    Source("pb_source", 0.5, 0.0),
    Source("personality_chat", 10.0, 10.0, 1.0, num_asked=12),
    Source("chatterbot_corpus", 6.0, 6.0, 1.0),
    Source("self_instruct_seeds", 1.0, 2.0, 0.5, num_asked=24),
)

# of the highest learning rates: where chat tuning ends and the polish begins
POLISH_RATE = 0.15
POLISHES = (
    PolishRecipe(
        Schedule(600, 4, 1024, 0, 0.02, 4e-3, 0.0, first_rate=POLISH_RATE, last_rate=0.05),
        num_rounds=4,
        num_tune_rows=0,
        num_sum_rows=2,
        sum_weight=0.8,
        max_new_tokens=180,
        gram=6,
        times=3,
        num_flawed=6,
        repetition_weight=0.7,
        end_weight=0.0,
        end_probability=0.0,
        kept_share=0.0,
    ),
    PolishRecipe(
        Schedule(480, 2, 1024, 0, 0.02, 4e-3, 0.0, first_rate=0.05, last_rate=0.0),
        num_rounds=3,
        num_tune_rows=3,
        num_sum_rows=2,
        sum_weight=2.0,
        max_new_tokens=420,
        gram=6,
        times=3,
        num_flawed=8,
        repetition_weight=1.5,
        end_weight=0.02,
        end_probability=0.2,
        kept_share=0.25,
    ),
)
HEADS = HeadRecipe(
    MedusaSizes(num_heads=4, num_layers=2, reads_root=True),
    num_columns=2048,
    num_answers={0.0: 5500, 0.7: 1000, 1.0: 500},
    max_new_tokens=160,
    num_epochs=14,
    batch_size=1024,
    matrix_lr=0.02,
    vector_lr=4e-3,
    trees=TreesRecipe(text="own answers, in-domain"),
)


def pretrain_schedule(num_steps: int, num_rows: int, matrix_lr: float = 0.02) -> Schedule:
    """Constant learning rate after a short warm-up, so that it may stop when the clock says so."""
    return Schedule(num_steps, num_rows, 512, 100, matrix_lr, 4e-3, 0.3)


def tune_schedule(num_steps: int, num_rows: int, matrix_lr: float = 0.02) -> Schedule:
    """Chat tuning: the learning rate falls linearly to what the polish goes on with."""
    return Schedule(num_steps, num_rows, 1024, 0, matrix_lr, 4e-3, 0.1, last_rate=POLISH_RATE)


RECIPES = {
    "nano": Recipe(
        "nano",
        ModelSize(128, 3, 4, 352, 4096),
        pretrain_schedule(600, 8),
        tune_schedule(200, 4),
        POLISHES,
        HEADS,
        SOURCES,
        600_000,
    ),
    "small": Recipe(
        "small",
        ModelSize(256, 6, 4, 704, 4096),
        pretrain_schedule(4100, 12),
        tune_schedule(5400, 6),
        POLISHES,
        HEADS,
        SOURCES,
        1_200_000,
    ),
    "medium": Recipe(
        "medium",
        ModelSize(384, 6, 6, 1024, 4096),
        pretrain_schedule(6000, 16, 0.015),
        tune_schedule(2000, 8, 0.015),
        POLISHES,
        HEADS,
        SOURCES,
        1_500_000,
    ),
}
