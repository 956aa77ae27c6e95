"""A recipe of seconds, and networks and documents of its size."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from medusa_core.training.documents import ANSWER, PROMPT, EncodedDocument
from recipe.network import PebbleNetwork, initialise
from recipe.recipe import RECIPES, ModelSize, Recipe, Schedule, Source
from recipe.templates import make_documents

HEAD_COLUMNS = 200
TINY = ModelSize(32, 2, 2, 64, 512, max_positions=128)
NARROW = ModelSize(32, 2, 2, 64, 300, max_positions=96)


def tiny_recipe() -> Recipe:
    """A recipe of seconds with everything the real one has."""
    small = RECIPES["small"]
    heads = replace(
        small.heads,
        form=replace(small.heads.form, num_heads=2),
        num_answers={0.0: 4, 0.7: 2, 1.0: 2},
        max_new_tokens=12,
        num_epochs=1,
        batch_size=64,
        num_columns=HEAD_COLUMNS,
        trees=replace(small.heads.trees, tree_rows=(4, 8), default_rows=8),
    )
    return replace(
        small,
        name="tiny",
        size=TINY,
        pretrain=Schedule(4, 2, 64, 2, 0.02, 4e-3, 0.3),
        tune=Schedule(3, 2, 96, 0, 0.02, 4e-3, 0.0, last_rate=0.1),
        polishes=tuple(
            replace(
                polish,
                schedule=Schedule(4, 2, 96, 0, 0.02, 4e-3, 0.0, first_rate=0.1, last_rate=0.0),
                num_rounds=2,
                max_new_tokens=40,
                gram=2,
                times=2,
            )
            for polish in small.polishes
        ),
        heads=heads,
        sources=(Source("rows", 1.0, 1.0, 1.0, num_asked=8),),
        template_tokens=4000,
    )


def random_network(size: ModelSize = TINY, std: float = 0.2) -> PebbleNetwork:
    """A tiny network whose every matrix matters."""
    network = PebbleNetwork(size)
    initialise(network, 0)
    generator = torch.Generator().manual_seed(1)
    for parameter in network.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=std, generator=generator)
    return network.eval()


def encoded(*lengths: int) -> list[EncodedDocument]:
    """Documents of these lengths, their first half prompt."""
    rng = np.random.default_rng(0)
    return [
        EncodedDocument(
            rng.integers(6, TINY.vocab_size, n).astype(np.uint16),
            np.array([PROMPT] * (n // 2) + [ANSWER] * (n - n // 2), dtype=np.uint8),
        )
        for n in lengths
    ]


def write_rows(folder: Path) -> Path:
    """A handful of rows: our own templates and a few plain ones."""
    folder.mkdir()
    rows = [
        {"messages": [{"role": s.role, "content": s.text} for s in document.segments]}
        for document in make_documents(6000, seed=3)
    ]
    rows += [{"text": f"The hen has {n} eggs. The fox sees {n + 1} hens."} for n in range(20)]
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return folder
