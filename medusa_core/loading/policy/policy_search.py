"""Search the policy of a request on a machine whose rates are measured when they are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from medusa_core.errors import PlanError
from medusa_core.i18n import tr
from medusa_core.loading.memory.budget import Budget
from medusa_core.loading.memory.placement import OffloadRoom
from medusa_core.loading.policy.machine_rates import MachineRates
from medusa_core.loading.policy.request import PolicyRequest, workload_of
from medusa_core.loading.policy.result import FoundPolicy
from medusa_core.loading.policy.rules import Rules
from medusa_core.loading.policy.search import forecast_policy, search
from medusa_core.loading.policy.workload import Workload
from medusa_core.messages import Policy, Tier

if TYPE_CHECKING:
    from medusa_core.loading.measure.machine import MeasuredRates


@dataclass(frozen=True)
class PolicySearch:
    """Searches and forecasts policies.

    Attributes:
        request: The model and its prompts.
        budget: Memory of the device.
        room: Room for offloaded layers.
        rules: Restrictions of the search.
        rates: Kept measurements.
    """

    request: PolicyRequest
    budget: Budget
    room: OffloadRoom
    rules: Rules
    rates: MeasuredRates

    @cached_property
    def workload(self) -> Workload:
        """The request in bytes and rows."""
        return workload_of(self.request)

    @cached_property
    def machine(self) -> MachineRates:
        """This machine.

        Raises:
            TierError: The disk can't be written.
        """
        from medusa_core.loading.measure.machine import measure_machine

        return measure_machine(self.request, self.budget, self.room, self.rates)

    def best(self, missing_bytes: int = 0) -> FoundPolicy:
        """Find the policy of the most tokens per second.

        Args:
            missing_bytes: Bytes that an earlier policy needed more than the device had.

        Raises:
            PlanError: No policy fits.
        """
        room = self.machine.device_bytes - missing_bytes
        found = search(self.workload, self.machine.with_room(Tier.DEVICE, room), self.rules)
        if found is None:
            raise PlanError(
                tr("The model has no room on any tier of {0}.", self.budget.name),
                "Give it more --memory-gib, or name a folder on a disk that is less full with "
                "--tier-disk.",
            )
        # Formats aren't searched: they change the text.
        formats = self.request.formats
        policy = replace(found.policy, cache_format=formats.cache_format, attended=formats.attended)
        return found._replace(policy=policy)

    def forecast(self, policy: Policy) -> FoundPolicy:
        """Return a given policy with its forecast."""
        return FoundPolicy(policy, forecast_policy(self.workload, self.machine, policy))

    def resident_cache(self) -> PolicySearch:
        """Return the search of policies whose KV rows and activations are on the device."""
        return replace(self._measured(), rules=replace(self.rules, may_offload_cache=False))

    def without_overlap(self) -> PolicySearch:
        """Return the search for an engine that loads and computes in turns."""
        return replace(self._measured(), rules=replace(self.rules, overlaps=False))

    def one_prompt(self) -> PolicySearch:
        """Return the search for one prompt at a time."""
        return replace(self._measured(), request=replace(self.request, num_prompts=1))

    def _measured(self) -> PolicySearch:
        """Return this search after measuring, so that a derived one doesn't measure again."""
        _ = self.machine
        return replace(self, rates=replace(self.rates, remeasure=()))
