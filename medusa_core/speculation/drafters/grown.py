"""The drafter that grows a tree in every step from a list of sources."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import lru_cache, partial

from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, DrafterChoice, Odds, TokenSource
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.choice import between_passes
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Form,
    Proposal,
    RowBudget,
)
from medusa_core.speculation.drafters.constrained import GrammarFilter, constrained
from medusa_core.speculation.drafters.drafter import (
    Drafter,
    DrafterSpec,
    accuracies_of,
    no_ranks,
)
from medusa_core.speculation.drafters.forced_text import GRAMMAR, ForcedText
from medusa_core.speculation.drafters.growth import make_growth
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    ReadsStates,
    RecallsTexts,
    Rides,
    SourceMemory,
    SourceSpec,
    UsesTargetCache,
    source_registry,
)

_CACHED_NODES = 32


class GrownDrafter:
    """Queries its sources level by level, and keeps the nodes that are worth the cost of a row."""

    def __init__(self, budget: RowBudget, target: Target, specs: Sequence[SourceSpec]) -> None:
        """Build the sources.

        Args:
            budget: Maximum rows of a tree, and their costs.
            target: The target.
            specs: Registry entries of the sources.
        """
        self._max_rows, self._runner = budget.most, target.runner
        self._names = (*(spec.name for spec in specs), GRAMMAR.name)
        self._sources = [spec.build(target, budget) for spec in specs]
        self._rider = next((source for source in self._sources if isinstance(source, Rides)), None)
        if self._rider is not None:
            budget = budget.without(self._rider.most_riders)
        self._max_nodes = budget.most
        self._readers = [source for source in self._sources if isinstance(source, ReadsStates)]
        self._cache_readers = [
            source for source in self._sources if isinstance(source, UsesTargetCache)
        ]
        self._growth = make_growth(budget, [*(spec.weight for spec in specs), 0.0])

    def record_offers(self) -> None:
        """Record the candidates of every step from now on; see `Proposal.offers`."""
        self._growth.records_offers = True

    def scale_costs(self, factor: float) -> None:
        """Multiply the costs of rows and levels by a factor; see `ScalesCosts`."""
        self._growth.scale_costs(factor)

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer in every source."""
        for source in self._sources:
            source.begin(token_ids)

    def recall(self, texts: Iterable[Sequence[int]]) -> None:
        """Pass the tokens of messages outside of the prompt to the sources that draft from them."""
        listed = list(texts)
        for source in self._sources:
            if isinstance(source, RecallsTexts):
                source.recall(listed)

    @property
    def reads_states(self) -> bool:
        """Whether one of its sources needs the target's hidden state of every token."""
        return bool(self._readers)

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Resume the sources that read states; the shortest known prefix counts."""
        resumed = [reader.resume(token_ids, memory) for reader in self._readers]
        return min(resumed, default=len(token_ids))

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Pass the prompt's hidden states to the sources that read them."""
        for reader in self._readers:
            reader.read(place, states, deep)

    def attach_cache(self, kv: KvCache) -> None:
        """Pass the target's cache to the sources that read it."""
        for source in self._cache_readers:
            source.attach_cache(kv)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        """Grow a tree from the sources' candidates."""
        with between_passes(self._runner):
            return self._propose(root_id, max_rows, grammar)

    def _propose(self, root_id: int, max_rows: int, grammar: Grammar | None) -> Proposal:
        """Query the sources level by level, with riders beside the tree if a source has any."""
        rows = min(self._max_rows, max_rows)
        riders = None if self._rider is None else self._rider.riders(root_id, rows)
        if riders is not None:
            rows -= riders.shape.num_nodes - 1
        rows = min(rows, self._max_nodes)
        for source in self._sources:
            source.start(root_id, rows)
        allowed = None if grammar is None else GrammarFilter(grammar)
        sources = (*constrained(self._sources, allowed), ForcedText(grammar))
        grown = self._growth.grow(sources, rows)
        shape, proposers = form_of(grown.form, self._names)
        tree = TokenTree(shape, (root_id, *grown.token_ids))
        top_tokens = next((one.top_tokens for one in self._sources if one.top_tokens), ())
        odds = partial(_odds, grown.chances)
        forbidden = () if allowed is None else allowed.forbidden
        return Proposal(
            tree,
            proposers,
            odds,
            top_tokens,
            grown.expected_accepted,
            riders,
            forbidden,
            grown.offers,
        )

    def observe(self, observation: Observation) -> None:
        """Show the decided tokens to every source."""
        # Only sources that read states compute here; changing torch's threads takes as long as all
        # of the others.
        with between_passes(self._runner) if self._readers else nullcontext():
            for source in self._sources:
                source.observe(observation)

    def truncate(self, length: int) -> None:
        """Drop every source's state of the tokens from `length` on."""
        for source in self._sources:
            source.truncate(length)


