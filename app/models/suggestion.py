"""Order of the models that are suggested for a computer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from app.models.load_estimate import LoadEstimateQuery, answer_to
from app.widgets.sizes import (
    loaded_as,
    verdict,
)
from medusa_core.api import (
    Budget,
    Forecast,
    ModelConfig,
    PairOffer,
    Recommendation,
    plan_least,
    recommend,
)
from medusa_core.messages import Fit, HeadsShape

# What a processor reads for every token in a fraction of a second.
_QUICK_BYTES = 4 * 10**9


@lru_cache(maxsize=128)  # a list asks for its order, its best and the words of each row
def _recommended(config: ModelConfig, heads: HeadsShape, budget: Budget) -> Recommendation | None:
    return recommend(config, heads, budget)


def has_card(budget: Budget | None) -> bool:
    """Whether models run on a graphics card."""
    return budget is not None and budget.hardware.device != "cpu"


def fits(offer: PairOffer, budget: Budget | None) -> bool:
    """Whether a model can be loaded; true while unknown."""
    if offer.config is None or budget is None:
        return True
    return _recommended(offer.config, offer.heads, budget) is not None


def fit_words(config: ModelConfig | None, heads: HeadsShape, budget: Budget | None) -> str:
    """Describe how a model fits a device with recommended options; empty while unknown."""
    if config is None or budget is None:
        return ""
    best = _recommended(config, heads, budget)
    if best is None:
        return verdict(plan_least(config, heads, budget).plan)
    return verdict(best.plan, loaded_as(best.formats.linears))


def in_order(offers: Sequence[PairOffer], budget: Budget | None) -> tuple[PairOffer, ...]:
    """Sort offers: those of the catalog that fit first, current models before older ones.

    With a graphics card, those with heads come first among these, and small ones last.
    """

    def place(offer: PairOffer) -> tuple[bool, bool, int]:
        if not offer.is_curated:
            return False, False, 0
        speed = 0
        if has_card(budget) and not offer.heads.num_heads:
            speed = 1 + _is_quick(offer)
        return not fits(offer, budget), offer.is_earlier, speed

    return tuple(sorted(offers, key=place))


def suggested(offers: Sequence[PairOffer], budget: Budget | None) -> PairOffer | None:
    """Return the best offer for a computer; None if none is known to fit.

    With a graphics card: heads first, then the order. Without: the largest current model that a
    processor computes fast enough.
    """
    fitting = [one for one in offers if one.config is not None and fits(one, budget)]
    quick = [one for one in fitting if _is_quick(one)]
    if not fitting:
        return None
    if has_card(budget) or not quick:
        return max(fitting, key=lambda one: bool(one.heads.num_heads))
    return max(quick, key=lambda one: (not one.is_earlier, one.download_bytes))


def proposed(offers: Sequence[PairOffer], budget: Budget) -> PairOffer | None:
    """Return the best offer that isn't gated and fits in memory."""
    free = [one for one in offers if not one.is_gated and not one.is_pickled]
    roomy = [one for one in free if _is_roomy(one, budget)]
    return suggested(in_order(roomy or free, budget), budget)


def _is_roomy(offer: PairOffer, budget: Budget) -> bool:
    if offer.config is None:
        return False
    best = recommend(offer.config, offer.heads, budget)
    return best is not None and best.plan.fit is Fit.FITS


def _is_quick(offer: PairOffer) -> bool:
    return offer.download_bytes <= _QUICK_BYTES


def expected_speed(offer: PairOffer, budget: Budget) -> float:
    """Return the estimated tokens per second of a model on a device; 0 if unknown.

    Raises:
        MedusaError: The device can't be measured.
    """
    if offer.config is None:
        return 0.0
    choice = recommend(offer.config, offer.heads, budget)
    if choice is None:
        return 0.0
    answer = answer_to(LoadEstimateQuery(offer.config, offer.heads, None, choice, budget, None, ""))
    return answer.tokens_per_s if isinstance(answer, Forecast) else 0.0
