"""Graphs are chosen where they pay, hold what a step needs, and leave the stream as it was."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.runtime.runner.graphs import choose_static
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system import cuda as card
from tests.lanes.card.conftest import Folders
from tests.support.card.card import fake_cuda
from tests.support.card.tensor import FakeCudaError
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import check_same_tokens, decode, user_says
from tests.support.models.tiny import TinySpec, write_tiny

IDS = [7 + (5 * i) % 290 for i in range(30)]
TREE = TokenTree(TreeShape.from_paths([(0,), (1,), (0, 0)]), (40, 41, 42, 43))


@pytest.mark.parametrize(("pay", "kind"), [(True, StaticRunner), (False, ResidentRunner)])
def test_graphs_are_enabled_by_a_comparison_at_load(
    pay: bool, kind: type[ResidentRunner], folders: Folders
) -> None:
    with fake_cuda(graphs_pay=pay) as fake:
        target = load_target(*folders["grouped"], LoadOptions("", "cuda"))
        assert type(target.runner) is kind
        assert fake.journal.num_replayed > 0
        taken = fake.memory.taken_bytes - target.caches.nbytes
        assert taken < target.weights_bytes * 3  # the comparison's are gone


LOOKED_UP = {
    "token vectors": ("grouped", WeightFormats(embedding_in_ram=True)),
    "per-layer embeddings in their file": ("gemma4", WeightFormats()),
    "all of them": ("gemma4", WeightFormats(embedding_in_ram=True, per_layer="ram")),
    "none of them": ("gemma4", WeightFormats(per_layer="device")),
}


@pytest.mark.parametrize("name", LOOKED_UP)
def test_host_lookups_are_copied_before_a_graph_is_replayed(name: str, folders: Folders) -> None:
    model, formats = LOOKED_UP[name]
    with fake_cuda(graphs_pay=True) as fake, torch.inference_mode():
        target = load_target(*folders[model], LoadOptions("float64", "cuda", formats))
        assert type(target.runner) is StaticRunner
        resident = ResidentRunner(target.runner._model, target.precision)
        fake.journal.clear()
        found = []
        for runner in (target.runner, resident):
            kv = runner.new_cache(64)
            runner.extend(IDS, kv)
            found += [runner.verify(PlacedTree(TREE, kv)).cpu() for _ in range(2)]
        assert fake.journal.num_replayed > 0
    assert float((found[1] - found[3]).abs().max()) < 1e-12


def test_steps_that_cannot_be_captured_are_not_chosen(folders: Folders) -> None:
    def refuses(work: Callable[[], None], memory: Any) -> card.Graph:
        raise RuntimeError("operation not permitted when stream is capturing")

    with fake_cuda(graphs_pay=True), patch.object(card, "record", refuses):
        target = load_target(*folders["grouped"], LoadOptions("", "cuda"))
        assert type(target.runner) is ResidentRunner


def test_the_comparison_at_load_takes_less_memory_than_a_session(tmp_path: Path) -> None:
    model_dir = write_tiny(tmp_path / "long", TinySpec(context_tokens=4096))
    with fake_cuda() as fake:
        target = load_target(model_dir, options=LoadOptions("", "cuda"))
        model, precision = target.runner._model, target.precision
        before = fake.memory.taken_bytes
        fake.memory.peak_bytes = before
        choose_static(model, precision)
        assert fake.memory.peak_bytes - before < target.caches.nbytes


def test_a_copy_from_the_host_cannot_be_captured() -> None:
    with fake_cuda():
        x = torch.zeros(2, device="cuda")
        with pytest.raises(FakeCudaError, match="can't be recorded"):
            card.record(lambda: x.copy_(torch.ones(2)), None)


def test_a_replayed_graph_reads_the_current_contents_of_its_buffers() -> None:
    with fake_cuda():
        x, y = torch.ones(2, device="cuda"), torch.zeros(2, device="cuda")
        graph = card.record(lambda: y.copy_((x * 2)[:1].expand(2) + 1), None)
        x.copy_(torch.tensor([5.0, 0.0]))
        graph.replay()
        assert y.tolist() == [11, 11]


class FakeStream:
    """A stream of a card that computes nothing."""

    def wait_stream(self, other: "FakeStream") -> None:
        """Do nothing, as no work runs on the stream."""


class FakeGraph:
    """A graph whose capture fails at its end, as after a refused operation."""

    def __init__(self, *, fails: bool) -> None:
        self._fails = fails
        self.mode = ""

    def capture_begin(self, pool: Any, capture_error_mode: str, **_: Any) -> None:
        self.mode = capture_error_mode

    def capture_end(self) -> None:
        if self._fails:
            raise RuntimeError("CUDA error: operation failed due to a previous error")


class FakeStreams:
    """Fake of torch's streams that records the current one."""

    def __init__(self) -> None:
        self.current = FakeStream()

    def use(self, stream: FakeStream) -> "FakeStreamContext":
        return FakeStreamContext(self, stream)

    def choose(self, stream: FakeStream) -> None:
        self.current = stream


