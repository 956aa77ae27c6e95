"""Laws 1, 3 and 7 with layers on several machines, and what happens when one of these is lost."""

import pickle
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from medusa_core.engine.direct import events_of, generate
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import ClusterError, HeadsError, OutOfMemoryError, PlanError, StageBusyError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LayersMoved,
    LoadOptions,
    Move,
    MoveReason,
    StepDone,
)
from medusa_core.models.config import parse_config
from medusa_core.runtime.cluster.layer_range import (
    LayerRange,
    can_be_divided,
    shares_of,
)
from medusa_core.runtime.cluster.pipeline import (
    Power,
    divide,
    slowest_s,
)
from medusa_core.runtime.cluster.protocol import (
    CacheRequest,
    PackedTensor,
    PassRequest,
    RowsRequest,
)
from medusa_core.runtime.cluster.runner import ClusterRunner
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import (
    drafter_registry,
    serving_drafters,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.clusters import FragileCluster, a_stage, cluster_of
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.law_settings import EXACT
from tests.support.engine.laws import (
    check_cache,
    check_same_tokens,
    decode,
    plain_states,
    plainly,
    user_says,
)
from tests.support.engine.together import decode_together, requests_of
from tests.support.models.adapter_files import lora_for
from tests.support.models.peers import CONFIGS, peer_of
from tests.support.models.targets import PEERS, TARGET_NAMES, Folders, options_of
from tests.support.models.tiny import write_text_files

ADDRESS = "10.0.0.1:6379"  # nobody is asked there: the way to the machines is given
MESSAGES = user_says("tea and toast")
SETTINGS = GenerateSettings("composite", max_new_tokens=40)
IDS = [5 + (11 * i) % 300 for i in range(40)]

Divided = Callable[..., tuple[Target, FragileCluster]]


@pytest.fixture
def divided(folders: Folders) -> Divided:
    """Targets divided over a number of equal machines."""

    def load(
        name: str, dtype: str = "float64", num_stages: int = 3
    ) -> tuple[Target, FragileCluster]:
        cluster = cluster_of(folders[name][0], num_stages)
        options = replace(options_of(name, dtype, "cpu"), cluster=ADDRESS)
        return load_target(*folders[name], options, join=lambda _: cluster), cluster

    return load


def check_laws(whole: Target, target: Target, drafters: Sequence[DrafterSpec], most: int) -> None:
    """Check laws 1 to 3 for some drafters, in turns with and without sampling."""
    tolerance = 0.0 if isinstance(whole.runner, NativeRunner) else 1e-12
    plain = {}
    for number, spec in enumerate(drafters):
        rule = "sample" if number % 2 else "greedy"
        settings = GenerateSettings(spec.name, rule, seed=5, max_new_tokens=most)
        if rule not in plain:
            plain[rule] = decode(whole, plainly(settings), MESSAGES)
        drafted = decode(
            target,
            settings,
            MESSAGES,
            after_step=lambda session: check_cache(session, whole, tolerance),
        )
        check_same_tokens(plain[rule], drafted)


@pytest.mark.parametrize("num_stages", [2, 3])
@pytest.mark.parametrize("name", ["tied", "eagle", "mimo", "hydra", "assisted"])
def test_decoding_laws_1_to_3_hold_over_several_machines(
    name: str, num_stages: int, divided: Divided, load: LoadTarget
) -> None:
    target, _ = divided(name, num_stages=num_stages)
    check_laws(load(name, "float64"), target, serving_drafters(target)[:2], 10)


def test_decoding_laws_1_to_3_hold_bit_for_bit_in_the_compiled_step(
    divided: Divided, load: LoadTarget
) -> None:
    whole = load("pebble", "float32")
    if not isinstance(whole.runner, NativeRunner):
        pytest.skip("nothing is compiled for this machine")
    target, _ = divided("pebble", "float32")
    check_laws(whole, target, serving_drafters(target), 12)


def test_step_times_have_a_component_for_other_machines(divided: Divided) -> None:
    target, cluster = divided("tied")
    steps: list[StepDone] = []
    generate(target, MESSAGES, SETTINGS, on_step=steps.append)
    for step in steps[1:]:
        assert 0 < step.times.remote_s <= step.times.verify_s
    for connection in cluster.connections().values():
        connection.slowness = 0.0  # as it says
    steps.clear()
    generate(target, MESSAGES, SETTINGS, on_step=steps.append)
    for step in steps[1:]:
        assert step.times.remote_s == 0 < step.times.transfer_s <= step.times.verify_s
    assert [machine.num_layers for machine in target.runner.machines] == [
        member.share.num_layers for member in target.runner.pipeline.active
    ]


@pytest.mark.slow
@pytest.mark.parametrize("num_stages", [2, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [n for n in TARGET_NAMES if n not in ("streams", *PEERS)])
def test_decoding_laws_1_to_3_hold_for_all_targets_and_drafters(
    name: str, dtype: str, num_stages: int, divided: Divided, load: LoadTarget
) -> None:
    whole = load(name, dtype)
    if dtype == "float32" and not isinstance(whole.runner, NativeRunner):
        pytest.skip("equal but for ties, which float64 shows exactly")
    target, _ = divided(name, dtype, num_stages)
    check_laws(whole, target, serving_drafters(target), 24)


@pytest.mark.parametrize("name", ["tied", "eagle", pytest.param("pebble", marks=pytest.mark.slow)])
def test_law_7_sessions_that_share_a_pass_over_machines_get_their_own_texts(
    name: str, divided: Divided, load: LoadTarget
) -> None:
    whole, (target, cluster) = load(name, "float64"), divided(name)
    requests = requests_of(name, product(serving_drafters(target), EXACT), 12)
    random.Random(3).shuffle(requests)
    together, largest = decode_together(target, requests[:4], honest=whole)
    assert largest == 4
    for request, done in zip(requests[:4], together, strict=True):
        assert done.token_ids == decode(whole, request.settings, request.messages).token_ids
    used = {name for name, connection in cluster.all.items() if connection.num_runs}
    assert len(used) == min(3, whole.config.num_layers)


FAMILIES = sorted({CONFIGS[name]().model_type: name for name in reversed(CONFIGS)}.values())
_SIZES = {name: parse_config(CONFIGS[name]().to_dict(), {}) for name in FAMILIES}
WHOLE = [name for name in FAMILIES if not can_be_divided(_SIZES[name])]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in WHOLE])
def test_every_family_computes_the_same_when_divided(name: str, tmp_path: Path) -> None:
    peer_of(name).save_pretrained(tmp_path)
    write_text_files(tmp_path)
    options = LoadOptions("float64", "cpu")
    whole = load_target(tmp_path, options=options)
    stages = whole.config.num_layers
    cluster = cluster_of(tmp_path, max(2, stages))
    divided = replace(options, cluster=ADDRESS)
    target = load_target(tmp_path, options=divided, join=lambda _: cluster)
    taps = (0, 1, stages)
    for each in (whole, target):
        each.runner.tap(taps)
    expected, actual = (plain_states(each, IDS) for each in (whole, target))
    assert torch.allclose(actual[0], expected[0], atol=1e-12, rtol=0)
    assert torch.allclose(actual[1], expected[1], atol=1e-12, rtol=0)
    assert torch.equal(whole.runner.logits(expected[0]), target.runner.logits(expected[0]))
    assert target.num_parameters == whole.num_parameters