def as_state_reader(drafter: Drafter) -> ReadsStates | None:
    """Return the drafter if it reads the target's hidden states of all tokens; else None."""
    if isinstance(drafter, GrownDrafter) and not drafter.reads_states:
        return None
    return drafter if isinstance(drafter, ReadsStates) else None


def _odds(chances: bytes) -> Odds:
    """The probabilities of the draft nodes, given the paths before them."""
    return Odds(chances, tuple(range(len(chances) // array("f").itemsize)))


def form_of(form: bytes, names: tuple[str, ...]) -> Form:
    """Decode `Grown.form`; small forms are cached, as masks and depths are computed from them.

    Large ones hardly ever repeat, and a thousand of them would take 300 MB.
    """
    nodes = len(form) // (2 * array("i").itemsize)
    return _cached_form(form, names) if nodes <= _CACHED_NODES else _make_form(form, names)


def _make_form(form: bytes, names: tuple[str, ...]) -> Form:
    """Decode a form: the tree's shape, and the source of each node."""
    values = memoryview(form).cast("i").tolist()
    shape = TreeShape.from_children(values[: len(values) // 2])
    drafts = zip(values[len(values) // 2 + 1 :], shape.depths[1:], strict=True)
    return Form(shape, (TARGET, *(_source(marks, depth, names) for marks, depth in drafts)))


_cached_form = lru_cache(maxsize=512)(_make_form)


@lru_cache(maxsize=4096)
def _source(marks: int, depth: int, names: tuple[str, ...]) -> TokenSource:
    """The source of a node from its bit mask of sources and its depth."""
    proposers = (name for place, name in enumerate(names) if marks >> place & 1)
    return TokenSource("+".join(proposers), depth)


def grown_spec(
    choice: DrafterChoice,
    sources: Sequence[str],
    preference: int,
    hint: str = "",
    is_raced: bool = True,
) -> DrafterSpec:
    """Describe a drafter that grows trees from those of its sources that serve a target.

    Args:
        choice: Its name and texts.
        sources: Names of its sources, of which at least two must serve, or the only one.
        preference: See `DrafterSpec.preference`.
        hint: See `DrafterSpec.hint`; empty for the hint of its first source.
        is_raced: See `DrafterSpec.is_raced`.
    """
    specs = [source_registry().get(name) for name in sources]

    def serving(target: Target) -> list[SourceSpec]:
        """The sources that can draft for a target."""
        return [spec for spec in specs if spec.serves(target)]

    def serves(target: Target) -> bool:
        """Whether enough sources can draft for a target."""
        return len(serving(target)) >= min(2, len(specs))

    def build(target: Target, budget: RowBudget) -> GrownDrafter:
        """Make the drafter of the sources that can draft for a target."""
        if not serves(target):
            raise RequestError(
                tr("{0} can't use the drafter {1}.", target.name, repr(choice.name)), hint
            )
        return GrownDrafter(budget, target, serving(target))

    hint = hint or next((spec.hint for spec in specs if spec.hint), "")
    return DrafterSpec(
        choice,
        serves,
        build,
        preference,
        sources=tuple(sources),
        weighs_rows=True,
        accuracies=accuracies_of if any(spec.is_ranked for spec in specs) else no_ranks,
        hint=hint,
        is_raced=is_raced,
    )
