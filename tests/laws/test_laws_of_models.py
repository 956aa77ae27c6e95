"""Laws 1 to 3 over every family, over every stored type in the compiled step, and in 8-bit KV."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import copytree

import pytest
import torch

from medusa_core.bench.random_target import make_random
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.config import parse_config
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.block_types import BLOCK_TYPES
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import RuleSpec
from tests.support.engine.by_turns import by_turns
from tests.support.engine.law_models import MESSAGES, oracle_of, settings_of
from tests.support.engine.law_settings import EXACT
from tests.support.engine.laws import (
    check_cache,
    check_same_tokens,
    check_sources,
    decode,
    plainly,
)
from tests.support.models.peer_files import peer_folder
from tests.support.models.peers import CONFIGS, first_of_family
from tests.support.models.tiny import (
    ACCURACIES,
    TinySpec,
    random_heads,
    write_heads,
    write_text_files,
)
from tests.support.models.wide_peers import wide_peer

DRAFTERS = [spec for spec in drafter_registry().specs if spec.name != "none"]
# One of every family; windows of theirs end within these texts.
FIRST_OF_FAMILY = first_of_family()
# Wide enough for whole blocks of the largest types.
IN_BLOCKS = parse_config(
    {
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 4096,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
    },
    {},
)

LoadFamily = Callable[[str], Target]
LoadBlocks = Callable[[str], Target]


@pytest.fixture(scope="module")
def load_family(tmp_path_factory: pytest.TempPathFactory) -> LoadFamily:
    """Targets of `CONFIGS` in float64, with heads, each once."""

    @cache
    def load(name: str) -> Target:
        folder = tmp_path_factory.mktemp("family")
        copytree(peer_folder(name), folder / "model")
        write_text_files(folder / "model")
        spec = TinySpec(hidden_size=CONFIGS[name]().hidden_size)
        heads = write_heads(folder / "heads", random_heads(spec), ACCURACIES)
        return load_target(folder / "model", heads, LoadOptions("float64"))

    return load


@pytest.fixture(scope="module")
def load_blocks() -> LoadBlocks:
    """Make random targets in a block format, with heads; one per format."""

    @cache
    def load(of: str) -> Target:
        options = LoadOptions(device="cpu", formats=WeightFormats(of))
        return make_random(of, IN_BLOCKS, options, num_heads=3)

    return load


@pytest.mark.parametrize(
    ("name", "rule"), by_turns(list(CONFIGS), EXACT, daily=FIRST_OF_FAMILY.values())
)
def test_laws_1_to_3_hold_with_an_oracle_on_every_family(
    name: str, rule: RuleSpec, load_family: LoadFamily
) -> None:
    target, settings = load_family(name), settings_of(rule, "composite")
    plain = decode(target, plainly(settings), MESSAGES)
    run = decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle_of(plain),
        after_step=lambda session: check_cache(session, target, 1e-12),
    )
    check_same_tokens(plain, run)
    check_sources(run)
    assert run.done.num_steps < plain.done.num_steps


@pytest.mark.parametrize(("family", "rule"), by_turns(list(FIRST_OF_FAMILY), EXACT))
def test_laws_1_and_2_no_drafter_changes_a_token_of_any_family(
    family: str, rule: RuleSpec, load_family: LoadFamily
) -> None:
    target = load_family(FIRST_OF_FAMILY[family])
    serving = [drafter for drafter in DRAFTERS if drafter.serves(target)]
    drafter = serving[list(FIRST_OF_FAMILY).index(family) % len(serving)]
    settings = settings_of(rule, drafter.name)
    drafted = decode(target, settings, MESSAGES)
    check_same_tokens(decode(target, plainly(settings), MESSAGES), drafted)
    check_sources(drafted)


def test_every_stored_type_is_a_weight_format() -> None:
    assert set(BLOCK_TYPES) <= set(weight_formats().names)


@pytest.mark.parametrize(("of", "rule"), by_turns(sorted(BLOCK_TYPES), EXACT))
def test_laws_1_and_2_no_drafter_changes_a_token_of_any_stored_type(
    of: str, rule: RuleSpec, load_blocks: LoadBlocks
) -> None:
    target, settings = load_blocks(of), settings_of(rule)
    assert target.formats.linears.name == of
    plain = decode(target, settings, MESSAGES)
    check_same_tokens(plain, decode(target, settings, MESSAGES, drafter=oracle_of(plain)))
    serving = [drafter for drafter in DRAFTERS if drafter.serves(target)]
    drafter = serving[sorted(BLOCK_TYPES).index(of) % len(serving)]
    check_same_tokens(plain, decode(target, replace(settings, drafter=drafter.name), MESSAGES))


# A sliding window, states beside rows, and layers that read the rows of others.
@pytest.mark.parametrize(
    ("name", "rule"), by_turns(["gemma 3, longer", "qwen 3.5", "gemma 4 E2B"], EXACT)
)
def test_laws_1_to_4_and_7_hold_for_keys_and_values_in_8_bits(
    name: str, rule: RuleSpec, tmp_path: Path
) -> None:
    wide_peer(name).save_pretrained(tmp_path)
    write_text_files(tmp_path)
    options = LoadOptions(formats=WeightFormats(cache="q8_0"), context_tokens=512, sessions=3)
    target, settings = load_target(tmp_path, None, options), settings_of(rule)
    runner = target.runner
    assert isinstance(runner, NativeRunner)
    assert target.caches.nbytes == target.plan.kv_bytes
    plain = decode(target, settings, MESSAGES)
    run = decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle_of(plain),
        after_step=lambda session: check_cache(session, target, 0.0),
    )
    assert run.token_ids == plain.token_ids
    assert max(run.done.accept_lengths) > 2
    both = [target.allocate_cache(96) for _ in range(2)]
    for kv, ids in zip(both, (plain.token_ids, plain.prompt_ids[:40]), strict=True):
        runner.extend(ids, kv)
    tree = TokenTree(TreeShape.from_paths([(0,), (1,), (0, 0), (1, 0)]), (5, 6, 7, 8, 9))
    together = runner.verify(*(PlacedTree(tree, kv) for kv in both))
    for kv in both:  # as if nothing had been drafted
        kv.commit(())
    alone = torch.cat([runner.verify(PlacedTree(tree, kv)) for kv in both])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("of", sorted(BLOCK_TYPES))
def test_law_3_the_cache_of_any_stored_type_equals_one_without_drafts(
    of: str, load_blocks: LoadBlocks
) -> None:
    target, settings = load_blocks(of), settings_of(EXACT[0])
    tolerance = 0.0 if isinstance(target.runner, NativeRunner) else 1e-4
    decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle_of(decode(target, settings, MESSAGES)),
        after_step=lambda session: check_cache(session, target, tolerance),
    )
