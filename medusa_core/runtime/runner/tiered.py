"""What runners of targets have in common of which something lies below the device."""

from __future__ import annotations

from medusa_core.runtime.runner.runner import Runner, Waited
from medusa_core.runtime.runner.tier_visits import TierVisits
from medusa_core.runtime.runner.traffic import Traffic


class TieredRunner(Runner):
    """Tells what its tiers do; another runner computes.

    Attributes:
        tiers: Brings what lies below.
    """

    tiers: TierVisits

    @property
    def waited(self) -> Waited:
        return self.tiers.waited

    @property
    def traffic(self) -> Traffic:
        return self.tiers.traffic

    @property
    def buffer_bytes(self) -> int:
        return self.tiers.nbytes