@pytest.mark.parametrize("name", WHOLE)
def test_recurrent_layers_are_refused_with_a_message(name: str, tmp_path: Path) -> None:
    peer_of(name).save_pretrained(tmp_path)
    write_text_files(tmp_path)
    cluster = cluster_of(tmp_path, 2)
    options = LoadOptions("float64", "cpu", cluster=ADDRESS)
    with pytest.raises(ClusterError, match="can't be with other machines") as caught:
        load_target(tmp_path, options=options, join=lambda _: cluster)
    assert "this computer" in caught.value.hint


def test_a_step_sends_one_request_to_every_stage(divided: Divided) -> None:
    target, cluster = divided("tied")
    before: list[int] = []

    def count(_: Session) -> None:
        before.append(max(connection.num_runs for connection in cluster.all.values()))

    run = decode(target, SETTINGS, MESSAGES, after_step=count)
    assert [b - a for a, b in pairwise(before)] == [1] * run.done.num_steps


def faulty_keep(order: PassRequest) -> PassRequest:
    """Keep the accepted rows in the wrong order (a planted fault)."""
    return _changed(order, lambda keep: (*keep[:1], *reversed(keep[1:])))


def first_rows(order: PassRequest) -> PassRequest:
    """Keeps the first rows instead of the accepted ones."""
    return _changed(order, lambda keep: tuple(range(len(keep))))


