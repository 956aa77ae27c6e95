"""Names of the engine's sources and rules, and the appearance of their marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from app.i18n.setting_texts import setting_text
from medusa_core.messages import RuleChoice, SourceInfo, TokenSource


class Mark(NamedTuple):
    """Mark of an accepted token: the source and depth of its draft.

    Attributes:
        source: Name of the source in the engine.
        depth: Depth in the tree, from 1; 0 if the source isn't numbered.
    """

    source: str
    depth: int


def marks_of(source: TokenSource) -> tuple[Mark, ...]:
    """Return the marks of all sources that drafted a token; none for the target's own."""
    return tuple(Mark(name, source.head) for name in source.proposers)


def mark_of(source: TokenSource) -> Mark | None:
    """Return the mark of a token's first source; None for the target's own."""
    return next(iter(marks_of(source)), None)


class Legend:
    """Names of sources and rules of the loaded models; unknown names are shown as they are.

    Attributes:
        specials: Names of the loaded model's special tokens; empty for those that end an answer.
        serving: Names of the sources that can draft for the model; None for all.
    """

    def __init__(
        self, sources: Iterable[SourceInfo] = (), rules: Iterable[RuleChoice] = ()
    ) -> None:
        self.specials: Mapping[int, str] = {}
        self.serving: frozenset[str] | None = None
        self._infos: dict[str, SourceInfo] = {}
        self._rules: dict[str, RuleChoice] = {}
        self.learn(sources, rules)

    @property
    def sources(self) -> tuple[SourceInfo, ...]:
        """The sources that can draft for the model, in the engine's order."""
        infos = self._infos.values()
        return tuple(i for i in infos if self.serving is None or i.name in self.serving)

    @property
    def block_sources(self) -> tuple[str, ...]:
        """Names of all block drafters (one pass drafts all tokens), also those not loaded."""
        return tuple(info.name for info in self._infos.values() if info.draws_block)

    @property
    def rules(self) -> tuple[RuleChoice, ...]:
        """The rules, the default first; none before a model was loaded."""
        return tuple(self._rules.values())

    def learn(
        self,
        sources: Iterable[SourceInfo],
        rules: Iterable[RuleChoice],
        specials: Mapping[int, str] = MappingProxyType({}),
        serving: frozenset[str] | None = None,
    ) -> None:
        """Add the names of a model; names of earlier models are kept."""
        self.specials, self.serving = specials, serving
        self._infos |= {info.name: info for info in sources}
        self._rules |= {rule.name: rule for rule in rules}

    def rule(self, name: str) -> RuleChoice:
        """Return a rule by name."""
        unknown = RuleChoice(name, name, "", is_exact=False, draws=True)
        return self._rules.get(name) or unknown

    def info(self, name: str) -> SourceInfo:
        """Return the description of a source."""
        return self._infos.get(name) or SourceInfo(name, name, name, name, ("grey",), "wave")

    def kind(self, mark: Mark) -> Mark:
        """Return the mark for counting: one for all depths if the source isn't numbered."""
        return mark if self.info(mark.source).is_numbered else Mark(mark.source, 0)

    def place(self, mark: Mark) -> tuple[int, int]:
        """Return the position of a mark in the legend."""
        names = list(self._infos)
        known = mark.source in self._infos
        return names.index(mark.source) if known else len(names), mark.depth

    def name(self, mark: Mark) -> str:
        """Return the name of a mark, such as "head 2" or "suffix"."""
        info = self.info(mark.source)
        return (
            f"{setting_text(info.label)} {mark.depth}"
            if info.is_numbered
            else setting_text(info.label)
        )

    def badge(self, mark: Mark) -> str:
        """Return the short name of a mark, such as "h2" or "suffix"."""
        info = self.info(mark.source)
        return f"{info.badge}{mark.depth}" if info.is_numbered else info.badge

    def colour(self, mark: Mark) -> str:
        """Return the name of a mark's colour in the palette."""
        colours = self.info(mark.source).colours
        return colours[max(0, mark.depth - 1) % len(colours)]
