"""Models and heads that can be downloaded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from medusa_core.hub.drafters import DrafterOffer
from medusa_core.hub.job import Pair
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Variant:
    """A GGUF file of a repository.

    Attributes:
        file: Path in the repository, the first of a split file.
        nbytes: Bytes of all parts.
    """

    file: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class PairOffer:
    """A model with heads that can be downloaded.

    Attributes:
        title: Name for people.
        pair: Repositories and files.
        licence: Licence of the model; empty if unknown.
        is_gated: Whether its terms must be accepted first.
        is_pickled: Whether its heads are a pickle, which is converted once.
        note: Description for people.
        download_bytes: Bytes to download; 0 while unknown.
        config: Configuration of the model; None while unknown.
        heads: Sizes of the heads.
        is_curated: Whether it is in the shipped catalog.
        is_earlier: Whether newer models of its size are better.
        is_heads: Whether it has heads alone, for a model that is downloaded separately.
        kind: Kind of drafter by its name; empty for a model.
        variants: GGUF files to choose from; `pair.file` is the chosen one.
        bases: Base models that its card names.
        drafters: Published drafters of the model that are known.
        misfit: Why its heads can't be used with the model; empty if they can.
        heads_bytes: Bytes of `download_bytes` that are heads of another repository or file.
    """

    title: str
    pair: Pair
    licence: str = ""
    is_gated: bool = False
    is_pickled: bool = False
    note: str = ""
    download_bytes: int = 0
    config: ModelConfig | None = None
    heads: HeadsShape = HeadsShape()  # noqa: RUF009 - frozen
    is_curated: bool = False
    is_earlier: bool = False
    is_heads: bool = False
    kind: str = ""
    variants: tuple[Variant, ...] = ()
    bases: tuple[str, ...] = ()
    drafters: tuple[DrafterOffer, ...] = ()
    misfit: str = ""
    heads_bytes: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Hub ids of the model and its base models; a drafter's model card may name any of them."""
        return (self.pair.model, *self.bases)

    @property
    def drafter(self) -> DrafterOffer | None:
        """Drafter that is downloaded with the model; None for none."""
        pair = self.pair
        found = [one for one in self.drafters if one.repo and one.repo == pair.heads]
        return next((one for one in found if pair.heads_file in ("", one.file)), None)

    def with_drafter(self, drafter: DrafterOffer | None) -> PairOffer:
        """Return the offer with another drafter, whose sizes are unknown, or without one."""
        pair = replace(self.pair, heads="", heads_file="")
        if drafter is not None:
            pair = replace(pair, heads=drafter.repo, heads_file=drafter.file)
        return replace(
            self,
            pair=pair,
            is_pickled=drafter is not None and drafter.is_pickled,
            heads=HeadsShape(),
            misfit="",
            download_bytes=max(0, self.download_bytes - self.heads_bytes),
            heads_bytes=0,
        )