def shifted(order: PassRequest) -> PassRequest:
    """Lets every node see its parent's sibling instead of its parent."""
    moved = [
        replace(rows, parents=tuple(max(-1, min(p - 1, 0)) for p in rows.parents))
        for rows in order.sequences
    ]
    return replace(order, sequences=tuple(moved))


def _changed(
    order: PassRequest, change: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> PassRequest:
    sequences = [
        replace(rows, cache=replace(rows.cache, keep=change(rows.cache.keep)))
        for rows in order.sequences
    ]
    return replace(order, sequences=tuple(sequences))


@pytest.mark.parametrize("fault", [None, faulty_keep, first_rows, shifted])
def test_a_stage_with_one_planted_fault_is_caught(
    fault: Callable[[PassRequest], PassRequest] | None, divided: Divided, load: LoadTarget
) -> None:
    whole, (target, cluster) = load("tied", "float64"), divided("tied")
    cluster.all["s1"].faulty = fault
    settings = GenerateSettings("medusa", max_new_tokens=60, tree_rows=24)
    plain = decode(whole, plainly(settings), MESSAGES)
    oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids], seed=1)
    drafted = decode(target, settings, MESSAGES, drafter=oracle)
    assert (drafted.token_ids == plain.token_ids) == (fault is None)
    if fault is None:
        assert max(drafted.done.accept_lengths) >= 3


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))]
)
def test_a_stage_lost_within_an_answer_changes_no_token(
    seed: int, divided: Divided, load: LoadTarget
) -> None:
    whole, (target, cluster) = load("tied", "float64"), divided("tied")
    rng = random.Random(seed)
    lost = rng.choice(list(cluster.all.values()))
    plain = decode(whole, replace(plainly(SETTINGS), max_new_tokens=60), MESSAGES)
    lost.dies_at = lost.num_runs + rng.randrange(1, 24)
    drafter = rng.choice(["composite", "none", "medusa"])
    settings = replace(SETTINGS, drafter=drafter, max_new_tokens=60)
    drafted = decode(
        target,
        settings,
        MESSAGES,
        after_step=lambda session: check_cache(session, whole, 1e-12),
    )
    check_same_tokens(plain, drafted)


def test_a_spare_takes_over_the_layers_of_a_lost_stage(divided: Divided) -> None:
    target, cluster = divided("grouped", num_stages=3)  # two layers: one machine is a spare
    decode(target, SETTINGS, MESSAGES)
    cluster.all["s0"].dies_at = cluster.all["s0"].num_runs + 2
    moves = moves_of(target)
    assert [(move.num_layers, move.reason) for move in moves] == [(1, MoveReason.LOST)]
    assert "s2" in [member.name for member in target.runner.pipeline.active]
    assert "is lost: its layers (1) are now at" in moves[0].text


def moves_of(target: Target) -> list[Move]:
    """Return the moves of layers among an answer's events."""
    session = Session(target)
    request = Generate("s", "r", MESSAGES, replace(SETTINGS, tree_rows=12))
    reported = list(events_of(start_generation(request, target, session, RowPolicy(target))))
    assert isinstance(reported[-1], GenerationDone)
    return [event.move for event in reported if isinstance(event, LayersMoved)]


def decode_for_long(target: Target) -> None:
    """Decode a long answer, whose passes measure the stages."""
    decode(target, replace(plainly(SETTINGS), banned=(*target.eos_token_ids,)), MESSAGES)


def test_the_other_stages_take_over_if_there_is_no_spare(divided: Divided) -> None:
    target, cluster = divided("pebble")
    cluster.all["s1"].dies_at = cluster.all["s1"].num_runs + 2
    assert [move.num_layers for move in moves_of(target)] == [2]
    shares = [member.share for member in target.runner.pipeline.active]
    assert shares == [LayerRange(0, 3), LayerRange(3, 6)]