class FakeStreamContext:
    """Fake of torch's stream context: restores the previous stream only when it is left."""

    def __init__(self, streams: FakeStreams, stream: FakeStream) -> None:
        self._streams = streams
        self._stream = stream
        self._before = streams.current

    def __enter__(self) -> None:
        self._before, self._streams.current = self._streams.current, self._stream

    def __exit__(self, *_: object) -> None:
        self._streams.current = self._before


@contextmanager
def fake_capture(graph: FakeGraph) -> Iterator[FakeStreams]:
    """Torch's own `torch.cuda.graph` over streams and graphs that are none."""
    streams = FakeStreams()
    stand_ins: dict[str, Any] = {
        "Stream": FakeStream,
        "stream": streams.use,
        "current_stream": lambda: streams.current,
        "set_stream": streams.choose,
        "CUDAGraph": lambda: graph,
        "synchronize": lambda: None,
        "empty_cache": lambda: None,
    }
    with ExitStack() as stack:
        for name, stand_in in stand_ins.items():
            stack.enter_context(patch.object(torch.cuda, name, stand_in))
        stack.enter_context(patch.object(torch._C, "_host_emptyCache", lambda: None, create=True))
        stack.enter_context(patch.object(torch.cuda.graph, "default_capture_stream", None))
        yield streams


@pytest.mark.parametrize("fails", [False, True])
def test_the_stream_is_restored_whether_or_not_the_capture_fails(fails: bool) -> None:
    graph = FakeGraph(fails=fails)
    with fake_capture(graph) as streams:
        before = streams.current
        ran_on = []
        if fails:
            with pytest.raises(RuntimeError, match="previous error"):
                card.record(lambda: ran_on.append(streams.current), "memory")
        else:
            assert card.record(lambda: ran_on.append(streams.current), "memory") is graph
        assert streams.current is before
        assert before not in ran_on
        assert len(ran_on) == 3


def test_other_threads_may_query_the_card_while_a_graph_is_captured() -> None:
    graph = FakeGraph(fails=False)
    with fake_capture(graph):
        card.record(lambda: None, "memory")
    assert graph.mode == "thread_local"


@pytest.mark.parametrize("rule", ["greedy", "sample"])
def test_an_assistant_reads_rows_between_graphs(
    rule: str, load: LoadTarget, folders: Folders
) -> None:
    settings = GenerateSettings("gemma4-assistant", rule, seed=4, max_new_tokens=16)
    messages = user_says("Tell me a story about a lighthouse.")
    expected = decode(load("gemma4", "float64"), settings, messages)
    with fake_cuda(graphs_pay=True) as fake:
        with fake.waiting():
            there = load_target(*folders["gemma4"], LoadOptions("float64", "cuda"))
        assert type(there.runner) is StaticRunner
        check_same_tokens(expected, decode(there, settings, messages))
