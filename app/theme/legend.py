"""What the engine calls its sources of drafts and its rules, and how their marks look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from app.i18n.setting_texts import setting_text
from medusa_core.messages import RuleChoice, SourceInfo, TokenSource


class Mark(NamedTuple):
    """How an accepted token is marked: by the source that drafted it, and from how far.

    Attributes:
        source: The source's name in the engine.
        depth: Tokens behind the decided one, from 1; 0 where it doesn't matter.
    """

    source: str
    depth: int


def marks_of(source: TokenSource) -> tuple[Mark, ...]:
    """Marks of all who proposed a token; none for what the target chose itself."""
    return tuple(Mark(name, source.head) for name in source.proposers)


def mark_of(source: TokenSource) -> Mark | None:
    """How a token is marked: as the first of those who proposed it; None for the target's own."""
    return next(iter(marks_of(source)), None)


class Legend:
    """What came with the models that were loaded; a name it doesn't know stands for itself.

    Attributes:
        specials: Names of the loaded model's tokens without a text; empty for an answer's end.
        serving: Names of the sources that can draft for that model; None for all.
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
        """Names of those that draw all places of a step in one pass, serving the model or not."""
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
        """Take what came with a model; names that came with an earlier one stay known."""
        self.specials, self.serving = specials, serving
        self._infos |= {info.name: info for info in sources}
        self._rules |= {rule.name: rule for rule in rules}

    def rule(self, name: str) -> RuleChoice:
        """A rule."""
        unknown = RuleChoice(name, name, "", is_exact=False, draws=True)
        return self._rules.get(name) or unknown

    def info(self, name: str) -> SourceInfo:
        """How a source is shown."""
        return self._infos.get(name) or SourceInfo(name, name, name, name, ("grey",), "wave")

    def kind(self, mark: Mark) -> Mark:
        """The mark under which a token counts: of a source that isn't numbered, one for all."""
        return mark if self.info(mark.source).is_numbered else Mark(mark.source, 0)

    def place(self, mark: Mark) -> tuple[int, int]:
        """Where a mark stands among all."""
        names = list(self._infos)
        known = mark.source in self._infos
        return names.index(mark.source) if known else len(names), mark.depth

    def name(self, mark: Mark) -> str:
        """A mark in words, such as "head 2" or "suffix"."""
        info = self.info(mark.source)
        return (
            f"{setting_text(info.label)} {mark.depth}"
            if info.is_numbered
            else setting_text(info.label)
        )

    def badge(self, mark: Mark) -> str:
        """A short name, such as "h2" or "suffix"."""
        info = self.info(mark.source)
        return f"{info.badge}{mark.depth}" if info.is_numbered else info.badge

    def colour(self, mark: Mark) -> str:
        """The name of its colour in the palette."""
        colours = self.info(mark.source).colours
        return colours[max(0, mark.depth - 1) % len(colours)]