def test_two_stages_lost_in_turn_change_no_token(divided: Divided, load: LoadTarget) -> None:
    target, cluster = divided("tied")
    cluster.all["s0"].dies_at = cluster.all["s0"].num_runs + 3
    cluster.all["s2"].dies_at = cluster.all["s2"].num_runs + 4  # while tokens are sent again
    plain = decode(load("tied", "float64"), plainly(SETTINGS), MESSAGES)
    check_same_tokens(plain, decode(target, SETTINGS, MESSAGES))


def test_losing_the_last_stage_is_reported(
    divided: Divided, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.runtime.cluster.pipeline._RECOVERY_TIMEOUT_S", 0.0)
    target, cluster = divided("tied")
    for connection in cluster.all.values():
        connection.dies_at = connection.num_runs + 2
    with pytest.raises(ClusterError, match="have room for 0 of 3 layers"):
        decode(target, SETTINGS, MESSAGES)


def test_the_client_waits_for_a_stage_that_reconnects(
    divided: Divided, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, cluster = divided("tied", num_stages=1)
    cluster.all["s0"].dies_at = cluster.all["s0"].num_runs + 3
    monkeypatch.setattr(
        "medusa_core.runtime.cluster.pipeline.time.sleep",
        lambda _: cluster.add(a_stage(folders["tied"][0], "again")),
    )
    assert len(moves_of(target)) == 1


def test_a_continued_session_is_prefilled_again_after_a_loss(
    divided: Divided, load: LoadTarget
) -> None:
    whole, (target, cluster) = load("tied", "float64"), divided("tied")
    session, other = Session(target), Session(target)
    decode(target, SETTINGS, MESSAGES, session=session)
    cluster.all["s1"].dies_at = cluster.all["s1"].num_runs + 1
    decode(target, SETTINGS, user_says("another"), session=other)
    check_cache(session, whole, 1e-12)  # it lay with the stage that was lost
    check_cache(other, whole, 1e-12)


def test_a_slow_stage_gets_fewer_layers_between_answers(divided: Divided) -> None:
    target, cluster = divided("pebble")
    pipeline = target.runner.pipeline
    pipeline._clock = lambda: 1e9  # long ago
    assert [member.share.num_layers for member in pipeline.active] == [2, 2, 2]
    moves_of(target)
    assert [member.share.num_layers for member in pipeline.active] == [2, 2, 2]
    cluster.all["s1"].slowness = 8.0
    decode_for_long(target)
    pipeline._reviewed_at = 0.0
    moves = moves_of(target)
    counts = {member.name: member.share.num_layers for member in pipeline.active}
    assert sum(counts.values()) == 6
    assert counts.get("s1", 0) < 2
    assert [move.reason for move in moves] == [MoveReason.SLOW]


def test_a_machine_that_joins_later_is_a_spare(divided: Divided, folders: Folders) -> None:
    target, cluster = divided("tied", num_stages=2)
    target.runner.pipeline._reviewed_at = -1e9
    cluster.add(a_stage(folders["tied"][0], "late"))
    decode(target, SETTINGS, MESSAGES)
    cluster.all["s0"].dies_at = cluster.all["s0"].num_runs + 1
    decode(target, SETTINGS, MESSAGES)
    assert "late" in [member.name for member in target.runner.pipeline.active]


def test_a_machine_that_joins_later_gets_layers_between_answers(
    divided: Divided, folders: Folders
) -> None:
    target, cluster = divided("pebble", num_stages=1)
    target.runner.pipeline._reviewed_at = -1e9
    cluster.add(a_stage(folders["pebble"][0], "late"))
    decode_for_long(target)
    target.runner.pipeline._reviewed_at = -1e9
    moves = moves_of(target)
    assert [(move.num_layers, move.reason) for move in moves] == [(3, MoveReason.JOINED)]
    assert moves[0].text.endswith("joined and took 3 of the layers.")


def test_a_stage_with_another_model_is_refused_by_its_hash(
    folders: Folders, tmp_path: Path
) -> None:
    folder = folders["tied"][0]
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    weights = other / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-5] ^= 1
    weights.write_bytes(bytes(data))
    cluster = FragileCluster([a_stage(folder, "good"), a_stage(other, "bad")])
    with pytest.raises(ClusterError, match="the model's hash is"):
        load_target(folder, options=LoadOptions(cluster=ADDRESS), join=lambda _: cluster)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"libraries": {"avx2": "0"}}, "the kernel library is avx2"),
        ({"versions": {"torch": "1.0"}}, "Medusa Chat is none"),
    ],
)
def test_a_stage_with_other_kernels_is_refused_by_name(
    changed: dict[str, object],
    named: str,
    folders: Folders,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = folders["tied"][0]
    monkeypatch.setattr("medusa_core.runtime.cluster.opening.library_name", lambda: "avx512")
    monkeypatch.setattr(
        "medusa_core.runtime.cluster.opening.usable_libraries", lambda: {"avx512": "1"}
    )
    cluster = cluster_of(folder, 1)
    connection = cluster.all["s0"]
    offer = replace(connection.offer(), **changed)
    monkeypatch.setattr(connection, "offer", lambda: offer)
    with pytest.raises(ClusterError, match=named):
        load_target(folder, options=LoadOptions(cluster=ADDRESS), join=lambda _: cluster)


def test_a_stage_with_another_weight_format_is_refused_by_name(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folders["tied"][0]
    cluster = cluster_of(folder, 1)
    connection, honest = cluster.all["s0"], cluster.all["s0"].prepare
    monkeypatch.setattr(
        connection, "prepare", lambda wanted: honest(replace(wanted, compute="bfloat16"))
    )
    with pytest.raises(ClusterError, match="s0 can't join: its format of compute is bfloat16"):
        load_target(folder, options=LoadOptions("float32", cluster=ADDRESS), join=lambda _: cluster)


def test_layers_go_where_there_is_memory_for_them(folders: Folders) -> None:
    folder = folders["pebble"][0]
    small = a_stage(folder, "small", 9 << 20)
    cluster = FragileCluster([small, a_stage(folder, "large")])
    target = load_target(
        folder, options=LoadOptions("float32", cluster=ADDRESS), join=lambda _: cluster
    )
    counts = {member.name: member.share.num_layers for member in target.runner.pipeline.active}
    assert counts == {"small": 1, "large": 5}
    both = FragileCluster([a_stage(folder, f"small {i}", 9 << 20) for i in range(2)])
    with pytest.raises(ClusterError, match="room for 2 of 6 layers"):
        load_target(folder, options=LoadOptions("float32", cluster=ADDRESS), join=lambda _: both)


def test_a_failed_load_releases_its_machines(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OutOfMemoryError("There is no room for caches.", "Close other programs.")

    folder, cluster = folders["tied"][0], cluster_of(folders["tied"][0], 2)
    monkeypatch.setattr("medusa_core.runtime.cluster.pipeline._BUSY_TIMEOUT_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr("medusa_core.loading.load.make_caches", full)
        with pytest.raises(OutOfMemoryError):
            load_target(
                folder, options=LoadOptions("float64", cluster=ADDRESS), join=lambda _: cluster
            )
    load_target(
        folder, options=LoadOptions("float64", cluster=ADDRESS), join=lambda _: cluster
    ).runner.leave()


def test_with_a_cluster_no_layer_is_offloaded_on_the_client(folders: Folders) -> None:
    folder, cluster = folders["tied"][0], cluster_of(folders["tied"][0], 2)
    options = LoadOptions("float64", cluster=ADDRESS, memory_gib=1e-4, tier_disk=Path("layers"))
    with pytest.raises(PlanError):
        load_target(folder, options=options, join=lambda _: cluster)


def test_without_a_stage_the_message_says_how_to_start_one(folders: Folders) -> None:
    with pytest.raises(ClusterError, match="Nobody offers layers") as caught:
        load_target(
            folders["tied"][0],
            options=LoadOptions(cluster=ADDRESS),
            join=lambda _: FragileCluster([]),
        )
    assert "serve-layers" in caught.value.hint


def test_a_stage_serves_one_client_at_a_time(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folders["tied"][0]
    cluster = cluster_of(folder, 2)
    options = LoadOptions("float64", cluster=ADDRESS)
    first = load_target(folder, options=options, join=lambda _: cluster)
    monkeypatch.setattr("medusa_core.runtime.cluster.pipeline._BUSY_TIMEOUT_S", 0.0)
    with pytest.raises(StageBusyError, match="serves another client"):
        load_target(folder, options=options, join=lambda _: cluster)
    monkeypatch.setattr("medusa_core.runtime.cluster.stage._IDLE_S", 0.0)
    second = load_target(folder, options=options, join=lambda _: cluster)
    with pytest.raises(StageBusyError, match="serves another client now"):
        decode(first, plainly(SETTINGS), MESSAGES)
    first.runner.leave()  # which drops nobody else's layers
    assert decode(second, plainly(SETTINGS), MESSAGES).token_ids
    monkeypatch.undo()
    second.runner.leave()
    load_target(folder, options=options, join=lambda _: cluster)


def test_features_that_need_local_layers_are_refused(folders: Folders, tmp_path: Path) -> None:
    model_dir, streams = folders["streams"]
    cluster = cluster_of(model_dir, 2)
    options = LoadOptions("float64", cluster=ADDRESS)
    with pytest.raises(HeadsError, match="Streams"):
        load_target(model_dir, streams, options, join=lambda _: cluster)
    lora_for(model_dir, tmp_path / "lora")
    with pytest.raises(ClusterError, match="Adapters can't be used"):
        load_target(
            model_dir,
            options=replace(options, adapter_dir=tmp_path / "lora"),
            join=lambda _: cluster,
        )


def test_stages_free_caches_that_no_session_uses(divided: Divided) -> None:
    target, cluster = divided("tied")
    for number in range(5):
        session = Session(target)
        decode(target, SETTINGS, user_says(str(number)), session=session)
        session.close()
        del session
    stages = [connection._stage for connection in cluster.all.values()]
    assert max(len(stage._caches) for stage in stages) <= 2


def test_measurements_fill_caches_without_sending_rows_again(divided: Divided) -> None:
    target, cluster = divided("tied")
    kv = target.runner.new_cache(300)
    kv.fill(200)
    runs = cluster.all["s0"].num_runs
    with torch.inference_mode():
        target.runner.extend([7], kv)
    assert cluster.all["s0"].num_runs == runs + 1
    assert kv.committed().shape[3] == 201


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.floats(0.1, 10), st.integers(0, 6)), min_size=1, max_size=4),
)
def test_no_division_makes_the_slowest_machine_faster(
    num_layers: int, machines: list[tuple[float, int]]
) -> None:
    powers = [Power(*machine) for machine in machines]
    counts = divide(num_layers, powers)
    ways = [[]]
    for power in powers:
        ways = [[*way, n] for way in ways for n in range(min(power.most_layers, num_layers) + 1)]
    ways = [way for way in ways if sum(way) == num_layers]
    if counts is None:
        assert not ways
        return
    assert sum(counts) == num_layers
    best = min(slowest_s(way, powers) for way in ways)
    assert slowest_s(counts, powers) <= best * (1 + 1e-12)


def test_shares_of_layers_are_contiguous() -> None:
    assert shares_of([2, 0, 3]) == [LayerRange(0, 2), LayerRange(0, 0), LayerRange(2, 5)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_commands_survive_serialization_bit_for_bit(dtype: torch.dtype) -> None:
    rows = torch.randn(3, 7).to(dtype)
    cache_order = CacheRequest(3, (0, 2), 17, 64, False)
    order = PassRequest(
        "me",
        (RowsRequest(cache_order, 3, ((), (0,), (1,)), (-1, 0, 0)),),
        PackedTensor.of(rows),
        (1,),
        False,
        (),
    )
    found = pickle.loads(pickle.dumps(order))  # noqa: S301 - its own
    assert torch.equal(found.rows.tensor(), rows)
    assert found.sequences == order.sequences


def test_the_clients_own_part_is_planned_without_layers(divided: Divided, load: LoadTarget) -> None:
    target, whole = divided("pebble")[0], load("pebble", "float64")
    assert isinstance(target.runner, ClusterRunner)
    assert target.plan.weights_bytes < whole.plan.weights_bytes / 2
    assert target.weights_bytes <= target.plan.weights_bytes
    assert {spec.name for spec in serving_drafters(target)} == {
        spec.name for spec in drafter_registry().specs if spec.serves(whole)
    }
